"""Quality of a trained model that routes with another number of iterations than in training."""

import math
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import torch
from fairseq import utils
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask

from fairseq_capsule.analysis.charts import lines
from fairseq_capsule.analysis.reports import Report, column, markdown_table
from fairseq_capsule.checkpoints.models import load_with_data
from fairseq_capsule.data.batches import batches
from fairseq_capsule.errors import UserError
from fairseq_capsule.evaluation.scoring import tokenised_bleu
from fairseq_capsule.models.mechanism import mechanisms
from fairseq_capsule.models.options import option


@dataclass(frozen=True)
class IterationRow:
    system: str = column("system")
    option: str = column("option")
    iterations: int = column("iterations")
    trained_with: int = column("trained with")
    bleu: float = column("BLEU")
    nll: float = column("NLL, base 2", digits=3)


def iteration_options() -> List[str]:
    """The options that set a number of routing iterations, of every mechanism."""
    return [each.iterations for each in mechanisms() if each.iterations is not None]


def routing_option(label: str, config: Any, wanted: Optional[str] = None) -> str:
    """The name of what sets the iterations of a model's routing.

    Args:
        label: what the model is called in an error.
        config: the options that it was trained with.
        wanted: which one, where it has several.

    Raises:
        UserError: it routes nothing, not what is wanted, or by several options of which none is wanted.
    """
    found = [each.iterations for each in mechanisms() if each.iterations is not None and each.routes(config)]
    names = " and ".join(option(name) for name in found)
    if not found:
        raise UserError(f"{label}: its model has no routing, so no number of iterations to set")
    if wanted is None and len(found) > 1:
        raise UserError(f"{label}: its model has {names}; say which to set with --option")
    if wanted is not None and wanted not in found:
        raise UserError(f"{label}: its model has no {option(wanted)} to set; it has {names}")
    return wanted or found[0]


@torch.no_grad()
def quality(
    model: BaseFairseqModel,
    task: FairseqTask,
    samples: Iterable[Dict[str, Any]],
    beam: int,
    lenpen: float,
    lowercase: bool = False,
) -> Tuple[float, float]:
    """Tokenised BLEU of a model's translations, as `fairseq-generate --remove-bpe` counts it, and its NLL per target
    token, base 2, as `fairseq-validate` reports it."""
    generator = task.build_generator([model], Namespace(beam=beam, lenpen=lenpen))
    dictionary = task.target_dictionary
    hypotheses, references, nll, tokens = [], [], 0.0, 0
    for sample in samples:
        logprobs = model.get_normalized_probs(model(**sample["net_input"]), log_probs=True)
        target = sample["target"]
        valid = target.ne(dictionary.pad())
        nll -= float(logprobs.gather(-1, target.unsqueeze(-1)).squeeze(-1)[valid].double().sum())
        tokens += int(valid.sum())
        for found, words in zip(task.inference_step(generator, [model], sample), target):
            hypotheses.append(dictionary.string(found[0]["tokens"].int().cpu(), "subword_nmt"))
            reference = utils.strip_pad(words, dictionary.pad()).int().cpu()
            references.append(dictionary.string(reference, "subword_nmt", escape_unk=True))
    bleu = tokenised_bleu(lowercase).corpus_score(hypotheses, [references]).score
    return bleu, nll / tokens / math.log(2)


def iteration_report(
    names: Sequence[str],
    checkpoints: Sequence[Path],
    data: Path,
    split: str,
    numbers: Sequence[int],
    wanted: Optional[str] = None,
    **decoding: Any,
) -> Report:
    """Quality of every checkpoint with every number of iterations.

    Args:
        numbers: of iterations.
        wanted: what sets them, where a model has several routings.
        decoding: `beam`, `lenpen` and `lowercase` of `quality`.

    Raises:
        UserError: a model that routes nothing; a number that its weights do not allow, before anything is translated;
            or as `load_with_data`, `batches`.
    """
    options = [_option_and_number(path, data, numbers, wanted) for path in checkpoints]
    rows: List[IterationRow] = []
    for name, path, (setting, trained) in zip(names, checkpoints, options):
        for number in numbers:
            model, _, task = load_with_data(path, data, {setting: number})
            samples = batches(task, split, f"{name}, {number} iterations")
            found = quality(model, task, samples, **decoding)
            rows.append(IterationRow(name, option(setting), number, trained, *found))
    panels = {
        label: {name: [getattr(row, field) for row in rows if row.system == name] for name in names}
        for label, field in (("tokenised BLEU", "bleu"), ("NLL per token, base 2", "nll"))
    }
    markdown = (
        f"# Routing iterations at inference\n\nOn {split}, models as they were trained, routing with other numbers of "
        f"iterations. Tokenised BLEU, beam {decoding['beam']}, length penalty {decoding['lenpen']:g}.\n\n"
        f"{markdown_table(rows)}"
    )
    figure = lines(panels, [str(number) for number in numbers], "iterations", "Routing iterations at inference")
    return Report("iterations", markdown, rows, figure)


def _option_and_number(path: Path, data: Path, numbers: Sequence[int], wanted: Optional[str]) -> Tuple[str, int]:
    """What sets a checkpoint's iterations, and to how many in training; it is loaded with every number, as a trial."""
    _, cfg, _ = load_with_data(path, data)
    setting = routing_option(str(path), cfg.model, wanted)
    for number in numbers:
        try:
            load_with_data(path, data, {setting: number})
        except UserError as error:
            raise UserError(f"{path}: {error}") from error
    return setting, getattr(cfg.model, setting)
