"""Reading of texts."""

from pathlib import Path
from typing import List, Union

from fairseq_capsule.errors import UserError


def read_lines(path: Union[str, Path]) -> List[str]:
    """Read the lines of a UTF-8 text.

    Only line feeds separate lines, because a sentence may contain other separators of Unicode.

    Raises:
        UserError: the file is empty, or is not UTF-8. Then the message names the line.
    """
    content = Path(path).read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}, line {line}: not UTF-8 ({error.reason}); convert it: iconv -f LATIN1 -t UTF-8"
        ) from None
    if not text.strip():
        raise UserError(f"{path}: empty; give a file with one sentence on each line")
    return [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]
