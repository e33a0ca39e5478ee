"""Reading of translations, outputs of fairseq or plain text, and checks that they belong to a reference."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from fairseq.data.data_utils import post_process

from capsule_routing.errors import UserError
from capsule_routing.text.files import read_lines

# S: source, T: target, H: hypothesis as generated, D: hypothesis detokenised by fairseq. Other lines (P-, A-, the log)
# are skipped.
GENERATED_LINE = re.compile(r"([STHD])-([0-9]+)\t(.*)")
# A line with pieces of SentencePiece. A ▁ of its own in the middle of a line is a character of the text.
PIECES = re.compile(r"(<+unk>+ )*▁|.* ▁[^ ▁]")
# A line of separate characters, as `prepare.sh --tokenise characters` makes them; ▁ stands for a space.
SPELLED = re.compile(r"((\S|<+unk>+)( (\S|<+unk>+))*)?")
SUBWORDS = ["subword_nmt", "sentencepiece", "none"]  # of fairseq's `--remove-bpe`
TOKENISED = {"auto": None, "yes": True, "no": False}  # `--tokenized` of the commands → the argument `tokenised`
ALL_SENTENCES = "generate it again with --required-batch-size-multiple 1"  # fairseq leaves out a last batch otherwise


@dataclass(frozen=True)
class Translations:
    """The translations of one text: one sentence per line, in the order of the text, with subwords joined.

    `tokenised` is True if words and punctuation are separated. `sources` and `targets` are the sentences that the model
    read (the S- and T- lines); empty if the file has none.
    """

    path: Path
    sentences: List[str]
    tokenised: bool
    targets: List[str] = field(default_factory=list)
    sources: List[str] = field(default_factory=list)


def read_translations(
    path: Path, remove_bpe: Optional[str] = None, tokenised: Optional[bool] = None, generated_bpe: str = "subword_nmt"
) -> Translations:
    """Read an output of `fairseq-generate` or plain text.

    Args:
        remove_bpe: the subwords to join, a value of fairseq's `--remove-bpe`. None leaves plain text unchanged. In
            generated outputs None joins the subwords that `subwords_of` finds, for the sources apart.
        tokenised: whether the text is tokenised. None means: plain text, SentencePiece outputs and separate characters
            are not; other generated outputs are, unless fairseq detokenised them (their D- lines differ from their H-
            lines).
        generated_bpe: "subword_nmt", or "characters" for lines of separate characters.

    Raises:
        UserError: the file is empty or not UTF-8, or a generated output has missing or repeated sentences.
    """
    lines = read_lines(path)
    if not any(re.match(r"[HD]-[0-9]+\t", line) for line in lines):
        return Translations(path, [post_process(line, remove_bpe) for line in lines], bool(tokenised))

    generated = _generated(path, lines)
    subwords: Dict[str, str] = {}
    for kinds in ("S", "THD"):
        side = [text for kind in kinds for text in generated[kind].values()]
        subwords |= dict.fromkeys(kinds, remove_bpe or subwords_of(side, generated_bpe))
    texts = {}
    for kind, of_kind in generated.items():
        texts[kind] = [_joined(text, subwords[kind]) for _, text in sorted(of_kind.items())]
    sentences = texts["D"] or texts["H"]
    if tokenised is None:
        tokenised = subwords["H"] != "sentencepiece" and sentences == (texts["H"] or sentences)
    return Translations(path, sentences, tokenised, texts["T"], texts["S"])


def subwords_of(lines: Sequence[str], otherwise: str = "subword_nmt") -> str:
    """The kind of the subwords in lines that a model reads or generates, a value of fairseq's `--remove-bpe`.

    It is "sentencepiece" for pieces of SentencePiece, and for separate characters if a space is among them.
    """
    spelled = any("▁" in line for line in lines) and all(SPELLED.fullmatch(line) for line in lines)
    return "sentencepiece" if spelled or any(PIECES.match(line) for line in lines) else otherwise


def read_outputs(
    paths: Sequence[Path], remove_bpe: Optional[str] = None, tokenised: Optional[bool] = None
) -> List[Translations]:
    """Read outputs of `fairseq-generate` for the same text, each with its sources and targets, as `read_translations`.

    Raises:
        UserError: a file is damaged, not such an output, or belongs to another text than the first.
    """
    outputs = [read_translations(path, remove_bpe, tokenised) for path in paths]
    for output in outputs:
        first = outputs[0]
        if not output.sources or not output.targets:
            raise UserError(f"{output.path}: no S- and T- lines; give an output of fairseq-generate")
        count, of_first = len(output.sentences), len(first.sentences)
        if count != of_first:
            problem = f"{count} sentences, but {first.path} has {of_first}"
            raise UserError(f"{output.path}: {problem}; give outputs of the same text")
        lines = zip(output.sources, output.targets, first.sources, first.targets)
        for number, (*pair, source, target) in enumerate(lines):
            if pair != [source, target]:
                raise UserError(
                    f"{output.path}: sentence {number} (S-, T-) differs from {first.path}; give outputs of the same "
                    "text, generated with the same --remove-bpe and --tokenizer"
                )
    return outputs


def _joined(line: str, subwords: str) -> str:
    if subwords != "characters":
        return post_process(line, subwords)
    return post_process(line, "sentencepiece") if SPELLED.fullmatch(line) else line


def _generated(path: Path, lines: List[str]) -> Dict[str, Dict[int, str]]:
    """Kind of line → number of the sentence → text. Each kind that occurs has every sentence."""
    texts: Dict[str, Dict[int, str]] = {kind: {} for kind in "STHD"}
    for place, line in enumerate(lines, start=1):
        match = GENERATED_LINE.fullmatch(line)
        if not match:
            continue
        kind, sentence, text = match[1], int(match[2]), match[3]
        if kind in "HD":
            score, tab, text = text.partition("\t")
            if not tab:
                raise UserError(f"{path}, line {place}: truncated after the score {score}; generate the file again")
        elif sentence in texts[kind]:
            problem = f"{kind}-{sentence} occurs twice, so the file has outputs of two runs"
            raise UserError(f"{path}, line {place}: {problem}; score each run in its own file")
        texts[kind].setdefault(sentence, text)  # fairseq scores the first of several hypotheses
    count = 1 + max(sentence for sentences in texts.values() for sentence in sentences)
    for kind, sentences in texts.items():
        missing = [f"{kind}-{sentence}" for sentence in range(count) if sentence not in sentences]
        if sentences and missing:
            named = ", ".join(missing[:5]) + (", …" if missing[5:] else "")
            problem = f"{path}: {len(missing)} of {count} sentences missing ({named})"
            causes = "it was interrupted, is one shard of several, or had --skip-invalid-size-inputs-valid-test"
            raise UserError(f"{problem}; {ALL_SENTENCES}, also if {causes}")
    return texts


# --- do they belong to the reference? --------------------------------------------------------------------------------


def doubts(systems: Sequence[Translations], references: Sequence[Sequence[str]], lowercase: bool) -> Iterator[str]:
    """Notes on inputs that make a score meaningless but are not errors."""
    for system in systems:
        if not lowercase and _is_lower(system.sentences) and not all(map(_is_lower, references)):
            yield f"{system.path}: lower-cased, but the reference is not; use --lowercase to ignore case"
    expected = [line for lines in references for line in lines]
    for system in systems:
        if not system.tokenised and any(map(_ESCAPE, system.sentences)) and not any(map(_ESCAPE, expected)):
            text = "read as plain text, but it has escapes of Moses (&apos;), and the reference has none"
            yield f"{system.path}: {text}; give --tokenized yes"
        for kind, found, other in _WRITTEN:
            here, there = (any(map(found, lines)) for lines in (system.sentences, expected))
            if here != there and any(map(other, system.sentences if there else expected)):
                text = f"{system.path}: {'the reference' if there else 'it'} has {kind}, the other side has none"
                yield f"{text}; a perfect translation would not score 100"
    if len(references) > 1 and not all(map(all, references)):
        note = "sentences with an empty line in a reference have fewer references here (nrefs:var)"
        yield f"{note}; the command sacrebleu would count it as a reference of length 0"


def _is_decomposed(line: str) -> bool:
    return not unicodedata.is_normalized("NFC", line)


# What one side may have and the other not, as after Moses; whether a line has it; what a line of the other side has.
_Found = Callable[[str], object]
_ESCAPE = re.compile("&(apos|quot|amp|lt|gt|#91|#93|#124);").search
_WRITTEN: Sequence[Tuple[str, _Found, _Found]] = (
    ("characters that are not composed (NFC)", _is_decomposed, re.compile(r"[^\x00-\x7f]").search),
    ("typographic quotes", re.compile("[‘’“”„«»]").search, re.compile("[\"']").search),
)


def require_equal_counts(systems: Sequence[Translations], references: Sequence[Tuple[Path, Sequence[str]]]) -> None:
    """Refuse, by a UserError, files with another number of sentences than the first system."""
    first, *others = systems
    problem = f"sentences, but {first.path} has {len(first.sentences)}"
    for path, lines in [*references, *((other.path, other.sentences) for other in others)]:
        if len(lines) != len(first.sentences):
            remedy = "give files of the same text, one sentence per line"
            if first.targets and len(lines) > len(first.sentences):
                remedy = f"{ALL_SENTENCES}, or {remedy}"
            raise UserError(f"{path}: {len(lines)} {problem}; {remedy}")


def require_own_reference(systems: Sequence[Translations], references: Sequence[Tuple[Path, Sequence[str]]]) -> None:
    """Refuse, by a UserError, references if more than half of the T- lines of an output differ from all of them.

    A T- line is the reference that the model read: tokenised, often in lower case, without diacritics, with unknown
    words. It has the same letters as the reference, or as one of several references.
    """
    for system in systems:
        count = disagreements(system, [lines for _, lines in references])
        if 2 * count > len(system.targets):
            raise UserError(
                f"{references[0][0]}: {count} of the {len(system.targets)} T- lines of {system.path} differ from "
                "it; give the reference of the translated text, or --other-reference to use this one"
            )


def disagreements(system: Translations, references: Sequence[Sequence[str]]) -> int:
    """The number of T- lines of an output that differ from every reference; 0 if it has no T- lines."""
    pairs = zip(system.targets, zip(*references))
    return sum(not any(_agrees(target, line) for line in lines) for target, lines in pairs)


def has_tokens_of(system: Translations, references: Sequence[Sequence[str]]) -> bool:
    """Whether the T- lines of an output are the tokens of a reference, apart from case, diacritics and unknown words.

    One line of a hundred may differ: an unusual character is no other tokenisation.
    """
    pairs = zip(system.targets, zip(*references))
    others = sum(not any(_has_tokens(target, line) for line in lines) for target, lines in pairs)
    return bool(system.targets) and 100 * others <= len(system.targets)


def letters(line: str) -> str:
    """The part of a line that tokenising, lower-casing, escaping and the removal of diacritics do not change."""
    return re.sub(r"&#?\w+;|[\W_]", "", without_marks(unicodedata.normalize("NFKC", line)).lower())


def without_marks(line: str) -> str:
    """The line without diacritics."""
    return "".join(letter for letter in unicodedata.normalize("NFD", line) if not unicodedata.combining(letter))


def _agrees(target: str, reference: str) -> bool:
    """Whether a T- line can belong to a reference: it has the letters between the unknown words, in the same order."""
    text = letters(reference)
    pieces = [letters(piece) for piece in target.split("<<unk>>")]
    if len(pieces) == 1:
        return pieces[0] == text
    for piece in filter(None, pieces):
        if piece not in text:
            return False
        text = text.partition(piece)[2]
    return True


def _has_tokens(target: str, reference: str) -> bool:
    pieces = without_marks(target).lower().split("<<unk>>")
    return re.fullmatch(r"\S*".join(map(re.escape, pieces)), without_marks(reference).lower()) is not None


def _is_lower(sentences: Sequence[str]) -> bool:
    return all(sentence == sentence.lower() for sentence in sentences)
