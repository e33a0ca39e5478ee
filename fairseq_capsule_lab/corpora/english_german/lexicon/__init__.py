"""The words: tables to read and extend, one class of words per file.

The columns of a table are separated by two or more spaces. A line that begins with `#` is a comment.
"""
