#!/usr/bin/env python3
"""Pack the results of all finished runs in a folder into one archive: pack_results.py RUNS ARCHIVE.tar.xz

It has settings, scores, measurements, translations and learning curves. It has no checkpoints, no text of the corpus,
no absolute paths and no host name. `scripts/reproduce.sh TABLE --print --runs` reads the folder that `tar -xf` unpacks.
"""

import argparse
import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any

from fairseq_capsule_lab.files import replacing

KEPT = (
    *("settings.json", "manifest.json", "finished", "train.log", "measures/*.json", "compared/*/*.json"),
    *("evaluation/*/scores.json", "evaluation/*/settings.json", "evaluation/*/generate.out"),
)
OF_SEVERAL_SEEDS = "seeds*/compared/*/*.json"
# What is kept of each start in a manifest: neither command nor host.
START = ("start", "versions", "git", "processor", "gpus", "processes", "batch", "seed", "end")
CURVES = re.compile(r"\]\[valid\]\[INFO\]|\| INFO \| valid \|")


def pack(runs: Path, archive: Path) -> None:
    """Write the archive: the same bytes for the same results."""
    runs = runs.resolve()
    folders = sorted(path.parent for path in runs.rglob("finished"))
    if not folders:
        raise SystemExit(f"{runs}: no finished runs; name the folder of the runs")
    files = {file for folder in folders for pattern in KEPT for file in folder.glob(pattern)}
    files |= {file for folder in folders for file in folder.parent.glob(OF_SEVERAL_SEEDS)}
    with replacing(archive) as stream, tarfile.open(fileobj=stream, mode="w:xz", preset=9) as tar:
        # The same file of all runs in sequence: their translations are similar, so they take less space.
        for file in sorted(files, key=lambda file: (file.name, file)):
            content = reduce(file, runs).encode()
            member = tarfile.TarInfo(str(file.relative_to(runs)))
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    print(f"{archive}: {len(folders)} runs, {archive.stat().st_size:,} bytes")


def reduce(file: Path, runs: Path) -> str:
    """Return the part of a file that is kept."""
    text = file.read_text(encoding="utf-8")
    lines = re.findall(r"[^\n]*\n", text)  # translations may have other line separators
    if file.name == "generate.out":
        return "".join(line for line in lines if line.startswith("H-"))
    if file.name == "train.log":
        return "".join(line for line in lines if CURVES.search(line))
    if file.name == "manifest.json":
        starts = json.loads(text)["starts"]
        text = json.dumps({"starts": [{key: start[key] for key in START if key in start} for start in starts]})
    if file.suffix == ".json":
        return json.dumps(relative(json.loads(text), runs), indent=1) + "\n"
    return text


def relative(value: Any, runs: Path) -> Any:
    """Replace absolute paths: inside the folder of runs by the path from there, elsewhere by the file's name."""
    if isinstance(value, dict):
        return {key: relative(part, runs) for key, part in value.items()}
    if isinstance(value, list):
        return [relative(part, runs) for part in value]
    if isinstance(value, str) and value.startswith("/"):
        path = Path(value)
        return str(path.relative_to(runs)) if path.is_relative_to(runs) else path.name
    return value


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, help="the folder of the runs")
    parser.add_argument("archive", type=Path, help="the archive to write")
    args = parser.parse_args()
    pack(args.runs, args.archive)
