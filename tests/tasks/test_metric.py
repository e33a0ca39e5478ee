"""The metric of the best checkpoint: refused if nothing computes it, or in the wrong direction."""

from argparse import Namespace

import pytest
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks import TASK_REGISTRY, setup_task
from omegaconf import OmegaConf

from capsule_routing.errors import UserError
from capsule_routing.text.rouge import ROUGE_TYPES
from fairseq_capsule.criterions.routing_losses import NAME as ROUTING_LOSSES
from fairseq_capsule.mechanisms import register_mechanism, registry
from fairseq_capsule.tasks.capsule_translation import CapsuleTranslationTask
from fairseq_capsule.tasks.metric import RISING, check_metric
from tests.criterions.test_routing_losses import MeanLength
from tests.zoo import make_task

MAXIMIZE = "--maximize-best-checkpoint-metric"
PROBE = ["--criterion", "bag_of_words_probe"]
GUIDED = ["--criterion", ROUTING_LOSSES]
OURS = sorted(name for name, kind in TASK_REGISTRY.items() if issubclass(kind, CapsuleTranslationTask))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for language in ("en", "de"):
        make_task().source_dictionary.save(str(folder / f"dict.{language}.txt"))
    return folder


def set_up(data, task, *words, **given):
    """Set a task up as fairseq-train does."""
    arguments = [str(data), "--task", task, "-s", "en", "-t", "de", "--arch", "capsule_transformer_tiny", *words]
    parsed = options.parse_args_and_arch(options.get_training_parser(), arguments)
    return setup_task(convert_namespace_to_omegaconf(parsed).task, **given)


@pytest.mark.parametrize("task", OURS)
@pytest.mark.parametrize(
    "words, message",
    [
        (["bleu", "--eval-bleu"], f"--best-checkpoint-metric bleu needs {MAXIMIZE}"),
        (["bleu", MAXIMIZE], "--best-checkpoint-metric bleu needs --eval-bleu"),
        (["accuracy"], f"--best-checkpoint-metric accuracy needs --report-accuracy and {MAXIMIZE}"),
        (["nll_loss", MAXIMIZE], f"--best-checkpoint-metric nll_loss: the best .* lowest one; leave {MAXIMIZE} out"),
        (["ppl", MAXIMIZE], f"lowest one; leave {MAXIMIZE} out"),
        (["bleu", "--eval-bleu", MAXIMIZE], None),
        (["accuracy", "--criterion", "label_smoothed_cross_entropy", "--report-accuracy", MAXIMIZE], None),
        (["nll_loss"], None),
        (["bag_recall_500", *PROBE], f"--best-checkpoint-metric bag_recall_500 needs {MAXIMIZE}"),
        (["bag_recall_1000", MAXIMIZE], "bag_recall_1000 needs --criterion bag_of_words_probe$"),
        (["bag_recall_200", *PROBE, MAXIMIZE], None),
        (["nll_loss", *PROBE], "nll_loss: --criterion bag_of_words_probe computes none; give loss"),
        (["ppl", *PROBE], "ppl: --criterion bag_of_words_probe computes none; give loss"),
        (["loss", *PROBE], None),
        (["bow_loss", *GUIDED, "--bow-weight", "0"], "bow_loss: its weight is 0, so nothing computes it; give nll"),
        (["bca_loss", *GUIDED, "--bow-weight", "0"], None),
        (["routing_past_future_entropy", MAXIMIZE], None),
    ],
)
def test_a_metric_is_computed_and_has_its_direction(data, task, words, message):
    words = ["--best-checkpoint-metric", *words]
    if message is None:
        assert set_up(data, task, *words)
    else:
        with pytest.raises(UserError, match=message):
            set_up(data, task, *words)
        set_up(data, task, *words, from_checkpoint=True)  # what was trained before can be read


def test_rouge_belongs_to_summaries():
    for metric in ROUGE_TYPES:
        task = Namespace(best_checkpoint_metric=metric, maximize_best_checkpoint_metric=True)
        with pytest.raises(UserError, match=f"{metric} needs --eval-rouge$"):
            check_metric(task)
    assert RISING.keys() == {"bleu", "accuracy", *ROUGE_TYPES, *(f"bag_recall_{top}" for top in (200, 500, 1000))}


@pytest.mark.parametrize("weights, message", [("mean_length:0", "mean_length_loss: its weight is 0"), ("", None)])
def test_a_loss_of_another_package_has_a_weight(weights, message, monkeypatch):
    monkeypatch.setattr(registry, "_REGISTRY", list(registry._REGISTRY))
    register_mechanism(MeanLength())
    metric = {"best_checkpoint_metric": "mean_length_loss", "maximize_best_checkpoint_metric": False}
    # as in a configuration of Hydra: without the options that are not given
    whole = OmegaConf.create({"task": metric, "criterion": {"_name": ROUTING_LOSSES, "loss_weights": weights}})
    if message is None:
        check_metric(whole.task)
    else:
        with pytest.raises(UserError, match=message):
            check_metric(whole.task)
