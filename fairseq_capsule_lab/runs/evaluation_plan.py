"""The plan of an evaluation: the checks before the translation. This module starts nothing."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from fairseq_capsule.errors import UserError, one_line
from fairseq_capsule_lab import errors
from fairseq_capsule_lab.errors import LabError, place, shown, whole
from fairseq_capsule_lab.runs import plugins
from fairseq_capsule_lab.runs.folder import BEST, EPOCH, UPDATE, RunFolder
from fairseq_capsule_lab.runs.prepared import settings_of
from fairseq_capsule_lab.runs.settings import Settings

MOST_CHECKPOINTS = 10_000
LONGEST_PATH = 300  # of a path from a run folder, in a message
Value = TypeVar("Value")
# --tokenise of prepare.sh → options of `fairseq-capsule score` for translations of such text.
SCORING = {
    "moses": ("--tokenized", "yes"),
    "jieba": ("--tokenized", "yes"),
    "none": ("--tokenized", "no"),
    "characters": ("--tokenized", "no", "--remove-bpe", "sentencepiece"),
}


@dataclass(frozen=True)
class Plan:
    """The plan of an evaluation.

    Attributes:
        checkpoint: the file that translates.
        average: the command that makes it; empty if it exists and is up to date.
        scoring: options of `fairseq-capsule score` for the text of the data.
        plugin: the one that fairseq imports.
        note: what differs from the configuration, or empty.
    """

    run: Path
    data: Path
    against: Path | None
    splits: tuple[str, ...]
    task: str
    source: str
    target: str
    beam: int
    nbest: int
    lenpen: float
    max_tokens: int
    checkpoint: Path
    average: tuple[str, ...]
    finished: bool
    scoring: tuple[str, ...]
    plugin: Path
    note: str

    @property
    def shown_lenpen(self) -> str:
        """The length penalty, without a fraction of 0."""
        return str(int(self.lenpen) if self.lenpen == int(self.lenpen) else self.lenpen)


def plan(given: Mapping[str, str]) -> Plan:
    """Check the arguments of evaluate.sh and plan the evaluation.

    Args:
        given: the paths run, data and plugin, the one beside the scripts; the options split, checkpoints, beam,
            lenpen, nbest, max-tokens, against, results and user-dir, each empty if it is not given.

    Raises:
        LabError: a value is wrong; the message is one line.
    """
    run, data = (
        place(name, given[key] and os.path.realpath(given[key])) for name, key in (("RUN", "run"), ("DATA", "data"))
    )
    folder = RunFolder(run)
    if not any(run.glob("checkpoint*.pt")):
        raise LabError(f"{given['run']}: no checkpoints; name the run folder of a training")
    folder.require_plain()
    if not (data / "bin").is_dir() or not (data / "raw").is_dir():
        raise LabError(f"{given['data']}: no 'bin' and 'raw'; name the OUT of a prepare script")
    results = errors.name("--results", given["results"])
    against = place("--against", os.path.realpath(given["against"])) if given["against"] else None
    if against and not (against / results).is_dir():
        raise LabError(f"{given['against']}: no '{results}'; evaluate that run first, with the same options")
    if against:
        RunFolder(against).require_plain()
    settings = folder.settings()
    plugin, other_plugin = chosen_plugin(given, settings, folder.path)
    beam, nbest, lenpen = decoding(given, settings, folder.path)
    source, target = _languages(data / "bin", settings, folder.path)
    splits = tuple(errors.name("--split", split) for split in (given["split"] or "test").split(","))
    for split in splits:
        _require_split(split, target, data, against, results)
    which, note = (given["checkpoints"], "") if given["checkpoints"] else _default(folder, settings)
    checkpoint, average = chosen_checkpoint(folder, which)
    return Plan(
        run,
        data,
        against,
        splits,
        _of(folder.path, settings.name, "task._name", "translation"),
        source,
        target,
        beam,
        nbest,
        lenpen,
        whole("--max-tokens", given["max-tokens"]),
        checkpoint,
        average,
        folder.is_finished or not folder.is_bound,
        _scoring(data, source),
        plugin,
        "; ".join(filter(None, (other_plugin, note))),
    )


def _of(run: Path, read: Callable[[str, Value], Value], key: str, otherwise: Value) -> Value:
    """A value of a run's settings. An error names the run."""
    try:
        return read(key, otherwise)
    except UserError as error:
        raise LabError(f"{run}, its settings: {error}") from error


def chosen_plugin(given: Mapping[str, str], settings: Settings, run: Path) -> tuple[Path, str]:
    """The plugin to import, and a note if the run was trained with another one.

    A run folder may come from somebody else, so the plugin that it names is not imported unless the user names it too.

    Raises:
        LabError: the run was trained with a plugin, and none is given.
    """
    recorded = settings.get(plugins.KEY)
    recorded = None if recorded == plugins.DEFAULT else recorded
    plugin = plugins.plugin("--user-dir", given["user-dir"], Path(given["plugin"]))
    if recorded in (None, str(plugin)):
        return plugin, ""
    trained = f"trained with the plugin {one_line(shown(recorded, LONGEST_PATH))}"
    if not given["user-dir"]:
        raise LabError(f"{run}: {trained}. A plugin is a program: if you trust it, give its folder by --user-dir")
    return plugin, f"{run} was {trained}, not {plugin}"


