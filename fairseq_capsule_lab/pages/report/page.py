"""The page in one file: figures, charts, sentences, style and script. It loads nothing else."""

import html
import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence
from urllib.parse import quote

from fairseq_capsule_lab.analysis.coverage import CoverageRow
from fairseq_capsule_lab.pages.report import drawings, tables
from fairseq_capsule_lab.pages.report.comparison import Comparison, LengthGroup, SentenceScores
from fairseq_capsule_lab.pages.report.systems import System, TestSet
from fairseq_capsule_lab.pages.template import embedded, fill, read, script_hash
from fairseq_capsule_lab.runs.training_log import shared_measures

SIGNIFICANT = 0.05
AXES = {"loss": "validation loss, bits", "nll_loss": "validation NLL, bits"}


@dataclass(frozen=True)
class _Section:
    name: str
    title: str
    parts: Sequence[str]

    def html(self) -> str:
        heading = f'<h2 id="{self.name}-title">{self.title}</h2>'
        content = "".join(self.parts)
        return f'<section id="{self.name}" aria-labelledby="{self.name}-title">{heading}{content}</section>'


def write_page(
    test_set: TestSet,
    systems: Sequence[System],
    comparisons: Sequence[Comparison],
    groups: Sequence[LengthGroup],
    sentences: SentenceScores,
    coverage: Optional[Sequence[CoverageRow]],
    *,
    alignments: int,
    samples: int,
    seed: int,
    folder: Path,
) -> bytes:
    """Build the page of a comparison.

    Args:
        comparisons: one for each measure; the verdict uses the first.
        coverage: the rows of coverage, or None if they were not requested.
        alignments: the number of alignments that coverage averages.
        samples, seed: the samples and the seed of the bootstrap.
        folder: the folder of the page; links to pages of the inspector are relative to it.
    """
    main = comparisons[0]
    sections = [
        _Section("scores", "Scores", _scores(systems, comparisons, samples, seed)),
        _Section("by-length", "By the length of the source", _lengths(test_set, systems, groups)),
        *([_Section("covered", "Coverage", [tables.coverage_table(coverage, alignments).html()])] if coverage else []),
        *_curves(systems),
        *_speeds(systems),
        _Section("sentences", "Sentences that differ most", [_template("sentences.html")]),
        _Section("trained", "Runs", [tables.facts_table(systems).html(), *_differences(systems)]),
    ]
    script = read("table.js") + _template("report.js")
    return fill(
        _template("report.html"),
        title=html.escape(f"{len(systems)} systems on {test_set.split}"),
        policy=script_hash(script),
        style=_template("report.css"),
        verdict=_verdict(test_set, systems, main),
        links="".join(f'<a href="#{section.name}">{section.title}</a>' for section in sections),
        sections="\n".join(section.html() for section in sections),
        data=embedded(_sentence_data(test_set, systems, groups, sentences, folder)),
        script=script,
    ).encode(errors="replace")  # JSON of a run may have half of a surrogate pair


def _verdict(test_set: TestSet, systems: Sequence[System], main: Comparison) -> str:
    """A summary of the first table in words."""
    label, (baseline, *others) = main.measure.label, main.estimates
    items = [
        f"<li><b>{html.escape(systems[0].name)}</b>: {label} {baseline.score:.2f}, the baseline of the comparison</li>"
    ]
    for system, estimate in zip(systems[1:], others):
        difference = estimate.score - baseline.score
        if estimate.p is None:
            words = "the same score"
        else:
            sure = "significant" if estimate.p < SIGNIFICANT else "not significant"
            words = f"{difference:+.2f}, {sure} at {SIGNIFICANT} (p = {estimate.p:.4f})"
        items.append(f"<li><b>{html.escape(system.name)}</b>: {estimate.score:.2f}, {words}</li>")
    count = len(test_set.references[0])
    case = ", case ignored" if test_set.lowercase else ""
    several = f", {len(test_set.references)} references" if len(test_set.references) > 1 else ""
    return f"<p>{count:,} sentences{several}{case}.</p><ul>{''.join(items)}</ul>"


