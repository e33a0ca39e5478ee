"""Rules of the project that a test can check."""

import ast
import importlib
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "fairseq_capsule"

# The packages that each package may import. They are listed before it.
ALLOWED = {
    "routing": set(),
    "corpora": set(),
    "data": set(),
    "environment": set(),
    "losses": {"routing"},
    "modules": {"routing"},
    "checkpoints": {"data"},
    "models": {"routing", "losses", "modules", "data", "checkpoints"},
    "criterions": {"losses", "modules", "models"},
    "inspection": {"routing", "modules", "models"},
    "testing": {"models", "inspection"},
    "evaluation": {"data"},
    "tasks": {"losses", "models", "inspection", "criterions", "checkpoints", "data", "evaluation"},
    "inspector": {"models", "inspection", "data", "evaluation"},
    "analysis": {"losses", "models", "checkpoints", "data", "evaluation"},
    "tables": {"data", "evaluation", "analysis"},
    "cli": {
        *("corpora", "criterions", "models", "data", "checkpoints", "environment"),
        *("evaluation", "analysis", "inspection", "inspector", "tables"),
    },
}
# Modules outside the packages: FOR_ALL may be imported by every module, FACES by none.
FOR_ALL = {"fairseq_capsule", *(f"fairseq_capsule.{name}" for name in ("errors", "number_sets", "pages"))}
FACES = {
    "fairseq_capsule": {"criterions", "models", "tasks", "checkpoints"},
    "fairseq_capsule.extending": {"models", "inspection"},
    "fairseq_capsule.hub": {"checkpoints"},
}
# `inspect` of a hub imports the inspector by name when it is called.
BY_NAME = {("fairseq_capsule.checkpoints.hub", "fairseq_capsule.inspector")}
WITHOUT_FAIRSEQ = {"routing", "losses", "corpora", "modules"}


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in PACKAGE.rglob("*.py")}


def imported_names(path):
    """Yield every name that a file imports, also in functions and by `import_module`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in MODULES else node.module
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            constants = (part.value for argument in node.args for part in ast.walk(argument) if hasattr(part, "value"))
            yield from (text.rstrip(".") for text in constants if isinstance(text, str))


def package_of(module):
    """Return the package of a module: `fairseq_capsule.models.beams` → `models`; None if it is in no package."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ALLOWED else None


def imports_of(module):
    """Return the other modules of fairseq_capsule that a module imports."""
    return {name for name in imported_names(MODULES[module]) if name in MODULES} - FOR_ALL - {module}


def test_every_module_has_a_package():
    packages = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert packages == set(ALLOWED)
    assert {module for module in MODULES if package_of(module) is None} == FOR_ALL | set(FACES)


def test_a_package_is_listed_after_the_packages_that_it_may_import():
    before = set()
    for package, allowed in ALLOWED.items():
        assert allowed <= before, package
        before.add(package)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_modules_import_only_allowed_packages(module):
    package = package_of(module)
    allowed = FACES.get(module, set()) if package is None else ALLOWED[package] | {package}
    for name in imports_of(module):
        assert package_of(name) in allowed or (module, name) in BY_NAME, f"{module} imports {name}"
    if package in WITHOUT_FAIRSEQ:
        of_fairseq = {name.split(".")[0] for name in imported_names(MODULES[module])} & {
            "fairseq",
            "hydra",
            "omegaconf",
        }
        assert not of_fairseq, f"{module} imports {of_fairseq}"


def test_imports_have_no_cycles():
    graph = {module: {name for name in imports_of(module) if (module, name) not in BY_NAME} for module in MODULES}
    assert list(TopologicalSorter(graph).static_order())  # raises a CycleError that names the cycle


def test_every_listed_exception_is_needed():
    assert all(name in imports_of(module) for module, name in BY_NAME)


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]), ids=lambda page: page.name)
def test_imports_in_the_documents_exist(page):
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom):
                module = importlib.import_module(node.module)
                assert all(hasattr(module, alias.name) for alias in node.names)


def test_files_are_short():
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 320, path


def test_pipes_of_the_scripts_are_read_to_their_end():
    for path in (ROOT / "scripts").glob("*.sh"):
        assert not re.search(r"\| *(head|grep -\w*[qm])\b", path.read_text(encoding="utf-8")), path
