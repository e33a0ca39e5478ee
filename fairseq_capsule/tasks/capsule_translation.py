"""fairseq's translation task with initialisation from a baseline and frozen heads of unused losses."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Self, Sequence

from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.data import Dictionary, FairseqDataset
from fairseq.data.iterators import EpochBatchIterator
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel
from fairseq.models.lstm import LSTMModel
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import II, DictConfig, OmegaConf, open_dict
from torch import Tensor, nn

from capsule_routing.errors import UserError
from capsule_routing.text.folders import first_raw_lines, preparations
from capsule_routing.text.languages import has_spaces, has_words
from fairseq_capsule.checkpoints.baseline import init_from_baseline, refuse_other_computation, take_architecture
from fairseq_capsule.checkpoints.belonging import keep_belonging, of_task, refuse_other
from fairseq_capsule.checkpoints.loading import belonging_of, read_checkpoint, read_options
from fairseq_capsule.checkpoints.restoring import Restored, refuse_ended_training, restored_checkpoint
from fairseq_capsule.criterions import freeze_loss_heads
from fairseq_capsule.data.binarised import require_whole
from fairseq_capsule.data.dictionaries import read_dictionary
from fairseq_capsule.inspection import gather_statistics
from fairseq_capsule.mechanisms.registry import active_mechanisms, routing_options
from fairseq_capsule.models.parts import changed_parameters
from fairseq_capsule.options import check_ranges, setting
from fairseq_capsule.tasks import restart, stopping
from fairseq_capsule.tasks.metric import check_metric
from fairseq_capsule.tasks.repeats import WordsSoFar

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
    from_other_languages: bool = setting(
        False, "start also from a checkpoint of other languages, or of the other direction; its words must be the same"
    )
    log_routing: bool = setting(
        False, "log statistics of the routing at validation: entropy of couplings, norms of capsules, ..."
    )
    log_routing_interval: int = setting(
        0, "log them also for the training batch of every N updates; 0: only at validation", lowest=0
    )
    # Copied here so that setup_task can refuse wrong values early.
    best_checkpoint_metric: str = II("checkpoint.best_checkpoint_metric")
    maximize_best_checkpoint_metric: bool = II("checkpoint.maximize_best_checkpoint_metric")


@register_task("capsule_translation", dataclass=CapsuleTranslationConfig)
class CapsuleTranslationTask(TranslationTask):
    """fairseq's translation task with the additions that the systems of this package need.

    Batches are rebuilt in each epoch, with a seed from its number. Therefore a run that was stopped and resumed in any
    epoch gives the same result as a run without a stop.
    """

    stop: Optional[stopping.Stop] = None  # of a training

    @classmethod
    def setup_task(cls, cfg: Any, **kwargs: Any) -> Self:
        """Load the dictionaries. Languages that fairseq infers from the data become options of the checkpoints.

        In a training, a metric of the best checkpoint that nothing computes, or its wrong direction, is a UserError.
        """
        if not kwargs.get("from_checkpoint"):
            check_metric(cfg)
        task: Self = super().setup_task(cfg, **kwargs)
        saved = OmegaConf.select(cfg._get_root(), "task") if isinstance(cfg, DictConfig) else None
        if saved is not None:  # `cfg` is a copy of it
            with open_dict(saved):
                saved.source_lang, saved.target_lang = cfg.source_lang, cfg.target_lang
        return task

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
        batches = super().get_batch_iterator(dataset, *args, **options)
        batches.__class__ = restart.Batches  # fairseq's method names the class of the iterator
        training = restart.options_of_training(self.cfg)
        if training is not None and dataset is self.datasets.get(training.dataset.train_subset):
            batches.accumulation = list(training.optimization.update_freq)
        return batches

    def can_reuse_epoch_itr(self, dataset: FairseqDataset) -> bool:
        return False

    def get_checkpoint_dict(self) -> Dict[str, Any]:
        """Return what fairseq's trainer adds to the state of a checkpoint."""
        options = restart.options_of_training(self.cfg)
        return {type(self).__name__: restart.state(options)} if options is not None else {}

    def set_checkpoint_dict(self, saved: Mapping[str, Any]) -> None:
        """Take up what `get_checkpoint_dict` gave, when a training is resumed."""
        restart.restore(saved, restart.options_of_training(self.cfg))

    def build_generator(self, models: Any, args: Any, *further: Any, **options: Any) -> Any:
        """Build fairseq's generator, whose `--no-repeat-ngram-size` also works without the CUDA extension."""
        generator = super().build_generator(models, args, *further, **options)
        if getattr(generator, "repeat_ngram_blocker", None) is not None:
            generator.repeat_ngram_blocker = WordsSoFar(args.no_repeat_ngram_size)
        return generator

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> BaseFairseqModel:
        """Build a model, and initialise it from the baseline unless a checkpoint will be loaded into it.

        With `--like-baseline` the sizes of the baseline replace those in `cfg`. What does not fit raises a UserError. A
        training that goes on from its own checkpoint reads no baseline, which may have changed, or be gone.
        """
        check_ranges(self.cfg, CapsuleTranslationConfig)
        if self.cfg.eval_bleu and not from_checkpoint:
            _refuse_bleu_of_sentences(self.cfg)
        training = None if from_checkpoint else restart.options_of_training(self.cfg)
        if training is not None:
            restart.begin_training(training)
            self.stop = stopping.install()
        if self.cfg.log_routing_interval and not self.cfg.log_routing:
            raise UserError("--log-routing-interval needs --log-routing")
        options = _options_of(cfg, "checkpoint")
        other = getattr(options, "finetune_from_model", None)
        if self.cfg.init_from_baseline and other:
            raise UserError(f"--init-from-baseline and --finetune-from-model {other} exclude each other; give one")
        restored = None if from_checkpoint else restored_checkpoint(options)
        state = read_options(restored.path) if restored else {}
        if restored:
            self._refuse_other(restored.path, state)
            refuse_ended_training(restored, state, options, _options_of(cfg, "optimization"))
        own = restored if restored and not restored.option else None
        path = None if from_checkpoint or own else self.cfg.init_from_baseline
        baseline = read_checkpoint(path) if path else {}
        if path:
            self._refuse_other(f"--init-from-baseline {path}", baseline)
        if self.cfg.like_baseline and not from_checkpoint:
            if not self.cfg.init_from_baseline:
                raise UserError("--like-baseline needs --init-from-baseline, which names the checkpoint")
            take_architecture(cfg, own.path if own else self.cfg.init_from_baseline, state if own else baseline)
        model = super().build_model(cfg, from_checkpoint)
        self.model = model
        if not from_checkpoint:
            keep_belonging(self)
        if restored:
            _refuse_plain_model(restored, state, model)
        if self.cfg.log_routing and not active_mechanisms(getattr(model, "cfg", None)):
            raise UserError("--log-routing: the model has no routing; leave the option out")
        if path:
            refuse_other_computation(cfg, path, baseline, routing_options)
            init_from_baseline(model, path, baseline, *changed_parameters(model))
        return model

    def _refuse_other(self, name: str, state: Mapping[str, Any]) -> None:
        refuse_other(belonging_of(name, state), of_task(self), not self.cfg.from_other_languages)

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
        restart.choose_wrapper(model, restart.options_of_training(self.cfg))
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
        if self.stop is not None:
            self.stop.tell(output)
        return loss, sample_size, output

    def valid_step(self, sample: Sample, model: BaseFairseqModel, criterion: FairseqCriterion) -> Any:
        loss, sample_size, output = super().valid_step(sample, model, criterion)
        if self.cfg.log_routing:
            output.update(routing_sums(self.model, sample["net_input"]))
        return loss, sample_size, output

    def reduce_metrics(self, logging_outputs: Logs, criterion: FairseqCriterion) -> None:
        super().reduce_metrics(logging_outputs, criterion)
        if self.stop is not None:
            self.stop.learn(logging_outputs)
        log_means(logging_outputs, "routing_")


