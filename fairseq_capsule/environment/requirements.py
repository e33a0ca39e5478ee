"""What the package requires, read from the metadata of its installation.

Imports `packaging` only where it is used: `fairseq-capsule doctor` also runs where it is missing.
"""

import functools
import re
from importlib import metadata
from typing import TYPE_CHECKING, Dict, List, Mapping, Optional

if TYPE_CHECKING:
    from packaging.requirements import Requirement

NAME = "fairseq-capsule"


class Unknown(Exception):
    """The package is not installed, or `packaging`, which reads its metadata, is not."""


def requirements(extra: str = "") -> Dict[str, "Requirement"]:
    """The requirements of the package by name, including those of an extra if one is given.

    Raises:
        Unknown: if the metadata cannot be read.
    """
    try:
        from packaging.requirements import Requirement

        wanted = [Requirement(text) for text in metadata.requires(NAME) or []]
    except ImportError as error:  # PackageNotFoundError is one
        raise Unknown(f"the requirements of {NAME} cannot be read: {type(error).__name__}: {error}") from error
    return {one.name: one for one in wanted if one.marker is None or one.marker.evaluate({"extra": extra})}


def pip_name(name: str, extra: str = "") -> str:
    """A requirement for pip, such as `torch>=2.6`, or only the name if the metadata cannot be read."""
    try:
        wanted = requirements(extra)[name]
    except Unknown:
        return name
    return f"{wanted.name}{wanted.specifier}"


def unmet(name: str, version: str) -> str:
    """What the package requires of a distribution, if this version is not accepted; otherwise nothing."""
    required = requirements()[name].specifier
    return "" if required.contains(version, prereleases=True) else f"{NAME} requires {required}"


def required_python() -> str:
    return _described()["Requires-Python"]


def python_is_accepted(version: str) -> bool:
    required = required_python()  # before the import, which fails where `packaging` is missing
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(required).contains(version, prereleases=True)


def tested_pythons() -> List[str]:
    """`3.11`, …: the Python versions that the package is tested with."""
    classifiers = _described().get_all("Classifier") or []
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


def _described() -> metadata.PackageMetadata:
    requirements()  # raises Unknown
    return metadata.metadata(NAME)
