"""Blocks of lines on all cores, in order and in constant memory, with a progress bar on a terminal."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO, TypeVar

from tqdm import tqdm

from capsule_routing.errors import one_line
from fairseq_capsule_lab.processes import cores

BLOCK = 1 << 17  # characters; smaller blocks divide a small text among the cores
Filter = Callable[[str, str], str]
Task = TypeVar("Task")
Result = TypeVar("Result")


class Block(NamedTuple):
    """Consecutive lines of a file SPLIT.LANG, with their line feeds."""

    name: str
    lines: list[str]


class Bar(tqdm):
    """A bar that starts no thread, because a process with threads is not forked safely."""

    monitor_interval = 0


def progress_bar(items: Any, desc: str = "", **options: Any) -> Bar:
    """Return a bar that yields the items, shown on a terminal only. What could control it is escaped in its name."""
    return Bar(items, desc=one_line(desc), delay=2, disable=not sys.stderr.isatty(), **options)


@contextlib.contextmanager
def workers(log: BinaryIO, number: int = 0) -> Iterator[Executor]:
    """Start processes, 0: one for each core. They end with this one, whatever ends it, and print to the log."""
    # A fork costs nothing, and this process has no threads.
    kind = "fork" if "fork" in multiprocessing.get_all_start_methods() else None
    context = multiprocessing.get_context(kind)
    executor = ProcessPoolExecutor(number or cores(), context, _start, (os.path.abspath(log.name),))
    try:
        yield executor
    except BaseException:
        for child in multiprocessing.active_children():
            child.kill()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def _start(log: str) -> None:
    with open(log, "ab") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # this process's parent ends it
    for number in (signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        os._exit(1)


def in_order(executor: Executor, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
    """Yield the results of all tasks in their order. Only a few tasks are in memory at a time."""
    waiting: deque[Future[Result]] = deque()
    for task in tasks:
        if len(waiting) == 2 * cores():
            yield waiting.popleft().result()
        waiting.append(executor.submit(function, task))
    while waiting:
        yield waiting.popleft().result()


def blocks(files: Iterable[Path]) -> Iterator[Block]:
    """Yield the lines of files."""
    for file in files:
        with open(file, encoding="utf-8", newline="\n") as text:
            yield from _blocks_of(file.name, text)


def _blocks_of(name: str, text: TextIO) -> Iterator[Block]:
    while lines := text.readlines(BLOCK):
        yield Block(name, lines)


def filter_folder(change: Filter, source: Path, target: Path, log: BinaryIO) -> None:
    """Make a folder with the files SPLIT.LANG of another one, each line filtered.

    Further references, SPLIT.LANG1, are left out. If the folder exists, its other files stay.
    """
    files = sorted(file for file in source.iterdir() if "." in file.name and file.name[-1].isalpha())
    target.mkdir(exist_ok=True)
    with workers(log) as executor, contextlib.ExitStack() as stack:
        done = in_order(executor, partial(_filter_block, change), blocks(files))
        outputs = {
            file.name: stack.enter_context(open(target / file.name, "w", encoding="utf-8", newline="\n"))
            for file in files
        }
        for block in progress_bar(done, desc=target.name.partition(".")[0], unit=" blocks"):
            outputs[block.name].writelines(block.lines)


def filter_stream(change: Filter, source: TextIO, target: TextIO, log: BinaryIO) -> None:
    """Write each line of a text filtered. The filter gets no language."""
    with workers(log) as executor:
        for block in in_order(executor, partial(_filter_block, change), _blocks_of("", source)):
            target.writelines(block.lines)


def _filter_block(change: Filter, block: Block) -> Block:
    language = block.name.rpartition(".")[2]
    lines = (line.removesuffix("\n") for line in block.lines)
    return Block(block.name, [f"{change(language, line)}\n" for line in lines])
