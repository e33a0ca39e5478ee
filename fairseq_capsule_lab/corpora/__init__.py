"""Embedded corpora, one package each: generated in pure Python, the same for a seed on every machine."""
