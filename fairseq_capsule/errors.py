"""The exception for errors that a user can fix."""

import re
from importlib import metadata

from fairseq_capsule_runs.values import RunError, one_line

__all__ = ["UserError", "missing_library", "one_line"]


class UserError(RunError):
    """An error that the user can fix. The message is one line that states what is wrong and what to do.

    The `fairseq-capsule` commands print only this line and exit with status 1. In fairseq's commands it is the last
    line of the traceback.
    """


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
