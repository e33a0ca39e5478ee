"""Pack the results of finished runs into a small archive (.tar.xz), and unpack it.

An archive has the settings, scores, measurements, translations and learning curves of each run. It has no checkpoints
and no text of the corpus. `fairseq-capsule table` reads the unpacked folder as it is. `fairseq-capsule report` also
needs the sentences that were translated: `unpack --data` adds them.
"""

import argparse
import io
import json
import lzma
import os
import re
import sys
import tarfile
from pathlib import Path

from fairseq_capsule_runs import RunFolder
from fairseq_capsule_runs.files import replace_file
from fairseq_capsule_runs.values import RunError

KEPT = (
    *("settings.json", "manifest.json", "finished", "train.log", "measures/*.json", "compared/*/*.json"),
    *("evaluation/*/scores.json", "evaluation/*/settings", "evaluation/*/generate.out"),
)
OF_SEVERAL_SEEDS = "seeds*/compared/*/*.json"
# What is kept of each start in a manifest.
START = ("start", "versions", "git", "processor", "gpus", "processes", "batch", "seed", "end")
CURVES = re.compile(r"(?:\]\[(?:train|valid)\]\[INFO\]|\| INFO \| (?:train|valid) \|)|num\. shared model params: ")
HYPOTHESIS = re.compile(r"^H-(\d+)\t([^\t\n]*\t.*)", re.MULTILINE)


def pack(runs, archive):
    """Write the same bytes for the same results."""
    runs = runs.resolve()
    folders = sorted(path.parent for path in runs.rglob("finished"))
    if not folders:
        raise RunError(f"{runs}: no finished runs")
    part = archive.with_name(f".{archive.name}.part")
    with tarfile.open(part, "w:xz", preset=9) as tar:
        # The same file of all runs in sequence: their translations are similar, so they take less space.
        found = [[file for folder in folders for file in folder.glob(pattern)] for pattern in KEPT]
        found += [[file for system in {folder.parent for folder in folders} for file in system.glob(OF_SEVERAL_SEEDS)]]
        for files in found:
            for file in sorted(files):
                content = _reduced(file, runs).encode()
                member = tarfile.TarInfo(str(file.relative_to(runs)))
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    os.replace(part, archive)
    print(f"{archive}: {len(folders)} runs, {archive.stat().st_size:,} bytes")


def _reduced(file, runs):
    """The content of a file that is kept."""
    text = file.read_text(encoding="utf-8")
    if file.name == "generate.out":
        return "".join(f"{found[0]}\n" for found in HYPOTHESIS.finditer(text))
    if file.name == "train.log":
        return "".join(f"{line}\n" for line in text.split("\n") if CURVES.search(line))
    if file.suffix != ".json":
        return text
    try:
        found = json.loads(text)
    except ValueError as error:
        raise RunError(f"{file}: not JSON; delete it and run its command again") from error
    if file.name == "manifest.json":
        found = {"starts": [{key: start[key] for key in START if key in start} for start in found["starts"]]}
    return json.dumps(_without_places(found, runs), indent=1) + "\n"


def _without_places(value, runs):
    """Replace absolute paths: inside the folder of runs by the path from there, elsewhere by the file's name."""
    if isinstance(value, dict):
        return {key: _without_places(each, runs) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_places(each, runs) for each in value]
    if isinstance(value, str) and value.startswith("/"):
        path = Path(value)
        return str(path.relative_to(runs)) if path.is_relative_to(runs) else path.name
    return value


def unpack(archive, runs, data):
    try:
        with tarfile.open(archive) as tar:
            tar.getmembers()  # reads the archive to its end, so that a damaged one leaves no files
            tar.extractall(runs, filter="data")
    except (EOFError, lzma.LZMAError, tarfile.ReadError) as error:
        raise RunError(f"{archive}: damaged or cut short; download it again") from error
    if data:
        for file in sorted(runs.rglob("generate.out")):
            split, folder = file.parent, file.parents[2]
            if data.resolve().name in folder.relative_to(runs).parts:
                _add_text(file, split.name, RunFolder(folder).settings(), data)


def _add_text(file, split, settings, data):
    """Add the lines S- and T- of fairseq-generate to translations."""
    # It takes seconds, and `pack` does not need it.
    from fairseq_capsule.data.dictionaries import read_dictionary
    from fairseq_capsule.errors import UserError

    found = HYPOTHESIS.findall(file.read_text(encoding="utf-8"))
    lines = [f"H-{number}\t{text}" for number, text in found]
    for kind, side in (("S", "source"), ("T", "target")):
        language = settings.name(f"task.{side}_lang", "")
        try:
            dictionary = read_dictionary(f"{data}/bin/dict.{language}.txt")
        except UserError as error:
            raise RunError(str(error)) from error
        text = (data / "bpe" / f"{split}.{language}").read_text(encoding="utf-8").rstrip("\n").split("\n")
        if len(text) != len(found):
            raise RunError(
                f"{file}: {len(found)} translations, but {data}/bpe/{split}.{language} has {len(text)} lines; "
                "name the data that the runs were evaluated on"
            )
        for number, line in enumerate(text):
            words = dictionary.encode_line(line, add_if_not_exist=False, append_eos=False)
            lines.append(f"{kind}-{number}\t{dictionary.string(words, escape_unk=kind == 'T')}")
    replace_file(file, "".join(f"{line}\n" for line in lines).encode())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack", help="write an archive of all finished runs in a folder")
    packing.add_argument("runs", type=Path)
    packing.add_argument("archive", type=Path)
    unpacking = commands.add_parser("unpack", help="write the files of an archive to a folder")
    unpacking.add_argument("archive", type=Path)
    unpacking.add_argument("runs", type=Path)
    unpacking.add_argument("--data", type=Path, help="the prepared data, such as data/multi30k; adds their sentences")
    args = parser.parse_args()
    try:
        if args.command == "pack":
            pack(args.runs, args.archive)
        else:
            unpack(args.archive, args.runs, args.data)
    except (OSError, UnicodeDecodeError, RunError, tarfile.TarError) as error:
        sys.exit(f"share_results.py: {error}")


if __name__ == "__main__":
    main()
