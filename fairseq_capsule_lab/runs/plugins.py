"""The user directory of a training: the plugin beside the scripts, or a package of the user that imports it.

A plugin is a program. It is imported only if the command line or the configuration of the user names it, never because
a run folder does.
"""

from pathlib import Path

from capsule_routing.errors import UserError
from fairseq_capsule_lab.values import checked_path

KEY = "common.user_dir"
OWN = Path(__file__).resolve().parents[2] / "fairseq_capsule"  # the plugin of this distribution
DEFAULT = "fairseq_capsule"  # in a configuration: the plugin beside the scripts, in whatever folder they are called


def plugin(name: str, named: str | None, beside: Path = OWN) -> Path:
    """The plugin in the folder `named`, or the one beside the scripts if that is empty.

    It is a UserError if there is no package. Messages begin with the `name` of the option or setting.
    """
    if named in (None, "", DEFAULT):
        return beside
    folder = checked_path(name, str(named))
    if not (folder / "__init__.py").exists():
        raise UserError(f"{name} {folder}: no package there; name the folder that contains __init__.py")
    return beside if folder.resolve() == beside.resolve() else folder
