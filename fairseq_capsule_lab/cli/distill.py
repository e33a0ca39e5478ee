"""Sequence-level distillation (Kim and Rush 2016): translate the training set with a teacher, as the data of students.

    distill.sh [--beam N] [--lenpen X] [--shards N] [--processes N] [--max-tokens N] [--user-dir DIR]
               TEACHER DATA OUT

  TEACHER        a checkpoint of any translation model that fairseq and this package can load
  DATA           OUT of a prepare script or its `bin`, with the teacher's languages and dictionaries
  --beam N, --lenpen X
                 options of the teacher's decoding (8 and 0.8, as in Wang et al. 2019)
  --shards N     number of pieces of the training set (32); finished pieces survive an interruption
  --processes N  pieces to translate at the same time (one per GPU; without a GPU, one per core)
  --max-tokens N tokens per batch of a process (4,096)
  --user-dir DIR the plugin that defines the teacher, if it is not of this package (docs/extending.md)

  OUT/bin        DATA with the teacher's translations as targets of the training set. The dictionaries, validation and
                 test sets are those of DATA
  OUT/shards     the teacher's output; OUT/manifest.tsv: command, versions, hashes, counts

A sentence keeps its own target if its translation is empty or reaches the maximum length (twice the source plus 10),
or if the teacher skips it because it is too long. The script prints how many do.

The same command resumes an interrupted run. It does nothing after a finished run.
"""

from collections.abc import Sequence

from fairseq_capsule_lab.cli.arguments import read_words
from fairseq_capsule_lab.errors import LabError

DEFAULTS = {"beam": "8", "lenpen": "0.8", "shards": "32", "processes": "", "max-tokens": "4096", "user-dir": ""}


def run(program: str, words: Sequence[str]) -> None:
    options, places = read_words(words, tuple(DEFAULTS))
    if len(places) != 3:
        raise LabError(f"name TEACHER, DATA and OUT, not {len(places)} places (see --help)")
    from fairseq_capsule_lab.runs.distill import distill  # it imports fairseq

    options = {name: value or DEFAULTS[name] for name, value in options.items()}
    distill(program, words, {**options, **dict(zip(("teacher", "data", "out"), places))})
