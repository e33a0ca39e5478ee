"""Corpora that the package makes itself: pure Python, seeded, the same on every machine; each is a package here."""
