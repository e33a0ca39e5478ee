"""The metric of the best checkpoint: refused if nothing computes it, or in the wrong direction."""

from argparse import Namespace

import pytest
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks import TASK_REGISTRY, setup_task

from capsule_routing.errors import UserError
from capsule_routing.text.rouge import ROUGE_TYPES
from fairseq_capsule.tasks.capsule_translation import CapsuleTranslationTask
from fairseq_capsule.tasks.metric import RISING, check_metric
from tests.zoo import make_task

MAXIMIZE = "--maximize-best-checkpoint-metric"
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
    assert RISING.keys() == {"bleu", "accuracy", *ROUGE_TYPES}
