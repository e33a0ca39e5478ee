"""Checkpoints: what one may hold, what becomes of it, and averages of several."""
