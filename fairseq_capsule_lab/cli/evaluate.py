"""Average the checkpoints of a run of train.sh, translate with the average, and score the translations.

    evaluate.sh [OPTION VALUE]... RUN DATA

  RUN            the run folder, or another folder with fairseq's checkpoints
  DATA           OUT of a prepare script, or its `bin`: OUT/bin is translated, OUT/raw has the references (test.de,
                 also test.en1, ...)
  --split NAME   one or several: --split test --split test1, or --split test,test1 (test)
  --checkpoints WHICH
                 average last:N or best:N, or take one file of RUN. Default: last:N, where N is
                 checkpoint.keep_last_epochs or keep_interval_updates of the configuration, or fewer if there are
                 fewer; without either, checkpoint_best.pt
  --beam N, --lenpen X, --nbest N
                 decoding options (generation.beam, .lenpen and .nbest of the configuration, otherwise 5, 1 and 1)
  --max-tokens N tokens per batch in decoding (12,000)
  --lowercase    ignore case in the scores
  --against RUN2 a run that was evaluated on the same splits: test every difference by a paired bootstrap
  --results NAME the name of the output folder (evaluation)
  --user-dir DIR the plugin that defines the model, if it is not of this package (docs/extending.md). It is a
                 program, so RUN alone cannot name it

  RUN/evaluation/SPLIT/generate.out
                 the output of fairseq-generate, with all N best
  RUN/evaluation/SPLIT/translations.LANG, scores.txt, scores.json
                 detokenised translations; every figure with its label and signature; the same as a JSON object

A summarisation run gets ROUGE instead of BLEU. The same command again does only what is missing: other scoring
options score again, but do not translate again.
"""

from collections.abc import Sequence

from fairseq_capsule_lab.cli.arguments import read_words
from fairseq_capsule_lab.errors import LabError

OPTIONS = ("split", "checkpoints", "beam", "lenpen", "nbest", "max-tokens", "against", "user-dir", "results")


def run(program: str, words: Sequence[str]) -> None:
    options, places = read_words(words, OPTIONS, flags=("lowercase",), repeated=("split",))
    if len(places) != 2:
        raise LabError(f"name RUN and DATA, not {len(places)} places (see --help)")
    from fairseq_capsule_lab.runs.evaluate import evaluate

    evaluate(program, {**options, "run": places[0], "data": places[1]})
