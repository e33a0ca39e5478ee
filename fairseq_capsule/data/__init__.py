"""Prepared data: texts, subwords, dictionaries and binarised files, and checks of them."""
