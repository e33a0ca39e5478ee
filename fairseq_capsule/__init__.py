"""Capsule routing for neural machine translation: a fairseq plugin.

Importing it registers everything and patches fairseq, as `--user-dir` does.
"""

import os

from capsule_routing import __version__ as __version__
from fairseq_capsule.root_logger import unchanged_root_logger

with unchanged_root_logger():
    import fairseq

# fairseq spells the path of an installed plugin so, and refuses a package that was imported without this path.
__path__.append(os.path.join(os.path.dirname(fairseq.__file__), "..", "fairseq_capsule"))

with unchanged_root_logger():
    from fairseq_capsule import tasks  # noqa: F401  with the models and criterions