def decoding(given: Mapping[str, str], settings: Settings, run: Path) -> tuple[int, int, float]:
    """Beam, number of hypotheses and length penalty: from the options, the configuration, or the defaults 5, 1, 1."""
    beam = whole("--beam", given["beam"]) if given["beam"] else _of(run, settings.whole, "generation.beam", 5)
    nbest = whole("--nbest", given["nbest"]) if given["nbest"] else _of(run, settings.whole, "generation.nbest", 1)
    if given["lenpen"]:
        lenpen = errors.number("--lenpen", given["lenpen"])
    else:
        lenpen = _of(run, settings.number, "generation.lenpen", 1.0)
    if nbest > beam:
        raise LabError(f"--nbest {nbest}: a beam of {beam} has at most {beam}; give a smaller number or a larger beam")
    return beam, nbest, lenpen


def _languages(binarised: Path, settings: Settings, run: Path) -> tuple[str, str]:
    """The languages of the run, or those in the file names of the data folder."""
    named = (re.fullmatch(r"[^.]+\.([^.-]+)-([^.-]+)\..+\.bin", path.name) for path in sorted(binarised.glob("*.bin")))
    pair = next((match.groups() for match in named if match), ("", ""))
    source = _of(run, settings.name, "task.source_lang", "") or errors.name("the source language of DATA", pair[0])
    target = _of(run, settings.name, "task.target_lang", "") or errors.name("the target language of DATA", pair[1])
    return source, target


def _require_split(split: str, target: str, data: Path, against: Path | None, results: str) -> None:
    if not any((data / "bin").glob(f"{split}.*.bin")):
        raise LabError(f"{data}/bin: no split '{split}'; choose another with --split")
    if not (data / "raw" / f"{split}.{target}").is_file():
        raise LabError(f"{data}/raw/{split}.{target}: no such reference; prepare the data again")
    if against and not RunFolder(against).evaluation(split, results).translations.is_file():
        raise LabError(f"{against}: '{split}' was not evaluated; evaluate it first")


def _scoring(data: Path, source: str) -> tuple[str, ...]:
    """Options for `fairseq-capsule score`: how the text of the target language was tokenised."""
    said = settings_of(data)
    if "tokenise" not in said and said.get("bpe", "").startswith("sentencepiece"):
        # The settings of prepare.sh have this line. The other scripts split the words of tokenised text into pieces.
        return SCORING["none" if said.get("script") == "prepare.sh" else "moses"]
    ways = said.get("tokenise", "").split(",")
    # Two values belong to --source and --target of prepare.sh. Either can be the target here.
    way = ways[-1] if said.get("source") == source else ways[0]
    return SCORING.get(way, ())


def chosen_checkpoint(folder: RunFolder, which: str) -> tuple[Path, tuple[str, ...]]:
    """The checkpoint that translates, and the command that makes it if it is missing or outdated.

    Args:
        which: last:N, best:N, or a file in the folder.

    Raises:
        LabError: the file is missing, or there are too few checkpoints to average.
    """
    many = re.fullmatch(r"(last|best):([1-9][0-9]{0,17})", which, re.ASCII)
    if not many:
        if not re.fullmatch(r"[\w.=+-]+", which) or not (folder.path / which).is_file():
            raise LabError(f"--checkpoints {which}: not last:N, best:N or a file in {folder.path}{_instead(folder, 0)}")
        return folder.path / which, ()
    kind, number = many[1], whole("--checkpoints", many[2], high=MOST_CHECKPOINTS)
    pool = BEST if kind == "best" and folder.count(BEST) else _last(folder)
    there = folder.count(pool)
    if there < number:
        instead = _instead(folder, there, kind)
        raise LabError(f"{folder.path} has {there} checkpoints ({pool}), and {which} averages {number}{instead}")
    average = folder.path / f"checkpoint_avg_{kind}{number}{'_updates' if pool == UPDATE else ''}.pt"
    if average.exists() and all(path.stat().st_mtime_ns <= average.stat().st_mtime_ns for path in folder.checkpoints()):
        return average, ()
    command = ["average", str(folder.path), f"--{kind}", str(number), *(["--updates"] if pool == UPDATE else [])]
    return average, ("fairseq-capsule", *command, "--output", str(average))


def _last(folder: RunFolder) -> str:
    """The kind of the checkpoints to average: those of epochs, or those of updates if the run keeps no epochs."""
    return UPDATE if not folder.count(EPOCH) and folder.count(UPDATE) else EPOCH


def _default(folder: RunFolder, settings: Settings) -> tuple[str, str]:
    """The default of --checkpoints, and a note.

    It is the average of the checkpoints that the configuration keeps, or of as many as exist; without any, the best.
    """
    kept = 0
    for key in ("checkpoint.keep_last_epochs", "checkpoint.keep_interval_updates"):
        if settings.get(key) is not None:
            kept = _of(folder.path, lambda name, otherwise: settings.whole(name, otherwise, low=-1), key, 0)
            break
    there = min(kept, folder.count(_last(folder)))
    which = f"last:{there}" if there > 0 else "checkpoint_best.pt"
    if there == kept:
        return which, ""
    return which, f"{folder.path} has {there} of the {kept} checkpoints that are averaged by default; using {which}"


def _instead(folder: RunFolder, there: int, kind: str = "last") -> str:
    """A hint with values of --checkpoints that exist."""
    ways = [f"{kind}:{there}"] if there else []
    names = ("checkpoint_best.pt", "checkpoint_last.pt")
    ways += [name for name in names if (folder.path / name).is_file()][-1:]
    return f"; give --checkpoints {' or '.join(ways)}" if ways else ""
