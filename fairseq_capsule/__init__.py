"""Capsule routing for neural machine translation: a fairseq plugin.

Importing the package, installed or by `--user-dir`, registers its models, criterions and tasks with fairseq and lets
fairseq's own checkpoints load under torch >= 2.6. It prints nothing and may happen any number of times.
"""

import logging
import sys
import warnings

__version__ = "0.2.0"  # the only place that states it: pyproject.toml reads it here

_root = logging.getLogger()
_before = None if "fairseq" in sys.modules else (_root.level, _root.handlers[:])

# `fairseq-capsule doctor` must run where torch or fairseq is missing or broken; nothing can be registered there.
try:
    import fairseq.models  # noqa: F401
    import torch  # noqa: F401
except Exception as error:
    if not (isinstance(error, ModuleNotFoundError) and error.name in ("fairseq", "torch")):
        warnings.warn(
            f"torch or fairseq is installed but cannot be imported: {type(error).__name__}: {error}. "
            "No model of fairseq_capsule is registered. Run `fairseq-capsule doctor`.",
            RuntimeWarning,
            stacklevel=2,
        )
else:
    # fairseq imports a plugin's models/ and tasks/ itself, but never its criterions/, and nothing at all where the
    # package is already imported. So every subpackage that registers something is imported here.
    from fairseq_capsule import criterions, models, tasks  # noqa: F401
    from fairseq_capsule.checkpoints import loading

    loading.install()

# fairseq sets the root logger to DEBUG when it is imported, so that every library would log how it works. Where fairseq
# was imported before, by one of its commands for example, the root logger is not ours to set.
if _before:
    _root.setLevel(_before[0])
    _root.handlers[:] = _before[1]
del _before, _root
