"""Summarisation at character level (Weng et al., §3.1), evaluated by ROUGE."""

import json
from argparse import Namespace
from dataclasses import dataclass, field, fields

import numpy as np
import torch
from fairseq import utils
from fairseq.dataclass.configs import GenerationConfig
from fairseq.logging import metrics
from fairseq.tasks import register_task
from omegaconf import II

from fairseq_capsule.data.rouge import ROUGE_TYPES, CharacterRouge
from fairseq_capsule.errors import UserError
from fairseq_capsule.tasks.capsule_translation import CapsuleTranslationConfig, CapsuleTranslationTask


@dataclass
class CapsuleSummarizationConfig(CapsuleTranslationConfig):
    vocabulary: int = field(
        default=3500,
        metadata={"help": "maximum number of characters in a dictionary; a larger dictionary is refused"},
    )
    eval_rouge: bool = field(
        default=False,
        metadata={"help": "report ROUGE-1, ROUGE-2 and ROUGE-L F1 over characters at validation"},
    )
    eval_rouge_args: str = field(
        default='{"beam": 5}',
        metadata={"help": "options of fairseq-generate for --eval-rouge, as a JSON object"},
    )
    # Copied here so that setup_task can refuse wrong values early.
    best_checkpoint_metric: str = II("checkpoint.best_checkpoint_metric")
    maximize_best_checkpoint_metric: bool = II("checkpoint.maximize_best_checkpoint_metric")


@register_task("capsule_summarization", dataclass=CapsuleSummarizationConfig)
class CapsuleSummarizationTask(CapsuleTranslationTask):
    """`capsule_translation` from texts to summaries. The tokens are characters."""

    @classmethod
    def setup_task(cls, cfg, **kwargs):
        """Load the dictionaries.

        Raises:
            UserError: a dictionary has more characters than `--vocabulary`, for example because it has words or
                subwords. Or the best checkpoint is chosen by ROUGE, but ROUGE is not computed or not maximised.
        """
        metric = cfg.best_checkpoint_metric
        if metric in ROUGE_TYPES and not (cfg.eval_rouge and cfg.maximize_best_checkpoint_metric):
            raise UserError(
                f"--best-checkpoint-metric {metric} needs --eval-rouge and --maximize-best-checkpoint-metric"
            )
        if cfg.vocabulary < 1:
            raise UserError(f"--vocabulary must be at least 1, not {cfg.vocabulary}")
        task = super().setup_task(cfg, **kwargs)
        for language, dictionary in ((cfg.source_lang, task.src_dict), (cfg.target_lang, task.tgt_dict)):
            symbols = dictionary.symbols[dictionary.nspecial :]
            size = sum(not symbol.startswith("madeupword") for symbol in symbols)  # these pad the size to a multiple
            if size > cfg.vocabulary:
                file = f"{utils.split_paths(cfg.data)[0]}/dict.{language}.txt"
                raise UserError(
                    f"{file}: {size} characters, more than --vocabulary {cfg.vocabulary}; "
                    "prepare the data with a smaller vocabulary, or increase the option"
                )
        return task

    def load_dataset(self, split, epoch=1, combine=False, **kwargs):
        """Load a split.

        Raises:
            UserError: a text has no characters.
        """
        super().load_dataset(split, epoch, combine, **kwargs)
        _refuse_empty(f"{self.cfg.data}, {split}", self.datasets[split].src_sizes)

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints=None):
        """Build the dataset for the input of `fairseq-interactive`, as fairseq does.

        Raises:
            UserError: a text has no characters.
        """
        _refuse_empty("input", np.asarray(src_lengths))
        return super().build_dataset_for_inference(src_tokens, src_lengths, constraints)

    def build_model(self, cfg, from_checkpoint=False):
        model = super().build_model(cfg, from_checkpoint)
        if self.cfg.eval_rouge:
            self._rouge = CharacterRouge()
            self._generator = self.build_generator([model], Namespace(**self._generation_options()))
        return model

    def valid_step(self, sample, model, criterion):
        loss, sample_size, logging_output = super().valid_step(sample, model, criterion)
        if self.cfg.eval_rouge:
            logging_output.update(self._rouge_sums(sample, model))
        return loss, sample_size, logging_output

    def reduce_metrics(self, logging_outputs, criterion):
        super().reduce_metrics(logging_outputs, criterion)
        number = sum(log.get("_rouge_sentences", 0) for log in logging_outputs)
        if number > 0:
            for name in ROUGE_TYPES:
                f1 = sum(log[f"_{name}"] for log in logging_outputs) / number
                metrics.log_scalar(name, 100 * f1, number, round=2)

    def _generation_options(self):
        try:
            options = json.loads(self.cfg.eval_rouge_args)
        except json.JSONDecodeError as error:
            options = error
        if not isinstance(options, dict):
            raise UserError(
                f'--eval-rouge-args {self.cfg.eval_rouge_args}: it must be a JSON object, such as {{"beam": 5}}'
            )
        known = {item.name: item.type for item in fields(GenerationConfig)}
        for name, value in options.items():
            if name not in known:
                raise UserError(f"--eval-rouge-args: {name} is not an option of fairseq-generate (beam, lenpen, …)")
            allowed = {int: (int,), bool: (bool,), str: (str,), float: (int, float)}.get(known[name], (type(value),))
            if type(value) not in allowed or (name == "beam" and value < 1):
                raise UserError(f"--eval-rouge-args: {name} cannot be {value!r}")
        return options

    @torch.no_grad()
    def _rouge_sums(self, sample, model):
        found = self.inference_step(self._generator, [model], sample)
        sums = dict.fromkeys((f"_{name}" for name in ROUGE_TYPES), 0.0)
        for hypotheses, target in zip(found, sample["target"]):
            reference = utils.strip_pad(target, self.tgt_dict.pad())
            # Unknown characters of the reference become a character that no hypothesis contains.
            texts = self._text(hypotheses[0]["tokens"]), [self._text(reference, unk_string="\N{REPLACEMENT CHARACTER}")]
            for name, f1 in self._rouge.f1(*texts).items():
                sums[f"_{name}"] += f1
        return {**sums, "_rouge_sentences": len(found)}

    def _text(self, tokens, **options):
        return self.tgt_dict.string(tokens.int().cpu(), **options)


def _refuse_empty(place: str, lengths: np.ndarray) -> None:
    empty = np.flatnonzero(lengths <= 1)  # only the end-of-sentence token
    if len(empty):
        raise UserError(f"{place}: text {empty[0] + 1} has no characters ({len(empty)} such texts); leave it out")
