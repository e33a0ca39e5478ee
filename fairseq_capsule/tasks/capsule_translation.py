"""fairseq's translation task with initialisation from a baseline and frozen heads of unused losses."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary, FairseqDataset
from fairseq.data.iterators import EpochBatchIterator
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel
from fairseq.models.lstm import LSTMModel
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import DictConfig, OmegaConf
from torch import Tensor, nn

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.baseline import init_from_baseline, refuse_other_computation, take_architecture
from fairseq_capsule.checkpoints.loading import read_checkpoint
from fairseq_capsule.criterions import freeze_loss_heads
from fairseq_capsule.data.binarised import require_whole
from fairseq_capsule.data.dictionaries import read_dictionary
from fairseq_capsule.inspection import gather_statistics
from fairseq_capsule.mechanisms.registry import active_mechanisms, routing_options
from fairseq_capsule.models.parts import changed_parameters
from fairseq_capsule.options import check_ranges, setting

Sample = Dict[str, Any]  # a batch
Logs = List[Dict[str, Any]]  # of batches

TOTAL, COUNT = "_total", "_count"  # what names of sums over batches and processes end with


@dataclass
class CapsuleTranslationConfig(TranslationConfig):
    init_from_baseline: Optional[str] = setting(
        None, "checkpoint of a model of the same kind and sizes; its parameters are copied"
    )
    like_baseline: bool = setting(
        False, "also take the sizes and the shared embeddings from the checkpoint of --init-from-baseline"
    )
    log_routing: bool = setting(
        False, "log statistics of the routing at validation: entropy of couplings, norms of capsules, ..."
    )
    log_routing_interval: int = setting(
        0, "log them also for the training batch of every N updates; 0: only at validation", lowest=0
    )


@register_task("capsule_translation", dataclass=CapsuleTranslationConfig)
class CapsuleTranslationTask(TranslationTask):
    """fairseq's translation task with the additions that the systems of this package need.

    Batches are rebuilt in each epoch, with a seed from its number. Therefore a run that was stopped and resumed in any
    epoch gives the same result as a run without a stop.
    """

    @classmethod
    def load_dictionary(cls, filename: str) -> Dictionary:
        """Load a dictionary. Raises a UserError that names a broken line."""
        return read_dictionary(filename)

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Load a split as fairseq does.

        Raises a UserError if a file of the split is incomplete, or has control symbols within sentences. Files in
        other formats, such as --dataset-impl cached, are not checked.
        """
        paths = utils.split_paths(self.cfg.data)
        shard = (epoch - 1) % len(paths) if split == self.cfg.train_subset else 0
        texts = require_whole(Path(paths[shard]), split, self.cfg.source_lang, self.cfg.target_lang)
        for text in texts.values():
            text.require_words()
        super().load_dataset(split, epoch, combine, **kwargs)

    def get_batch_iterator(self, dataset: FairseqDataset, *args: Any, **options: Any) -> EpochBatchIterator:
        """Form batches of any number of sentences, whatever `--required-batch-size-multiple` says.

        Otherwise fairseq leaves out a last batch whose size 8 does not divide. It has the longest sentences of a set.
        """
        options["required_batch_size_multiple"] = 1
        return super().get_batch_iterator(dataset, *args, **options)

    def can_reuse_epoch_itr(self, dataset: FairseqDataset) -> bool:
        return False

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> BaseFairseqModel:
        """Build a model, and initialise it from the baseline unless a checkpoint will be loaded into it.

        With `--like-baseline` the sizes of the baseline replace those in `cfg`. What does not fit raises a UserError.
        """
        check_ranges(self.cfg, CapsuleTranslationConfig)
        if self.cfg.log_routing_interval and not self.cfg.log_routing:
            raise UserError("--log-routing-interval needs --log-routing")
        other = _finetuned_from(cfg)
        if self.cfg.init_from_baseline and other:
            raise UserError(f"--init-from-baseline and --finetune-from-model {other} exclude each other; give one")
        path = None if from_checkpoint else self.cfg.init_from_baseline
        baseline = read_checkpoint(path) if path else {}
        if self.cfg.like_baseline and not from_checkpoint:
            if not path:
                raise UserError("--like-baseline needs --init-from-baseline, which names the checkpoint")
            take_architecture(cfg, path, baseline)
        model = super().build_model(cfg, from_checkpoint)
        self.model = model
        if self.cfg.log_routing and not active_mechanisms(getattr(model, "cfg", None)):
            raise UserError("--log-routing: the model has no routing; leave the option out")
        if path:
            refuse_other_computation(cfg, path, baseline, routing_options)
            dictionaries = self.source_dictionary, self.target_dictionary
            init_from_baseline(model, path, baseline, *dictionaries, *changed_parameters(model))
        return model

    def build_criterion(self, cfg: Any, from_checkpoint: bool = False) -> FairseqCriterion:
        """Build a criterion, attach it to the model, which fairseq builds first, and freeze heads without a loss."""
        criterion = super().build_criterion(cfg, from_checkpoint)
        model = getattr(self, "model", None)
        if model is None:
            return criterion
        if hasattr(criterion, "attach"):
            criterion.attach(model)
        else:
            freeze_loss_heads(model, {})
        return criterion

    def inference_step(self, generator: Any, models: Any, sample: Sample, *args: Any, **options: Any) -> Any:
        """Translate a batch. The attention of fairseq's `lstm` has the order of tokens that are padded on the right."""
        if any(isinstance(model, LSTMModel) for model in models):
            words, padding = sample["net_input"], self.source_dictionary.pad()
            words["src_tokens"] = utils.convert_padding_direction(words["src_tokens"], padding, left_to_right=True)
        return super().inference_step(generator, models, sample, *args, **options)

    def train_step(
        self, sample: Sample, model: Any, criterion: Any, optimizer: Any, update_num: int, **options: Any
    ) -> Any:
        loss, sample_size, output = super().train_step(sample, model, criterion, optimizer, update_num, **options)
        interval = self.cfg.log_routing_interval
        if interval and update_num % interval == 0:
            output.update(routing_sums(self.model, sample["net_input"]))
        return loss, sample_size, output

    def valid_step(self, sample: Sample, model: BaseFairseqModel, criterion: FairseqCriterion) -> Any:
        loss, sample_size, output = super().valid_step(sample, model, criterion)
        if self.cfg.log_routing:
            output.update(routing_sums(self.model, sample["net_input"]))
        return loss, sample_size, output

    def reduce_metrics(self, logging_outputs: Logs, criterion: FairseqCriterion) -> None:
        super().reduce_metrics(logging_outputs, criterion)
        log_means(logging_outputs, "routing_")


