"""The metric that chooses the best checkpoint, and its direction."""

from typing import Any, Optional

from fairseq.dataclass.utils import merge_with_parent
from omegaconf import DictConfig, OmegaConf

from capsule_routing.errors import UserError
from capsule_routing.text.rouge import ROUGE_TYPES
from fairseq_capsule.criterions.bag_of_words_probe import NAME as PROBE
from fairseq_capsule.criterions.bag_of_words_probe import TOPS
from fairseq_capsule.criterions.routing_losses import NAME as ROUTING_LOSSES
from fairseq_capsule.criterions.routing_losses import RoutingLossesConfig, weights_of_losses

# Metrics that rise, each with the option that computes it. A loss and a perplexity fall.
RISING = {
    "bleu": "--eval-bleu",
    "accuracy": "--report-accuracy",
    **dict.fromkeys(ROUGE_TYPES, "--eval-rouge"),
    **dict.fromkeys((f"bag_recall_{top}" for top in TOPS), f"--criterion {PROBE}"),
}


def rises(metric: str) -> Optional[bool]:
    """Return whether more is better in a metric, or None if that is not known."""
    if metric in RISING:
        return True
    return False if metric in ("loss", "ppl") or metric.endswith(("_loss", "_ppl")) else None


def check_metric(task: Any) -> None:
    """Refuse a metric that nothing computes, and a wrong direction: fairseq would keep the worst model as the best.

    `task` has the options of a task of ours. A UserError names the options to give.
    """
    metric, maximised = task.best_checkpoint_metric, task.maximize_best_checkpoint_metric
    up = rises(metric)
    if up is None:  # of a criterion or a mechanism; only its author knows
        return
    needed = []
    if up and not _computes(task, RISING[metric]):
        needed.append(RISING[metric])
    if up and not maximised:
        needed.append("--maximize-best-checkpoint-metric")
    if needed:
        raise UserError(f"--best-checkpoint-metric {metric} needs {' and '.join(needed)}")
    if not up and maximised:
        remedy = "leave --maximize-best-checkpoint-metric out"
        raise UserError(f"--best-checkpoint-metric {metric}: the best checkpoint has the lowest one; {remedy}")
    criterion = _criterion(task)
    name = getattr(criterion, "_name", None)
    if name == PROBE and not up and metric != "loss":
        raise UserError(f"--best-checkpoint-metric {metric}: --criterion {PROBE} computes none; give loss")
    if name == ROUTING_LOSSES:
        weights = weights_of_losses(merge_with_parent(RoutingLossesConfig(), criterion))
        if not weights.get(metric.removesuffix("_loss"), 1):
            problem = "its weight is 0, so nothing computes it"
            raise UserError(f"--best-checkpoint-metric {metric}: {problem}; give nll_loss")


def _criterion(task: Any) -> Any:
    """Return the options of the criterion of a training, None if they are not known."""
    root = task._get_root() if isinstance(task, DictConfig) else None
    return None if root is None else OmegaConf.select(root, "criterion")


def _computes(task: Any, option: str) -> bool:
    criterion = _criterion(task)
    if option.startswith("--criterion "):
        return getattr(criterion, "_name", None) == option.removeprefix("--criterion ")
    name = option[2:].replace("-", "_")
    return bool(getattr(task, name, None) or getattr(criterion, name, None))
