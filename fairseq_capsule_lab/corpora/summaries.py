"""The preparation of a corpus of summaries. The tokens are characters; source and target share a dictionary."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Optional

from fairseq_capsule_lab.corpora import filters
from fairseq_capsule_lab.corpora.archives import Archives
from fairseq_capsule_lab.corpora.preparation import copy_stage, filter_stage, require_known, run, run_preprocess
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.stages import Folder, Stage

LANGUAGES = ("text", "summary")
VOCABULARY = 3500  # characters in the dictionary
SPECIALS = 4  # symbols that fairseq counts too
LARGE = 1000  # characters; a smaller dictionary may be meant to lack many


def prepare_characters(
    script: str,
    settings: Sequence[str],
    fill: Callable[[RawTexts], None],
    vocabulary: int,
    dictionary: Optional[Path],
    program: str,
    words: Sequence[str],
    out: str,
) -> None:
    """Make what is missing in the folder `out`.

    Args:
        fill: writes the raw texts.
        vocabulary: the largest number of characters in the dictionary.
        dictionary: of an earlier run.
        program, words: what the user called.

    Raises:
        LabError: the folder has other settings, or a stage failed.
    """

    def stages(folder: Folder) -> list[Stage]:
        path = folder.path

        def raw(part: Path, log: BinaryIO) -> None:
            fill(RawTexts(part, LANGUAGES, Archives(None, "", path / "download"), 0))

        def binarised(part: Path, log: BinaryIO) -> None:
            # A padding factor of 1 adds no filler words.
            options = ["--joined-dictionary", "--nwordssrc", str(vocabulary + SPECIALS), "--padding-factor", "1"]
            options += ["--srcdict", str(dictionary)] if dictionary else []
            run_preprocess(path, part, log, LANGUAGES, "characters", options)
            if dictionary and dictionary.read_bytes().count(b"\n") >= LARGE:
                require_known(part, "give --dict of a run on this corpus, or none")

        characters = filter_stage("characters", path / "raw", [filters.spell])
        return [
            Stage("raw", raw),
            characters,
            Stage("bin", binarised),
            copy_stage("dict.txt", path / "bin/dict.text.txt"),
        ]

    run(script, settings, stages, program, words, out)
