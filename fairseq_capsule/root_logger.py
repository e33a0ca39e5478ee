"""The root logger, which fairseq sets to DEBUG when it is imported: every library would log how it works."""

import logging
from contextlib import contextmanager
from typing import Iterator


@contextmanager
def unchanged_root_logger() -> Iterator[None]:
    """Restore the level and the handlers of the root logger at the end of a block."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


def keep_root_logger() -> None:
    """Set the root logger to warnings, for the rest of the process. fairseq configures it only if it has no handler."""
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    if logging.lastResort not in root.handlers and logging.lastResort is not None:
        root.addHandler(logging.lastResort)  # what prints warnings of a logger without a handler
