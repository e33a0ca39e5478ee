"""The tokens of binarised files are read in pieces of any size, in bounded memory."""

import os
import tracemalloc

import numpy as np
import pytest
import torch
from fairseq.data.indexed_dataset import MMapIndexedDataset, best_fitting_int_dtype, make_builder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairseq_capsule.data.binarised import HEADER_SIZE, BinarisedText, BrokenFile, recompute_offsets


def write(folder, sizes):
    """Write sentences of these sizes, whose tokens are 0, 1, 2, ...; return the index."""
    index = folder / "test.en-de.de.idx"
    builder = make_builder(str(index.with_suffix(".bin")), "mmap", vocab_size=9)  # 2 bytes for each token
    for tokens in torch.arange(sum(sizes)).split(sizes):
        builder.add_item(tokens)
    builder.finalize(str(index))
    return index


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=st.lists(st.integers(0, 9), max_size=20), piece=st.integers(1, 5))
def test_files_are_read_in_pieces_of_any_size(tmp_path, monkeypatch, sizes, piece):
    monkeypatch.setattr("fairseq_capsule.data.binarised.PIECE", piece)
    text = BinarisedText(write(tmp_path, sizes))
    assert (text.sentences, text.tokens, text.sizes.tolist()) == (len(sizes), sum(sizes), sizes)
    text.require_known_tokens(max(1, sum(sizes)))
    if sum(sizes):
        with pytest.raises(BrokenFile, match=f"token {sum(sizes)} has the number {sum(sizes) - 1}"):
            text.require_known_tokens(sum(sizes) - 1)


@pytest.mark.parametrize("count", [4, 2**62 + 3, 2**63 + 3])
def test_an_index_that_announces_other_sentences_is_refused(tmp_path, count):
    index = write(tmp_path, [2, 1, 3])
    whole = index.read_bytes()
    index.write_bytes(whole[:18] + count.to_bytes(8, "little") + whole[26:])
    with pytest.raises(BrokenFile, match="not a whole index"):
        BinarisedText(index)


def test_memory_stays_bounded(tmp_path):
    """Tokens of 60 MB are read within 20 MB."""
    text = BinarisedText(write(tmp_path, [10_000] * 3000))
    tracemalloc.start()
    text.require_known_tokens(1 << 16)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20_000_000


@pytest.mark.parametrize("gibibytes", [1, 3, 5])  # above 2 offsets are negative, above 4 those of other sentences
def test_offsets_above_2_gib_are_computed_again(tmp_path, monkeypatch, gibibytes):
    """fairseq adds up the lengths that several workers wrote, as 32-bit numbers. The file of tokens is sparse."""
    monkeypatch.setattr("fairseq.data.indexed_dataset._warmup_mmap_file", lambda path: None)  # it reads all
    index, length = tmp_path / "train.en-de.de.idx", 1 << 20
    sizes = np.full(gibibytes * 512 + 1, length, np.int32)
    with np.errstate(over="ignore"), MMapIndexedDataset.Index.writer(str(index), np.uint16) as writer:
        writer.write(list(sizes))
    with open(index.with_suffix(".bin"), "wb") as tokens:
        tokens.seek(2 * length * (len(sizes) - 1))
        tokens.write(np.arange(9, dtype=np.uint16).tobytes())
        tokens.truncate(2 * length * len(sizes))
    if gibibytes > 2:
        with pytest.raises(BrokenFile, match="wrong above 2 GiB, as fairseq-preprocess --workers writes them under n"):
            BinarisedText(index)
    recompute_offsets(tmp_path)
    BinarisedText(index)
    assert MMapIndexedDataset(str(index.with_suffix("")))[len(sizes) - 1][:9].tolist() == list(range(9))
    index.with_suffix(".bin").write_bytes(b"short")
    with pytest.raises(BrokenFile, match=f"5 bytes, but train.en-de.de.idx needs {2 * length * len(sizes)}"):
        recompute_offsets(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("words, dtype, tokens", [(44_000, np.uint16, 60), (70_000, np.uint32, 30)])
def test_36_million_sentences_are_read_and_checked(tmp_path, monkeypatch, words, dtype, tokens):
    """As many as WMT14 English-French has. The file of tokens is sparse: only its last sentence has words."""
    monkeypatch.setattr("fairseq.data.indexed_dataset._warmup_mmap_file", lambda path: None)  # it reads all
    assert best_fitting_int_dtype(words) == dtype
    index, last = tmp_path / "train.en-fr.fr.idx", np.arange(4, 4 + tokens, dtype=dtype)
    sizes = np.full(36_000_000, tokens, np.int32)
    offsets = np.arange(len(sizes)) * last.nbytes
    with MMapIndexedDataset.Index.writer(str(index), dtype) as writer:
        writer.write([])
    head = index.read_bytes()[:HEADER_SIZE]
    with open(index, "wb") as stream:  # as `fairseq-preprocess --workers` does; it takes a minute and a GB for it
        stream.write(head[:-8] + len(sizes).to_bytes(8, "little") + sizes.tobytes())
        stream.write(offsets.astype(np.int32).astype(np.int64).tobytes())
    with open(index.with_suffix(".bin"), "wb") as stream:
        stream.truncate(len(sizes) * last.nbytes)
        stream.seek(-last.nbytes, os.SEEK_END)
        stream.write(last.tobytes())
    assert index.with_suffix(".bin").stat().st_size > 1 << 32
    with pytest.raises(BrokenFile, match="wrong above 2 GiB"):
        BinarisedText(index)
    recompute_offsets(tmp_path)
    text = BinarisedText(index)
    assert (text.sentences, text.tokens) == (len(sizes), tokens * len(sizes))
    assert MMapIndexedDataset(str(index.with_suffix("")))[len(sizes) - 1].tolist() == last.tolist()
    text.require_known_tokens(words)
    with pytest.raises(
        BrokenFile, match=f"token {text.tokens} has the number {last.max()}, but the dictionary has 0 to"
    ):
        text.require_known_tokens(int(last.max()))
