"""Run folders of trainings: their content, and the plans of train.sh and evaluate.sh.

The package is separate from `fairseq_capsule`, which registers models with fairseq when it is imported, and that takes
seconds. This package does not import torch or fairseq, so a script can call it several times.
"""

from fairseq_capsule_runs.folder import RunFolder, read_report
from fairseq_capsule_runs.settings import Settings
from fairseq_capsule_runs.values import RunError

__all__ = ["RunError", "RunFolder", "Settings", "read_report"]
