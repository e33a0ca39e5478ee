"""`<s>`, `<pad>`, `</s>` and `<unk>` as words of a text never reach a model as fairseq's control symbols."""

import numpy as np
import pytest
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import make_builder

from capsule_routing.errors import UserError
from fairseq_capsule.data.binarised import BinarisedText, BrokenFile
from fairseq_capsule.data.dictionaries import read_dictionary
from fairseq_capsule.tasks import CapsuleTranslationTask
from fairseq_capsule.tasks.capsule_translation import CapsuleTranslationConfig

SYMBOLS = ("<s>", "<pad>", "</s>")


@pytest.fixture
def binarise(tmp_path):
    """Binarise three pairs as fairseq-preprocess does. Returns the folder and its task."""

    def run(line, language):
        dictionary = Dictionary()
        for name in ("en", "de"):
            prefix = str(tmp_path / f"train.en-de.{name}")
            builder = make_builder(f"{prefix}.bin", "mmap", vocab_size=9)
            for text in ("a b", "", line if name == language else "b a"):
                builder.add_item(dictionary.encode_line(text))
            builder.finalize(f"{prefix}.idx")
        for name in ("en", "de"):
            dictionary.save(str(tmp_path / f"dict.{name}.txt"))
        pair = {"data": str(tmp_path), "source_lang": "en", "target_lang": "de", "train_subset": "train"}
        config = CapsuleTranslationConfig(**pair, dataset_impl="mmap", num_batch_buckets=0)
        return tmp_path, CapsuleTranslationTask.setup_task(config)

    return run


@pytest.mark.parametrize("line, language", [("b <pad> a", "en"), ("a <s>", "de"), ("</s> </s> a", "en")])
def test_binarised_control_symbols_are_refused(binarise, line, language):
    folder, task = binarise(line, language)
    symbol = next(word for word in line.split() if word in SYMBOLS)
    with pytest.raises(BrokenFile, match=f"{folder}/train.en-de.{language}.bin: sentence 3 contains {symbol}: fairseq"):
        task.load_dataset("train")


def test_other_words_and_empty_sentences_are_loaded(binarise):
    folder, task = binarise("b <unk> a", "en")
    task.load_dataset("train")
    assert len(task.dataset("train")) == 3
    text = BinarisedText(folder / "train.en-de.en.idx")
    text.sizes = np.array([2, 0, 2, 4])  # a sentence without tokens
    with pytest.raises(BrokenFile, match="sentence 3 contains </s>"):
        text.require_words()


def test_control_symbols_in_raw_text_are_unknown_words(tmp_path):
    plain = Dictionary()
    plain.add_symbol("a")
    plain.save(str(tmp_path / "dict.txt"))
    dictionary = read_dictionary(tmp_path / "dict.txt")
    numbers = dictionary.encode_line(f"a {' '.join(SYMBOLS)} <unk> a", add_if_not_exist=False).tolist()
    assert numbers == [4, 3, 3, 3, 3, 4, dictionary.eos()]
    assert dictionary == plain and dictionary.index("<pad>") == dictionary.pad()


def test_no_symbol_of_a_dictionary_occurs_twice(tmp_path):
    """fairseq allows it by a flag, which fairseq-preprocess does not copy: then no program can read the copy."""
    (tmp_path / "dict.txt").write_text("a 5\nb 3\na 2 #fairseq:overwrite\n")
    with pytest.raises(UserError, match="dict.txt: a symbol occurs twice"):
        read_dictionary(tmp_path / "dict.txt")
