"""Capsule routing for neural machine translation: a fairseq plugin.

Importing the package, installed or by `--user-dir`, registers its models, criterions and tasks with fairseq and lets
fairseq's own checkpoints load under torch >= 2.6. It prints nothing and may happen any number of times.
"""

import logging
import sys

_root = logging.getLogger()
_before = None if "fairseq" in sys.modules else (_root.level, _root.handlers[:])

# `fairseq-capsule doctor` must run where torch or fairseq are missing or break; nothing can be registered there.
try:
    import fairseq  # noqa: F401
    import torch  # noqa: F401
except Exception:
    pass
else:
    # fairseq imports a plugin's models/ and tasks/ by itself, its criterions/ never, and nothing where the package is
    # already imported: so all rooms are imported here.
    from fairseq_capsule import criterions, loading, models, tasks  # noqa: F401

    loading.install()

# fairseq sets the root logger to DEBUG when it is imported, so that every library would log how it works. Where fairseq
# was imported before, by one of its commands for example, the root logger is not ours to set.
if _before:
    _root.setLevel(_before[0])
    _root.handlers[:] = _before[1]
del _before, _root
