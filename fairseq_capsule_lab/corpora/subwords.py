"""Learning of subwords: merges of subword-nmt, or pieces of SentencePiece."""

import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from capsule_routing.errors import UserError
from capsule_routing.text.preparation import SPACE
from fairseq_capsule_lab.corpora.merges import learn_merges
from fairseq_capsule_lab.corpora.parallel import Block, blocks, in_order, progress_bar, workers
from fairseq_capsule_lab.manifests import count_lines

MOST_LINES = 400_000  # a random sample to learn pieces from: it is kept in memory, and more lines change them little
LONGEST = 4_192  # bytes; longer lines are not used for learning


def learn_subwords(
    texts: Sequence[Path], codes: Path, tool: str, size: int, log: BinaryIO, protected: Sequence[str] = ()
) -> None:
    """Learn merges of subword-nmt, or a model of SentencePiece: its unigram model, or "sentencepiece-bpe".

    Merges are learnt from all words but the protected ones; SentencePiece has these among its pieces.
    """
    if tool == "subword-nmt":
        _learn_merges(texts, codes, size, log, protected)
        return
    kind = "unigram" if tool == "sentencepiece" else "bpe"
    with workers(log, 1) as executor:  # what the library prints goes to the log
        executor.submit(_learn_pieces, texts, codes, kind, size, protected).result()


def _learn_merges(texts: Sequence[Path], codes: Path, merges: int, log: BinaryIO, protected: Sequence[str]) -> None:
    """Words are counted on all cores."""
    words: Counter[str] = Counter()
    with workers(log) as executor:
        for counted in progress_bar(in_order(executor, _count_words, blocks(texts)), desc="words", unit=" blocks"):
            words.update(counted)
    for word in protected:
        words.pop(word, None)
    if all(len(word) == 1 for word in words):
        # Single characters have nothing to merge, but subword-nmt refuses an empty list.
        codes.write_text("#version: 0.2\n▁ ▁\n", encoding="utf-8")
        return
    with open(codes, "w", encoding="utf-8", newline="\n") as stream:
        learnt = learn_merges(words, merges, stream)
    if not learnt:
        raise UserError("too little text to learn merges: no two letters stand together twice; give more text")


def _count_words(block: Block) -> "Counter[str]":
    return Counter(word for line in block.lines for word in line.rstrip("\n").split(" ") if word)


def _learn_pieces(texts: Sequence[Path], model: Path, kind: str, size: int, protected: Sequence[str]) -> None:
    import sentencepiece

    model, texts = model.absolute(), [path.absolute() for path in texts]
    os.chdir(model.parent)  # the model contains the names of the texts, which should not depend on where they are
    total = sum(map(count_lines, texts))
    if total <= MOST_LINES:
        text: dict[str, Any] = {"input": [os.path.relpath(path) for path in texts]}
    else:
        text = {"sentence_iterator": _sample(texts, total)}
    if protected:  # with the space before the word, so that a piece is a word of the text
        text["user_defined_symbols"] = [f"{SPACE}{word}" for word in protected]
    with open(model, "wb") as stream:
        sentencepiece.SentencePieceTrainer.train(
            **text,
            model_writer=stream,
            model_type=kind,
            vocab_size=size,
            hard_vocab_limit=False,  # a small text has fewer pieces than requested
            input_sentence_size=MOST_LINES,
            shuffle_input_sentence=True,
            max_sentence_length=LONGEST,
            # No normalisation: translations would differ from the references, in Chinese at every comma.
            normalization_rule_name="identity",
            minloglevel=1,
        )


def _sample(texts: Sequence[Path], total: int) -> Iterator[str]:
    """Yield MOST_LINES of the lines of texts, always the same ones. SentencePiece's own sample has no seed."""
    chosen = set(random.Random(1).sample(range(total), MOST_LINES))
    number = 0
    for path in texts:
        with open(path, encoding="utf-8", newline="\n") as lines:
            for line in lines:
                if number in chosen:
                    yield line.rstrip("\n")
                number += 1
