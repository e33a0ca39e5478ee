"""The page in one file: tables, charts, sentences, style and script. It loads nothing else.

A copy of a table has the rows in the order that the page shows.
"""

import html
import os
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional, Sequence
from urllib.parse import quote

from fairseq_capsule_lab.analysis import charts
from fairseq_capsule_lab.pages.report.comparison import ComparedSystems, Estimate
from fairseq_capsule_lab.pages.template import embedded, fill, read, script_hash
from fairseq_capsule_lab.runs.training_log import finite, shared_measures

SIGNIFICANT = 0.05
AXES = {"loss": "validation loss, bits", "nll_loss": "validation NLL, bits"}
# The columns of the table of speeds, in order, and the number of decimals.
SPEEDS = {
    "parameters": 0,
    "of them embeddings": 0,
    "training, words/s": 0,
    "training, × baseline": 2,
    "translation, × baseline": 2,
}


class Cell(NamedTuple):
    """The text of a cell, and the number to sort it by, if any."""

    text: str
    value: Optional[float] = None


def write_page(compared: ComparedSystems, folder: Path) -> bytes:
    """Build the page of a comparison. Links to pages of the inspector are relative to its `folder`."""
    sections = [
        ("scores", "Scores", _scores(compared)),
        ("by-length", "By the length of the source", _lengths(compared)),
        ("covered", "Coverage", _coverage(compared) if compared.coverage else ""),
        ("curves", "Learning curves", _curves(compared)),
        ("cost", "Parameters and speed", _speeds(compared)),
        ("sentences", "Sentences that differ most", read("report/sentences.html")),
        ("trained", "Runs", _runs(compared)),
    ]
    sections = [section for section in sections if section[-1]]
    script = read("table.js") + read("report/report.js")
    return fill(
        read("report/report.html"),
        title=html.escape(f"{len(compared.systems)} systems on {compared.test_set.split}"),
        policy=script_hash(script),
        style=read("report/report.css"),
        verdict=_verdict(compared),
        links="".join(f'<a href="#{name}">{title}</a>' for name, title, _ in sections),
        sections="\n".join(
            f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{title}</h2>{content}</section>'
            for name, title, content in sections
        ),
        data=embedded(_sentence_data(compared, folder)),
        script=script,
    ).encode(errors="replace")  # JSON of a run may have half of a surrogate pair


def _verdict(compared: ComparedSystems) -> str:
    """A summary of the first table in words."""
    measure, (baseline, *others) = compared.comparisons[0]
    verdicts = [f"{measure.label} {baseline.score:.2f}, the baseline of the comparison"]
    for estimate in others:
        if estimate.p is None:
            words = "the same score"
        else:
            sure = "significant" if estimate.p < SIGNIFICANT else "not significant"
            words = f"{estimate.score - baseline.score:+.2f}, {sure} at {SIGNIFICANT} (p = {estimate.p:.4f})"
        verdicts.append(f"{estimate.score:.2f}, {words}")
    items = (f"<li><b>{html.escape(name)}</b>: {words}</li>" for name, words in zip(compared.names, verdicts))
    references = compared.test_set.references
    case = ", case ignored" if compared.test_set.lowercase else ""
    several = f", {len(references)} references" if len(references) > 1 else ""
    return f"<p>{len(references[0]):,} sentences{several}{case}.</p><ul>{''.join(items)}</ul>"


# --- sections --------------------------------------------------------------------------------------------------------


