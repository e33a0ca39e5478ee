"""The progress of a bootstrap, on a terminal."""

from contextlib import contextmanager
from typing import Any, Iterator

from sacrebleu.metrics.base import Metric
from tqdm import tqdm


@contextmanager
def watched_samples(metric: Metric, total: int) -> Iterator[None]:
    """Count the scores that sacrebleu computes with the metric, one for each sample of a system.

    sacrebleu shows no progress of a bootstrap and has no callback. It computes every score by this method of a metric.

    Args:
        total: how many scores there will be.
    """
    compute = metric._compute_score_from_stats
    with tqdm(desc="bootstrap", total=total, unit=" scores", delay=2, disable=None, leave=False) as bar:

        def watched(stats: Any) -> Any:
            bar.update()
            return compute(stats)

        metric._compute_score_from_stats = watched  # type: ignore[method-assign]
        try:
            yield
        finally:
            del metric._compute_score_from_stats
