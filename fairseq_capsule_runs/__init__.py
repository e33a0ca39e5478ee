"""Run folders of trainings: what is in them, and what train.sh and evaluate.sh compute before they start.

The package is apart from `fairseq_capsule` because importing that one registers models with fairseq, which takes
seconds. This one imports neither torch nor fairseq, so that a script may ask it several times.
"""

from fairseq_capsule_runs.folder import RunFolder
from fairseq_capsule_runs.settings import Settings
from fairseq_capsule_runs.values import RunError

__all__ = ["RunError", "RunFolder", "Settings"]
