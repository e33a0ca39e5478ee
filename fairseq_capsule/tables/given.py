"""Puts a trained checkpoint into the folder of runs as the baseline of the tables there.

    python -m fairseq_capsule.tables.given CHECKPOINT PLACE SOURCE TARGET

PLACE becomes a link to CHECKPOINT; beside it stand the settings and the mark of a finished run of train.sh, by which
evaluate.sh knows the folder.
"""

import os
import sys
from pathlib import Path

from fairseq_capsule.files import write_whole


def adopt(checkpoint: Path, place: Path, source: str, target: str) -> None:
    """Make the folder of `place`; the link, which says that all is there, comes last."""
    place.parent.mkdir(parents=True, exist_ok=True)
    languages = f"task.source_lang {source}\ntask.target_lang {target}\ntask._name translation\n"
    write_whole(place.parent / "settings", f"given {checkpoint.resolve()}\n{languages}".encode())
    write_whole(place.parent / "finished", b"given\n")
    os.symlink(checkpoint.resolve(), place)


if __name__ == "__main__":
    adopt(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
