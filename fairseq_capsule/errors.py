"""The one exception that a user of the package is meant to read."""


class UserError(Exception):
    """Something the user can mend. The message is one line that names the thing and the mend.

    The `fairseq-capsule` commands print the line alone and exit with status 1; inside fairseq's own commands it is
    the last line of the traceback.
    """

    def __init__(self, message: str):
        super().__init__(one_line(message))


def one_line(text: str) -> str:
    """The text without what would break or colour a line of a terminal, such as a file's name may hold."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
