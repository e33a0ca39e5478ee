"""Run folders: trainings, evaluations, distillation, and archives of results.

Only `teacher` and `distill` import torch and fairseq, which takes seconds.
"""

from fairseq_capsule_lab.runs.folder import RunFolder
from fairseq_capsule_lab.runs.settings import Settings

__all__ = ["RunFolder", "Settings"]
