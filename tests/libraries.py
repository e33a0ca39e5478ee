"""Libraries that only some tests need."""

import importlib
import os
from types import ModuleType

import pytest


def library(name: str) -> ModuleType:
    """Import a library. Where it is missing, the test is skipped; in CI, which installs all libraries, it fails."""
    if os.environ.get("CI"):
        return importlib.import_module(name)
    return pytest.importorskip(name, reason=f"no {name}: make install")
