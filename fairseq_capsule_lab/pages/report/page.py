"""The page in one file: scores, charts, sentences. It loads nothing else."""

from typing import Any, Dict, List

from markupsafe import Markup

from fairseq_capsule_lab.pages.report import charts
from fairseq_capsule_lab.pages.report.comparison import ComparedSystems
from fairseq_capsule_lab.pages.template import render

AXES = {"loss": "validation loss, bits", "nll_loss": "validation NLL, bits"}


def write_page(compared: ComparedSystems) -> bytes:
    """Build the page of a comparison."""
    systems = compared.systems
    facts = dict.fromkeys(name for system in systems for name in system.facts)
    page = render(
        "report.html",
        compared=compared,
        unit=f"source {compared.unit}",
        lengths=_lengths(compared),
        curves=_curves(compared),
        without_curves=[system.name for system in systems if not system.curves],
        differing=[name for name in facts if len({system.facts.get(name) for system in systems}) > 1],
        data=_sentence_data(compared),
    )
    return page.encode()


def _lengths(compared: ComparedSystems) -> Markup:
    """The chart of the first measure by groups of source lengths."""
    of_groups = [group.comparison.estimates for group in compared.groups]
    labels = ("length of the source (sentences)", compared.groups[0].comparison.measure.label)
    chart = charts.groups_chart(
        compared.names,
        [f"{group.words}\n({len(group.sentences)})" for group in compared.groups],
        [[estimate[:2] for estimate in estimates] for estimates in of_groups],
        labels,
    )
    return Markup(chart)


def _curves(compared: ComparedSystems) -> List[Markup]:
    """A chart for each validation measure."""
    measures: Dict[str, None] = {}  # in the order of the logs, each once
    for system in compared.systems:
        measures |= dict.fromkeys(system.curves)
    drawn = []
    for measure in measures:
        curves = {system.name: system.curves[measure] for system in compared.systems if measure in system.curves}
        label = AXES.get(measure, f"validation {measure.replace('_', ' ')}")
        drawn.append(Markup(charts.curves_chart(curves, compared.names, label)))
    return drawn


def _sentence_data(compared: ComparedSystems) -> Dict[str, Any]:
    """What the script reads: the sentences with their scores."""
    test_set, sentences = compared.test_set, compared.sentences
    group_of = {sentence: place for place, group in enumerate(compared.groups) for sentence in group.sentences}
    return {
        "systems": compared.names,
        "measure": sentences.label,
        "sentences": [
            {
                "group": group_of[i],
                "source": test_set.sources[i],
                "references": [reference[i] for reference in test_set.references],
                "texts": [texts[i] for texts in sentences.texts],
                "scores": [round(scores[i], 1) for scores in sentences.scores],
            }
            for i in range(len(test_set.sources))
        ],
    }
