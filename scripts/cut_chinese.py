"""Segment Chinese into words separated by spaces, from standard input, after cleaning, to standard output."""

import logging
import sys

import jieba
from one_line import one_line

if __name__ == "__main__":
    jieba.setLogLevel(logging.WARNING)
    for line in sys.stdin:
        print(*(word for word in jieba.cut(one_line(line)) if word != " "))
