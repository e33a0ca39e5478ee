#!/usr/bin/env python3
"""Pack the results of finished runs into a small archive (.tar.xz), and unpack it: `fairseq-capsule share`."""

import os
import sys

from fairseq_capsule_lab.cli import main

if __name__ == "__main__":
    os.environ["CAPSULE_PROGRAM"] = "share_results.py"
    sys.exit(main(["share", *sys.argv[1:]]))
