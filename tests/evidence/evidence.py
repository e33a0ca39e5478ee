"""Record what the project does at one commit, and compare it with the record of another commit.

    python -m tests.evidence.evidence record OUT [--parts abcdef] [--multi30k DIR] [--codes DIR]
    python -m tests.evidence.evidence compare OUT OTHER [--parts abcdef] [--all]

README.md of this folder explains the parts and the rules. The status of `compare` is 1 if something differs.
"""

import argparse
import contextlib
import difflib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import torch

from tests.evidence.digests import LEFT_OUT, TEXTS, normalised, of_bytes, of_checkpoint
from tests.evidence.lists import read

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent
PARTS = "abcdef"
ARRAYS = "ae"  # parts that are stored as arrays: another order of sums is no difference
CLOSE = 1e-10  # relative and absolute, in float64
LONGEST_KEPT = 300_000  # bytes of a text that is kept to show a difference


class Place:
    """A new folder with a copy of the checkout, in which commands run: the checkout may change meanwhile."""

    def __init__(self, folder, given, texts):
        self.checkout, self.texts = folder / "checkout", texts
        tracked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.check_output(tracked, cwd=REPOSITORY, text=True).split("\0"):
            if (REPOSITORY / name).is_file():
                (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(REPOSITORY / name, self.checkout / name)
        make_environment(self.checkout / ".venv")
        with tarfile.open(HERE / "fixtures.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        for file in self.checkout.rglob("archives.md5"):  # the fixtures are not the real archives
            shutil.copy(folder / "fixtures/archives.md5", file)
        for name in ("home", "tmp"):
            (folder / name).mkdir()
        self.folder = folder
        paths = [f"{self.checkout}/scripts", f"{self.checkout}/.venv/bin", os.environ["PATH"]]
        self.environment = {
            **{"PATH": ":".join(paths), "PYTHONPATH": str(self.checkout), "REPO": str(self.checkout), **given},
            **{"HOME": f"{folder}/home", "TMPDIR": f"{folder}/tmp", "LC_ALL": "C.UTF-8", "COLUMNS": "100"},
            **{"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "USER": "user", "PYTHONUTF8": "1"},
        }
        # Longer paths first: one may begin with another.
        self.places = {str(folder): "PLACE", sys.prefix: "VENV", str(REPOSITORY): "CHECKOUT"}
        self.places |= {path: name for name, path in given.items()}

    @contextlib.contextmanager
    def warm(self):
        """Replace commands by those of warm.py."""
        words = [f"{self.checkout}/.venv/bin/python", "-m", "tests.evidence.warm", f"{self.checkout}/.venv/bin"]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(words, cwd=self.checkout, env=self.environment, **quiet) as server:
            if not server.stdout.readline():
                sys.exit("evidence: warm.py failed; run it to see why")
            try:
                yield
            finally:
                server.kill()

    def run(self, command, work):
        return subprocess.run(
            command, cwd=work, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=7200
        )

    def models(self, part):
        """Return a part of models.py."""
        result = self.folder / f"{part}.pt"
        words = [part, self.checkout / "fairseq_capsule", self.folder / f"models-{part}", result]
        done = self.run([sys.executable, "-W", "ignore", "-m", "tests.evidence.models", *words], self.checkout)
        if done.returncode:
            sys.exit(done.stderr.decode())
        return torch.load(result)

    def calls(self, part):
        """Run the calls of a part in a new folder. Return status, output, errors and written files of each call."""
        work, entries = self.folder / part, {}
        work.mkdir()
        (work / "fixtures").symlink_to("../fixtures")
        for line in read("calls.txt")[part]:
            missing = [name for name in re.findall(r"\$(MULTI30K|CODES)", line) if name not in self.environment]
            if missing:
                entries[line] = f"left out: no {missing[0]}"
                continue
            start, before = time.time(), stamps(work)
            done = self.run(["bash", "-c", f'source "$REPO/tests/evidence/functions.sh"\n{line}'], work)
            written = [path for path, stamp in stamps(work).items() if before.get(path) != stamp]
            line = line if line not in entries else f"{line} (again)"
            entries[line] = {
                "status": done.returncode,
                "output": self.lines(done.stdout),
                "errors": self.lines(done.stderr),
                "files": {str(path): self.digest(work / path) for path in written if path.suffix not in LEFT_OUT},
            }
            error = entries[line]["errors"].rstrip().rpartition("\n")[2] if done.returncode else ""
            print(f"{part} {time.time() - start:6.1f} s  {line}  {error}", file=sys.stderr, flush=True)
        return entries

    def lines(self, output):
        return normalised(output.decode(errors="backslashreplace"), self.places)

    def digest(self, path):
        if path.suffix == ".pt":
            return of_checkpoint(path)
        content = path.read_bytes()
        if path.suffix in TEXTS:
            content = self.lines(content).encode()
            if len(content) < LONGEST_KEPT:
                (self.texts / of_bytes(content)).write_bytes(content)
        return of_bytes(content)


def make_environment(folder):
    """Make a virtual environment with the packages and commands of this one. A command can be replaced."""
    (folder / "bin").mkdir(parents=True)
    shutil.copy(Path(sys.prefix, "pyvenv.cfg"), folder)
    for path in [*Path(sys.prefix).iterdir(), *Path(sys.prefix, "bin").iterdir()]:
        place = folder / path.relative_to(sys.prefix)
        if not place.exists():
            place.symlink_to(path)


def stamps(folder):
    """Return what changes when a file is written, by its path."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    stats = {path.relative_to(folder): path.stat() for path in files}
    return {path: (stat.st_mtime_ns, stat.st_size, stat.st_ino) for path, stat in stats.items()}


def record(out, parts, given):
    (out / "texts").mkdir(parents=True, exist_ok=True)
    commit = subprocess.check_output(["git", "describe", "--always", "--dirty"], cwd=REPOSITORY, text=True).strip()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="evidence"))
        place = Place(Path(folder).resolve(), given, out / "texts")
        stack.enter_context(place.warm())
        for part in parts:
            start = time.time()
            arrays = part in ARRAYS
            entries = place.models(part) if arrays else place.calls(part)
            seconds = round(time.time() - start)
            about = {"commit": commit, "seconds": seconds, "torch": version("torch")}
            contents = {"about": about, "evidence": entries}
            if arrays:
                torch.save(contents, out / f"{part}.pt")
            else:
                (out / f"{part}.json").write_text(json.dumps(contents, indent=1, ensure_ascii=False))
            print(f"part {part}: {len(entries)} entries, {seconds} s", flush=True)


def flat(value, path=()):
    """Return the values of nested objects by their paths."""
    if isinstance(value, list):
        value = {str(number): item for number, item in enumerate(value)}
    if not isinstance(value, dict):
        return {path: value}
    return {key: item for name, inner in value.items() for key, item in flat(inner, (*path, name)).items()}


def read_record(folder, part):
    """Return what `record` wrote, or None."""
    if part in ARRAYS:
        file = folder / f"{part}.pt"
        return torch.load(file) if file.is_file() else None
    file = folder / f"{part}.json"
    return json.loads(file.read_text()) if file.is_file() else None


def equal(path, old, new):
    """Compare two values: numbers computed in float64 up to rounding, all else exactly, also initial parameters."""
    exact = "initial" in path
    if torch.is_tensor(old) and torch.is_tensor(new):
        same = old.shape == new.shape and old.dtype == new.dtype
        return same and (torch.equal(old, new) if exact else torch.allclose(old, new, CLOSE, CLOSE, equal_nan=True))
    if isinstance(old, float) and isinstance(new, float) and not exact:
        return math.isclose(old, new, rel_tol=CLOSE, abs_tol=CLOSE)
    return type(old) is type(new) and old == new


def difference(old, new, texts):
    """Describe how two values differ: by lines for texts, by the difference for numbers."""
    if torch.is_tensor(old) and torch.is_tensor(new):
        if old.shape != new.shape or old.dtype != new.dtype:
            return f"{list(old.shape)} {old.dtype} → {list(new.shape)} {new.dtype}"
        return f"at most {(new - old).abs().max():.3g} of {old.abs().max():.3g}"
    if isinstance(old, float) and isinstance(new, float):
        return f"{old!r} → {new!r} ({new - old:+.3g})"
    kept = [folder / value[:64] if isinstance(value, str) else folder for value, folder in zip((old, new), texts)]
    if all(text.is_file() for text in kept):
        old, new = (text.read_text() for text in kept)
    if isinstance(old, str) and isinstance(new, str) and "\n" in old + new:
        return "\n".join(list(difflib.unified_diff(old.splitlines(), new.splitlines(), "", "", "", "", 0, ""))[2:])
    return f"{old!r} → {new!r}"


def compare(out, other, parts, most):
    """Print the differences. Return whether there are any."""
    differs = False
    texts = [folder / "texts" for folder in (out, other)]
    for part in parts:
        records = [read_record(folder, part) for folder in (out, other)]
        if None in records:
            print(f"{part}: not recorded in both folders")
            continue
        old, new = (flat(contents["evidence"]) for contents in records)
        paths = [*old, *(new.keys() - old.keys())]
        changed = [path for path in paths if not equal(path, old.get(path, ()), new.get(path, ()))]
        commits = " → ".join(contents["about"]["commit"] for contents in records)
        print(f"{part}: {len(old)} values, {len(changed)} differ ({commits})")
        for path in changed[:most]:
            told = "only in one" if path not in old or path not in new else difference(old[path], new[path], texts)
            print(f"  {' / '.join(path)}: {told}".replace("\n", "\n    "))
        differs |= bool(changed)
    return differs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, places in (("record", ["out"]), ("compare", ["out", "other"])):
        command = commands.add_parser(name)
        for place in places:
            command.add_argument(place, type=Path)
        command.add_argument("--parts", default=PARTS, help="some of abcdef")
    commands.choices["record"].add_argument("--multi30k", help="the folder of the archives of Multi30k")
    commands.choices["record"].add_argument("--codes", help="a folder with codes and dict.txt of Multi30k")
    commands.choices["compare"].add_argument("--all", action="store_true", help="print more than 20 differences a part")
    args = parser.parse_args()
    if args.command == "compare":
        return compare(args.out, args.other, args.parts, None if args.all else 20)
    given = {"MULTI30K": args.multi30k, "CODES": args.codes}
    record(args.out.resolve(), args.parts, {name: str(Path(path).resolve()) for name, path in given.items() if path})
    return 0


if __name__ == "__main__":
    sys.exit(main())
