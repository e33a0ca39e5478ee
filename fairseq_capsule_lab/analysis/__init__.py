"""Analyses of translations and models by length, word and routing iteration: figures, tables and charts."""
