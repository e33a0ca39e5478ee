"""An evaluation: average the checkpoints of a run, translate with the average, and score the translations."""

import os
import subprocess
import sys
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from capsule_routing.errors import one_line
from capsule_routing.text.folders import settings_of
from fairseq_capsule_lab.errors import LabError, place
from fairseq_capsule_lab.processes import output_of, require_tools, show
from fairseq_capsule_lab.runs import plugins
from fairseq_capsule_lab.runs.checkpoints import chosen_checkpoint, default_choice
from fairseq_capsule_lab.runs.folder import RunFolder
from fairseq_capsule_lab.runs.machine import child_environment, visible_gpus
from fairseq_capsule_lab.runs.prepared import pairs
from fairseq_capsule_lab.runs.settings import Settings
from fairseq_capsule_lab.stages import Folder, Stage, count_lines, fingerprint

SCRIPT = "evaluate.sh"
# --tokenise of prepare.sh → options of `fairseq-capsule score` for translations of such text.
SCORING = {
    "moses": ("--tokenized", "yes"),
    "jieba": ("--tokenized", "yes"),
    "none": ("--tokenized", "no"),
    "characters": ("--tokenized", "no", "--remove-bpe", "sentencepiece"),
}


@dataclass(frozen=True)
class EvaluationPlan:
    """The plan of an evaluation.

    `results` is the folder in `run` that gets a folder for each split. The command `average` makes the checkpoint; it
    is empty if that is up to date. `lenpen` has no fraction of 0. `scoring` are options of `fairseq-capsule score`.
    """

    run: Path
    data: Path
    against: Path | None
    results: str
    splits: tuple[str, ...]
    task: str
    source: str
    target: str
    beam: int
    nbest: int
    lenpen: str
    max_tokens: int
    checkpoint: Path
    average: tuple[str, ...]
    scoring: tuple[str, ...]
    plugin: Path
    notes: tuple[str, ...]


def plan(args: Namespace) -> EvaluationPlan:
    """Check the places and options of evaluate.sh, and plan the evaluation."""
    run, data = (place(name, path.resolve()) for name, path in (("RUN", args.run), ("DATA", args.data)))
    folder = RunFolder(run)
    if not any(run.glob("checkpoint*.pt")):
        raise LabError(f"{args.run}: no checkpoints; name the run folder of a training")
    if not (data / "bin").is_dir() or not (data / "raw").is_dir():
        raise LabError(f"{args.data}: no 'bin' and 'raw'; name the OUT of a prepare script")
    against = args.against and args.against.resolve()

    settings = folder.settings()
    plugin, note_of_plugin = _plugin(args.user_dir, settings, run)
    choice, note_of_choice = default_choice(folder, settings)
    beam = args.beam or settings.get("generation.beam", 5)
    nbest = args.nbest or settings.get("generation.nbest", 1)
    lenpen = settings.get("generation.lenpen", 1) if args.lenpen is None else args.lenpen
    task = settings.get("task._name", "translation")
    pair = next(iter(pairs(data / "bin", "*")), ("", ""))  # for a run whose settings leave the languages to the data
    source, target = (settings.get(f"task.{side}_lang", found) for side, found in zip(("source", "target"), pair))
    splits = tuple(split for names in args.split or ["test"] for split in names.split(","))
    for split in splits:
        if not any((data / "bin").glob(f"{split}.*.bin")):
            raise LabError(f"{data}/bin: no split '{split}'; choose another with --split")
        if not (data / "raw" / f"{split}.{target}").is_file():
            raise LabError(f"{data}/raw/{split}.{target}: no such reference; prepare the data again")
        if against and not RunFolder(against).evaluation(split, args.results).translations.is_file():
            raise LabError(f"{against}: '{split}' was not evaluated; evaluate it first, with the same options")
    checkpoint, average = chosen_checkpoint(folder, args.checkpoints or choice)
    notes = [note_of_plugin, "" if args.checkpoints else note_of_choice]
    if folder.is_bound and not folder.is_finished:
        notes.append(f"the training of {run} is not finished")
    scoring = ["--lang", target, *_scoring(data, source)] if task != "capsule_summarization" else ["--rouge"]
    scoring += ["--lowercase"] if args.lowercase else []
    return EvaluationPlan(
        *(run, data, against, args.results, splits, task, source, target, beam, nbest, f"{lenpen:g}", args.max_tokens),
        *(checkpoint, average, tuple(scoring), plugin, tuple(filter(None, notes))),
    )


def _plugin(named: str | None, settings: Settings, run: Path) -> tuple[Path, str]:
    """The plugin to import, and a note if the run was trained with another one.

    A run folder may come from somebody else, so the plugin that it names is not imported unless the user names it too.
    """
    recorded = settings.get(plugins.KEY)
    plugin = plugins.plugin("--user-dir", named)
    if recorded in (None, plugins.DEFAULT, str(plugin)):
        return plugin, ""
    if not named:
        problem = f"trained with the plugin {recorded}. A plugin is a program"
        raise LabError(f"{run}: {problem}: if you trust it, give its folder by --user-dir")
    return plugin, f"{run} was trained with the plugin {recorded}, not {plugin}"


def _scoring(data: Path, source: str) -> tuple[str, ...]:
    """Options for `fairseq-capsule score`: how the text of the target language was tokenised."""
    settings = settings_of(data)
    if "tokenise" not in settings and settings.get("bpe", "").startswith("sentencepiece"):
        # The settings of prepare.sh have this line. The other scripts split the words of tokenised text into pieces.
        return SCORING["none" if settings.get("script") == "prepare.sh" else "moses"]
    ways = settings.get("tokenise", "").split(",")
    # Two values belong to --source and --target of prepare.sh. Either can be the target here.
    way = ways[-1] if settings.get("source") == source else ways[0]
    return SCORING.get(way, ())


