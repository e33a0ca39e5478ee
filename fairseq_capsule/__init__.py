"""Capsule routing for neural machine translation: a fairseq plugin.

Importing it registers everything and patches fairseq, as `--user-dir` does.
"""

import os

try:
    from capsule_routing import __version__ as __version__
except ModuleNotFoundError as error:
    raise ImportError(
        "fairseq_capsule needs the package capsule_routing, which stands beside it in the repository; "
        "pip install fairseq-capsule, or copy both folders"
    ) from error

from fairseq_capsule.root_logger import unchanged_root_logger

with unchanged_root_logger():
    import fairseq

# fairseq spells the path of an installed plugin so, and refuses a package that was imported without this path.
__path__.append(os.path.join(os.path.dirname(fairseq.__file__), "..", "fairseq_capsule"))

with unchanged_root_logger():
    from fairseq_capsule import tasks  # noqa: F401  with the models and criterions
