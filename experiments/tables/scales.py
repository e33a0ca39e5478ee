"""Scales, configs/scales/*.yaml: the corpora, sizes and schedules that a table is made with."""

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Tuple

from capsule_routing.errors import UserError
from experiments.tables.definitions import CONFIGS, Words, read_yaml

SCALES = ("paper", "small", "smoke")


@dataclass(frozen=True)
class Regime:
    """The schedule of a training from scratch, or of one that starts from a baseline.

    Attributes:
        overrides: for every such run.
        average: options of `fairseq-capsule average`; if empty, the last checkpoint is measured.
    """

    overrides: Words
    average: Words


@dataclass(frozen=True)
class Setup:
    """The settings of a paper's runs on one corpus at one scale.

    Attributes:
        configs, data: the folders under configs/ and under --data.
        pairs: of the training set, about; 0 if unknown.
        licensed: the folder of a corpus that needs a licence; its path replaces `{licensed}` in `prepare`.
        prepare: the command that prepares the data.
        decode, distill, throughput, latency: options of evaluate.sh, distill.sh and the benchmarks.
        words: values for `{name}` in a definition.
        memory: of a training, in GB; an estimate.
        stands_in: whether another corpus replaces the paper's. It has one direction of translation.
    """

    configs: str
    data: str
    pairs: int
    licensed: str
    prepare: Words
    splits: Words
    overrides: Words
    decode: Words
    distill: Words
    throughput: Words
    latency: Words
    words: Tuple[Tuple[str, str], ...]
    gpus: int
    memory: int
    effective_tokens: int
    stands_in: bool
    from_scratch: Regime
    on_baseline: Regime


@dataclass(frozen=True)
class Scale:
    """One scale. All `entries` that fit a run are merged; later ones take precedence."""

    name: str
    entries: Tuple[Mapping[str, Any], ...]

    def setup(self, paper: str, corpus: str, big: bool) -> Setup:
        """The settings of a paper's runs on a corpus; `big` is whether they have the big size."""
        merged: Dict[str, Any] = {}
        for entry in self.entries:
            fits = paper in entry.get("papers", [paper]) and corpus in entry.get("corpora", [corpus])
            if fits and (big or "big" not in entry):
                both = {key: {**merged[key], **entry[key]} for key in merged if isinstance(entry.get(key), dict)}
                merged = {**merged, **entry, **both}
        configs = merged.get("configs", corpus)
        return Setup(
            configs=configs,
            data=merged.get("data", configs),
            pairs=int(merged.get("pairs", 0)),
            licensed=merged.get("licensed", ""),
            prepare=_words(merged, "prepare") or (f"scripts/prepare-{configs}.sh",),
            splits=_words(merged, "splits") or ("test",),
            overrides=_words(merged, "overrides"),
            decode=_words(merged, "decode"),
            distill=_words(merged, "distill"),
            throughput=_words(merged, "throughput"),
            latency=_words(merged, "latency"),
            words=tuple(merged.get("words", {}).items()),
            gpus=int(merged.get("gpus", 1)),
            memory=int(merged.get("memory", 8)),
            effective_tokens=int(merged.get("effective_tokens", 0)),
            stands_in=configs != corpus,
            from_scratch=_regime(merged.get("from_scratch", {})),
            on_baseline=_regime(merged.get("on_baseline", {})),
        )


def load_scale(name: str) -> Scale:
    """Read a scale; raises a UserError if there is none of this name."""
    if name not in SCALES:
        raise UserError(f"no scale {name!r}; there are: {', '.join(SCALES)}")
    entries: List[Mapping[str, Any]] = read_yaml(CONFIGS / "scales" / f"{name}.yaml")["settings"]
    return Scale(name, tuple(entries))


def _words(group: Mapping[str, Any], name: str) -> Words:
    return tuple(group.get(name, "").split())


def _regime(group: Mapping[str, Any]) -> Regime:
    return Regime(_words(group, "overrides"), _words(group, "average"))
