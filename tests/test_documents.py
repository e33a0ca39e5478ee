"""The documents: links and named paths exist, Python blocks run, and commands exist with their options."""

import functools
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from fairseq.dataclass.initialize import hydra_init
from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.errors import HydraException

import fairseq_capsule.tasks  # noqa: F401  registers the architectures that commands name
from fairseq_capsule_lab.runs.configuration import OWN, read_configuration
from tests.archives import unpack
from tests.processes import run_without_fairseq
from tests.pythons import COMPILED, FAIRSEQ, PYTHONS, WHEEL, WITHOUT
from tests.test_help import LEAVES

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in DOCUMENTS}

# These pages have their own tests, in tests/integration.
RUN_ELSEWHERE = {"README.md", "docs/bridges.md", "docs/your-own-corpus.md", "docs/extending.md"}

each_document = pytest.mark.parametrize("name", TEXTS)


def prose(text):
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def anchors(text):
    """Return the anchors of a page's headings, as GitHub and mkdocs make them."""
    headings = re.findall(r"^#+ (.*)$", prose(text), re.MULTILINE)
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


@each_document
def test_links_have_existing_targets(name):
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(TEXTS[name])):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        assert target.exists(), f"{name}: {link}"
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), f"{name}: {link}"


@each_document
def test_named_paths_exist(name):
    """Paths of this repository in backticks, also relative to the package as in the tables of equations."""
    for path in re.findall(r"`([\w.-]+(?:/[\w.-]+)+)`", prose(TEXTS[name])):
        top = path.split("/")[0]
        if top in ("data", "runs", "demo", "dist", "site", "inspected"):  # commands write these
            continue
        for folder in (ROOT, ROOT / "fairseq_capsule"):
            if (folder / top).is_dir() and name != "CHANGELOG.md":
                assert (folder / path).exists(), f"{name}: {path}"
                break


def versions_in(text):
    versions = re.findall(r"3\.[0-9]+", text)
    if " to " in text:
        first, last = (int(version[2:]) for version in versions)
        versions = [f"3.{minor}" for minor in range(first, last + 1)]
    return versions


@each_document
def test_a_page_names_the_pythons_of_pyproject(name):
    """All, those that fairseq runs on, or those on which it is a wheel, is compiled, or fails."""
    for text in re.findall(r"Pythons? (3\.\d+(?:(?:, | or | and | to )3\.\d+)*)(?!\.?\d)", TEXTS[name]):
        assert versions_in(text) in (PYTHONS, FAIRSEQ, WHEEL, COMPILED, WITHOUT), f"{name}: Python {text}"


@pytest.mark.parametrize("name", ["README.md", "docs/getting-started.md"])
def test_the_table_of_pythons_is_that_of_pyproject(name):
    table = re.search(r"\n\| Python \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", TEXTS[name])[1]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]
    expected = [(WHEEL, "yes, without a compiler"), (COMPILED, "yes, compiled"), (WITHOUT, "no")]
    assert [versions_in(row[0]) for row in rows] == [versions for versions, _ in expected]
    for row, (_, fairseq) in zip(rows, expected):
        assert row[1] == "yes" and row[2].startswith(fairseq), row


def test_ci_tries_the_pythons_that_fairseq_runs_on():
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert versions_in(re.search(r"python: (\[.*\])", workflow)[1]) == FAIRSEQ


def test_every_package_is_in_the_map_of_the_repository():
    tree = TEXTS["CONTRIBUTING.md"].split("## What is where")[1]
    for floor in ("capsule_routing", "fairseq_capsule", "fairseq_capsule_lab"):
        packages = {path.parent.name for path in ROOT.glob(f"{floor}/*/__init__.py")}
        assert packages and packages <= set(re.findall(r"([\w]+)/", tree)), floor


ANSWERS = {
    "preset": "gdr_transformer_base",
    "print": "  lr: ",
    "cell": "def gather(",
    "mechanism": "add_mechanism(",
    "prepared folder": "def manifest_of(",
}


def test_questions_of_contributors_are_answered_by_one_file():
    rows = re.findall(r"^\| (.*\?) \| `(.*)` \|$", TEXTS["CONTRIBUTING.md"], re.MULTILINE)
    assert len(rows) == len(ANSWERS)
    for (question, path), (word, text) in zip(rows, ANSWERS.items()):
        assert word in question and text in (ROOT / path).read_text(encoding="utf-8"), path
    presets = [path for path in ROOT.glob("[cefs]*/**/*.py") if '"gdr_transformer_base"' in path.read_text("utf-8")]
    assert [str(path.relative_to(ROOT)) for path in presets] == ["capsule_routing/presets.py"]


