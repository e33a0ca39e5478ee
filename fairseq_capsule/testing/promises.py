"""Invariants of what mechanisms declare: a start as the baseline, statistics, iterations, parts that can be saved."""

import pickle
from typing import Any, Mapping

import torch
from fairseq.models import BaseFairseqModel

from fairseq_capsule.inspection import Statistics, gather_statistics
from fairseq_capsule.inspection.statistics import added_up
from fairseq_capsule.mechanisms.attaching import parts_of
from fairseq_capsule.mechanisms.registry import active_mechanisms
from fairseq_capsule.testing import small_models as small
from fairseq_capsule.testing.small_models import PRESET, Options, build_small


def check_start(arch: str, options: Options = PRESET) -> None:
    """Check that a new model equals one without the mechanism, for each mechanism with `starts_as_baseline`."""
    model, batch = build_small(arch, options, noise=0), small.make_batch(small.make_sentences())
    for mechanism in active_mechanisms(model.cfg):
        if mechanism.starts_as_baseline:
            off = small.without(mechanism, model, arch, options)
            equal = small.is_close(small.word_logits(off, batch), small.word_logits(model, batch))
            assert equal, f"{mechanism.name}: a new model is not its baseline, but `starts_as_baseline` is True"


def check_iterations(arch: str, options: Options = PRESET) -> None:
    """Check that each option that `Mechanism.iterations` names changes the logits."""
    model, batch = build_small(arch, options), small.make_batch(small.make_sentences())
    for mechanism in active_mechanisms(model.cfg):
        if mechanism.iterates(model.cfg):
            name = str(mechanism.iterations)
            number = 2 if getattr(model.cfg, name) == 1 else 1
            other = small.with_options(model, arch, {**options, name: number})
            equal = small.is_close(small.word_logits(other, batch), small.word_logits(model, batch))
            assert not equal, f"{mechanism.name}: the option {name} has no effect"


def check_statistics(arch: str, options: Options = PRESET) -> None:
    """Check that all statistics are finite, and that those of a padded batch are those of its sentences."""
    model, sentences = build_small(arch, options), small.make_sentences()
    expected = added_up(_statistics(model, small.make_batch([sentence])) for sentence in sentences)
    for left_pad_source in (True, False):
        statistics = _statistics(model, small.make_batch(sentences, left_pad_source))
        assert statistics.keys() == expected.keys(), "a batch has other statistics than a sentence"
        for name, mean in statistics.items():
            assert torch.isfinite(torch.stack(mean)).all(), f"the statistic {name} is not finite"
            got, alone = mean.total / mean.number, expected[name].total / expected[name].number
            equal = torch.allclose(got, alone, rtol=1e-4, atol=1e-5, equal_nan=True)  # NaN: no value in either
            assert equal, f"the statistic {name} is {got:.4g} in a padded batch, but {alone:.4g} for its sentences"


def check_pickling(arch: str, options: Options = PRESET) -> None:
    """Check that the parts of mechanisms can be pickled, as training in several processes does."""
    model = build_small(arch, options)
    for mechanism in active_mechanisms(model.cfg):
        for part in parts_of(model, mechanism):
            try:
                pickle.loads(pickle.dumps(part))
            except Exception as error:
                raise AssertionError(f"{mechanism.name}: {type(part).__name__} cannot be pickled: {error}") from error


def _statistics(model: BaseFairseqModel, batch: Mapping[str, Any]) -> Statistics:
    words = batch["net_input"]
    of_mechanisms = gather_statistics(model, words["src_tokens"], words["prev_output_tokens"])
    return {f"{name}_{key}": mean for name, means in of_mechanisms.items() for key, mean in means.items()}
