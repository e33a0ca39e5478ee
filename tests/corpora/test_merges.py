"""The merges are those of subword-nmt, to the byte."""

import io
import random

import pytest
from subword_nmt.learn_bpe import learn_bpe

from fairseq_capsule_lab.corpora.merges import learn_merges


def words_of(letters, number, seed):
    """Return random words with counts by Zipf's law. Few letters give repeated pairs, such as `aaa`, and many ties."""
    rng = random.Random(seed)
    words = {"".join(rng.choices(letters, k=rng.randint(1, 9))) for _ in range(number)}
    return {word: 1 + 3 * number // (5 * rank) for rank, word in enumerate(sorted(words), 1)}


@pytest.mark.parametrize("merges", [0, 1, 150, 2500])  # more than there are pairs
@pytest.mark.parametrize("letters, number", [("ab", 60), ("aàb\\.", 300), ("abcdefghijklmnop", 800)])
def test_merges_are_those_of_subword_nmt(letters, number, merges, capsys):
    words, stream, expected = words_of(letters, number, merges), io.StringIO(), io.StringIO()
    learnt = learn_merges(words, merges, stream)
    learn_bpe((f"{word} {count}" for word, count in words.items()), expected, merges, is_dict=True)
    assert stream.getvalue() == expected.getvalue()
    assert learnt == expected.getvalue().count("\n") - 1
