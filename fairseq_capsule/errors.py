"""The exception for errors that a user can fix."""

from fairseq_capsule_runs.values import RunError, one_line

__all__ = ["UserError", "one_line"]


class UserError(RunError):
    """An error that the user can fix. The message is one line that states what is wrong and what to do.

    The `fairseq-capsule` commands print only this line and exit with status 1. In fairseq's commands it is the last
    line of the traceback.
    """
