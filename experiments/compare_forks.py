"""Print the files that the forks of fairseq change against upstream's last release, and write docs/fairseq-forks.md.

    .venv/bin/python experiments/compare_forks.py docs/fairseq-forks.md

pip downloads the three distributions, whose preparation needs what .venv has. ve-fairseq has no source distribution, so
its wheel is read. Line ends are not compared.
"""

import difflib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

SOURCE = ("--no-binary", ":all:", "--no-build-isolation")
WHEEL = ("--only-binary", ":all:", "--python-version", "3.12", "--platform", "manylinux_2_28_x86_64")
UPSTREAM = ("fairseq==0.12.2", SOURCE)
FORKS = (("ve-fairseq==0.12.3", WHEEL), ("fairseq-fixed==0.12.3.1", SOURCE))
PACKAGES = ("fairseq", "fairseq_cli")
COPIES = "fairseq/examples/"  # of the repository's examples, which no command imports
SUFFIXES = (".py", ".yaml")  # a wheel has no C++
SHOWN = {  # what every training and translation of this plugin runs
    "checkpoint_utils.py": "reading and writing checkpoints",
    "trainer.py": "updates, validation, resuming",
    "tasks/fairseq_task.py": "batches of a data set",
    "modules/transformer_layer.py": "layers",
    "modules/multihead_attention.py": "attention",
    "modules/sinusoidal_positional_embedding.py": "positions",
    "sequence_generator.py": "beam search",
}
PAGE = """# What the forks of fairseq change

fairseq is archived. `make` installs ve-fairseq 0.12.3, or compiles fairseq-fixed 0.12.3.1. Both are later states of
upstream's repository than its last release, 0.12.2, with fixes for newer versions of Python. {number} Python and YAML
files differ from that release, not counting `fairseq/examples` (new: {new}, gone: {gone}). {same} of {number} are the
same in both forks.

The table has the files that every training and translation of this plugin runs, with lines added and removed:

| file | for | ve-fairseq 0.12.3 | fairseq-fixed 0.12.3.1 |
|---|---|---|---|
{rows}

`python experiments/compare_forks.py docs/fairseq-forks.md` wrote this page. It prints the row of every file.
"""


def read_distribution(requirement: str, options: tuple[str, ...], folder: Path) -> dict[str, list[str]]:
    """Download a distribution, and return the lines of the files that are compared, by path."""
    folder.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *options, "--dest", folder, requirement]
    subprocess.run(command, check=True)
    (archive,) = folder.iterdir()
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(folder / "files")
        top = folder / "files"
    else:
        with tarfile.open(archive) as source:
            source.extractall(folder / "files", filter="data")
        (top,) = (folder / "files").iterdir()
    return read_files(top)


def read_files(top: Path) -> dict[str, list[str]]:
    """Return the lines of the files below a folder that are compared, by path."""
    paths = (path for package in PACKAGES for path in (top / package).rglob("*") if path.suffix in SUFFIXES)
    names = {str(path.relative_to(top)): path for path in paths if path.is_file()}
    return {name: path.read_text(encoding="utf-8").splitlines() for name, path in names.items() if COPIES not in name}


def difference(before: list[str] | None, after: list[str] | None) -> str:
    """Return how a file changed, or an empty text if it did not."""
    if before == after:
        return ""
    if before is None or after is None:
        return "new" if before is None else "gone"
    signs = [line[0] for line in list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]]  # after the two names
    return f"+{signs.count('+')} −{signs.count('-')}"


def compare(upstream: Mapping[str, list[str]], forks: Sequence[Mapping[str, list[str]]]) -> dict[str, list[str]]:
    """Return how each file that a fork changes differs in both forks, by path."""
    names = sorted({*upstream, *forks[0], *forks[1]})
    changes = {name: [difference(upstream.get(name), fork.get(name)) for fork in forks] for name in names}
    return {name: of_forks for name, of_forks in changes.items() if any(of_forks)}


def table_row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def page(changes: Mapping[str, Sequence[str]]) -> str:
    """Return the text of the page."""
    shown = {f"fairseq/{name}": purpose for name, purpose in SHOWN.items()}
    rows = (table_row(f"`{name}`", purpose, *changes.get(name, ("", ""))) for name, purpose in shown.items())
    return PAGE.format(
        number=len(changes),
        new=sum("new" in of_forks for of_forks in changes.values()),
        gone=sum("gone" in of_forks for of_forks in changes.values()),
        same=sum(first == second for first, second in changes.values()),
        rows="\n".join(rows),
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        upstream, *forks = (
            read_distribution(requirement, options, folder / requirement) for requirement, options in (UPSTREAM, *FORKS)
        )
    changes = compare(upstream, forks)
    for name, of_forks in changes.items():
        print(table_row(f"`{name}`", *of_forks))
    Path(sys.argv[1]).write_text(page(changes), encoding="utf-8")


if __name__ == "__main__":
    main()
