"""Capsule routing for neural machine translation: a fairseq plugin.

Importing it registers and patches nothing. `--user-dir` makes fairseq import `models` and `tasks`; in Python,
`fairseq_capsule.tasks` registers everything.
"""

try:
    from capsule_routing import __version__ as __version__
except ModuleNotFoundError as error:
    raise ImportError(
        "fairseq_capsule needs the package capsule_routing, which stands beside it in the repository; "
        "pip install fairseq-capsule, or copy both folders"
    ) from error