def _scores(compared: ComparedSystems) -> str:
    """One row per system: each score with its interval, and p against the first system."""
    names = compared.names
    columns = ["system"]
    rows = [[Cell(name)] for name in names]
    drawn = []
    signatures = ""
    for measure, estimates in compared.comparisons:
        columns += [measure.label, "p"]
        for row, estimate in zip(rows, estimates):
            row += [_score(estimate, measure.digits), _p(estimate)]
        drawn.append(charts.scores_on_page(names, [estimate[:2] for estimate in estimates], measure.label))
        signature = html.escape(str(measure.metric.get_signature()))
        signatures += f"<li>{html.escape(f'{measure.label}: {measure.text}')}; <code>{signature}</code>"
    main = compared.comparisons[0].estimates
    if main[0].length_ratio is not None:
        columns.append("length ratio")
        for row, estimate in zip(rows, main):
            row.append(_number(estimate.length_ratio, 3))
    caption = f"Scores with 95% intervals; p of the difference from {names[0]}, by sacrebleu's paired bootstrap."
    bootstrap = (
        f"<p>{compared.samples} samples, seed {compared.seed}. An interval shows how the score varies with the choice "
        "of test sentences, not how it varies between trainings.</p>"
    )
    return f"{table('scores', caption, columns, rows)}{_charts(drawn)}<ul class=notes>{signatures}</ul>{bootstrap}"


def _lengths(compared: ComparedSystems) -> str:
    """One row per group: the score of each system with its interval, and p against the first system."""
    unit = "source characters" if compared.test_set.summaries else "source words"
    names, groups = compared.names, compared.groups
    label = groups[0].comparison.measure.label
    of_groups = [group.comparison.estimates for group in groups]
    chart = charts.groups_on_page(
        names,
        [f"{group.words}\n({len(group.sentences)})" for group in groups],
        [[estimate[:2] for estimate in estimates] for estimates in of_groups],
        (f"{unit} (sentences)", label),
    )
    rows, ratios = [], []
    for place, (group, (first, *others)) in enumerate(zip(groups, of_groups)):
        words = Cell(group.words, place)
        row = [words, Cell(str(len(group.sentences)), len(group.sentences)), _score(first)]
        rows.append(row + [cell for estimate in others for cell in (_score(estimate), _p(estimate))])
        ratios.append([words, *(_number(estimate.length_ratio, 3) for estimate in (first, *others))])
    caption = f"{label} by the length of the source, with 95% intervals; p of the difference from {names[0]}."
    columns = [unit, "sentences", names[0], *(word for name in names[1:] for word in (name, "p"))]
    parts = _charts([chart]) + table("lengths", caption, columns, rows)
    if of_groups[0][0].length_ratio is not None:
        caption = "Words of the translations divided by words of the references, by the length of the source."
        parts += table("ratios", caption, [unit, *names], ratios)
    return f'<div class="beside">{parts}</div>'


def _coverage(compared: ComparedSystems) -> str:
    rows = []
    for row in compared.coverage:
        under = _spread(row.under, row.under_spread)
        over = _spread(row.over, row.over_spread)
        rows.append([Cell(row.system), _spread(row.cdr, row.cdr_spread, 4), under, over])
    caption = (
        "Coverage of the source, from word alignments by eflomal (docs/analyzing.md). "
        f"Mean of {compared.alignments} alignments; ±: the largest distance of one alignment from the mean."
    )
    return table("coverage", caption, ["system", "CDR", "under-translated, %", "over-translated, %"], rows)


def _curves(compared: ComparedSystems) -> str:
    logs = {system.name: system.log for system in compared.systems}
    drawn = [
        charts.curves_on_page(
            {name: log.validation[measure] for name, log in logs.items() if measure in log.validation},
            list(logs),
            AXES.get(measure, f"validation {measure.replace('_', ' ')}"),
        )
        for measure in shared_measures(logs)
    ]
    without = [name for name, log in logs.items() if not log.validation]
    note = f"<p>No validation in the log of: {html.escape(', '.join(without))}.</p>" if without else ""
    return _charts(drawn) + note if drawn else ""


def _speeds(compared: ComparedSystems) -> str:
    """Parameters and speeds from logs and measurements; empty if no run has any."""
    columns = [name for name in SPEEDS if any(name in system.speeds for system in compared.systems)]
    rows = []
    for system in compared.systems:
        speeds = (_number(system.speeds.get(name), SPEEDS[name]) for name in columns)
        rows.append([Cell(system.name), *speeds, Cell(system.facts["trained on"])])
    caption = (
        "From the logs of the trainings, and from RUN/measures if scripts/reproduce.sh measured them. Compare "
        "words/s only between runs on the same machine with no other load."
    )
    return table("speeds", caption, ["system", *columns, "trained on"], rows) if columns else ""


