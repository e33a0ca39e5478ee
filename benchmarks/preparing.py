"""How fast and in how much memory `scripts/prepare-multi30k.sh` prepares a text, beside its own tools run alone.

    python benchmarks/preparing.py --lines 20000 200000 --json

The tools are the tokeniser and BPE's learning and applying, each over the same text, cut into as many shares as there
are cores, a process a share (learning merges is one process, whatever is asked of it; it counts words on all cores).
`ratio` is the time of the slowest of them by that of the whole preparation, which runs all of them; `stage_ratios` has
that of each of them by its own stage's. The memory is that of the largest process. The text is the embedded
English-German one, or --text PREFIX (PREFIX.en, PREFIX.de). The last line is JSON.
"""

import argparse
import gzip
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from functools import partial
from itertools import islice
from pathlib import Path

from measure import alternate, environment, median_ratio

SCRIPT = Path(__file__).parent.parent / "scripts" / "prepare-multi30k.sh"
ARCHIVES = ("train", "val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
LANGUAGES = ("en", "de")
HELD_OUT = 500
STAGES = {"tokenise": "tokenised", "learn": "codes", "apply": "bpe"}
MERGES = 10_000  # as in the script
TOKENISE = "sacremoses --quiet --language {language} normalize tokenize <{share} >{share}.out"
APPLY = "subword-nmt apply-bpe --codes {codes} <{share} >{share}.out"
LEARN = "subword-nmt learn-bpe --symbols {merges} --num-workers {cores} --input {text} --output {text}.codes"


def write_text(prefix: Path, lines: int) -> None:
    sizes = ["--train", str(lines), "--valid", str(HELD_OUT), "--test", str(HELD_OUT)]
    subprocess.run(["fairseq-capsule", "toy-corpus", *sizes, str(prefix.parent)], check=True, stdout=subprocess.DEVNULL)


def write_archives(folder: Path, prefix: Path, lines: int) -> None:
    """The first lines of the text as the training set, the next ones as the other sets."""
    folder.mkdir()
    for language in LANGUAGES:
        with open(f"{prefix}.{language}", "rb") as text:
            for stem in ARCHIVES:
                with gzip.open(folder / f"{stem}.{language}.gz", "wb", compresslevel=1) as archive:
                    archive.writelines(islice(text, lines if stem == "train" else HELD_OUT))
                text.seek(0)  # the sets may overlap here


def prepare(archives: Path, out: Path, stages: list, memory: list) -> None:
    """Appends the seconds of each stage to `stages` and the largest process's bytes to `memory`."""
    shutil.rmtree(out, ignore_errors=True)
    seconds, before = {}, time.perf_counter()
    process = subprocess.Popen([SCRIPT, "--from", archives, out], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:  # one at the end of each stage
        now = time.perf_counter()
        seconds[line.partition(":")[0]] = now - before
        before = now
    _, status, usage = os.wait4(process.pid, 0)  # of the script and all of its descendants
    if status:
        raise SystemExit(f"{SCRIPT.name} failed")
    stages.append(seconds)
    memory.append(usage.ru_maxrss * 1024)


def joined(texts: list, place: Path) -> Path:
    place.write_bytes(b"".join(text.read_bytes() for text in texts))
    return place


def cut(stage: Path, folder: Path, cores: int) -> list:
    """Cuts a stage's texts of each language into as many shares as there are cores; (language, share) of each."""
    folder.mkdir()
    for language in LANGUAGES:
        text = joined(sorted(stage.glob(f"*.{language}")), folder.with_suffix(f".{language}"))
        subprocess.run(["split", f"--number=l/{cores}", text, folder / f"{language}."], check=True)
    return [(share.stem, share) for share in sorted(folder.iterdir())]


def in_parallel(command: str, shares: list, cores: int, **settings) -> None:
    commands = "\0".join(command.format(language=language, share=share, **settings) for language, share in shares)
    subprocess.run(["xargs", "-0", "-P", str(cores), "-n", "1", "bash", "-c"], input=commands, text=True, check=True)


def measure(lines: int, prefix: Path, place: Path, rounds: int, cores: int) -> dict:
    archives, out = place / "archives", place / "out"
    write_archives(archives, prefix, lines)
    stages, memory = [], []
    prepare(archives, out, [], [])
    both = joined(sorted((out / "tokenised").glob("train.*")), place / "both")  # what merges are learnt from
    codes = shutil.copy(out / "codes", place / "codes")
    raw_shares, tokenised_shares = (cut(out / stage, place / stage, cores) for stage in ("raw", "tokenised"))
    learn = LEARN.format(merges=MERGES, cores=cores, text=both).split()
    runs = {
        "prepare": partial(prepare, archives, out, stages, memory),
        "tokenise": partial(in_parallel, TOKENISE, raw_shares, cores),
        "learn": partial(subprocess.run, learn, check=True, stderr=subprocess.DEVNULL),
        "apply": partial(in_parallel, APPLY, tokenised_shares, cores, codes=codes),
    }
    times = alternate(runs, rounds, "cpu", warmup=0)
    slowest = max(set(runs) - {"prepare"}, key=lambda name: statistics.median(times[name]))
    seconds = {name: statistics.median(times[name]) for name in runs}
    stage_times = {name: [run[name] for run in stages] for name in stages[0]}
    return {
        "lines": lines,
        "seconds": seconds,
        "stages": {name: statistics.median(run) for name, run in stage_times.items()},
        "stage_ratios": {tool: median_ratio(times[tool], stage_times[stage]) for tool, stage in STAGES.items()},
        "slowest": slowest,
        "ratio": median_ratio(times[slowest], times["prepare"]),
        "pairs_per_second": lines / seconds["prepare"],
        "memory_bytes": max(memory),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, nargs="+", default=[20_000, 200_000], help="training pairs")
    parser.add_argument("--text", type=Path, metavar="PREFIX", help="of PREFIX.en and PREFIX.de, with as many lines")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")
    args = parser.parse_args()

    cores, rows = os.cpu_count(), []
    with tempfile.TemporaryDirectory() as folder:
        prefix = args.text or Path(folder) / "text" / "train"
        if not args.text:
            write_text(prefix, max(args.lines))
        for lines in args.lines:
            place = Path(folder) / str(lines)
            place.mkdir()
            rows.append(measure(lines, prefix, place, args.rounds, cores))
            row = rows[-1]
            memory = row["memory_bytes"] / 2**20
            print(f"{lines} pairs: {row['pairs_per_second']:.0f} pairs a second; largest process {memory:.0f} MiB")
            for kind in ("seconds", "stages", "stage_ratios"):
                print(f"  {kind}: " + ", ".join(f"{name} {number:.2f}" for name, number in row[kind].items()))
            print(f"  {row['ratio']:.2f} of the throughput of the slowest tool alone, {row['slowest']}")
    if args.json:
        settings = {**vars(args), "text": str(args.text or "embedded"), "cores": cores}
        print(json.dumps({"rows": rows, "settings": settings, **environment("cpu")}))


if __name__ == "__main__":
    main()
