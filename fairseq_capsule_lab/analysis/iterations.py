"""Quality of a trained model by its number of routing iterations at inference."""

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

import torch
from fairseq import utils
from fairseq.data.data_utils import post_process
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask

from capsule_routing.errors import UserError
from capsule_routing.text.languages import bleu, has_spaces, has_words
from fairseq_capsule.checkpoints.models import load_with_data
from fairseq_capsule.mechanisms.registry import active_mechanisms, mechanisms
from fairseq_capsule.options import option
from fairseq_capsule_lab.analysis.batches import batches, negative_log_likelihood
from fairseq_capsule_lab.analysis.charts import lines
from fairseq_capsule_lab.analysis.output import Analysis, column, make_analysis, series
from fairseq_capsule_lab.evaluation.scores import default_tokens, tokenised_bleu
from fairseq_capsule_lab.evaluation.translations import subwords_of


@dataclass(frozen=True)
class IterationRow:
    system: str = column("system")
    option: str = column("option")
    iterations: int = column("iterations")
    trained_with: int = column("trained with")
    bleu: float = column("BLEU")
    nll: float = column("NLL, base 2", digits=3)


def iteration_options() -> List[str]:
    """The options of all mechanisms that set a number of routing iterations."""
    return [mechanism.iterations for mechanism in mechanisms() if mechanism.iterations is not None]


def routing_option(label: str, model: BaseFairseqModel, choice: Optional[str] = None) -> str:
    """The name of the option that sets the routing iterations of a model; `label` names the model in errors.

    Raises:
        UserError: the model has no routing or not the chosen option, or has several options and none is chosen.
    """
    config = getattr(model, "cfg", None)
    options = [str(mechanism.iterations) for mechanism in active_mechanisms(config) if mechanism.iterates(config)]
    names = " and ".join(map(option, options))
    if not options:
        raise UserError(f"{label}: its model has no routing iterations to set; give a model with routing")
    if choice is None and len(options) > 1:
        raise UserError(f"{label}: its model has {names}; choose one with --option")
    if choice is not None and choice not in options:
        raise UserError(f"{label}: its model has no {option(choice)}; choose from {names} with --option")
    return choice or options[0]


@torch.no_grad()
def quality(
    model: BaseFairseqModel,
    task: FairseqTask,
    samples: Iterable[Dict[str, Any]],
    beam: int,
    lenpen: float,
    lowercase: bool = False,
    tokenised: Optional[bool] = None,
    tokeniser: Optional[str] = None,
) -> Tuple[float, float]:
    """Tokenised BLEU and NLL of a model.

    The BLEU is that of `fairseq-generate --remove-bpe`. If the subwords are pieces of SentencePiece, or no spaces
    separate the words of the references, the joined text has the `default_tokens` of the language, as in
    `fairseq-capsule score`. The NLL is in bits per target token, as `fairseq-validate` reports it.
    """
    generator = task.build_generator([model], Namespace(beam=beam, lenpen=lenpen))
    dictionary = task.target_dictionary
    hypotheses, references, nll, tokens = [], [], 0.0, 0
    for sample in samples:
        bits, number = negative_log_likelihood(model, sample, dictionary.pad())
        nll += bits
        tokens += number
        for best, words in zip(task.inference_step(generator, [model], sample), sample["target"]):
            hypotheses.append(dictionary.string(best[0]["tokens"].int().cpu()))
            reference = utils.strip_pad(words, dictionary.pad()).int().cpu()
            references.append(dictionary.string(reference, escape_unk=True))
    subwords = subwords_of(references)
    texts = [[post_process(line, subwords) for line in lines] for lines in (hypotheses, references)]
    if tokenised is False or (tokenised is None and subwords == "sentencepiece") or not has_words(texts[1]):
        texts = [default_tokens(lines, task.cfg.target_lang, tokeniser=tokeniser) for lines in texts]
    score = tokenised_bleu(lowercase).corpus_score(texts[0], [texts[1]]).score
    return score, nll / tokens


def analyze_iterations(
    names: Sequence[str],
    checkpoints: Sequence[Path],
    data: Path,
    split: str,
    numbers: Sequence[int],
    choice: Optional[str],
    beam: int,
    lenpen: float,
    lowercase: bool,
    tokenised: Optional[bool],
    tokeniser: Optional[str] = None,
) -> Analysis:
    """The quality of every checkpoint with every number of iterations; the last five are arguments of `quality`.

    Raises:
        UserError: a model has no routing, or its weights do not allow a number (checked before the first translation);
            also the errors of `routing_option`, `load_with_data` and `batches`.
    """
    options = []
    for path in checkpoints:
        model, cfg, task = load_with_data(path, data)
        if not has_spaces(task.cfg.target_lang):  # others have the tokens of Moses
            bleu(task.cfg.target_lang, tokeniser)  # a missing library is refused before the translation
        setting = routing_option(str(path), model, choice)
        for number in numbers:
            try:
                load_with_data(path, data, {setting: number})
            except UserError as error:
                raise UserError(f"{path}: {error}") from error
        options.append((setting, getattr(cfg.model, setting)))
    rows: List[IterationRow] = []
    for name, path, (setting, trained) in zip(names, checkpoints, options):
        for number in numbers:
            model, _, task = load_with_data(path, data, {setting: number})
            samples = batches(path, task, split, f"{name}, {number} iterations")
            figures = quality(model, task, samples, beam, lenpen, lowercase, tokenised, tokeniser)
            rows.append(IterationRow(name, option(setting), number, trained, *figures))
    panels = series(rows, {"tokenised BLEU": "bleu", "NLL per token, base 2": "nll"})
    title = "Routing iterations at inference"
    text = (
        f"On {split}, the trained models with other numbers of routing iterations. Tokenised BLEU, beam {beam}, length "
        f"penalty {lenpen:g}."
    )
    return make_analysis("iterations", title, text, rows, lines(panels, list(map(str, numbers)), "iterations", title))
