"""An evaluation: average the checkpoints of a run, translate with the average, and score the translations."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from capsule_routing.errors import UserError, one_line
from capsule_routing.text.folders import language_pairs, settings_of
from capsule_routing.text.languages import bleu
from fairseq_capsule_lab import defaults, values
from fairseq_capsule_lab.evaluation.json_files import read_object
from fairseq_capsule_lab.files import replace_file
from fairseq_capsule_lab.manifests import count_lines, fingerprint
from fairseq_capsule_lab.processes import output_of, require_tools, show
from fairseq_capsule_lab.runs import plugins
from fairseq_capsule_lab.runs.checkpoints import chosen_checkpoint, default_choice
from fairseq_capsule_lab.runs.folder import RunFolder
from fairseq_capsule_lab.runs.long_sentences import POSITIONS, SIDES, long_sentence
from fairseq_capsule_lab.runs.machine import child_environment, visible_gpus
from fairseq_capsule_lab.runs.settings import Settings
from fairseq_capsule_lab.stages import Folder, Stage, difference
from fairseq_capsule_lab.values import checked_path

SCRIPT = "evaluate.sh"
# --tokenise of prepare.sh → options of `fairseq-capsule score` for translations of such text.
SCORING = {
    "moses": ("--tokenized", "yes"),
    "jieba": ("--tokenized", "yes"),
    "none": ("--tokenized", "no"),
    "characters": ("--tokenized", "no", "--remove-bpe", "sentencepiece"),
}


@dataclass(frozen=True, kw_only=True)
class EvaluationArguments:
    """The arguments of evaluate.sh: RUN and DATA, and the options of the same names."""

    run: Path
    data: Path
    split: Sequence[str] = ()
    checkpoints: str | None = None
    beam: int | None = None
    lenpen: float | None = None
    nbest: int | None = None
    max_len_b: int | None = None
    no_repeat_ngram_size: int | None = None
    max_tokens: int
    lowercase: bool = False
    bleu_tokenizer: str | None = None
    against: Path | None = None
    results: str
    user_dir: str | None = None


@dataclass(frozen=True)
class Search:
    """The options of the search.

    `longest` is the largest number of tokens of a translation; n-grams of `blocked` tokens are not repeated, 0: all are
    allowed.
    """

    beam: int
    lenpen: str
    nbest: int
    longest: int
    blocked: int

    @classmethod
    def of(cls, args: EvaluationArguments, settings: Settings) -> "Search":
        """The options of evaluate.sh, otherwise those of the run."""
        beam = args.beam or settings.get("generation.beam", defaults.BEAM)
        nbest = args.nbest or settings.get("generation.nbest", defaults.NBEST)
        if nbest > beam:
            raise UserError(f"--nbest {nbest}: a beam of {beam} has at most {beam}; give a larger --beam")
        lenpen, blocked = args.lenpen, args.no_repeat_ngram_size
        return cls(
            beam=beam,
            lenpen=f"{settings.get('generation.lenpen', defaults.LENGTH_PENALTY) if lenpen is None else lenpen:g}",
            nbest=nbest,
            longest=args.max_len_b or settings.get("generation.max_len_b", 200),
            blocked=settings.get("generation.no_repeat_ngram_size", 0) if blocked is None else blocked,
        )

    def settings(self) -> dict[str, str]:
        """Every option by its name."""
        return {
            "beam": str(self.beam),
            "lenpen": self.lenpen,
            "nbest": str(self.nbest),
            "max-len-b": str(self.longest),
            "no-repeat-ngram-size": str(self.blocked),
        }

    def words(self) -> list[str]:
        """The options for fairseq-generate."""
        words = ["--beam", str(self.beam), "--lenpen", self.lenpen, "--nbest", str(self.nbest)]
        words += ["--max-len-b", str(self.longest)]
        return [*words, *(["--no-repeat-ngram-size", str(self.blocked)] if self.blocked else [])]


class EvaluationRun:
    """The checks of the places and options of evaluate.sh, and its commands.

    The command `average` makes the `checkpoint`; it is empty if that is up to date. `scoring` are options of
    `fairseq-capsule score`. `notes` are for the user.
    """

    def __init__(self, args: EvaluationArguments):
        run, data = (checked_path(name, path.resolve()) for name, path in (("RUN", args.run), ("DATA", args.data)))
        folder = RunFolder(run)
        if not any(run.glob("checkpoint*.pt")):
            raise UserError(f"{args.run}: no checkpoints; name the run folder of a training")
        if not (data / "bin").is_dir() or not (data / "raw").is_dir():
            raise UserError(f"{args.data}: no 'bin' and 'raw'; name the OUT of a prepare script")
        settings = folder.settings()
        self.binarised, self.raw = data / "bin", data / "raw"
        self.results = run / values.checked_name("--results", args.results)
        self.against = args.against and args.against.resolve() / args.results
        self.plugin, note_of_plugin = _plugin(args.user_dir, settings, run)
        choice, note_of_choice = default_choice(folder, settings)
        self.search = Search.of(args, settings)
        self.max_tokens = args.max_tokens
        self.task = settings.get("task._name", "translation")
        if self.search.blocked and self.task == "translation":
            self.task = "capsule_translation"  # fairseq's own task blocks nothing without a CUDA extension
        self.positions = {side: settings.get(f"task.max_{side}_positions", POSITIONS) for side in SIDES}
        self.cut_at = self.search.longest
        self.vocabulary = settings.get("task.vocabulary")  # of capsule_summarization, which refuses more characters
        # The settings of a run may leave the languages to the data.
        source, target = next(iter(language_pairs(self.binarised)), ("", ""))
        self.source, self.target = settings.get("task.source_lang", source), settings.get("task.target_lang", target)
        self.splits = [split for names in args.split or ["test"] for split in names.split(",")]
        for split in self.splits:
            self._require_texts(split, args.against)
            self._require_same_form(split, data)
        differences = sorted({note for split in self.splits if (note := self._other_decoding(split))})
        self.checkpoint, self.average = chosen_checkpoint(folder, args.checkpoints or choice)
        self.parts = folder.checkpoints()  # newest first
        notes = [note_of_plugin, "" if args.checkpoints else note_of_choice]
        if folder.is_bound and not folder.is_finished:
            notes.append(f"the training of {run} is not finished")
        self.notes = [note for note in [*notes, *differences] if note]
        self.scoring = self._scoring(args, data)
        self.gpu = next(iter(visible_gpus(os.environ)), "")  # on several ones fairseq mixes the outputs

    def _require_texts(self, split: str, against: Path | None) -> None:
        """Refuse a split without binarised data, a reference, or the translations of the run `against`."""
        if not any(self.binarised.glob(f"{split}.*.bin")):
            raise UserError(f"{self.binarised}: no split '{split}'; choose another with --split")
        if not self.reference(split).is_file():
            raise UserError(f"{self.reference(split)}: no such reference; prepare the data again")
        if self.against and not (self.against / split / "generate.out").is_file():
            raise UserError(f"{against}: '{split}' was not evaluated; evaluate it first, with the same options")

    def _require_same_form(self, split: str, data: Path) -> None:
        """Refuse to compare with a run whose text was tokenised or split otherwise: both are read in the same way."""
        if not self.against or self.task == "capsule_summarization":  # ROUGE joins all characters
            return
        scores = read_object(self.against / split / "scores.json") or {}
        words = _tokenised(data, self.source)
        ours = {"--tokenized": "auto", "--remove-bpe": "auto", **dict(zip(words[::2], words[1::2]))}
        for option, own in ours.items():
            other = scores.get(option[2:].replace("-", "_")) or "auto"
            if own != other and (option == "--remove-bpe" or "auto" not in (own, other)):
                raise UserError(
                    f"{self.against / split} was scored with {option} {other}, which is wrong for the text of {data} "
                    f"({own}); compare the two by fairseq-capsule report"
                )

    def _scoring(self, args: EvaluationArguments, data: Path) -> list[str]:
        """The options of `fairseq-capsule score`. A missing library is refused here, before the translation."""
        lowercase = ["--lowercase"] if args.lowercase else []
        if self.task == "capsule_summarization":
            return ["--rouge", *lowercase]
        bleu(self.target, args.bleu_tokenizer)
        tokenizer = ["--bleu-tokenizer", args.bleu_tokenizer] if args.bleu_tokenizer else []
        return ["--lang", self.target, *_tokenised(data, self.source), *tokenizer, *lowercase]

    def _other_decoding(self, split: str) -> str:
        """A note if the translations that these are compared with were searched with other options."""
        if self.against is None:
            return ""
        now = self.search.settings()
        other = {key: value for key, value in settings_of(self.against / split).items() if key in now}
        return f"{self.against / split} was translated with {difference(other, now)}" if other not in ({}, now) else ""

    def compare_with_checkpoint(self) -> None:
        """Find where translations are cut.

        Data of other words or another direction than the run, or a sentence that fairseq-generate does not read, raise
        a UserError.
        """
        from fairseq_capsule.checkpoints.belonging import of_data, refuse_other  # torch; the plan does not need it
        from fairseq_capsule.checkpoints.loading import belonging_of, positions, read_options

        path = next(path for path in (self.checkpoint, *self.parts) if path.is_file())
        state = read_options(path)
        known = belonging_of(path, state)
        refuse_other(known, of_data(self.binarised, known))
        of_model = positions(state)
        self.cut_at = min(self.search.longest, of_model[1] - 1)  # the last position is that of </s>
        limits = [min(pair) for pair in zip(of_model, self.positions.values())]
        for split in self.splits:
            found = long_sentence(self.binarised, split, (self.source, self.target), limits, self.max_tokens)
            if found and found.side == "batch":
                raise UserError(f"{found}; give --max-tokens {found.tokens}")
            if found:
                raise UserError(f"{found}: it cannot be scored; prepare the data without it")

    def reference(self, split: str) -> Path:
        return self.raw / f"{split}.{self.target}"

    def references(self, split: str) -> list[Path]:
        first = self.reference(split)
        return [first, *sorted(first.parent.glob(f"{first.name}[0-9]*"))]

    def generate_command(self, split: str) -> list[str]:
        """The command that translates a split. Its output is generate.out of the folder of the split."""
        words = ["fairseq-generate", str(self.binarised), "--user-dir", str(self.plugin)]
        words += ["--task", self.task, "--source-lang", self.source, "--target-lang", self.target]
        words += ["--vocabulary", str(self.vocabulary)] if self.vocabulary else []
        words += ["--gen-subset", split, "--path", str(self.checkpoint), *self.search.words()]
        for side, limit in self.positions.items():
            words += [] if limit == POSITIONS else [f"--max-{side}-positions", str(limit)]
        words += ["--max-tokens", str(self.max_tokens), *([] if self.gpu else ["--cpu"]), "--no-progress-bar"]
        words += ["--required-batch-size-multiple", "1"]  # otherwise fairseq leaves out a last batch of another size
        return words

    def score_command(self, split: str) -> list[str]:
        """The command that scores a split, in its folder. Its output is scores.json, its errors scores.txt."""
        words = ["fairseq-capsule", "score", "generate.out", *map(str, self.references(split)), *self.scoring]
        words += ["--against", str(self.against / split / "generate.out")] if self.against else []
        words += ["--output", f"translations.{self.target}", "--json"]
        return words

    def show_generate(self, split: str) -> None:
        show(self.generate_command(split), output=str(self.results / split / "generate.out"), gpus=self.gpu)

    def show_score(self, split: str) -> None:
        show(self.score_command(split), self.results / split, "scores.json")

    def evaluate(self, split: str) -> None:
        """Do what is missing. Other scoring options score again, but do not translate again."""
        files = [*sorted(self.binarised.glob(f"{split}.*.bin")), *sorted(self.binarised.glob("dict.*.txt"))]
        checkpoint, data = fingerprint(self.checkpoint), fingerprint(*files)
        settings = {"checkpoint": checkpoint, **self.search.settings(), "data": data}
        folder = Folder(str(self.results / split), SCRIPT)
        scores = folder.path / "scores.txt"

        def translate(unfinished: Path, log: BinaryIO) -> None:
            sentences = count_lines(self.reference(split))
            done, step = 0, sentences // 10 + 1
            self.show_generate(split)
            with open(unfinished, "wb") as stream:
                for line in output_of(self.generate_command(split), log, folder.path, child_environment(self.gpu)):
                    stream.write(line)
                    done += line.startswith(b"S-")
                    if line.startswith(b"S-") and done % step == 0:
                        print(f"  {done} of {sentences} sentences", flush=True)

        def score(unfinished: Path, log: BinaryIO) -> None:
            words = self.score_command(split)
            self.show_score(split)
            done = subprocess.run(words, cwd=folder.path, capture_output=True)
            if done.returncode:
                log.write(done.stderr)
                raise subprocess.CalledProcessError(done.returncode, words)
            replace_file(scores, done.stderr)
            found = {**json.loads(done.stdout), "translations": counts, "scoring": self._recorded_scoring(split)}
            unfinished.write_text(json.dumps(found, ensure_ascii=False) + "\n", encoding="utf-8")

        with folder.locked():
            folder.keep_settings(settings)
            folder.run(Stage("generate.out", translate))
            self._delete_other_scores(split)
            counts = count_unfinished(folder.path / "generate.out", self.cut_at)
            folder.run(Stage("scores.json", score))
            sys.stdout.write(scores.read_text(errors="replace"))
            if counts["cut"]:
                longest = self.search.longest
                limit = f"--max-len-b {longest}" if self.cut_at == longest else "the positions of the model"
                print(f"{counts['cut']} of {counts['sentences']} translations were cut at {limit}")
            if counts["unknown"]:
                print(f"{counts['unknown']} of {counts['sentences']} translations have <unk>")

    def _recorded_scoring(self, split: str) -> dict[str, Any]:
        """What the scores of a split depend on besides its translations."""
        against = self.against and self.against / split / "generate.out"
        return {
            "options": self.scoring,
            "references": fingerprint(*self.references(split)),
            **({"against": {"path": str(against), "hash": fingerprint(against)}} if against else {}),
        }

    def _delete_other_scores(self, split: str) -> None:
        """Delete the scores if they were computed with other options or texts."""
        file = self.results / split / "scores.json"
        with contextlib.suppress(AttributeError, OSError, ValueError):
            if json.loads(file.read_text(encoding="utf-8")).get("scoring") == self._recorded_scoring(split):
                return
        for name in ("scores.txt", "scores.json"):
            file.with_name(name).unlink(missing_ok=True)


def count_unfinished(output: Path, longest: int) -> dict[str, int]:
    """Count the best translations in an output of fairseq-generate: those `longest` tokens long, those with <unk>."""
    counts = {"sentences": 0, "cut": 0, "unknown": 0}
    before = None
    with open(output, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            name, _, rest = line.rstrip("\n").partition("\t")
            if name.startswith("H-") and name != before:
                before, words = name, rest.partition("\t")[2].split()
                counts["sentences"] += 1
                counts["cut"] += len(words) >= longest
                counts["unknown"] += "<unk>" in words
    return counts


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
        raise UserError(f"{run}: {problem}: if you trust it, give its folder by --user-dir")
    return plugin, f"{run} was trained with the plugin {recorded}, not {plugin}"


def _tokenised(data: Path, source: str) -> tuple[str, ...]:
    """Options for `fairseq-capsule score`: how the text of the target language was tokenised."""
    settings = settings_of(data)
    if "tokenise" not in settings and settings.get("bpe", "").startswith("sentencepiece"):
        # The settings of prepare.sh have this line. The other scripts split the words of tokenised text into pieces.
        return SCORING["none" if settings.get("script") == "prepare.sh" else "moses"]
    ways = settings.get("tokenise", "").split(",")
    # Two values belong to --source and --target of prepare.sh. Either can be the target here.
    way = ways[-1] if settings.get("source") == source else ways[0]
    return SCORING.get(way, ())


def evaluate(program: str, args: EvaluationArguments, dry_run: bool = False) -> None:
    """Evaluate a run on its splits, and print the scores. `program` is what the user called, for notes."""
    require_tools("fairseq-capsule", "fairseq-generate")
    evaluation = EvaluationRun(args)
    for note in evaluation.notes:
        print(f"{program}: note: {one_line(note)}", file=sys.stderr)
    if evaluation.average:
        show(evaluation.average)
    if dry_run:
        for split in evaluation.splits:
            evaluation.show_generate(split)
            evaluation.show_score(split)
        return
    evaluation.compare_with_checkpoint()
    if evaluation.average and subprocess.run(evaluation.average).returncode:
        raise SystemExit(1)  # the command has printed why
    for split in evaluation.splits:
        print(f"{split}:", flush=True)
        evaluation.evaluate(split)
