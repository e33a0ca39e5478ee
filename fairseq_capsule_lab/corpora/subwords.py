"""Learning of subwords: merges of subword-nmt, or pieces of SentencePiece."""

import contextlib
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from capsule_routing.errors import UserError
from fairseq_capsule_lab.corpora.parallel import Block, blocks, in_order, progress_bar, workers
from fairseq_capsule_lab.manifests import count_lines

MOST_LINES = 400_000  # a random sample to learn pieces from: it is kept in memory, and more lines change them little
LONGEST = 4_192  # bytes; longer lines are not used for learning


def learn_merges(texts: Sequence[Path], codes: Path, merges: int, log: BinaryIO) -> None:
    """Learn merges of subword-nmt. Words are counted on all cores."""
    from subword_nmt.learn_bpe import learn_bpe

    words: Counter[str] = Counter()
    with workers(log) as executor:
        for counted in progress_bar(in_order(executor, _count_words, blocks(texts)), desc="words", unit=" blocks"):
            words.update(counted)
    if all(len(word) == 1 for word in words):
        # Single characters have nothing to merge, but subword-nmt refuses an empty list.
        codes.write_text("#version: 0.2\n▁ ▁\n", encoding="utf-8")
        return
    # It breaks ties by the pair, so the order of words does not matter.
    with (
        open(codes, "w", encoding="utf-8", newline="\n") as stream,
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        contextlib.redirect_stderr(sys.stderr if sys.stderr.isatty() else nowhere),  # its progress bar
    ):
        learn_bpe((f"{word} {count}" for word, count in words.items()), stream, merges, is_dict=True)
    if codes.read_bytes().count(b"\n") < 2:
        raise UserError("too little text to learn merges: no two letters stand together twice; give more text")


def _count_words(block: Block) -> "Counter[str]":
    return Counter(word for line in block.lines for word in line.rstrip("\n").split(" ") if word)


def learn_pieces(texts: Sequence[Path], model: Path, kind: str, size: int, log: BinaryIO) -> None:
    """Learn a SentencePiece model of a kind, unigram or bpe, with at most `size` pieces."""
    with workers(log, 1) as executor:  # what the library prints goes to the log
        executor.submit(_learn_pieces, texts, model, kind, size).result()


def _learn_pieces(texts: Sequence[Path], model: Path, kind: str, size: int) -> None:
    import sentencepiece

    os.chdir(model.parent)  # the model contains the names of the texts, which should not depend on where they are
    total = sum(map(count_lines, texts))
    if total <= MOST_LINES:
        text: dict[str, Any] = {"input": [os.path.relpath(path) for path in texts]}
    else:
        text = {"sentence_iterator": _sample(texts, total)}
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
