"""BLEU, chrF and ROUGE, each with a description of the compared text, and sacrebleu's significance test."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any, Dict, List, Mapping, Optional
from unittest import mock

from sacrebleu.metrics import BLEU, CHRF, base
from sacrebleu.significance import PairedTest, Result
from tqdm import tqdm

from capsule_routing.text.languages import bleu, bleu_tokeniser, has_spaces, is_chinese, rules_of
from capsule_routing.text.preparation import TextPreparation, detokenise
from capsule_routing.text.rouge import ROUGE_TYPES, CharacterRouge
from fairseq_capsule_lab.evaluation.translations import Translations, has_tokens_of, without_marks

# Languages that are often prepared without diacritics. Diacritics then prevent most matches of a translation.
DIACRITICS_OPTIONAL = {"ro"}
ROUGE_LABELS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}

# --- what is measured ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measure:
    """A metric and the texts that it compares.

    `text` describes the compared text. BLEUs of different text are not comparable, and a signature does not show the
    difference. `systems` has a list of sentences for each file of translations, `references` one for each reference.
    `digits` is the number of decimals to print.
    """

    name: str
    label: str
    text: str
    metric: base.Metric
    systems: List[List[str]]
    references: List[List[str]]
    digits: int = 2

    def apply(self, change: Callable[[List[str]], List[str]], **others: Any) -> "Measure":
        """The measure of the texts that `change` makes of these; `others` replace further attributes."""
        systems, references = (list(map(change, texts)) for texts in (self.systems, self.references))
        return replace(self, systems=systems, references=references, **others)

    def of(self, sentences: Sequence[int]) -> "Measure":
        """The measure on some of the sentences."""
        return self.apply(lambda text: [text[i] for i in sentences])


def measures(
    systems: Sequence[Translations],
    references: Sequence[Sequence[str]],
    language: str,
    lowercase: bool = False,
    other_reference: bool = False,
    tokeniser: Optional[str] = None,
) -> Iterator[Measure]:
    """The four measures of systems against the raw references. Romanian has each also without diacritics.

    With `other_reference` the T- lines of the systems are ignored, because they are another text. `tokeniser` is an
    argument of `bleu`.
    """
    for measure in _measures(systems, references, language, lowercase, other_reference, tokeniser):
        yield _without_empty_references(measure)
        if rules_of(language) in DIACRITICS_OPTIONAL:  # `ș`, `ş` → `s`
            unmarked = measure.apply(
                lambda lines: list(map(without_marks, lines)),
                name=f"{measure.name}_without_diacritics",
                label=f"{measure.label} without diacritics",
                text=f"{measure.text}, diacritics removed from both",
            )
            yield _without_empty_references(unmarked)


def _without_empty_references(measure: Measure) -> Measure:
    """The measure without the empty lines of several references: a sentence may have fewer of them than another.

    sacreBLEU would take an empty line for a reference of length 0, which removes the brevity penalty. It leaves out
    None alone. A sentence that has no other reference keeps the first.
    """
    if len(measure.references) == 1:
        return measure
    lines = zip(*measure.references)
    kept: Any = [[line or None for line in of_one] if any(of_one) else list(of_one) for of_one in lines]
    return replace(measure, references=[list(reference) for reference in zip(*kept)])


def rouge_measures(
    systems: Sequence[Translations], references: Sequence[Sequence[str]], lowercase: bool = False
) -> Iterator[Measure]:
    """ROUGE-1, ROUGE-2 and ROUGE-L of one or more systems against the raw references."""
    texts = [system.sentences for system in systems], [list(reference) for reference in references]
    for name in ROUGE_TYPES:
        measure = Measure(name, f"{ROUGE_LABELS[name]} F1", "characters", Rouge(name, lowercase), *texts)
        yield _without_empty_references(measure)


def _measures(
    systems: Sequence[Translations],
    references: Sequence[Sequence[str]],
    language: str,
    lowercase: bool,
    other_reference: bool,
    tokeniser: Optional[str],
) -> Iterator[Measure]:
    """Tokenised BLEU, compound-split BLEU, detokenised BLEU, chrF.

    The references of tokenised BLEU are the T- lines if all systems have the same T- lines and they are the only
    reference. fairseq-generate scores against them too. Otherwise the default tokens of the language are those of the
    references. The T- lines show whether the data has the same tokens. If not, the plain text of the systems gets them
    too, as where Moses tokenised a language without spaces: its tokens are no words.
    """
    targets = systems[0].targets
    only_targets = targets and len(references) == 1 and not other_reference
    if not has_spaces(language) and all(system.tokenised for system in systems):
        of_moses = [_moses_tokens(reference, language) for reference in references]
        only_targets = only_targets and not any(has_tokens_of(system, of_moses) for system in systems)
    if only_targets and all(system.tokenised and system.targets == targets for system in systems):
        text = "the output's own tokens, against its T- lines"
        own, expected = [system.sentences for system in systems], [targets]
    else:
        tokens = _name_of_tokens(language, tokeniser)
        text = f"the output's own tokens, against {tokens}"
        own = [system.sentences for system in systems]
        expected = [default_tokens(reference, language, tokeniser=tokeniser) for reference in references]
        if other_reference or not all(system.tokenised and has_tokens_of(system, expected) for system in systems):
            text, plain = tokens, [plain_sentences(system, language) for system in systems]
            own = [default_tokens(lines, language, lowercase, tokeniser) for lines in plain]
            expected = [default_tokens(reference, language, lowercase, tokeniser) for reference in references]
    tokenised = Measure("tokenised_bleu", "tokenised BLEU", text, tokenised_bleu(lowercase), own, expected)
    yield tokenised
    yield tokenised.apply(
        split_compounds,
        name="compound_split_bleu",
        label="compound-split BLEU",
        text=f"{text}, split at hyphens",
        metric=tokenised_bleu(lowercase),
    )
    metric = bleu(language, tokeniser, lowercase=lowercase)
    text = "plain text, against the references as they are"
    texts = [plain_sentences(system, language) for system in systems], [list(lines) for lines in references]
    yield Measure("detokenised_bleu", "detokenised sacreBLEU", text, metric, *texts)
    yield Measure("chrf", "chrF", text, CHRF(lowercase=lowercase), *texts)


def plain_sentences(translations: Translations, language: str) -> List[str]:
    if not translations.tokenised:
        return translations.sentences
    return _progress(partial(detokenise, language), translations.sentences, "detokenise")


def default_tokens(
    lines: Sequence[str], language: str, lowercase: bool = False, tokeniser: Optional[str] = None
) -> List[str]:
    """The tokens of plain text, separated by spaces: of Moses, of jieba for Chinese.

    Other languages without spaces have the tokens of sacreBLEU's `tokeniser`, an argument of `bleu`. Moses separates a
    full stop by the case of the next word, so `lowercase` gives texts in any case the same tokens. A UserError says if
    a library is not installed.
    """
    lines = [line.lower() for line in lines] if lowercase else lines
    if has_spaces(language):
        return _moses_tokens(lines, rules_of(language))
    if is_chinese(language):
        return _progress(TextPreparation(rules_of(language), "jieba").encode, lines, "tokenise")
    return _progress(bleu(language, tokeniser).tokenizer, lines, "tokenise")


def _moses_tokens(lines: Sequence[str], language: str) -> List[str]:
    return _progress(TextPreparation(language, "moses").encode, lines, "tokenise")


def _name_of_tokens(language: str, tokeniser: Optional[str]) -> str:
    """How a report calls `default_tokens`."""
    if has_spaces(language) or is_chinese(language):
        return f"{'jieba' if is_chinese(language) else 'Moses'} tokens of {rules_of(language)}"
    name = tokeniser or bleu_tokeniser(language)
    return "characters" if name == "char" else f"{name} tokens of {rules_of(language)}"


def split_compounds(sentences: List[str]) -> List[str]:
    """`Rot-Kreuz` → `Rot ##AT##-##AT## Kreuz`, as fairseq's and tensor2tensor's scripts do before BLEU."""
    return [re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", sentence) for sentence in sentences]


def _progress(function: Callable[[str], str], sentences: Sequence[str], description: str) -> List[str]:
    return [function(line) for line in tqdm(sentences, desc=description, unit=" lines", delay=2, disable=None)]


# --- metrics of sacrebleu --------------------------------------------------------------------------------------------


def tokenised_bleu(lowercase: bool) -> BLEU:
    """BLEU over the given tokens, without smoothing, as in multi-bleu and fairseq-generate."""
    return BLEU(lowercase=lowercase, tokenize="none", smooth_method="none", force=True)


class SentenceSignature(base.Signature):
    """The signature of a `MeanOfSentences`, with the items of its `described`."""

    def __init__(self, args: Dict[str, Any]):
        super().__init__(args)
        self.info |= args["described"]


class MeanOfSentences(base.Metric):
    """The mean of scores of sentences. Here a text that it reads is the score itself, as a number.

    `described` has items of the signature; None removes one that sacrebleu adds.
    """

    _SIGNATURE_TYPE = SentenceSignature

    def __init__(self, name: str, described: Mapping[str, Optional[str]]):
        super().__init__()
        self.name = name
        self.described = described
        self.num_refs = 0

    def _preprocess_segment(self, sent):
        return sent

    def _extract_reference_info(self, refs):
        return {"references": [self._preprocess_segment(reference) for reference in refs]}

    def _compute_segment_statistics(self, hypothesis, ref_kwargs):
        return [float(hypothesis), 1]

    def _aggregate_and_compute(self, stats):
        return self._compute_score_from_stats([sum(column) for column in zip(*stats)])

    def _compute_score_from_stats(self, stats):
        total, sentences = stats
        return base.Score(self.name, total / sentences)


class Rouge(MeanOfSentences):
    """F1 of one ROUGE type over characters: the mean over sentences, times 100."""

    def __init__(self, rouge_type: str, lowercase: bool = False):
        case = "lc" if lowercase else "mixed"
        library = f"rouge-score-{version('rouge-score')}"
        described = {"type": rouge_type, "case": case, "tok": "char", "version": library}
        super().__init__(ROUGE_LABELS[rouge_type], described)
        self.rouge_type = rouge_type
        self.lowercase = lowercase
        self._rouge = CharacterRouge()

    def _preprocess_segment(self, sent):
        return sent.lower() if self.lowercase else sent

    def _compute_segment_statistics(self, hypothesis, ref_kwargs):
        return [self._rouge.f1(hypothesis, ref_kwargs["references"])[self.rouge_type], 1]

    def _compute_score_from_stats(self, stats):
        f1, sentences = stats
        return base.Score(self.name, 100 * f1 / sentences)


# --- scores and their differences ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScoreDifference:
    """The score of another system, and the p-value of the difference.

    `p` is None if the scores are equal. In that case, such as for equal texts or two texts without a match, sacrebleu
    reports its smallest possible p, 1 / (samples + 1).
    """

    score: float
    difference: float
    p: Optional[float]
    samples: int
    seed: int


@dataclass(frozen=True)
class Score:
    """One score. `line` is the report of sacrebleu: signature, score and its parts."""

    name: str
    label: str
    text: str
    score: float
    signature: str
    line: str
    against: Optional[ScoreDifference] = None


def evaluate(measure: Measure, samples: int, seed: int) -> Score:
    """The score of the first system and, if there is a second, the paired bootstrap against it."""
    score = measure.metric.corpus_score(measure.systems[0], measure.references)
    signature = str(measure.metric.get_signature())
    line = score.format(width=measure.digits, signature=signature)
    against = None
    if len(measure.systems) > 1:
        other, own = bootstrap(replace(measure, systems=measure.systems[::-1]), samples, seed)
        p = None if own.score == other.score else own.p_value
        against = ScoreDifference(other.score, own.score - other.score, p, samples, seed)
    return Score(measure.name, measure.label, measure.text, score.score, signature, line, against)


def bootstrap(measure: Measure, samples: int, seed: int) -> List[Result]:
    """sacrebleu's paired bootstrap of every system against the first one.

    The result of each has `score`, `mean`, `ci` (half the width of the 95% interval around the mean) and `p_value`,
    which is None for the first system.
    """
    systems: Any = [(f"system {i}", system) for i, system in enumerate(measure.systems)]
    metrics = {measure.name: measure.metric}
    with mock.patch.dict(os.environ, SACREBLEU_SEED=str(seed)):  # sacrebleu reads it from nowhere else
        _, columns = PairedTest(systems, metrics, measure.references, test_type="bs", n_samples=samples)()
    return [result for column in columns.values() for result in column if isinstance(result, Result)]