def _finetuned_from(cfg: Any) -> Optional[str]:
    """Return `--finetune-from-model` of the training that builds a model with options `cfg`.

    fairseq passes the model's part of the whole config, or, to models without a dataclass, all options.
    """
    options = OmegaConf.select(cfg._get_root(), "checkpoint") if isinstance(cfg, DictConfig) else cfg
    return getattr(options, "finetune_from_model", None)


def routing_sums(model: nn.Module, net_input: Mapping[str, Any]) -> Dict[str, Tensor]:
    """Return the statistics of all mechanisms of a model for a batch: `routing_MECHANISM_NAME_total` and `…_count`.

    fairseq adds them over batches and processes.
    """
    statistics = gather_statistics(model, net_input["src_tokens"], net_input["prev_output_tokens"])
    sums = {}
    for mechanism, means in statistics.items():
        for name, mean in means.items():
            sums[f"routing_{mechanism}_{name}{TOTAL}"] = mean.total
            sums[f"routing_{mechanism}_{name}{COUNT}"] = mean.number
    return sums


def log_means(logging_outputs: Sequence[Mapping[str, Any]], prefix: str, digits: int = 4) -> None:
    """Log the mean `NAME` of each `NAME_total` and `NAME_count` in the outputs of batches whose name has the prefix."""
    keys = dict.fromkeys(key for output in logging_outputs for key in output)
    for name in (key.removesuffix(COUNT) for key in keys if key.startswith(prefix) and key.endswith(COUNT)):
        total, count = (sum(output.get(name + part, 0) for output in logging_outputs) for part in (TOTAL, COUNT))
        if count > 0:
            metrics.log_scalar(name, total / count, count, round=digits)
    _drop_empty_meters(prefix)


def _drop_empty_meters(prefix: str) -> None:
    """Drop the meters that have no value since fairseq reset them. It would print `None`."""
    for meters in metrics.get_active_aggregators():
        empty = [name for name, meter in meters.items() if name.startswith(prefix) and not meter.count]
        for name in empty:
            del meters[name]
        meters.priorities = [place for place in meters.priorities if place[2] not in empty]