def _scores(systems: Sequence[System], comparisons: Sequence[Comparison], samples: int, seed: int) -> List[str]:
    names = [system.name for system in systems]
    charts = [drawings.dots(names, each.estimates, each.measure.label) for each in comparisons]
    signatures = "".join(
        f"<li>{html.escape(f'{each.measure.label}: {each.measure.text}')}; <code>{html.escape(each.signature)}</code>"
        for each in comparisons
    )
    bootstrap = (
        f"<p>{samples} samples, seed {seed}. An interval shows how the score varies with the choice of test sentences, "
        "not how it varies between trainings.</p>"
    )
    notes = f"<ul class=notes>{signatures}</ul>"
    return [tables.scores_table(systems, comparisons).html(), _charts(charts), notes, bootstrap]


def _lengths(test_set: TestSet, systems: Sequence[System], groups: Sequence[LengthGroup]) -> List[str]:
    unit = "source characters" if test_set.summaries else "source words"
    names = [system.name for system in systems]
    ticks = [f"{group.words}\n({len(group.sentences)})" for group in groups]
    measure = groups[0].comparison.measure
    chart = drawings.groups(
        names, ticks, [group.comparison.estimates for group in groups], (f"{unit} (sentences)", measure.label)
    )
    made = [_charts([chart]), tables.lengths_table(systems, groups, unit).html()]
    if groups[0].comparison.estimates[0].length_ratio is not None:
        made.append(tables.ratios_table(systems, groups, unit).html())
    return [f'<div class="beside">{"".join(made)}</div>']


def _curves(systems: Sequence[System]) -> List[_Section]:
    logs = {system.name: system.log for system in systems}
    names = list(logs)
    charts = [
        drawings.curves(
            {name: log.validation[measure] for name, log in logs.items() if measure in log.validation},
            names,
            AXES.get(measure, f"validation {measure.replace('_', ' ')}"),
        )
        for measure in shared_measures(logs)
    ]
    without = [name for name, log in logs.items() if not log.validation]
    note = f"<p>No validation in the log of: {html.escape(', '.join(without))}.</p>" if without else ""
    return [_Section("curves", "Learning curves", [_charts(charts), note])] if charts else []


def _speeds(systems: Sequence[System]) -> List[_Section]:
    table = tables.speeds_table(systems)
    return [_Section("cost", "Parameters and speed", [table.html()])] if table else []


def _differences(systems: Sequence[System]) -> List[str]:
    """A note on differences that make scores hard to compare."""
    facts = ("beam", "length penalty", "batch", "updates", "data")
    differing = [fact for fact in facts if len({system.facts[fact] for system in systems}) > 1]
    return [f"<p>The runs differ in: {', '.join(differing)}.</p>"] if differing else []


def _sentence_data(
    test_set: TestSet,
    systems: Sequence[System],
    groups: Sequence[LengthGroup],
    sentences: SentenceScores,
    folder: Path,
) -> Dict[str, Any]:
    group_of = {sentence: place for place, group in enumerate(groups) for sentence in group.sentences}
    return {
        "systems": [system.name for system in systems],
        "measure": sentences.label,
        "groups": [group.words for group in groups],
        "sentences": [
            {
                "group": group_of[i],
                "source": test_set.sources[i],
                "references": [reference[i] for reference in test_set.references],
                "texts": [texts[i] for texts in sentences.texts],
                "scores": [round(scores[i], 1) for scores in sentences.scores],
                "pages": [_link(system.page(i), folder) for system in systems],
            }
            for i in range(len(test_set.sources))
        ],
    }


def _link(page: Optional[Path], folder: Path) -> Optional[str]:
    return None if page is None else quote(Path(os.path.relpath(page.resolve(), folder.resolve())).as_posix())


def _charts(charts: Sequence[str]) -> str:
    return f'<div class="charts">{"".join(f"<figure>{chart}</figure>" for chart in charts)}</div>'


def _template(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
