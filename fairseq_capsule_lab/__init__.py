"""Work around the plugin: corpora, trainings, scores, analyses, tables and pages. Importing it needs no torch."""
