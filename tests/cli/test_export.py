"""`fairseq-capsule export` writes a whole folder or nothing, and refuses what the other library cannot compute."""

import hashlib
import json
import os

import pytest
from fairseq.data import Dictionary

from tests.libraries import library

transformers = library("transformers")

TO = ("--to", "fairseq")
HUGGING_FACE = ("--to", "transformers")


def test_fairseqs_own_checkpoint_is_in_a_folder_with_the_dictionaries(command, world, tmp_path):
    out = tmp_path / "new" / "out"
    result = command("export", world / "plain.pt", world / "prepared", out, *TO)
    assert (result.status, result.out) == (0, f"wrote {out}: en-de for fairseq alone\n")
    assert {file.name for file in out.iterdir()} == {"model.pt", "dict.en.txt", "dict.de.txt"}
    for language in ("en", "de"):
        dictionary = Dictionary.load(str(out / f"dict.{language}.txt"))
        assert dictionary == Dictionary.load(str(world / f"prepared/bin/dict.{language}.txt"))


def test_a_routed_model_is_refused_with_the_way_to_a_student(refused, world, tmp_path):
    line = refused("export", world / "model.pt", world / "prepared", tmp_path / "out", *TO)
    assert line == (
        f"{world / 'model.pt'}: it routes (past_future), so fairseq alone cannot compute it; translate the training "
        "set with it (scripts/distill.sh), train a Transformer on the translations, and export that (docs/bridges.md)"
    )
    assert not list(tmp_path.iterdir())


def test_an_existing_folder_is_not_changed(refused, world, tmp_path):
    (tmp_path / "mine").touch()
    assert "exists already" in refused("export", world / "plain.pt", world / "prepared", tmp_path, *TO)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_nothing_is_left_of_a_failed_write(refused, world, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    line = refused("export", world / "plain.pt", world / "prepared", tmp_path / "out", *TO)
    assert "No space left on device" in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("checkpoint", ["plain.pt", "model.pt"])
def test_a_folder_for_transformers_has_all_that_raw_text_needs(command, world, tmp_path, checkpoint):
    out = tmp_path / "out"
    result = command("export", world / checkpoint, world / "prepared", out, *HUGGING_FACE)
    assert (result.status, result.out) == (0, f"wrote {out}: en-de for transformers\n")
    names = {"config.json", "generation_config.json", "model.safetensors", "README.md"}
    names |= {"tokenizer_config.json", "vocabulary.json", "codes"}
    assert {file.name for file in out.iterdir()} == names
    assert len({file.stat().st_mode for file in out.iterdir()}) == 1
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(out)
    assert type(model).__module__ == "capsule_routing.huggingface.modeling"
    found = model.generate(**tokenizer(["a b", "c d e"], return_tensors="pt", padding=True), max_new_tokens=6)
    assert len(tokenizer.batch_decode(found, skip_special_tokens=True)) == 2


def test_the_model_card_states_where_a_model_comes_from(command, world, tmp_path):
    scores = {"scores": {"bleu": {"label": "BLEU", "score": 12.345, "signature": "nrefs:1|case:lc"}}}
    (tmp_path / "scores.json").write_text(json.dumps(scores))
    options = ("--license", "mit", "--scores", tmp_path / "scores.json")
    out = tmp_path / "out"
    assert command("export", world / "model.pt", world / "prepared", out, *HUGGING_FACE, *options).status == 0
    card = (out / "README.md").read_text()
    digest = hashlib.sha256((world / "model.pt").read_bytes()).hexdigest()
    for text in (
        '---\nlanguage:\n- "en"\n- "de"\nlicense: mit\nlibrary_name: transformers\n',
        "# en-de: gdr_transformer_tiny\n",
        "It separates the source words at every target step",
        "| mechanisms | past_future |",
        "| interpretation of the paper | --guided-reduction mean |",
        "| data | prepare.sh, tokenise moses, source en, target de, lower no |",
        f"| checkpoint | `model.pt`, SHA-256 `{digest}` |",
        "| made by | `fairseq-capsule export model.pt prepared out --to transformers`, version ",
        "| BLEU | 12.35 | nrefs:1\\|case:lc |",
    ):
        assert text in card
    assert str(world) not in card and str(tmp_path) not in card


def test_an_option_of_the_other_library_is_refused(refused, world, tmp_path):
    line = refused("export", world / "plain.pt", world / "prepared", tmp_path / "out", *TO, "--license", "mit")
    assert line.endswith("belong to --to transformers; leave them out")
