"""Text for a model and from it: words and subwords, folders of the prepare scripts, files, ROUGE. It needs no torch."""
