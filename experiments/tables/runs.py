"""Runs: what determines a training, its folder, and which of its checkpoints is measured.

Rows of different tables with equal settings are one run, in one folder.
"""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Iterator, List, Optional, Sequence, Tuple

import yaml
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from capsule_routing.errors import UserError
from capsule_routing.text.number_sets import as_ranges
from experiments.tables.definitions import CONFIGS, Column, Row, Table, Words, filled
from experiments.tables.scales import Regime, Scale, Setup
from fairseq_capsule_lab.runs import RunFolder, plugins

GIVEN = "given"  # the checkpoint of --baseline
BASELINE = "transformer"  # the configuration that it replaces
PROBE = "probe"


@dataclass(frozen=True)
class Workspace:
    """The folders of runs and of prepared corpora; absolute paths, since fairseq changes the working folder.

    Attributes:
        here: a plugin of a row is relative to it: this project for its own tables, the working folder for others.
        plugin: the plugin of rows that name none; None for this package.
    """

    runs: Path
    data: Path
    here: Path = Path()
    plugin: Optional[Path] = None


@dataclass(frozen=True)
class Run:
    """One training.

    Attributes:
        config: the configuration's name in configs/CORPUS.
        overrides: the overrides of its row and corpus that change a setting, sorted, without the plugin.
        baseline: the run that it starts from.
        teacher: the run whose translations are its training data.
        workspace: where its folder and its corpus are.
        user_dir: the plugin that its row names, as written there; empty if it names none.
    """

    scale: str
    setup: Setup
    config: str
    overrides: Words
    seed: int
    baseline: Optional["Run"] = None
    teacher: Optional["Run"] = None
    user_dir: str = ""
    workspace: Workspace = Workspace(Path(), Path())

    @property
    def regime(self) -> Regime:
        return self.setup.on_baseline if self.baseline else self.setup.from_scratch

    @property
    def all_overrides(self) -> Words:
        return (*self.setup.overrides, *self.regime.overrides, *self.overrides)

    @property
    def title(self) -> str:
        """Its settings without scale, corpus and seed, as the name of a folder and a value of a Hydra override."""
        words = [word for word in self.setup.overrides if not _is_setting(word)]
        for word in self.overrides:
            rest = word.removeprefix("model.")
            is_group = (CONFIGS / self.setup.configs / rest.partition("=")[0]).is_dir()  # a group of the shorter name
            words.append(word if is_group else rest)
        words += [f"user_dir={Path(self.user_dir).name}"] if self.user_dir else []
        words = [self.config, *sorted(words)]
        words += [f"on={self.baseline.title}"] if self.baseline else []
        words += [f"teacher={self.teacher.title}"] if self.teacher else []
        return "+".join(words).replace("=", "-").replace(",", "_").replace("/", "@")

    @property
    def has_other_architecture(self) -> bool:
        """Whether its row chooses another architecture than its configuration."""
        return any(word.startswith("model._name=") for word in self.overrides)

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.workspace.runs / self.name)

    @property
    def corpus(self) -> Path:
        return self.workspace.data / self.setup.data

    @property
    def prepared(self) -> Path:
        """The file that exists once its corpus is complete."""
        return self.corpus / "manifest.json"

    @property
    def plugin(self) -> Optional[Path]:
        """The plugin that defines its model; None for this package."""
        return Path(os.path.abspath(self.workspace.here / self.user_dir)) if self.user_dir else self.workspace.plugin

    @property
    def plugin_option(self) -> List[str]:
        """The option of a command that loads or builds its model."""
        return ["--user-dir", str(self.plugin)] if self.plugin else []

    @property
    def is_averaged(self) -> bool:
        return bool(self.regime.average) and self.config not in (PROBE, GIVEN)

    def with_needed(self) -> Iterator["Run"]:
        """The baselines and teachers that it needs, directly or through others, then the run itself."""
        for needed in filter(None, (self.baseline, self.teacher)):
            yield from needed.with_needed()
        yield self

    # --- its files, relative to the folder of runs ------------------------------------------------------------------

    @property
    def complete(self) -> str:
        """The file that exists once its checkpoint is complete. fairseq writes its own before the end."""
        return f"{self.name}/{self.checkpoint.name if self.is_averaged or self.config == GIVEN else 'finished'}"

    @property
    def translation_needs(self) -> List[str]:
        """What is read when it translates: its prepared corpus, an absolute path, and its checkpoint."""
        return [str(self.prepared), self.complete]

    @property
    def distilled(self) -> str:
        """Its translations of the training set, complete."""
        return f"{self.name}/distilled/manifest.json"

    def scores(self, split: str) -> str:
        return f"{self.name}/evaluation/{split}/scores.json"

    def measurement(self, source: str) -> str:
        """The figures of a source, a key of `sources.SOURCES`."""
        return f"{self.name}/measures/{source}.json"

    def comparison(self, other: "Run", seeds: Sequence[int], split: str) -> str:
        """The file of its comparison with another run, or of the comparison over several seeds of both."""
        folder = f"{self.system}/seeds{as_ranges(seeds).replace(',', '_')}" if len(seeds) > 1 else self.name
        return f"{folder}/compared/{other.title}/{split}.json"

    @property
    def system(self) -> str:
        return "/".join([self.scale, self.setup.data, self.title])

    @property
    def name(self) -> str:
        return self.system if self.config == GIVEN else f"{self.system}/seed{self.seed}"

    @property
    def checkpoint(self) -> Path:
        """The checkpoint that is measured and decoded, and that other runs start from."""
        if self.config == GIVEN:
            return self.folder.path / "checkpoint_given.pt"
        return self.folder.path / ("checkpoint_avg_table.pt" if self.is_averaged else "checkpoint_last.pt")


