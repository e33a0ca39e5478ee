"""Rules of the project that a test can check."""

import ast
import importlib
import re
import warnings
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from fairseq_capsule.mechanisms import MECHANISMS
from tests.pythons import PROJECT

ROOT = Path(__file__).parent.parent
LIBRARY, PLUGIN, LAB, EXPERIMENTS = "capsule_routing", "fairseq_capsule", "fairseq_capsule_lab", "experiments"
PACKAGES = (LIBRARY, PLUGIN, LAB, EXPERIMENTS)  # each may import those before it, and no other

# The parts of the packages, and the parts that each may import, which are listed before it.
ALLOWED = {
    LIBRARY: {
        "errors": set(),
        "text": {"errors"},
        "presets": set(),
        "functions": set(),
        "losses": {"functions"},
        "modules": {"functions"},
        "from_options": {"modules"},
        "huggingface": {"errors", "text", "presets", "functions", "losses", "modules", "from_options"},
    },
    PLUGIN: {
        "root_logger": set(),
        "options": set(),
        "data": set(),
        "checkpoints": {"options", "data"},
        "hub": {"root_logger", "checkpoints", "data"},
        "mechanisms": {"options"},
        "models": {"root_logger", "options", "mechanisms", "data", "checkpoints", "hub"},
        "criterions": {"options", "mechanisms", "models"},
        "inspection": {"mechanisms", "models"},
        "tasks": {"options", "mechanisms", "models", "inspection", "criterions", "checkpoints", "data"},
        "testing": {"mechanisms", "models", "inspection", "criterions", "tasks"},
        "extending": {"mechanisms", "models", "inspection", "tasks"},
    },
    LAB: {
        "defaults": set(),
        "values": set(),
        "files": set(),
        "processes": set(),
        "manifests": {"processes"},
        "stages": {"files", "manifests", "processes"},
        "evaluation": {"values", "files"},
        "analysis": {"values", "files", "evaluation"},
        "runs": {"defaults", "values", "files", "processes", "manifests", "stages", "evaluation"},
        "corpora": {"defaults", "values", "files", "processes", "manifests", "stages"},
        "export": {"values", "files", "runs"},
        "pages": {"defaults", "values", "files", "evaluation", "analysis", "runs"},
        "cli": {
            *("defaults", "values", "files", "processes", "manifests", "stages", "evaluation", "analysis"),
            *("runs", "corpora", "export", "pages"),
        },
    },
    EXPERIMENTS: {
        **dict.fromkeys(
            ("after_training", "authors_layer", "benchmarks", "claims", "compare_forks", "gradient_norms"), set()
        ),
        **dict.fromkeys(("pack_results", "tables"), set()),
        "reproduce": {"tables"},
        "synthetic_text": set(),
        "rehearse": {"synthetic_text"},
    },
}


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for package in PACKAGES for path in (ROOT / package).rglob("*.py")}


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


def part_of(module):
    """Return the package and the part of a module: `fairseq_capsule.models.beams` → `fairseq_capsule`, `models`."""
    package, _, rest = module.partition(".")
    return package, rest.split(".")[0]


def imports_of(module):
    """Return the other modules of the packages that a module imports. A package itself may always be imported."""
    return {name for name in imported_names(MODULES[module]) if name in MODULES} - {*PACKAGES, module}


def test_every_module_has_a_part():
    for package, parts in ALLOWED.items():
        assert {part_of(module)[1] for module in MODULES if part_of(module)[0] == package} - {""} == set(parts)


def test_a_part_is_listed_after_those_that_it_may_import():
    for parts in ALLOWED.values():
        before = set()
        for part, allowed in parts.items():
            assert allowed <= before, part
            before.add(part)


def test_the_package_imports_what_it_requires():
    """What nothing here imports must be an extra, or go."""
    imported = {name.split(".")[0] for path in MODULES.values() for name in imported_names(path)}
    names = {"hydra-core": "hydra", "pyyaml": "yaml"}
    for text in PROJECT["dependencies"]:
        name = Requirement(text).name
        assert names.get(name, name).replace("-", "_") in imported, name


@pytest.mark.parametrize("module", sorted(MODULES))
def test_modules_import_only_allowed_parts(module):
    package, part = part_of(module)
    allowed = ALLOWED[package][part] | {part} if part else set(ALLOWED[package])  # a package names its own parts
    for name in imports_of(module):
        other, imported = part_of(name)
        below = PACKAGES.index(other) < PACKAGES.index(package)
        beside = other == package and imported in allowed
        assert below or beside, f"{module} imports {name}"
    if package == LIBRARY:
        of_fairseq = {name.split(".")[0] for name in imported_names(MODULES[module])} & {
            "fairseq",
            "hydra",
            "omegaconf",
        }
        assert not of_fairseq, f"{module} imports {of_fairseq}"


def test_imports_have_no_cycles():
    graph = {module: imports_of(module) for module in MODULES}
    assert list(TopologicalSorter(graph).static_order())  # raises a CycleError that names the cycle


def literals(path):
    """Yield the texts in a Python file, without docstrings, and without the names of imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, documented)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in docstrings:
            yield node.value


@pytest.mark.parametrize("module", sorted(name for name in MODULES if part_of(name)[0] != EXPERIMENTS))
def test_no_module_names_a_higher_floor_or_calls_a_script_by_its_path(module):
    """Messages may name scripts that a user calls, such as `run scripts/evaluate.sh`, but not `reproduce.sh`."""
    higher = PACKAGES[PACKAGES.index(part_of(module)[0]) + 1 :]
    for text in set(literals(MODULES[module])):
        found = re.search(rf"\b({'|'.join(higher)}|reproduce\.sh)\b", text) or re.fullmatch(
            r"(.*/)?scripts(/[\w.-]*)?", text
        )
        assert not found, f"{module}: {text!r}"


def test_one_script_calls_the_experiments():
    scripts = [path for path in (ROOT / "scripts").rglob("*") if path.suffix in (".sh", ".py")]
    assert [path.name for path in scripts if EXPERIMENTS in path.read_text(encoding="utf-8")] == ["reproduce.sh"]


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]), ids=lambda page: page.name)
def test_imports_in_the_documents_exist(page):
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom):
                module = importlib.import_module(node.module)
                assert all(hasattr(module, alias.name) for alias in node.names)


def test_each_mechanism_stands_in_each_package_that_has_mechanisms():
    for part in (f"{LIBRARY}.modules", f"{PLUGIN}.mechanisms", f"{PLUGIN}.inspection"):
        assert all(f"{part}.{mechanism.name}" in MODULES for mechanism in MECHANISMS), part


@pytest.mark.parametrize("module", [LIBRARY, PLUGIN, f"{LAB}.runs", f"{EXPERIMENTS}.tables"])
@pytest.mark.parametrize("category", [DeprecationWarning, FutureWarning, UserWarning])
def test_warnings_of_the_packages_are_errors(module, category):
    with pytest.raises(category, match="old"):
        warnings.warn_explicit("old", category, "file.py", 1, module=module)


def test_pipes_of_the_scripts_are_read_to_their_end():
    for path in (ROOT / "scripts").glob("*.sh"):
        assert not re.search(r"\| *(head|grep -\w*[qm])\b", path.read_text(encoding="utf-8")), path
