"""Capsule routing for neural machine translation: a fairseq plugin.

Importing it registers and patches nothing. `--user-dir` makes fairseq import `models` and `tasks`; in Python,
`fairseq_capsule.tasks` registers everything.
"""

__version__ = "0.2.0"  # the only place that states it: pyproject.toml reads it here
