"""`fairseq-capsule evaluate`, which scripts/evaluate.sh calls: average checkpoints, translate and score."""

from collections.abc import Sequence
from pathlib import Path

import click

from fairseq_capsule_lab import defaults
from fairseq_capsule_lab.cli.arguments import (
    BLEU_TOKENIZER,
    DRY_RUN,
    LENGTH_PENALTY,
    LOWERCASE,
    given,
    input_folder,
    positive_int,
    prepared_data,
)
from fairseq_capsule_lab.cli.commands import argument, command, option

DATA = "OUT of a prepare script, or its bin. OUT/bin is translated; OUT/raw has the references: test.de, test.en1, …"
SPLITS = "One or several splits: --split test --split test1, or --split test,test1.  [default: test]"
CHECKPOINTS = (
    "Average last:N or best:N (with :updates those of updates, where there are epochs too), or take one file of RUN.  "
    "[default: last:N, where N is checkpoint.keep_last_epochs or keep_interval_updates of the configuration, or fewer "
    "if there are fewer; without either, checkpoint_best.pt]"
)
LENPEN = f"Length penalty.  [default: generation.lenpen of the configuration, or {defaults.LENGTH_PENALTY:g}]"
NBEST = f"Translations to keep.  [default: generation.nbest of the configuration, or {defaults.NBEST}]"
LONGEST = "Most tokens of a translation; the rest is cut.  [default: generation.max_len_b of the configuration, or 200]"
REPEATS = (
    "No N tokens twice in a translation.  [default: generation.no_repeat_ngram_size of the configuration, or 0: off]"
)
PLUGIN = "The plugin that defines the model, if it is your own. It is a program, so RUN alone cannot name it."


@command("evaluate", "runs/capsule data/multi30k --against runs/transformer")
@argument("run", input_folder, "The run folder of a training, or another folder with fairseq's checkpoints.")
@argument("data", prepared_data, DATA)
@option("--split", given, "NAME", SPLITS, multiple=True)
@option("--checkpoints", given, "WHICH", CHECKPOINTS)
@option("--beam", positive_int, "N", f"Beam size.  [default: generation.beam of the configuration, or {defaults.BEAM}]")
@option("--lenpen", LENGTH_PENALTY, "X", LENPEN)
@option("--nbest", positive_int, "N", NBEST)
@option("--max-len-b", positive_int, "N", LONGEST)
@option("--no-repeat-ngram-size", click.IntRange(0, 100), "N", REPEATS)
@option("--max-tokens", positive_int, "N", "Tokens in a batch of the decoding.", default=defaults.MAX_TOKENS)
@LOWERCASE
@BLEU_TOKENIZER
@option("--against", input_folder, "RUN2", "Another evaluated run: test every difference by a paired bootstrap.")
@option("--results", given, "NAME", "Name of the output folder.", default="evaluation")
@option("--user-dir", given, "DIR", PLUGIN)
@DRY_RUN
def evaluate(
    run: Path,
    data: Path,
    split: Sequence[str],
    checkpoints: str | None,
    beam: int | None,
    lenpen: float | None,
    nbest: int | None,
    max_len_b: int | None,
    no_repeat_ngram_size: int | None,
    max_tokens: int,
    lowercase: bool,
    bleu_tokenizer: str | None,
    against: Path | None,
    results: str,
    user_dir: str | None,
    dry_run: bool,
) -> None:
    """Average the checkpoints of a run, translate with the average, and score the translations.

    A summarisation run gets ROUGE instead of BLEU. The same command again does only what is missing: other scoring
    options score again, but do not translate again.
    """
    from fairseq_capsule_lab.runs import evaluate as runs

    arguments = runs.EvaluationArguments(
        run=run,
        data=data,
        split=split,
        checkpoints=checkpoints,
        beam=beam,
        lenpen=lenpen,
        nbest=nbest,
        max_len_b=max_len_b,
        no_repeat_ngram_size=no_repeat_ngram_size,
        max_tokens=max_tokens,
        lowercase=lowercase,
        bleu_tokenizer=bleu_tokenizer,
        against=against,
        results=results,
        user_dir=user_dir,
    )
    runs.evaluate(click.get_current_context().command_path, arguments, dry_run)
