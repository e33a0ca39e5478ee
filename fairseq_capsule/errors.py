"""The exception for errors that a user can fix."""


class UserError(Exception):
    """An error that the user can fix. The message is one line that states what is wrong and what to do.

    The `fairseq-capsule` commands print only this line and exit with status 1. In fairseq's commands it is the last
    line of the traceback.
    """

    def __init__(self, message: str):
        super().__init__(one_line(message))


def one_line(text: str) -> str:
    """Escape the characters of a text that are not printable, such as line breaks and colour codes of a terminal."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
