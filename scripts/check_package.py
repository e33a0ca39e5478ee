#!/usr/bin/env python3
"""Build the sdist and the wheel, and check them: their metadata, that no file is missing, and that the wheel works
outside a checkout. Then move them to OUT. Files of the same names in OUT are replaced, and nothing else is touched.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / ".venv/bin/python"
TRAINING = (
    *("--arch", "capsule_transformer_tiny", "--criterion", "label_smoothed_cross_entropy", "--optimizer", "adam"),
    *("--max-tokens", "400", "--max-update", "1", "--num-workers", "0", "--cpu", "--save-dir", "run"),
)


def say(text):
    print(f"check_package.py: {text}", flush=True)


def run(*words, cwd=ROOT, env=None, quiet=None):
    """Run a command and return its output. If it fails, its last lines are printed, and the script ends.

    Args:
        quiet: the name of a command whose output is not shown otherwise.
    """
    output = subprocess.PIPE if quiet else None
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=env, stdout=output, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        print(*(done.stdout or "").splitlines()[-20:], sep="\n", file=sys.stderr)
        sys.exit(f"check_package.py: {quiet or words[0]} failed")
    return (done.stdout or "").strip()


def check_files(wheel):
    """Compare the wheel with the sources."""
    folders = [ROOT / "capsule_routing", *ROOT.glob("fairseq_capsule*")]
    paths = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    sources = {str(path.relative_to(ROOT)) for path in paths if path.suffix != ".pyc" and ".egg-info" not in str(path)}
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    if sources != packed:
        sys.exit(f"check_package.py: only in the checkout or only in the wheel: {', '.join(sorted(sources ^ packed))}")


def check_use(wheel, work):
    """Install the wheel in an environment of its own, train a step with it, and inspect a sentence.

    The dependencies come from .venv, by a path file: installing torch again would take minutes. What .venv has of this
    package itself is found there only after what the wheel installs.
    """
    run(PYTHON, "-m", "venv", "--without-pip", work / "env")
    python = work / "env/bin/python"
    places = [
        run(name, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", quiet=name)
        for name in (PYTHON, python)
    ]
    Path(places[1], "dependencies.pth").write_text(f"{places[0]}\n")
    pip = (PYTHON, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel)
    checked = subprocess.run([*map(str, pip), "check"], stdout=subprocess.PIPE, text=True).stdout
    # scripts/install.sh leaves out torchaudio, which fairseq's wheel requires.
    faults = [line for line in checked.splitlines() if line.startswith("fairseq-capsule ")]
    if faults:
        sys.exit(f"check_package.py: {'; '.join(faults)}")
    here = {"cwd": work, "env": {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}}
    package = run(python, "-c", "import fairseq_capsule; print(fairseq_capsule.__path__[0])", quiet="import", **here)
    if not package.startswith(str(work)):
        sys.exit(f"check_package.py: the wheel does not come first: fairseq_capsule is imported from {package}")
    command = python.with_name("fairseq-capsule")
    run(command, "doctor", **here)
    say(f"train one step by --user-dir {package}, and inspect a sentence")
    run(command, "toy-corpus", "--train", 20, "--valid", 8, "--test", 8, "text", **here)
    splits = [word for split in ("train", "valid", "test") for word in (f"--{split}pref", f"text/{split}")]
    words = ("-s", "en", "-t", "de", *splits, "--joined-dictionary", "--destdir", "bin")
    run(python, "-m", "fairseq_cli.preprocess", *words, quiet="fairseq-preprocess", **here)
    run(python, "-m", "fairseq_cli.train", "bin", "--user-dir", package, *TRAINING, quiet="fairseq-train", **here)
    run(command, "inspect", "run/checkpoint_last.pt", "bin", "--ids", 0, "--beam", 1, "--out", "pages", **here)
    if not (work / "pages/index.html").is_file():
        sys.exit("check_package.py: inspect wrote no pages/index.html")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder for the sdist and the wheel")
    out = parser.parse_args().out.resolve()
    if out.exists() and not out.is_dir():
        sys.exit(f"check_package.py: {out} is not a folder: name a folder, or a new name")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        say("build the sdist, and the wheel from it")
        run(PYTHON, "-m", "build", "--no-isolation", "--outdir", work / "dist", ".", quiet="python -m build")
        packages = sorted((work / "dist").iterdir())
        run(PYTHON, "-m", "twine", "check", "--strict", *packages)
        wheel = next(path for path in packages if path.suffix == ".whl")
        say("compare the wheel with the sources")
        check_files(wheel)
        say("install the wheel in an environment of its own")
        check_use(wheel, work)
        out.mkdir(parents=True, exist_ok=True)
        for path in packages:
            shutil.move(path, out / path.name)
    say(f"passed, and moved to {out}")


if __name__ == "__main__":
    main()
