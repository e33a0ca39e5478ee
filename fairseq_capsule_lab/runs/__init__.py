"""Run folders: trainings and evaluations; distillation.

Only `teacher` and `distill` import torch and fairseq, which takes seconds.
"""

from fairseq_capsule_lab.runs.folder import RunFolder
from fairseq_capsule_lab.runs.settings import Settings

__all__ = ["RunFolder", "Settings"]
