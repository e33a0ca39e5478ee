"""Progress bars, on a terminal only."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from tqdm import tqdm

from fairseq_capsule.errors import one_line


class Bar(tqdm):
    """A bar that starts no thread, because a process with threads is not forked safely."""

    monitor_interval = 0


def progress_bar(items: Any, desc: str = "", **options: Any) -> Bar:
    """Return a bar that yields the items. On another place than a terminal it shows nothing.

    Args:
        desc: its name; what could control a terminal is escaped.
    """
    return Bar(items, desc=one_line(desc), delay=2, disable=not sys.stderr.isatty(), **options)


@contextlib.contextmanager
def bars_of_libraries() -> Iterator[None]:
    """Show what a library writes to standard error on a terminal only."""
    if sys.stderr.isatty():
        yield
        return
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stderr(nowhere):
        yield
