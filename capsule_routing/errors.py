"""The exception for errors that a user can fix."""

import re
from importlib import metadata


class UserError(Exception):
    """An error that the user can fix. The message is one line that states what is wrong and what to do.

    The `fairseq-capsule` commands print only this line and exit with status 1. In fairseq's commands it is the last
    line of the traceback.
    """

    def __init__(self, message: str):
        super().__init__(one_line(message))


def one_line(text: str) -> str:
    """Escape the characters of a text that are not printable, such as line breaks and colour codes of a terminal."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 epoch`, `2 epochs`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def missing_library(error: ModuleNotFoundError) -> UserError:
    """Name the extra of this package that installs what an import did not find."""
    library = str(error.name).partition(".")[0]
    try:
        requirements = metadata.requires("fairseq-capsule") or []
    except metadata.PackageNotFoundError:  # the package is used by its path
        requirements = []
    for requirement in requirements:
        name = re.match(r"[\w-]+", requirement)
        extra = re.search(r"""extra == ["']([\w-]+)["']""", requirement)
        if name and extra and name[0].replace("-", "_").lower() == library.lower():
            return UserError(f"{library} is not installed: pip install 'fairseq-capsule[{extra[1]}]'")
    return UserError(f"{error}; 'fairseq-capsule doctor' states what to install")
