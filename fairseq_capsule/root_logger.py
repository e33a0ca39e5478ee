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