@dataclass(frozen=True)
class TableRuns:
    """The runs of a table at a scale.

    Attributes:
        given: a given checkpoint replaces the Transformer that rows start from or learn from. It also does if an
            earlier call has put one into the folder of runs.
    """

    table: Table
    scale: Scale
    workspace: Workspace
    given: bool = False

    def compared(self, row: Row, column: Column, seed: int) -> Tuple[Run, Optional[Run]]:
        """The run of a row for a column, and the run of the row that it is compared with."""
        other = self.run(self.table.row(row.against), column, seed) if row.against else None
        return self.run(row, column, seed), other

    def run(self, row: Row, column: Column, seed: int) -> Run:
        """The run of a row for a column; raises a UserError if its folder was trained with another schedule."""
        corpus, *of_corpus = column.corpus
        config, *words = row.run or ()
        setup = self.scale.setup(self.table.paper, corpus, any(word.startswith("size=big") for word in words))
        words = [filled(word, {**dict(setup.words), **row.at}) for word in words]
        overrides = sorted([*words, *([] if setup.stands_in else of_corpus)])
        user_dirs = [word.partition("=")[2] for word in overrides if word.startswith(f"{plugins.KEY}=")]
        user_dir = user_dirs[-1] if user_dirs and user_dirs[-1] != plugins.DEFAULT else ""
        needed = (self.run(self.table.row(label), column, seed) if label else None for label in (row.on, row.teacher))
        baseline, teacher = needed
        regime = setup.on_baseline if baseline else setup.from_scratch
        changed = _without_defaults(setup.configs, config, (*setup.overrides, *regime.overrides), overrides)
        run = Run(self.scale.name, setup, config, changed, seed, baseline, teacher, user_dir, self.workspace)
        # A teacher may have any size.
        others = self.table.rows
        is_needed = any((not words and other.on == row.label) or other.teacher == row.label for other in others)
        if is_needed and config == BASELINE and not run.has_other_architecture:
            replacement = Run(self.scale.name, setup, GIVEN, (), 0, workspace=self.workspace)
            # An archive of results has the folder without the checkpoint.
            if self.given or replacement.checkpoint.is_symlink() or replacement.folder.is_finished:
                return replacement
        _refuse_other_schedule(run)
        return run


def _refuse_other_schedule(run: Run) -> None:
    """A run's name has no schedule: two tables may train the same model for different times.

    A setting that its folder does not state, such as one that train.sh computes, is not compared.
    """
    settings = run.folder.settings()
    for group in ("optimization", "lr_scheduler") if settings.config else ():
        for name, now in composed_of(run)[group].items():
            trained = settings.get(f"{group}.{name}")
            if trained not in (None, now):
                there = f"{run.folder.path} was trained with {group}.{name}={trained}"
                raise UserError(f"{there}, this table has {now}; give another folder as --runs")


def composed_of(run: Run) -> DictConfig:
    """The composed configuration of a run; a given baseline has the Transformer's."""
    return composed(run.setup.configs, BASELINE if run.config == GIVEN else run.config, run.all_overrides)


def task_of(run: Run) -> DictConfig:
    """The task of a run's composed configuration. It is the same for runs that differ in other settings."""
    overrides = [word for word in run.all_overrides if word.startswith("task.") or not _is_setting(word)]
    return composed(run.setup.configs, BASELINE if run.config == GIVEN else run.config, tuple(overrides)).task


@cache
def composed(configs: str, config: str, overrides: Words) -> DictConfig:
    """Compose a configuration; raises a UserError if it does not exist, or an override is not one of its settings."""
    try:
        with initialize_config_dir(str(CONFIGS / configs), version_base="1.1"):
            return compose(config, list(overrides))
    except HydraException as error:
        problem = str(error).splitlines()[0].rstrip(".")
        remedy = "check the row; ++ before a setting also sets one that this file leaves out"
        raise UserError(f"configs/{configs}/{config}.yaml: {problem}; {remedy}") from error


def _without_defaults(configs: str, config: str, others: Words, overrides: Sequence[str]) -> Words:
    """The `overrides` that change a setting of the configuration with `others`, without the plugin."""
    own = [word for word in overrides if not word.startswith(f"{plugins.KEY}=")]
    settings = composed(configs, config, (*others, *(word for word in own if not _is_setting(word))))

    def changes(word: str) -> bool:
        name, _, value = word.partition("=")
        return not _is_setting(word) or OmegaConf.select(settings, name) != yaml.safe_load(value)

    return tuple(filter(changes, own))


def _is_setting(word: str) -> bool:
    """Whether an override is of a setting, not the choice of a group such as `size=big`."""
    return "." in word.partition("=")[0]
