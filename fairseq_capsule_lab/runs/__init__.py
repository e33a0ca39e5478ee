"""Run folders of trainings: their content, and the plans of train.sh and evaluate.sh.

The package is separate from `fairseq_capsule`, which registers models with fairseq when it is imported, and that takes
seconds. This package does not import torch or fairseq, so a script can call it several times.
"""

from fairseq_capsule_lab.runs.folder import RunFolder, finite_number, read_report, reading
from fairseq_capsule_lab.runs.settings import Settings

__all__ = ["RunFolder", "Settings", "finite_number", "read_report", "reading"]
