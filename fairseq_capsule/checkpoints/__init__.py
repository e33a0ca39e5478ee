"""Checkpoints: checks of their content, loading, and averaging."""
