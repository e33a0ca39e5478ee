"""What a translation or a model does, by length, by word, by iteration: figures, charts, reports."""
