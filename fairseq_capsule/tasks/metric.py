"""The metric that chooses the best checkpoint, and its direction."""

from typing import Any, Optional

from omegaconf import DictConfig, OmegaConf

from capsule_routing.errors import UserError
from capsule_routing.text.rouge import ROUGE_TYPES

# Metrics that rise, each with the option that computes it. A loss and a perplexity fall.
RISING = {
    "bleu": "--eval-bleu",
    "accuracy": "--report-accuracy",
    **dict.fromkeys(ROUGE_TYPES, "--eval-rouge"),
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


def _computes(task: Any, option: str) -> bool:
    name = option[2:].replace("-", "_")
    if hasattr(task, name):
        return bool(getattr(task, name))
    root = task._get_root() if isinstance(task, DictConfig) else None
    return bool(root is not None and OmegaConf.select(root, f"criterion.{name}"))
