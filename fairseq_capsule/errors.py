"""The one exception that a user of the package is meant to read."""


class UserError(Exception):
    """Something the user can mend. The message is one line that names the thing and the mend.

    The `fairseq-capsule` commands print the line alone and exit with status 1; inside fairseq's own commands it is
    the last line of the traceback.
    """