def evaluate(program: str, args: Namespace) -> None:
    """Evaluate a run on its splits, and print the scores. `program` is what the user called, for notes."""
    require_tools("fairseq-capsule", "fairseq-generate")
    planned = plan(args)
    for note in planned.notes:
        print(f"{program}: note: {one_line(note)}", file=sys.stderr)
    if planned.average:
        show(planned.average)
    if args.dry_run:
        for split in planned.splits:
            _Split(planned, split).show()
        return
    if planned.average and subprocess.run(planned.average).returncode:
        raise SystemExit(1)  # the command has printed why
    for split in planned.splits:
        print(f"{split}:", flush=True)
        _Split(planned, split).evaluate()


class _Split:
    """The evaluation of one split in its folder."""

    def __init__(self, planned: EvaluationPlan, split: str):
        self.plan, self.split = planned, split
        self.folder = Folder(str(planned.run / planned.results / split), SCRIPT)
        self.reference = planned.data / "raw" / f"{split}.{planned.target}"
        against = planned.against and planned.against / planned.results / split / "generate.out"
        self.scoring = [*planned.scoring, *(["--against", str(against)] if against else [])]
        # Other options or other translations to compare with score again.
        self.scored_with = f"{' '.join(self.scoring)} {fingerprint(against) if against else ''}"

    def evaluate(self) -> None:
        """Do what is missing. Other scoring options score again, but do not translate again."""
        planned, binarised = self.plan, self.plan.data / "bin"
        files = [*sorted(binarised.glob(f"{self.split}.*.bin")), *sorted(binarised.glob("dict.*.txt"))]
        settings = [f"checkpoint {fingerprint(planned.checkpoint)}", f"beam {planned.beam}", f"lenpen {planned.lenpen}"]
        with self.folder.locked():
            self.folder.keep_settings([*settings, f"nbest {planned.nbest}", f"data {fingerprint(*files)}"])
            self.folder.run(Stage("generate.out", self._translate))
            self._keep_scoring()
            scores = self.folder.path / "scores.txt"
            last = Stage("scores.json", lambda part, log: part.write_bytes(scores.read_bytes().splitlines(True)[-1]))
            self.folder.run(Stage("scores.txt", self._score), last)
            sys.stdout.write("".join(scores.read_text().splitlines(keepends=True)[:-1]))

    def show(self) -> None:
        """Print the commands, whether or not they ran before."""
        words, gpu = self._translating()
        show(words, output=str(self.folder.path / "generate.out"), gpus=gpu)
        show(self._scoring(), self.folder.path, "scores.txt")

    def _keep_scoring(self) -> None:
        """Delete the scores if they were computed with other options."""
        file = self.folder.path / "scoring"
        if file.exists() and file.read_text(errors="replace").rstrip("\n") == self.scored_with:
            return
        for name in ("scores.txt", "scores.json"):
            (self.folder.path / name).unlink(missing_ok=True)
        file.write_text(f"{self.scored_with}\n")

    def _translating(self) -> tuple[list[str], str]:
        """Return the command that translates, and the GPU that it uses: on several ones fairseq mixes the outputs."""
        planned = self.plan
        gpu = next(iter(visible_gpus(os.environ)), "")
        words = ["fairseq-generate", str(planned.data / "bin"), "--user-dir", str(planned.plugin)]
        words += ["--task", planned.task, "--source-lang", planned.source, "--target-lang", planned.target]
        words += ["--gen-subset", self.split, "--path", str(planned.checkpoint), "--beam", str(planned.beam)]
        words += ["--lenpen", planned.lenpen, "--nbest", str(planned.nbest)]
        words += ["--max-tokens", str(planned.max_tokens), *([] if gpu else ["--cpu"]), "--no-progress-bar"]
        words += ["--required-batch-size-multiple", "1"]  # otherwise fairseq leaves out a last batch of another size
        return words, gpu

    def _translate(self, part: Path, log: BinaryIO) -> None:
        words, gpu = self._translating()
        show(words, output=str(self.folder.path / "generate.out"), gpus=gpu)
        sentences = count_lines(self.reference)
        done, step = 0, sentences // 10 + 1
        with open(part, "wb") as stream:
            for line in output_of(words, log, self.folder.path, child_environment(gpu)):
                stream.write(line)
                done += line.startswith(b"S-")
                if line.startswith(b"S-") and done % step == 0:
                    print(f"  {done} of {sentences} sentences", flush=True)

    def _scoring(self) -> list[str]:
        """Return the command that scores. It runs in the folder of the split."""
        others = self.reference.parent.glob(f"{self.reference.name}[0-9]*")
        references = map(str, [self.reference, *sorted(others)])
        words = ["fairseq-capsule", "score", "generate.out", *references, *self.scoring]
        return [*words, "--output", f"translations.{self.plan.target}", "--json"]

    def _score(self, part: Path, log: BinaryIO) -> None:
        words = self._scoring()
        show(words, self.folder.path, "scores.txt")
        with open(part, "wb") as stream:
            done = subprocess.run(words, cwd=self.folder.path, stdout=stream, stderr=subprocess.PIPE)
        if done.returncode:
            log.write(done.stderr)
            raise subprocess.CalledProcessError(done.returncode, words)
        sys.stdout.write(done.stderr.decode(errors="replace"))
