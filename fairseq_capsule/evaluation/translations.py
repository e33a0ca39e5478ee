"""Reading translations: outputs of `fairseq-generate` or `fairseq-interactive`, or plain text."""

import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from fairseq.data.data_utils import post_process

from fairseq_capsule.data.files import read_lines
from fairseq_capsule.errors import UserError

# S: source, T: target, H: hypothesis as generated, D: hypothesis after fairseq's own detokenising. Other lines (P-, A-,
# the log) are passed over.
GENERATED_LINE = re.compile(r"(?P<kind>[STHD])-(?P<id>[0-9]+)\t(?P<text>.*)")
LONGEST_ID = 18  # digits
NAMED_AT_MOST = 5


@dataclass(frozen=True)
class Translations:
    """The translations of one text, a sentence each, in the text's order and without subwords.

    `tokenised` says whether words and punctuation are separate. `targets` are the target sentences in the form in which
    the model saw them (the T- lines), where the file has them.
    """

    path: Path
    sentences: List[str]
    tokenised: bool
    targets: Optional[List[str]] = None
    sources: Optional[List[str]] = None


@dataclass(frozen=True)
class Outputs(Translations):
    """Translations of `fairseq-generate`, with the sources and targets that it read."""

    targets: List[str]
    sources: List[str]


def read_translations(
    path: Path,
    remove_bpe: Optional[str] = None,
    tokenised: Optional[bool] = None,
    generated_bpe: str = "subword_nmt",
) -> Translations:
    """Read either kind of file.

    Args:
        remove_bpe: fairseq's name of the subwords to join; None leaves plain text alone, and joins in generated outputs
            SentencePiece's where lines begin with its ▁, otherwise `generated_bpe`: "subword_nmt", or "characters"
            where lines have these apart.
        tokenised: None takes plain text for untokenised, as the text is that SentencePiece cuts; and another generated
            output for tokenised unless fairseq has detokenised it, which shows where its D- lines differ from its H-
            lines.

    Raises:
        UserError: an empty file, one that is not UTF-8, or a generated output with missing or repeated sentences.
    """
    lines = read_lines(path)
    if not any(re.match(r"[HD]-[0-9]+\t", line) for line in lines):
        return Translations(path, [post_process(line, remove_bpe) for line in lines], bool(tokenised))

    found = _generated(path, lines)
    pieces = any(text.startswith("▁") for sentences in found.values() for text in sentences.values())
    subwords = remove_bpe or ("sentencepiece" if pieces else generated_bpe)
    texts = {kind: [_joined(found[kind][i], subwords) for i in sorted(found[kind])] for kind in found if found[kind]}
    sentences = texts.get("D") or texts["H"]
    if tokenised is None:
        tokenised = subwords != "sentencepiece" and sentences == texts.get("H", sentences)
    return Translations(path, sentences, tokenised, texts.get("T"), texts.get("S"))


def read_outputs(paths: Sequence[Path], remove_bpe: Optional[str] = None) -> List[Outputs]:
    """Read outputs of `fairseq-generate` on one and the same text, each with its sources and targets.

    Raises:
        UserError: as `read_translations`; a file that is no such output; or one of another text than the first one's.
    """
    outputs: List[Outputs] = []
    for path in paths:
        found = read_translations(path, remove_bpe)
        if found.sources is None or found.targets is None:
            raise UserError(f"{path}: it has no S- and T- lines; give an output of fairseq-generate")
        output = Outputs(path, found.sentences, found.tokenised, found.targets, found.sources)
        outputs.append(output)
        first = outputs[0]
        if len(output.sentences) != len(first.sentences):
            raise UserError(
                f"{output.path}: {len(output.sentences)} sentences, {first.path} has {len(first.sentences)}; "
                "give outputs of the same text"
            )
        pairs = zip(output.sources, output.targets, first.sources, first.targets)
        other = next((i for i, (*ours, s, t) in enumerate(pairs) if ours != [s, t]), None)
        if other is not None:
            raise UserError(
                f"{output.path}: sentence {other} (S-, T-) is not that of {first.path}; give outputs of the same text, "
                "generated with the same --remove-bpe and --tokenizer"
            )
    return outputs


def _joined(line: str, subwords: str) -> str:
    if subwords != "characters":
        return post_process(line, subwords)
    apart = all(len(token) == 1 or token == "<unk>" for token in line.split())
    return post_process(line, "sentencepiece") if apart else line  # which has ▁ for a space too


def _generated(path: Path, lines: List[str]) -> Dict[str, Dict[int, str]]:
    """Kind of line → number of the sentence → text; each kind that occurs has every sentence."""
    found: Dict[str, Dict[int, str]] = {kind: {} for kind in "STHD"}
    for number, line in enumerate(lines, start=1):
        match = GENERATED_LINE.fullmatch(line)
        if not match:
            continue
        if len(match["id"]) > LONGEST_ID:
            raise UserError(f"{path}, line {number}: {line[:40]!r} is the line of no sentence; generate it again")
        sentences, sentence, text = found[match["kind"]], int(match["id"]), match["text"]
        if match["kind"] in "ST":
            if sentence in sentences:
                raise UserError(
                    f"{path}, line {number}: {match['kind']}-{sentence} stands there twice: outputs of two runs in one "
                    "file; score them one by one"
                )
            sentences[sentence] = text
        else:
            score, tab, text = text.partition("\t")
            if not tab:
                raise UserError(f"{path}, line {number}: cut short behind the score {score}; generate it again")
            sentences.setdefault(sentence, text)  # of several hypotheses fairseq scores the first
    count = 1 + max(sentence for sentences in found.values() for sentence in sentences)
    for kind, sentences in found.items():
        missing = count - len(sentences)
        if sentences and missing:
            # Not all of them: one line may say that there are 10^18 sentences.
            named = islice((sentence for sentence in range(count) if sentence not in sentences), NAMED_AT_MOST)
            shown = ", ".join(f"{kind}-{sentence}" for sentence in named) + (", …" if missing > NAMED_AT_MOST else "")
            raise UserError(
                f"{path}: {missing} of {count} sentences missing ({shown}): interrupted, one shard of several, or "
                "--skip-invalid-size-inputs-valid-test; generate all of them"
            )
    return found
