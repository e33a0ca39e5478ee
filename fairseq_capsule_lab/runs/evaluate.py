"""An evaluation: average the checkpoints of a run, translate with the average, and score the translations."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from fairseq_capsule_lab.processes import output_of, require_tools
from fairseq_capsule_lab.runs.evaluation_plan import Plan, plan
from fairseq_capsule_lab.runs.machine import child_environment, visible_gpus
from fairseq_capsule_lab.stages import Folder, Stage, fingerprint

SCRIPT = "evaluate.sh"


def evaluate(program: str, given: Mapping[str, str]) -> None:
    """Evaluate a run on its splits, and print the scores.

    Args:
        program: what the user called, for notes.
        given: see `evaluation_plan.plan`; also lowercase.

    Raises:
        LabError: an argument is wrong, or a step failed.
    """
    require_tools("fairseq-capsule", "fairseq-generate")
    planned = plan(given)
    if planned.note:
        print(f"{program}: note: {planned.note}", file=sys.stderr)
    if planned.average and subprocess.run(planned.average).returncode:
        raise SystemExit(1)  # the command has printed why
    if not planned.finished:
        print(f"{program}: note: the training of {planned.run} is not finished", file=sys.stderr)
    for split in planned.splits:
        print(f"{split}:", flush=True)
        _Split(planned, split, given["results"], bool(given["lowercase"])).evaluate()


class _Split:
    """The evaluation of one split in its folder."""

    def __init__(self, planned: Plan, split: str, results: str, lowercase: bool):
        self.plan, self.split = planned, split
        self.folder = Folder(str(planned.run / results / split), SCRIPT)
        self.references = _references(planned.data, split, planned.target)
        self.against = planned.against / results / split / "generate.out" if planned.against else None
        self.scoring = ["--lang", planned.target, *planned.scoring]
        if planned.task == "capsule_summarization":
            self.scoring = ["--rouge"]
        self.scoring += ["--lowercase"] if lowercase else []
        self.scoring += ["--against", str(self.against)] if self.against else []

    def evaluate(self) -> None:
        """Do what is missing. Other scoring options score again, but do not translate again."""
        with self.folder.locked():
            self.folder.keep_settings(self._settings())
            self.folder.run(Stage("generate.out", self._translate))
            self._keep_scoring()
            scores = self.folder.path / "scores.txt"
            last = Stage("scores.json", lambda part, log: part.write_bytes(scores.read_bytes().splitlines(True)[-1]))
            self.folder.run(Stage("scores.txt", self._score), last)
            sys.stdout.write("".join(scores.read_text().splitlines(keepends=True)[:-1]))

    def _settings(self) -> list[str]:
        binarised = self.plan.data / "bin"
        files = [*sorted(binarised.glob(f"{self.split}.*.bin")), *sorted(binarised.glob("dict.*.txt"))]
        decoding = (("beam", self.plan.beam), ("lenpen", self.plan.shown_lenpen), ("nbest", self.plan.nbest))
        return [
            f"checkpoint {fingerprint(self.plan.checkpoint)}",
            *(f"{name} {value}" for name, value in decoding),
            f"data {fingerprint(*files)}",
        ]

    def _keep_scoring(self) -> None:
        """Delete the scores if they were computed with other options."""
        options = " ".join(self.scoring) + " " + (fingerprint(self.against) if self.against else "")
        file = self.folder.path / "scoring"
        if file.exists() and file.read_text(errors="replace").rstrip("\n") == options:
            return
        with self.folder.writing():
            for name in ("scores.txt", "scores.json"):
                (self.folder.path / name).unlink(missing_ok=True)
            file.write_text(f"{options}\n")

    def _translate(self, part: Path, log: BinaryIO) -> None:
        planned = self.plan
        gpu = next(iter(visible_gpus(os.environ)), "")  # on several GPUs fairseq would mix the outputs of the processes
        with open(planned.data / "raw" / f"{self.split}.{planned.target}", "rb") as stream:
            sentences = sum(1 for _ in stream)
        words = ["fairseq-generate", str(planned.data / "bin"), "--user-dir", str(planned.plugin)]
        words += ["--task", planned.task, "--source-lang", planned.source, "--target-lang", planned.target]
        words += ["--gen-subset", self.split, "--path", str(planned.checkpoint), "--beam", str(planned.beam)]
        words += ["--lenpen", planned.shown_lenpen, "--nbest", str(planned.nbest)]
        words += ["--max-tokens", str(planned.max_tokens), *([] if gpu else ["--cpu"]), "--no-progress-bar"]
        words += ["--required-batch-size-multiple", "1"]  # otherwise fairseq leaves out a last batch of another size
        done, step = 0, sentences // 10 + 1
        with open(part, "wb") as stream:
            for line in output_of(words, log, self.folder.path, child_environment(gpu)):
                stream.write(line)
                if line.startswith(b"S-"):
                    done += 1
                    if done % step == 0:
                        print(f"  {done} of {sentences} sentences", flush=True)

    def _score(self, part: Path, log: BinaryIO) -> None:
        words = ["fairseq-capsule", "score", "generate.out", *map(str, self.references), *self.scoring]
        words += ["--output", f"translations.{self.plan.target}", "--json"]
        with open(part, "wb") as stream:
            done = subprocess.run(words, cwd=self.folder.path, stdout=stream, stderr=subprocess.PIPE)
        if done.returncode:
            log.write(done.stderr)
            raise subprocess.CalledProcessError(done.returncode, words)
        sys.stdout.write(done.stderr.decode(errors="replace"))


def _references(data: Path, split: str, target: str) -> list[Path]:
    """Return the reference of a split and its further ones, `SPLIT.LANG1`, …"""
    first = data / "raw" / f"{split}.{target}"
    others = (path for path in first.parent.iterdir() if re.fullmatch(rf"{re.escape(first.name)}[0-9].*", path.name))
    return [first, *sorted(others)]
