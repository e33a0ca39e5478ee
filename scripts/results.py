"""Pack the results of finished runs into a small archive, and unpack it.

    results.py pack RUNS ARCHIVE
    results.py unpack ARCHIVE RUNS [DATA]

An archive (.tar.xz) has the settings, scores, measurements, translations and learning curves of each run. It has no
checkpoints and no text of the corpus. `fairseq-capsule table` reads the unpacked folder as it is. `fairseq-capsule
report` also needs the sentences that were translated: `unpack` adds them to the runs on the corpus DATA, such as
data/multi30k.
"""

import io
import re
import sys
import tarfile
from pathlib import Path

from fairseq_capsule_runs import RunFolder
from fairseq_capsule_runs.values import RunError

KEPT = (
    *("settings.json", "manifest.json", "finished", "train.log", "measures/*.json", "compared/*/*.json"),
    *("evaluation/*/scores.json", "evaluation/*/settings", "evaluation/*/generate.out"),
)
CURVES = re.compile(r"(?:\]\[(train|valid)\]\[INFO\]|\| INFO \| (train|valid) \|)|num\. shared model params: ")
HYPOTHESIS = re.compile(r"H-(\d+)\t([^\t]*\t.*)")
PATH = re.compile(r"(?<![\w.<])/(?:[\w.+-]+/)+[\w.+-]*")


def pack(runs, archive):
    """Write the same bytes for the same results."""
    runs = Path(runs).resolve()
    folders = sorted(path.parent for path in runs.rglob("finished"))
    if not folders:
        raise RunError(f"{runs}: no finished runs")
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        # The same file of all runs in sequence: their translations are similar, so they take less space.
        for pattern in KEPT:
            for file in sorted(file for folder in folders for file in folder.glob(pattern)):
                content = _reduced(file, runs).encode()
                member = tarfile.TarInfo(str(file.relative_to(runs)))
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    print(f"{archive}: {len(folders)} runs, {Path(archive).stat().st_size:,} bytes")


def _reduced(file, runs):
    """The content of a file that is kept, without paths of this machine."""
    text = file.read_text(encoding="utf-8")
    if file.name == "generate.out":
        return "".join(f"{found[0]}\n" for found in HYPOTHESIS.finditer(text))
    if file.name == "train.log":
        return "".join(line for line in text.splitlines(keepends=True) if CURVES.search(line))

    def shortened(found):
        path = Path(found[0])
        return str(path.relative_to(runs)) if runs in path.parents else path.name

    return re.sub(r'\n *"host": "[^"]*",', "", PATH.sub(shortened, text))


def unpack(archive, runs, data=None):
    with tarfile.open(archive) as tar:
        tar.extractall(runs, filter="data")
    if data:
        corpus = Path(data).resolve().name
        for file in sorted(Path(runs).glob(f"*/{corpus}/*/*/evaluation/*/generate.out")):
            _add_text(file, Path(data))


def _add_text(file, data):
    """Add the lines S- and T- of fairseq-generate to translations."""
    from fairseq.data import Dictionary  # takes seconds, and `pack` does not need it

    split, settings = file.parent.name, RunFolder(file.parents[2]).settings()
    found = HYPOTHESIS.findall(file.read_text(encoding="utf-8"))
    lines = [f"H-{number}\t{text}" for number, text in found]
    for kind, side in (("S", "source"), ("T", "target")):
        language = settings.name(f"task.{side}_lang", "")
        dictionary = Dictionary.load(f"{data}/bin/dict.{language}.txt")
        text = (data / "bpe" / f"{split}.{language}").read_text(encoding="utf-8").splitlines()
        if len(text) != len(found):
            raise RunError(
                f"{file}: {len(found)} translations, but {data}/bpe/{split}.{language} has {len(text)} lines"
            )
        for number, line in enumerate(text):
            words = dictionary.encode_line(line, add_if_not_exist=False, append_eos=False)
            lines.append(f"{kind}-{number}\t{dictionary.string(words, escape_unk=kind == 'T')}")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        {"pack": pack, "unpack": unpack}[sys.argv[1]](*sys.argv[2:])
    except (OSError, RunError, tarfile.TarError) as error:
        sys.exit(f"results.py: {error}")
