"""Puts a trained checkpoint into the folder of runs as the baseline of the tables there.

    python -m fairseq_capsule.tables.given CHECKPOINT PLACE SOURCE TARGET

PLACE becomes a link to CHECKPOINT; beside it stand the settings and the mark of a finished run of train.sh, by which
evaluate.sh knows the folder.
"""

import os
import sys
from pathlib import Path

from fairseq_capsule_runs import RunError, RunFolder, Settings


def adopt(checkpoint: Path, place: Path, source: str, target: str) -> None:
    """Make the folder of `place`; the link, which says that all is there, comes last."""
    place.parent.mkdir(parents=True, exist_ok=True)
    task = {"_name": "translation", "source_lang": source, "target_lang": target}
    folder = RunFolder(place.parent)
    folder.write_settings(Settings({"task": task}, {"given": str(checkpoint.resolve())}))
    folder.finish()
    os.symlink(checkpoint.resolve(), place)


if __name__ == "__main__":
    try:
        adopt(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
    except RunError as error:
        sys.exit(str(error))
