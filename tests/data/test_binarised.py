"""Binarised files are read in pieces of any size, in bounded memory."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairseq_capsule.data.binarised import HEADER, BinarisedText, BrokenFile


def write_index(path, sizes):
    sizes = np.array(sizes, dtype="<i4")
    pointers = 2 * (np.cumsum(sizes, dtype="<i8") - sizes)
    path.write_bytes(HEADER.pack(b"MMIDIDX\0\0", 1, 8, len(sizes)) + sizes.tobytes() + pointers.tobytes())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=st.lists(st.integers(0, 9), max_size=20), piece=st.integers(1, 5))
def test_files_are_read_in_pieces_of_any_size(tmp_path, monkeypatch, sizes, piece):
    monkeypatch.setattr("fairseq_capsule.data.binarised.PIECE", piece)
    index = tmp_path / "test.en-de.de.idx"
    write_index(index, sizes)
    tokens = np.arange(sum(sizes), dtype="<u2")
    index.with_suffix(".bin").write_bytes(tokens.tobytes())
    text = BinarisedText(index)
    assert (text.sentences, text.tokens) == (len(sizes), sum(sizes))
    assert text.sizes(0, len(sizes)).tolist() == sizes
    assert text.piece(1, 3).tolist() == tokens[1:4].tolist()
    text.require_known_tokens(max(1, sum(sizes)))
    if sum(sizes):
        with pytest.raises(BrokenFile, match=f"token {sum(sizes)} has the number {sum(sizes) - 1}"):
            text.require_known_tokens(sum(sizes) - 1)


def test_memory_stays_bounded(tmp_path):
    """Files of 60 and 36 MB are read within 20 MB."""
    index = tmp_path / "train.en-de.de.idx"
    write_index(index, [10] * 3_000_000)
    with open(index.with_suffix(".bin"), "wb") as stream:
        stream.truncate(60_000_000)
    tracemalloc.start()
    BinarisedText(index).require_known_tokens(9)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20_000_000
