"""What the package requires, read from the metadata of its installation.

Nothing is known of a package that is used by its path. Imports `packaging` only where it is used: `fairseq-capsule
doctor` also runs where it is missing.
"""

import functools
import re
from importlib import metadata
from typing import TYPE_CHECKING, Dict, List, Mapping, Optional

if TYPE_CHECKING:
    from packaging.requirements import Requirement

NAME = "fairseq-capsule"
FORKS = ("fairseq", "fairseq-fixed", "ve-fairseq")  # distributions that are imported as `fairseq`


def requirements(extra: str = "") -> Dict[str, "Requirement"]:
    """What the package requires here by name, including Python and the distributions of an extra if one is given.

    Empty if the package is used by its path or if `packaging` is missing.
    """
    try:
        from packaging.requirements import Requirement

        package = metadata.metadata(NAME)
    except ImportError:  # PackageNotFoundError is one
        return {}
    texts = [f"Python{package['Requires-Python']}", *(package.get_all("Requires-Dist") or [])]
    required = [Requirement(text) for text in texts]
    return {one.name: one for one in required if one.marker is None or one.marker.evaluate({"extra": extra})}


def pip_name(name: str, extra: str = "") -> str:
    """A requirement for pip, such as `torch>=2.6`, or only the name if no version is required."""
    required = requirements(extra)
    return f"{name}{required[name].specifier}" if name in required else name


def unmet(name: str, version: str) -> str:
    """What the package requires of Python or of a distribution, if this version is not accepted; otherwise nothing."""
    required = requirements()
    if name not in required or required[name].specifier.contains(version, prereleases=True):
        return ""
    return f"{NAME} requires {required[name].specifier}"


def tested_pythons() -> List[str]:
    """`3.11`, …: the Python versions that the package is tested with. Empty if the package is used by its path."""
    try:
        classifiers = metadata.metadata(NAME).get_all("Classifier") or []
    except metadata.PackageNotFoundError:
        return []
    return re.findall(r"^Programming Language :: Python :: (3\.\d+)$", "\n".join(classifiers), re.MULTILINE)


def version_of(distribution: str) -> Optional[str]:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def modules(distribution: str) -> List[str]:
    """The modules of an installed distribution: the module with its name, otherwise all public modules."""
    from packaging.utils import canonicalize_name

    names = [
        module
        for module, owners in _module_owners().items()
        if canonicalize_name(distribution) in map(canonicalize_name, owners) and not module.startswith("_")
    ]
    own = distribution.replace("-", "_")
    return [own] if own in names else names


@functools.cache  # it reads the metadata of every installed distribution
def _module_owners() -> Mapping[str, List[str]]:
    return metadata.packages_distributions()
