"""The user directory of a training: the plugin beside the scripts, or a package of the user that imports it.

A plugin is a program. It is imported only if the command line or the configuration of the user names it, never because
a run folder does.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from fairseq_capsule_lab.errors import LabError, place, shown

KEY = "common.user_dir"
OWN = Path(__file__).resolve().parents[2] / "fairseq_capsule"  # the plugin of this distribution
DEFAULT = "fairseq_capsule"  # in a configuration: the plugin beside the scripts, in whatever folder they are called
IMPORTS, LACKS = 10, 11  # statuses that Python itself does not end with
_IMPORT = f"""
import argparse, sys
from fairseq import utils
utils.import_user_module(argparse.Namespace(user_dir=sys.argv[1]))
sys.exit({IMPORTS} if "fairseq_capsule.tasks" in sys.modules else {LACKS})
"""


def plugin(name: str, named: Any, beside: Path = OWN) -> Path:
    """The plugin in the folder `named`, or the one beside the scripts if that is empty.

    It is a LabError if the folder is missing, cannot be imported, or does not import fairseq_capsule. Messages
    begin with the `name` of the option or setting.
    """
    if named in (None, "", DEFAULT):
        return beside
    if not isinstance(named, str):
        raise LabError(f"{name} must be the folder of a plugin, not '{shown(named)}'")
    folder = place(name, named)
    if not os.path.exists(folder / "__init__.py"):
        raise LabError(f"{name} {folder}: no package there; name the folder that contains __init__.py")
    if os.path.realpath(folder) == os.path.realpath(beside):
        return beside
    # In a process of its own, because a plugin may print, exit, or take seconds.
    words = [sys.executable, "-P", "-c", _IMPORT, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    if done.returncode == LACKS:
        remedy = "add 'import fairseq_capsule' to it"
        raise LabError(f"{name} {folder}: it does not import fairseq_capsule; {remedy}")
    if done.returncode != IMPORTS:
        reason = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "it ends Python")
        raise LabError(f"{name} {folder}: it cannot be imported ({shown(reason, 300)}); correct the plugin")
    return folder
