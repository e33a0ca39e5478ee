"""Corpora: how each becomes the data of fairseq, two that are embedded as files, and the check of prepared data."""
