"""What a check of a prepared folder found."""

from dataclasses import dataclass
from typing import Optional

from fairseq_capsule.errors import one_line


@dataclass(frozen=True)
class Finding:
    """`line` is the first with the problem, from 1, None where it is not one of a line; `lines`: how many have it."""

    file: str
    line: Optional[int]
    problem: str
    lines: int = 1

    def __str__(self) -> str:
        place = f"{self.file}, line {self.line}" if self.line else self.file
        return one_line(f"{place}: {self.problem}") + (f" (and {self.lines - 1} more lines)" if self.lines > 1 else "")