def _refuse_bleu_of_sentences(cfg: CapsuleTranslationConfig) -> None:
    """Refuse a BLEU that takes whole sentences for words, as where subwords of Japanese are joined.

    It stays near 0 whatever the model learns, so fairseq would keep the first checkpoint as the best one.
    """
    joined, language = cfg.eval_bleu_remove_bpe, cfg.target_lang
    if has_spaces(language) or (not joined and cfg.eval_bleu_detok == "space"):
        return
    data = utils.split_paths(cfg.data)[0]
    prepared = preparations(data, cfg.source_lang, language)
    if prepared is None:
        cut = joined != "sentencepiece"
    elif prepared[1].tokenizer == "characters":
        cut = False
    else:
        cut = prepared[1].tokenizer == "jieba" or has_words(first_raw_lines(data, "valid", language))
    if not cut or cfg.eval_bleu_detok != "space":
        problem = f"--eval-bleu: no spaces separate the words of {language}, so BLEU of joined subwords stays near 0"
        remedy = "leave out --eval-bleu-remove-bpe and --eval-bleu-detok, and give --eval-tokenized-bleu"
        raise UserError(f"{problem}; {remedy}: BLEU of subwords")


def _options_of(cfg: Any, group: str) -> Any:
    """Return a group of options of the training that builds a model with options `cfg`; None if it is not known.

    fairseq passes the model's part of the whole config, or, to models without a dataclass, all options.
    """
    return OmegaConf.select(cfg._get_root(), group) if isinstance(cfg, DictConfig) else cfg


def _refuse_plain_model(restored: Restored, state: Mapping[str, Any], model: BaseFairseqModel) -> None:
    """Raise a UserError if a checkpoint lacks what mechanisms add to a model, because it is of a plain model."""
    missing = sorted(changed_parameters(model)[0] - state["model"].keys())
    if missing:
        problem = f"it has no {missing[0]}, which a mechanism adds"
        raise UserError(f"{restored}: {problem}; start from a plain model by --init-from-baseline {restored.path}")


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