def _runs(compared: ComparedSystems) -> str:
    """The settings of training and translation, and a note on differences that make scores hard to compare.

    Columns that are empty for all runs are left out.
    """
    facts = [system.facts for system in compared.systems]
    columns = [name for name in facts[0] if any(of_system[name] for of_system in facts)]
    rows = []
    for system in compared.systems:
        texts = (Cell(system.facts[name], finite(system.facts[name].replace(",", ""))) for name in columns)
        rows.append([Cell(system.name), *texts, Cell(str(system.path))])
    caption = "Settings of training and translation, from the run folders."
    names = ("beam", "length penalty", "batch", "updates", "data")
    differing = [name for name in names if len({of_system[name] for of_system in facts}) > 1]
    note = f"<p>The runs differ in: {', '.join(differing)}.</p>" if differing else ""
    return table("runs", caption, ["system", *columns, "run folder"], rows) + note


def _sentence_data(compared: ComparedSystems, folder: Path) -> Dict[str, Any]:
    test_set, sentences = compared.test_set, compared.sentences
    group_of = {sentence: place for place, group in enumerate(compared.groups) for sentence in group.sentences}
    return {
        "systems": compared.names,
        "measure": sentences.label,
        "groups": [group.words for group in compared.groups],
        "sentences": [
            {
                "group": group_of[i],
                "source": test_set.sources[i],
                "references": [reference[i] for reference in test_set.references],
                "texts": [texts[i] for texts in sentences.texts],
                "scores": [round(scores[i], 1) for scores in sentences.scores],
                "pages": [_link(system.page(i), folder) for system in compared.systems],
            }
            for i in range(len(test_set.sources))
        ],
    }


def _link(page: Optional[Path], folder: Path) -> Optional[str]:
    return None if page is None else quote(Path(os.path.relpath(page.resolve(), folder.resolve())).as_posix())


# --- parts of a section ----------------------------------------------------------------------------------------------


def table(name: str, caption: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """A table that the page sorts and copies; the id of its element is `NAME-table`."""
    classes = [" class=number" if any(cell.value is not None for cell in cells) else "" for cells in zip(*rows)]
    head = "".join(
        f"<th scope=col{kind}><button type=button>{html.escape(label)}</button>"
        for label, kind in zip(columns, classes)
    )
    body = ""
    for row in rows:
        values = ["" if cell.value is None else f' data-value="{cell.value!r}"' for cell in row]
        first, *others = (html.escape(cell.text) for cell in row)
        body += f'<tr><th scope="row"{values[0]}>{first}</th>'
        body += "".join(f"<td{kind}{value}>{text}</td>" for text, kind, value in zip(others, classes[1:], values[1:]))
        body += "</tr>"
    return (
        f'<div class="table" id="{name}-table"><p class="caption" id="{name}-caption">'
        f'{html.escape(caption)}</p><div class="scroll" tabindex="0" role="region" '
        f'aria-labelledby="{name}-caption"><table aria-labelledby="{name}-caption">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></div>"
    )


def _score(estimate: Estimate, digits: int = 2) -> Cell:
    return _spread(estimate.score, estimate.interval, digits)


def _spread(value: float, spread: float, digits: int = 2) -> Cell:
    return Cell(f"{value:.{digits}f} ± {spread:.{digits}f}", value)


def _p(estimate: Estimate) -> Cell:
    return Cell("" if estimate.p is None else f"{estimate.p:.4f}", estimate.p)


def _number(value: Optional[float], digits: int) -> Cell:
    return Cell("" if value is None else f"{value:,.{digits}f}", value)


def _charts(drawn: Sequence[str]) -> str:
    return f'<div class="charts">{"".join(f"<figure>{chart}</figure>" for chart in drawn)}</div>'
