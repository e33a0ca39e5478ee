"""Scores of single sentences that another program computed, such as COMET, for the tests of this package.

The score of a system is the mean over its sentences. So every test that samples or leaves out sentences applies.
"""

import json
import math
from pathlib import Path
from typing import Any, List, Sequence

from capsule_routing.errors import UserError
from capsule_routing.text.rouge import ROUGE_TYPES
from fairseq_capsule_lab import values
from fairseq_capsule_lab.evaluation.scores import MeanOfSentences, Measure
from fairseq_capsule_lab.evaluation.translations import Translations, letters

OWN = ("tokenised_bleu", "compound_split_bleu", "detokenised_bleu", "chrf", *ROUGE_TYPES)
DIGITS = 4  # many such metrics lie between 0 and 1


def external_measures(options: Sequence[str], systems: Sequence[Translations]) -> List[Measure]:
    """Read the measures of all `--external`.

    Args:
        options: `NAME=FILE`. The file has the scores of the systems in their order. It is a JSON object with a list for
            each system, a JSON list for one system, or TSV with a column for each system and without a header. An
            entry of a list is a number, or an object with the number under NAME, as `comet-score --to_json` writes it.
        systems: the translations that were scored.

    Raises:
        UserError: an option has another form, a file has other contents or other numbers of systems or sentences, or it
            states other translations (`mt`); a name that occurs twice or belongs to another measure.
    """
    measures: List[Measure] = []
    for option in options:
        label, _, file = option.partition("=")
        name = values.checked_name("--external", label)
        if name in (*OWN, *(measure.name for measure in measures)):
            raise UserError(f"--external {name}: another measure has this name; choose another one")
        lists = _lists(Path(file))
        if len(lists) != len(systems):
            problem = f"scores of {len(lists)} outputs, but there are {len(systems)}"
            raise UserError(f"{file}: {problem}; give those of all, in their order")
        for entries, system in zip(lists, systems):
            _require_own(file, entries, system)
        numbers = [_numbers(name, file, entries) for entries in lists]
        texts = [[repr(score) for score in system] for system in numbers]  # a measure scores texts
        metric = MeanOfSentences(name, {"version": None, "nrefs": None, "metric": name, "mean": "sentences"})
        measures.append(Measure(name, name, f"scores of {file}", metric, texts, [[""] * len(texts[0])], digits=DIGITS))
    return measures


def _lists(file: Path) -> List[List[Any]]:
    """The entries of each system."""
    if not file.is_file():
        raise UserError(f"{file}: no such file; give NAME=FILE, the name of a measure and the file of its scores")
    content = file.read_text(encoding="utf-8")
    try:
        value = json.loads(content)
    except ValueError:
        value = None
    lists = list(value.values()) if isinstance(value, dict) else [value]
    if all(isinstance(entries, list) for entries in lists):
        return lists
    rows = [line.split("\t") for line in content.splitlines()]
    if len({len(row) for row in rows}) != 1:
        raise UserError(f"{file}: neither JSON with a list for each output nor lines with a column for each output")
    return [list(column) for column in zip(*rows)]


def _require_own(file: str, entries: Sequence[Any], system: Translations) -> None:
    """Refuse scores of another number of sentences, or of other translations than those of a system."""
    count, of_system = len(entries), len(system.sentences)
    if count != of_system:
        raise UserError(f"{file}: {count} scores, but {system.path} has {of_system} sentences; score it again")
    scored = [(entry, sentence) for entry, sentence in zip(entries, system.sentences) if isinstance(entry, dict)]
    others = sum("mt" in entry and letters(str(entry["mt"])) != letters(sentence) for entry, sentence in scored)
    if 2 * others > count:
        problem = f"{others} of its translations differ from {system.path}"
        raise UserError(f"{file}: {problem}; give the scores in the outputs' order")


def _numbers(name: str, file: str, entries: Sequence[Any]) -> List[float]:
    numbers = []
    for place, entry in enumerate(entries, 1):
        value: Any = entry.get(name) if isinstance(entry, dict) else entry
        try:
            numbers.append(math.nan if isinstance(value, bool) else float(value))
        except (TypeError, ValueError):
            numbers.append(math.nan)
        if not math.isfinite(numbers[-1]):
            raise UserError(f"{file}: sentence {place} has no score {name}: {values.shown(value)}; give a number")
    return numbers
