"""The words: tables to be read and added to, one class of words a file.

A table's columns are separated by two or more blanks; a line that begins with `#` is a remark.
"""
