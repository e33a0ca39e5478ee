"""BLEU and chrF of translations, with a description of the compared text, and sacrebleu's significance test."""

import os
import re
import unicodedata
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

import sacremoses
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.base import Metric
from sacrebleu.significance import PairedTest, Result
from tqdm import tqdm

from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.evaluation.progress import watched_samples
from fairseq_capsule_lab.evaluation.translations import Translations

SEED_VARIABLE = "SACREBLEU_SEED"
# Languages that are often prepared without diacritics. Diacritics then prevent most matches of a translation.
DIACRITICS_OPTIONAL = {"ro"}
CHINESE = {"zho", "chi", "cmn", "yue"}


def rules_of(language: str) -> str:
    """The name of a language in Moses and sacrebleu: `pt` for `pt_BR`, `zh` for `zh_CN` and `cmn`."""
    name = re.split("[_-]", language)[0].lower()
    return "zh" if name in CHINESE else name


class Moses:
    """Moses' normaliser, tokeniser and detokeniser of one language, with the settings of the training data."""

    def __init__(self, language: str):
        self.language = rules_of(language)
        self._normalizer = sacremoses.MosesPunctNormalizer(self.language)
        self._tokenizer = sacremoses.MosesTokenizer(self.language)
        self._detokenizer = sacremoses.MosesDetokenizer(self.language)

    def tokenise(self, line: str) -> str:
        return self._tokenizer.tokenize(self._normalizer.normalize(line), return_str=True)

    def detokenise(self, line: str) -> str:
        """Detokenise a line, and convert XML escapes such as `&apos;` to characters."""
        return self._detokenizer.detokenize(line.split())


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
    metric: Metric
    systems: List[List[str]]
    references: List[List[str]]
    digits: int = 2


@dataclass(frozen=True)
class Comparison:
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
    against: Optional[Comparison] = None


def detokenised(translations: Translations, moses: Moses) -> List[str]:
    if not translations.tokenised:
        return translations.sentences
    return _mapped(moses.detokenise, translations.sentences, "detokenise")


def measures(
    systems: Sequence[Translations], references: Sequence[Sequence[str]], language: str, lowercase: bool = False
) -> Iterator[Measure]:
    """The four measures of systems against the raw references. Romanian has each also without diacritics."""
    for measure in _measures(systems, references, language, lowercase):
        yield measure
        if rules_of(language) in DIACRITICS_OPTIONAL:
            yield without_diacritics(measure)


def without_diacritics(measure: Measure) -> Measure:
    """The measure, with another name and label, on texts without diacritics: `ș`, `ş` → `s`."""
    return replace(
        measure,
        name=f"{measure.name}_without_diacritics",
        label=f"{measure.label} without diacritics",
        text=f"{measure.text}, diacritics removed from both",
        systems=[[_unmarked(line) for line in system] for system in measure.systems],
        references=[[_unmarked(line) for line in reference] for reference in measure.references],
    )


def _measures(
    systems: Sequence[Translations], references: Sequence[Sequence[str]], language: str, lowercase: bool
) -> Iterator[Measure]:
    """Tokenised BLEU, compound-split BLEU, detokenised BLEU, chrF.

    The references of tokenised BLEU are the T- lines if all systems have the same T- lines and there is one reference.
    fairseq-generate scores against them too. Otherwise the references are tokenised as the training data is.
    """
    moses = Moses(language)
    targets = systems[0].targets
    if targets and len(references) == 1 and all(system.tokenised and system.targets == targets for system in systems):
        text, tokenised_references = "the output's own tokens, against its T- lines", [targets]
    else:
        text = f"Moses tokens of {moses.language}"
        tokenised_references = [_mapped(moses.tokenise, reference, "tokenise") for reference in references]
    tokenised_systems = [
        system.sentences if system.tokenised else _mapped(moses.tokenise, system.sentences, "tokenise")
        for system in systems
    ]
    yield Measure(
        "tokenised_bleu",
        "tokenised BLEU",
        text,
        tokenised_bleu(lowercase),
        tokenised_systems,
        tokenised_references,
    )
    yield Measure(
        "compound_split_bleu",
        "compound-split BLEU",
        f"{text}, split at hyphens",
        tokenised_bleu(lowercase),
        [split_compounds(system) for system in tokenised_systems],
        [split_compounds(reference) for reference in tokenised_references],
    )
    plain_systems = [detokenised(system, moses) for system in systems]
    plain_references = [list(reference) for reference in references]
    try:
        bleu = BLEU(lowercase=lowercase, trg_lang=moses.language)
    except RuntimeError as error:  # Japanese and Korean need more packages
        raise LabError(" ".join(str(error).split())) from error
    text = "plain text, against the references as they are"
    yield Measure("detokenised_bleu", "detokenised sacreBLEU", text, bleu, plain_systems, plain_references)
    yield Measure("chrf", "chrF", text, CHRF(lowercase=lowercase), plain_systems, plain_references)


def evaluate(measure: Measure, samples: int, seed: int) -> Score:
    """The score of the first system and, if there is a second, the paired bootstrap against it."""
    score = measure.metric.corpus_score(measure.systems[0], measure.references)
    signature = str(measure.metric.get_signature())
    against = _paired_bootstrap(measure, samples, seed) if len(measure.systems) > 1 else None
    line = score.format(width=measure.digits, signature=signature)
    return Score(measure.name, measure.label, measure.text, score.score, signature, line, against)


