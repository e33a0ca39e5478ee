"""Measure speed and memory of `scripts/prepare-multi30k.sh`, compared with its tools alone.

    python benchmarks/preparing.py --lines 20000 200000 --json

The tools are the tokeniser, and learning and applying BPE. Each tool processes the same text, cut into one share for
each core, with one process for each share. Only the learning of merges always is one process, which counts words on all
cores. `ratio` is the time of the slowest tool divided by the time of the whole preparation, which runs all tools.
`stage_ratios` is the time of each tool divided by the time of its stage. The memory is that of the largest process. The
text is the embedded English-German one, or --text PREFIX (PREFIX.en, PREFIX.de), such as that of Multi30k. A text with
fewer lines is repeated. The last line is a JSON object.
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
from itertools import cycle, islice
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


def write_archives(folder: Path, prefix: Path, lines: int) -> None:
    """Write the first `lines` lines as the training set, and the first `HELD_OUT` lines as each other set."""
    folder.mkdir()
    for language in LANGUAGES:
        with open(f"{prefix}.{language}", "rb") as text:
            for stem in ARCHIVES:
                with gzip.open(folder / f"{stem}.{language}.gz", "wb", compresslevel=1) as archive:
                    archive.writelines(islice(cycle(text), lines if stem == "train" else HELD_OUT))
                text.seek(0)  # the sets may overlap in a benchmark


def prepare(archives: Path, out: Path, stages: list, memory: list) -> None:
    """Run the script. Append the seconds of each stage to `stages`, and the largest process's bytes to `memory`."""
    shutil.rmtree(out, ignore_errors=True)
    seconds, before = {}, time.perf_counter()
    process = subprocess.Popen([SCRIPT, "--from", archives, out], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:  # the script prints one line at the end of each stage
        now = time.perf_counter()
        seconds[line.partition(":")[0]] = now - before
        before = now
    _, status, usage = os.wait4(process.pid, 0)  # usage of the script and all its descendants
    if status:
        raise SystemExit(f"{SCRIPT.name} failed")
    stages.append(seconds)
    memory.append(usage.ru_maxrss * 1024)


def joined(texts: list, place: Path) -> Path:
    place.write_bytes(b"".join(text.read_bytes() for text in texts))
    return place


def cut(stage: Path, folder: Path, cores: int) -> list:
    """Cut the texts of a stage into one share for each core and language. Return (language, share) pairs."""
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
    both = joined(sorted((out / "tokenised").glob("train.*")), place / "both")  # the merges are learnt from this text
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
    parser.add_argument(
        "--text", type=Path, metavar="PREFIX", help="use PREFIX.en and PREFIX.de, repeated if they have fewer lines"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")
    args = parser.parse_args()

    cores, rows = os.cpu_count(), []
    with tempfile.TemporaryDirectory() as folder:
        prefix = args.text or Path(folder) / "text" / "train"
        if not args.text:
            subprocess.run(["fairseq-capsule", "toy-corpus", prefix.parent], check=True, stdout=subprocess.DEVNULL)
        for lines in args.lines:
            place = Path(folder) / str(lines)
            place.mkdir()
            rows.append(measure(lines, prefix, place, args.rounds, cores))
            row = rows[-1]
            memory = row["memory_bytes"] / 2**20
            print(f"{lines} pairs: {row['pairs_per_second']:.0f} pairs per second; largest process {memory:.0f} MiB")
            for kind in ("seconds", "stages", "stage_ratios"):
                print(f"  {kind}: " + ", ".join(f"{name} {number:.2f}" for name, number in row[kind].items()))
            print(f"  {row['ratio']:.2f} of the throughput of the slowest tool alone, {row['slowest']}")
    if args.json:
        settings = {**vars(args), "text": str(args.text or "embedded"), "cores": cores}
        print(json.dumps({"rows": rows, "settings": settings, **environment("cpu")}))


if __name__ == "__main__":
    main()