def test_the_readme_is_short():
    assert len(TEXTS["README.md"].splitlines()) <= 110


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the files that the Python blocks of the pages load: one small model with all mechanisms."""
    folder = tmp_path_factory.mktemp("documents")
    compatibility = ROOT / "tests/compatibility"
    unpack(compatibility / "checkpoints.tar.xz", folder)
    (folder / "bin").symlink_to(compatibility / "data")
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "codes").write_text("#version: 0.2\na b\n", encoding="utf-8")
    return folder


def with_files_of(place, block):
    """Change a Python block, so that it loads the files of `place` instead of a reader's model."""
    block = re.sub(r'"(?:[\w/-]*/)?checkpoint[\w-]*\.pt"', '"everything.pt"', block)
    block = re.sub(r'"runs/[\w-]+"', f'"{place}"', block)
    block = block.replace('"runs/everything.pt"', '"everything.pt"')
    block = re.sub(r'"[\w/-]*/bin"|"data/[\w-]+"', f'"{place}/bin"', block)
    return re.sub(r'"[\w/-]*/codes"', f'"{place}/codes"', block)


PYTHON = {name: re.findall(r"```python\n(.*?)```", text, re.DOTALL) for name, text in TEXTS.items()}


@pytest.mark.parametrize("name", [name for name, blocks in PYTHON.items() if blocks and name not in RUN_ELSEWHERE])
def test_python_blocks_run(name, place, monkeypatch):
    """The blocks of a page are one program. If the page only uses a `hub`, the test defines it."""
    monkeypatch.chdir(place)
    names = {}
    if "hub = " not in "".join(PYTHON[name]):
        from fairseq_capsule.hub import load

        names["hub"] = load("everything.pt", place / "bin")
    for block in PYTHON[name]:
        exec(compile(with_files_of(place, block), name, "exec"), names)


def test_the_page_about_pytorch_needs_no_fairseq_and_prints_what_it_shows():
    shown = re.findall(r"```text\n(.*?)```", TEXTS["docs/pytorch.md"], re.DOTALL)
    finished = run_without_fairseq("".join(PYTHON["docs/pytorch.md"]), ROOT)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == "".join(shown)


def test_the_page_about_corpora_has_the_help_of_a_script():
    assert f"```text\n{help_of('scripts/prepare-wmt14-en-de.sh').strip()}\n```\n" in TEXTS["docs/corpora.md"]


def commands():
    """Yield every command in the shell blocks of the documents as words, with the name of its document."""
    for name, text in TEXTS.items():
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
            for line in unrolled(block.replace("\\\n", " ")).splitlines():
                for words in commands_of_line(line):
                    # A plugin has its own tests, which run what its page shows (tests/integration/test_examples.py).
                    if words and not re.search(r"…|--user-dir (examples/|mine )", " ".join(words)):
                        yield name, words


