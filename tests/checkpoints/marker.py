"""`MARKER` is a file that must never exist: hostile code creates it when it runs."""

import os
import tempfile
from pathlib import Path

MARKER = Path(tempfile.gettempdir()) / f"a-checkpoint-ran-{os.getpid()}"
CALL = f"__import__('os').system('touch {MARKER}')"
OPEN = f"open('{MARKER}', 'w')"