def split_compounds(sentences: Sequence[str]) -> List[str]:
    """`Rot-Kreuz` → `Rot ##AT##-##AT## Kreuz`, as fairseq's and tensor2tensor's scripts do before BLEU."""
    return [re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", sentence) for sentence in sentences]


def doubts(systems: Sequence[Translations], references: Sequence[Sequence[str]], lowercase: bool) -> Iterator[str]:
    """Notes on inputs that make a score meaningless but are not errors."""
    for system in systems:
        if not lowercase and _is_lower(system.sentences) and not all(_is_lower(lines) for lines in references):
            yield f"{system.path}: lower-cased, but the reference is not; use --lowercase to ignore case"


def require_equal_counts(systems: Sequence[Translations], references: Sequence[Tuple[Path, Sequence[str]]]) -> None:
    """Refuse files that cannot belong to the same text.

    Raises:
        LabError: a reference or another system has a different number of sentences than the first system.
    """
    first, *others = systems
    count = len(first.sentences)
    for path, lines in [*references, *((other.path, other.sentences) for other in others)]:
        if len(lines) != count:
            raise LabError(
                f"{path}: {len(lines)} sentences, but {first.path} has {count}; give files of the same text, "
                "one sentence per line"
            )


def require_own_reference(systems: Sequence[Translations], references: Sequence[Tuple[Path, Sequence[str]]]) -> None:
    """Refuse references that belong to another text than the outputs.

    A T- line is the reference that the model read: tokenised, often in lower case, without diacritics, with unknown
    words. It has the same letters as the reference, or as one of several references.

    Raises:
        LabError: more than half of the T- lines of an output differ from all references.
    """
    for system in systems:
        disagreeing = disagreements(system, [lines for _, lines in references])
        targets = system.targets or []
        if 2 * disagreeing > len(targets):
            path, _ = references[0]
            raise LabError(
                f"{path}: {disagreeing} of the {len(targets)} T- lines of {system.path} differ from it; "
                "give the reference of the translated text, or --other-reference to use this one"
            )


def disagreements(system: Translations, references: Sequence[Sequence[str]]) -> int:
    """The number of T- lines of an output that differ from every reference; 0 if it has no T- lines."""
    targets = system.targets or []
    return sum(not any(_agrees(target, line) for line in lines) for target, lines in zip(targets, zip(*references)))


def tokenised_bleu(lowercase: bool) -> BLEU:
    """BLEU over the given tokens, without smoothing, as in multi-bleu and fairseq-generate."""
    return BLEU(lowercase=lowercase, tokenize="none", smooth_method="none", force=True)


def bootstrap(measure: Measure, samples: int, seed: int) -> List[Result]:
    """sacrebleu's paired bootstrap of every system against the first one.

    Returns:
        For each system, in order: `score`, `mean`, `ci` (half the width of the 95% interval around the mean) and
        `p_value`, which is None for the first system.
    """
    before = os.environ.get(SEED_VARIABLE)
    os.environ[SEED_VARIABLE] = str(seed)  # sacrebleu reads its seed only from here
    named: List[Tuple[str, Sequence[str]]] = [
        (f"system {number}", system) for number, system in enumerate(measure.systems)
    ]
    # Samples of the first system, samples of each other system together with the first, and the score of each system.
    total = samples * (2 * len(named) - 1) + len(named)
    try:
        with watched_samples(measure.metric, total):
            metrics = {measure.name: measure.metric}
            test = PairedTest(named, metrics, measure.references, test_type="bs", n_samples=samples)
            _, columns = test()
    finally:
        if before is None:
            del os.environ[SEED_VARIABLE]
        else:
            os.environ[SEED_VARIABLE] = before
    return [result for column in columns.values() for result in column if isinstance(result, Result)]


def _paired_bootstrap(measure: Measure, samples: int, seed: int) -> Comparison:
    system, other = measure.systems
    baseline, ours = bootstrap(replace(measure, systems=[other, system]), samples, seed)
    p = None if ours.score == baseline.score else ours.p_value
    return Comparison(baseline.score, ours.score - baseline.score, p, samples, seed)


def _mapped(function: Callable[[str], str], sentences: Sequence[str], description: str) -> List[str]:
    return [function(line) for line in tqdm(sentences, desc=description, unit=" lines", delay=2, disable=None)]


def _agrees(target: str, reference: str) -> bool:
    """Whether a T- line can belong to a reference: it has the letters between the unknown words, in the same order."""
    text = letters(reference)
    pieces = [letters(piece) for piece in target.split("<<unk>>")]
    if len(pieces) == 1:
        return pieces[0] == text
    place = 0
    for piece in pieces:
        place = text.find(piece, place)
        if place < 0:
            return False
        place += len(piece)
    return True


def letters(line: str) -> str:
    """The part of a line that tokenising, lower-casing, escaping and the removal of diacritics do not change."""
    return re.sub(r"&#?\w+;|[\W_]", "", _unmarked(unicodedata.normalize("NFKC", line)).lower())


def _unmarked(line: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFD", line) if not unicodedata.combining(letter))


def _is_lower(sentences: Sequence[str]) -> bool:
    return all(sentence == sentence.lower() for sentence in sentences)