def commands_of_line(line):
    """Return the commands of a shell line as words, without redirections and without variables set before them."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found, before = [[]], ""
    for word in lexer:
        if word in ("|", "&&", ";"):
            found.append([])
        elif word not in ("<", ">") and before not in ("<", ">") and (found[-1] or not re.match(r"\w+=", word)):
            found[-1].append(word)
        before = word
    return found


def unrolled(block):
    """Return a shell block in which the body of each loop over words is repeated for each word."""
    loop = re.compile(r"^ *for (\w+) in ([^;]*); do\n(.*?)^ *done *$", re.DOTALL | re.MULTILINE)
    while match := loop.search(block):
        variable, values, body = match.groups()
        bodies = "".join(body.replace(f"${variable}", value) for value in values.split())
        block = block[: match.start()] + bodies + block[match.end() :]
    return block


COMMANDS = sorted({(name, tuple(words)) for name, words in commands()})


def of(program):
    """Run a test for each command of the programs that match a regular expression."""
    chosen = [pytest.param(name, list(words), id=f"{name}-{words[0]}") for name, words in COMMANDS]
    chosen = [case for case in chosen if re.fullmatch(program, case.values[1][0])]
    return pytest.mark.parametrize("name, words", chosen)


def options(words):
    return [word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)]


def test_most_commands_are_known():
    """The tests below skip only shell builtins, pip, git, make and Python."""
    known = {
        "fairseq-capsule",
        *(f"fairseq-{name}" for name in ("train", "generate", "interactive", "preprocess", "hydra-train")),
    }
    programs = {words[0] for _, words in COMMANDS if not words[0].startswith(("scripts/", "experiments/"))}
    assert known <= programs
    shell = {"cd", "echo", "curl", "tar", ".", "mkdir", "head", "tail", "grep", "sed", "sort", "cut"}
    others = {"pip", "git", "make", "python", "python3", "sacrebleu", "ct2-fairseq-converter", ".venv/bin/pre-commit"}
    assert programs - known - shell <= others


@of("(scripts|experiments)/.*")
def test_a_script_has_its_options(name, words):
    for option in options(words):
        assert re.search(rf"{re.escape(option)}\b", help_of(words[0])), f"{name}: {words[0]} {option}"


@functools.cache
def help_of(script):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    words, environment = [ROOT / script, "--help"], {**os.environ, "PATH": path}
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout


@of("scripts/train.sh")
def test_a_training_is_configured(name, words):
    # Every option of the script takes a value.
    rest = [word for before, word in zip(words, words[1:]) if not before.startswith("--") and not word.startswith("--")]
    places, overrides = [word for word in rest if "=" not in word], [word for word in rest if "=" in word]
    assert len(places) == 3, f"{name}: {places}"
    if "--like-baseline" in words:
        overrides.append("++task.init_from_baseline=baseline.pt")
    path = (ROOT / places[0]).resolve()
    read_configuration(path, overrides, OWN)
    require_settings_of_fairseq(path, overrides)


@of("fairseq-hydra-train")
def test_a_hydra_training_is_configured(name, words):
    chosen = dict(zip(words[1::2], words[2::2]))
    path = ROOT / chosen["--config-dir"] / f"{chosen['--config-name']}.yaml"
    own = {key: setter for key, setter in OWN.items() if key == "hydra"}
    overrides = [word for word in words if re.match(r"\+?[a-z_.]+=", word)]
    assert read_configuration(path, overrides, own)
    require_settings_of_fairseq(path, overrides)


def require_settings_of_fairseq(path, overrides):
    """Compose a configuration as fairseq-hydra-train does: settings that fairseq does not have are refused."""
    hydra_init(path.stem)
    try:
        with initialize_config_dir(str(path.parent), version_base="1.1"):
            compose(path.stem, overrides)
    finally:
        del ConfigStore.instance().repo[f"{path.stem}.yaml"]  # otherwise later compositions have all of its settings


@pytest.mark.parametrize("word", ["model.nosuch=1", "dataset.max_token=9", "+model.dropout=0", "nosuch.beam=4"])
def test_a_document_cannot_name_a_setting_that_fairseq_does_not_have(word):
    with pytest.raises(HydraException):
        require_settings_of_fairseq(ROOT / "configs/toy/transformer.yaml", [word])


@of("fairseq-(train|generate|interactive)")
def test_a_command_of_fairseq_has_its_options(name, words):
    from fairseq import options as fairseq_options

    parser = {
        "fairseq-train": fairseq_options.get_training_parser,
        "fairseq-generate": fairseq_options.get_generation_parser,
        "fairseq-interactive": fairseq_options.get_interactive_generation_parser,
    }[words[0]]()
    arguments = [word for pair in zip(words, words[1:]) for word in pair[1:] if "--user-dir" not in pair]
    try:
        _, unknown = fairseq_options.parse_args_and_arch(parser, arguments, parse_known=True)
    except SystemExit:
        pytest.fail(f"{name}: {' '.join(words)}")
    assert not [word for word in unknown if word.startswith("-")], f"{name}: {unknown}"


@of("fairseq-capsule")
def test_a_command_of_ours_has_its_options(name, words):
    words = [word for pair in zip(words, words[1:]) for word in pair[1:] if "--user-dir" not in pair]
    command = LEAVES.get(words[0]) or LEAVES.get(" ".join(words[:2]))
    assert command, f"{name}: {words[:2]}"
    known = {option for param in command.params for option in param.opts}
    assert set(options(words)) <= known, f"{name}: fairseq-capsule {words[0]}"


@of("python")
def test_a_program_has_its_options(name, words):
    if words[1:3] == ["-m", "pip"]:
        return
    assert (ROOT / words[1]).is_file(), f"{name}: {words[1]}"
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / words[1]).parent.glob("*.py"))
    if "Seq2SeqTrainingArguments" in text:
        from transformers import Seq2SeqTrainingArguments

        own = re.findall(r"^    (\w+): ", text, re.MULTILINE)
        text = "".join(f'"--{option}"' for option in [*own, *Seq2SeqTrainingArguments.__dataclass_fields__])
    assert all(f'"{option}"' in text for option in options(words)), f"{name}: {words}"


@of("make")
def test_a_make_target_exists(name, words):
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {word for word in words[1:] if "=" not in word} <= set(targets), f"{name}: {words}"


def test_every_finding_is_listed():
    table = (ROOT / "findings/README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[(.+)\]\(\1\.sh\) \|", table, re.MULTILINE)
    assert listed == sorted(path.stem for path in (ROOT / "findings").glob("*.sh"))
