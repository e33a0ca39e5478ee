"""The house rules that a machine can check."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "fairseq_capsule"

# What a room may import of the package; imports go one way.
ALLOWED = {
    "routing": set(),
    "corpora": set(),
    "data": set(),
    "environment": set(),
    "losses": {"routing"},
    "checkpoints": {"data"},
    "modules": {"routing"},
    "models": {"routing", "losses", "modules", "checkpoints"},
    "criterions": {"routing", "losses", "modules"},
    "testing": {"models"},
    "evaluation": {"data"},
    "tasks": {"routing", "losses", "modules", "models", "criterions", "data", "evaluation"},
    "inspector": {"models", "data", "checkpoints"},
    "analysis": {"losses", "models", "checkpoints", "data", "evaluation", "inspector"},
    "tables": {"analysis", "data", "evaluation"},
    "cli": {"corpora", "models", "data", "checkpoints", "environment", "evaluation", "analysis", "inspector", "tables"}
    | {"criterions"},
}
WITHOUT_FAIRSEQ = {"routing", "losses", "corpora", "modules"}


def imported_names(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_room_is_known():
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms == set(ALLOWED)


@pytest.mark.parametrize("room", ALLOWED)
def test_imports_go_one_way(room):
    for path in (PACKAGE / room).rglob("*.py"):
        for name in imported_names(path):
            parts = name.split(".")
            if parts[0] == "fairseq_capsule" and len(parts) > 1 and parts[1] in ALLOWED:
                assert parts[1] in ALLOWED[room] | {room}, f"{path} imports {name}"
            if room in WITHOUT_FAIRSEQ:
                assert parts[0] not in ("fairseq", "hydra", "omegaconf"), f"{path} imports {name}"


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]), ids=lambda page: page.name)
def test_python_in_the_documents_imports_what_there_is(page):
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom):
                module = importlib.import_module(node.module)
                assert all(hasattr(module, alias.name) for alias in node.names)


def test_files_stay_short():
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 320, path


def test_pipes_of_the_scripts_are_read_to_their_end():
    for path in (ROOT / "scripts").glob("*.sh"):
        assert not re.search(r"\| *(head|grep -\w*[qm])\b", path.read_text(encoding="utf-8")), path
