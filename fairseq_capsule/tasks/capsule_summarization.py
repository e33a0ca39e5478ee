"""Summarisation at character level (Weng et al., §3.1), evaluated by ROUGE."""

import json
from argparse import Namespace
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, Dict, Self

import numpy as np
import torch
from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.data import FairseqDataset
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import BaseFairseqModel
from fairseq.tasks import register_task
from hydra.core.config_store import ConfigStore
from torch import Tensor

from capsule_routing.errors import UserError
from capsule_routing.text.rouge import ROUGE_TYPES, CharacterRouge
from fairseq_capsule.options import setting
from fairseq_capsule.tasks import capsule_translation as base
from fairseq_capsule.tasks.capsule_translation import CapsuleTranslationTask, Logs, Sample


@dataclass
class CharactersConfig(FairseqDataclass):
    """The config of `--bpe characters`. fairseq registers it without one, but its commands look up configs by name."""

    _name: str = "characters"


ConfigStore.instance().store(name="characters", group="bpe", node=CharactersConfig, provider="fairseq_capsule")


@dataclass
class CapsuleSummarizationConfig(base.CapsuleTranslationConfig):
    vocabulary: int = setting(3500, "maximum number of characters in a dictionary; a larger dictionary is refused")
    eval_rouge: bool = setting(False, "report ROUGE-1, ROUGE-2 and ROUGE-L F1 over characters at validation")
    eval_rouge_args: str = setting('{"beam": 5}', "options of fairseq-generate for --eval-rouge, as a JSON object")


@register_task("capsule_summarization", dataclass=CapsuleSummarizationConfig)
class CapsuleSummarizationTask(CapsuleTranslationTask):
    """`capsule_translation` from texts to summaries. The tokens are characters."""

    @classmethod
    def setup_task(cls, cfg: Any, **kwargs: Any) -> Self:
        """Load the dictionaries. Raises a UserError if one has more characters than `--vocabulary`.

        So it refuses words and subwords.
        """
        task = super().setup_task(cfg, **kwargs)
        for language, dictionary in ((cfg.source_lang, task.src_dict), (cfg.target_lang, task.tgt_dict)):
            symbols = dictionary.symbols[dictionary.nspecial :]
            size = sum(not symbol.startswith("madeupword") for symbol in symbols)  # these pad the size to a multiple
            if size > cfg.vocabulary:
                file = f"{utils.split_paths(cfg.data)[0]}/dict.{language}.txt"
                remedy = "prepare the data with a smaller vocabulary, or increase the option"
                raise UserError(f"{file}: {size} characters, more than --vocabulary {cfg.vocabulary}; {remedy}")
        return task

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Load a split. Raises a UserError if a text has no characters."""
        super().load_dataset(split, epoch, combine, **kwargs)
        _refuse_empty(f"{self.cfg.data}, {split}", self.datasets[split].src_sizes)

    def build_dataset_for_inference(self, src_tokens: Any, src_lengths: Any, constraints: Any = None) -> FairseqDataset:
        """Build the dataset for the input of `fairseq-interactive`. Raises a UserError if a text has no characters."""
        _refuse_empty("input", np.asarray(src_lengths))
        return super().build_dataset_for_inference(src_tokens, src_lengths, constraints)

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> BaseFairseqModel:
        model = super().build_model(cfg, from_checkpoint)
        if self.cfg.eval_rouge:
            self._rouge = CharacterRouge()
            self._generator = self.build_generator([model], Namespace(**self._generation_options()))
        return model

    def valid_step(self, sample: Sample, model: BaseFairseqModel, criterion: FairseqCriterion) -> Any:
        loss, sample_size, output = super().valid_step(sample, model, criterion)
        if self.cfg.eval_rouge:
            output.update(self._rouge_sums(sample, model))
        return loss, sample_size, output

    def reduce_metrics(self, logging_outputs: Logs, criterion: FairseqCriterion) -> None:
        super().reduce_metrics(logging_outputs, criterion)
        base.log_means(logging_outputs, "rouge", digits=2)

    def _generation_options(self) -> Dict[str, Any]:
        options: Any = None
        with suppress(json.JSONDecodeError):
            options = json.loads(self.cfg.eval_rouge_args)
        if not isinstance(options, dict):
            example = 'it must be a JSON object, such as {"beam": 5}'
            raise UserError(f"--eval-rouge-args {self.cfg.eval_rouge_args}: {example}")
        known = {item.name: item.type for item in fields(GenerationConfig)}
        types: Dict[Any, Any] = {int: (int,), bool: (bool,), str: (str,), float: (int, float)}
        for name, value in options.items():
            if name not in known:
                raise UserError(f"--eval-rouge-args: {name} is not an option of fairseq-generate (beam, lenpen, …)")
            if type(value) not in types.get(known[name], (type(value),)) or (name == "beam" and value < 1):
                raise UserError(f"--eval-rouge-args: {name} cannot be {value!r}")
        return options

    @torch.no_grad()
    def _rouge_sums(self, sample: Sample, model: BaseFairseqModel) -> Dict[str, float]:
        scores = []
        for hypotheses, target in zip(self.inference_step(self._generator, [model], sample), sample["target"]):
            reference = utils.strip_pad(target, self.tgt_dict.pad())
            # Unknown characters of the reference become a character that no hypothesis contains.
            texts = self._text(hypotheses[0]["tokens"]), [self._text(reference, unk_string="\N{REPLACEMENT CHARACTER}")]
            scores.append(self._rouge.f1(*texts))
        totals = {f"{name}_total": 100 * sum(score[name] for score in scores) for name in ROUGE_TYPES}
        return {**totals, **{f"{name}_count": len(scores) for name in ROUGE_TYPES}}

    def _text(self, tokens: Tensor, **options: Any) -> Any:
        return self.tgt_dict.string(tokens.int().cpu(), **options)


def _refuse_empty(place: str, lengths: np.ndarray) -> None:
    empty = np.flatnonzero(lengths <= 1)  # only the end-of-sentence token
    if len(empty):
        raise UserError(f"{place}: text {empty[0] + 1} has no characters ({len(empty)} such texts); leave it out")
