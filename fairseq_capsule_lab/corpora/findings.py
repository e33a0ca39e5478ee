"""Findings of a check of a prepared folder."""

from dataclasses import dataclass
from typing import Optional

from fairseq_capsule.errors import one_line


@dataclass(frozen=True)
class Finding:
    """A problem in a file.

    Attributes:
        file: the name of the file.
        line: the first line with the problem, counted from 1, or None if the problem is not in a line.
        problem: what is wrong and what to do.
        lines: how many lines have the problem.
    """

    file: str
    line: Optional[int]
    problem: str
    lines: int = 1

    def __str__(self) -> str:
        place = f"{self.file}, line {self.line}" if self.line else self.file
        return one_line(f"{place}: {self.problem}") + (f" (and {self.lines - 1} more lines)" if self.lines > 1 else "")
