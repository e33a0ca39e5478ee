"""Prepared data: texts, subwords, dictionaries, binarised files, and what is wrong with them."""
