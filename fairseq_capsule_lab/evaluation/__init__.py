"""Scores of translations and of summaries."""
