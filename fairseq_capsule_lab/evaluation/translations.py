"""Reading translations: outputs of `fairseq-generate` or `fairseq-interactive`, or plain text."""

import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from fairseq.data.data_utils import post_process

from fairseq_capsule.data.files import read_lines
from fairseq_capsule_lab.errors import LabError

# S: source, T: target, H: hypothesis as generated, D: hypothesis detokenised by fairseq. Other lines (P-, A-, the log)
# are skipped.
GENERATED_LINE = re.compile(r"(?P<kind>[STHD])-(?P<id>[0-9]+)\t(?P<text>.*)")
# A line with pieces of SentencePiece. A ▁ of its own in the middle of a line is a character of the text.
PIECES = re.compile(r"(<+unk>+ )*▁|.* ▁[^ ▁]")
# A line of separate characters, as `prepare.sh --tokenise characters` makes them; ▁ stands for a space.
SPELLED = re.compile(r"((\S|<+unk>+)( (\S|<+unk>+))*)?")
SUBWORDS = ["subword_nmt", "sentencepiece", "none"]  # of fairseq's `--remove-bpe`
TOKENISED = {"auto": None, "yes": True, "no": False}  # `--tokenized` of the commands → the argument `tokenised`
LONGEST_ID = 18  # digits
NAMED_AT_MOST = 5


@dataclass(frozen=True)
class Translations:
    """The translations of one text: one sentence per line, in the order of the text, with subwords joined.

    `tokenised` is True if words and punctuation are separated. `sources` and `targets` are the sentences that the model
    read (the S- and T- lines), or None if the file has none.
    """

    path: Path
    sentences: List[str]
    tokenised: bool
    targets: Optional[List[str]] = None
    sources: Optional[List[str]] = None


@dataclass(frozen=True)
class Outputs(Translations):
    """An output of `fairseq-generate`, with the sources and targets that it read."""

    targets: List[str]
    sources: List[str]


def read_translations(
    path: Path,
    remove_bpe: Optional[str] = None,
    tokenised: Optional[bool] = None,
    generated_bpe: str = "subword_nmt",
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
        LabError: the file is empty or not UTF-8, or a generated output has missing or repeated sentences.
    """
    lines = read_lines(path)
    if not any(re.match(r"[HD]-[0-9]+\t", line) for line in lines):
        return Translations(path, [post_process(line, remove_bpe) for line in lines], bool(tokenised))

    found = _generated(path, lines)
    subwords: Dict[str, str] = {}
    for kinds in ("S", "THD"):
        side = [text for kind in kinds for text in found[kind].values()]
        subwords |= dict.fromkeys(kinds, remove_bpe or subwords_of(side, generated_bpe))
    texts = {kind: [_joined(lines[i], subwords[kind]) for i in sorted(lines)] for kind, lines in found.items() if lines}
    sentences = texts.get("D") or texts["H"]
    if tokenised is None:
        tokenised = subwords["H"] != "sentencepiece" and sentences == texts.get("H", sentences)
    return Translations(path, sentences, tokenised, texts.get("T"), texts.get("S"))


def subwords_of(lines: Sequence[str], otherwise: str = "subword_nmt") -> str:
    """The kind of the subwords in lines that a model reads or generates, a value of fairseq's `--remove-bpe`.

    It is "sentencepiece" for pieces of SentencePiece, and for separate characters if a space is among them.
    """
    spelled = any("▁" in line for line in lines) and all(SPELLED.fullmatch(line) for line in lines)
    return "sentencepiece" if spelled or any(PIECES.match(line) for line in lines) else otherwise


def read_outputs(
    paths: Sequence[Path], remove_bpe: Optional[str] = None, tokenised: Optional[bool] = None
) -> List[Outputs]:
    """Read outputs of `fairseq-generate` for the same text, each with its sources and targets.

    Args: as for `read_translations`.

    Raises:
        LabError: the errors of `read_translations`; a file is not such an output, or belongs to another text than the
            first.
    """
    outputs: List[Outputs] = []
    for path in paths:
        found = read_translations(path, remove_bpe, tokenised)
        if found.sources is None or found.targets is None:
            raise LabError(f"{path}: no S- and T- lines; give an output of fairseq-generate")
        output = Outputs(path, found.sentences, found.tokenised, found.targets, found.sources)
        outputs.append(output)
        first = outputs[0]
        if len(output.sentences) != len(first.sentences):
            raise LabError(
                f"{output.path}: {len(output.sentences)} sentences, but {first.path} has {len(first.sentences)}; "
                "give outputs of the same text"
            )
        pairs = zip(output.sources, output.targets, first.sources, first.targets)
        other = next((i for i, (*ours, s, t) in enumerate(pairs) if ours != [s, t]), None)
        if other is not None:
            raise LabError(
                f"{output.path}: sentence {other} (S-, T-) differs from {first.path}; give outputs of the same text, "
                "generated with the same --remove-bpe and --tokenizer"
            )
    return outputs


def _joined(line: str, subwords: str) -> str:
    if subwords != "characters":
        return post_process(line, subwords)
    return post_process(line, "sentencepiece") if SPELLED.fullmatch(line) else line


def _generated(path: Path, lines: List[str]) -> Dict[str, Dict[int, str]]:
    """Kind of line → number of the sentence → text. Each kind that occurs has every sentence."""
    found: Dict[str, Dict[int, str]] = {kind: {} for kind in "STHD"}
    for number, line in enumerate(lines, start=1):
        match = GENERATED_LINE.fullmatch(line)
        if not match:
            continue
        if len(match["id"]) > LONGEST_ID:
            raise LabError(f"{path}, line {number}: {line[:40]!r} is not a line of a sentence; generate the file again")
        sentences, sentence, text = found[match["kind"]], int(match["id"]), match["text"]
        if match["kind"] in "ST":
            if sentence in sentences:
                raise LabError(
                    f"{path}, line {number}: {match['kind']}-{sentence} occurs twice, so the file has outputs of two "
                    "runs; score each run in its own file"
                )
            sentences[sentence] = text
        else:
            score, tab, text = text.partition("\t")
            if not tab:
                raise LabError(f"{path}, line {number}: truncated after the score {score}; generate the file again")
            sentences.setdefault(sentence, text)  # fairseq scores the first of several hypotheses
    count = 1 + max(sentence for sentences in found.values() for sentence in sentences)
    for kind, sentences in found.items():
        missing = count - len(sentences)
        if sentences and missing:
            # Name only a few: a single line can claim that there are 10^18 sentences.
            named = islice((sentence for sentence in range(count) if sentence not in sentences), NAMED_AT_MOST)
            shown = ", ".join(f"{kind}-{sentence}" for sentence in named) + (", …" if missing > NAMED_AT_MOST else "")
            raise LabError(
                f"{path}: {missing} of {count} sentences missing ({shown}): interrupted, one shard of several, or "
                "--skip-invalid-size-inputs-valid-test; generate all sentences"
            )
    return found
