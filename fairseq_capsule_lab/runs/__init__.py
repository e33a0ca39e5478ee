"""Run folders: trainings, evaluations, distillation, and archives of results.

Only `teacher` and `distill` import torch and fairseq, which takes seconds.
"""

from fairseq_capsule_lab.runs.folder import RunFolder, possible, read_report, read_score_report, reading
from fairseq_capsule_lab.runs.settings import Settings

__all__ = ["RunFolder", "Settings", "possible", "read_report", "read_score_report", "reading"]
