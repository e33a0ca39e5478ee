"""The command by which the workflow of tables makes a run folder.

    python -m fairseq_capsule_lab.runs SCRIPT adopt NAME=VALUE...

`adopt` puts a trained checkpoint into its own run folder, as the baseline of tables. An error is one line that begins
with SCRIPT, with status 1.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from fairseq_capsule.errors import UserError, one_line
from fairseq_capsule_lab.runs.folder import RunFolder


def main(arguments: Sequence[str]) -> int:
    script, _, *words = arguments
    values = dict(word.split("=", 1) for word in words)
    try:
        RunFolder(Path(values["out"])).adopt(Path(values["checkpoint"]), values["source"], values["target"])
        return 0
    except UserError as error:
        reason = str(error)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    print(f"{script}: {one_line(reason)}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
