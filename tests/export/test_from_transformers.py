"""A model goes to transformers and back: the same logits, and raw text is read the same way."""

from dataclasses import replace

import pytest
import torch

from capsule_routing.errors import UserError
from capsule_routing.text.preparation import TextPreparation
from fairseq_capsule.hub import load
from fairseq_capsule_lab.cli import main
from tests.huggingface.models import ROUTED, WITH_MECHANISMS, WITHOUT_MECHANISMS
from tests.libraries import library
from tests.zoo import build, case_name, make_batch, make_sentences, make_task

library("transformers")
from capsule_routing.huggingface import CapsuleConfig  # noqa: E402
from fairseq_capsule_lab.export.from_transformers import CHECKPOINT, write  # noqa: E402
from fairseq_capsule_lab.export.from_transformers import options as options_of_fairseq  # noqa: E402
from fairseq_capsule_lab.export.to_transformers import exported, tokenizer  # noqa: E402

MERGES = "#version: 0.2\na b\nb c</w>\n"
ENGLISH = TextPreparation("en", "moses", lower=True, subwords="subword-nmt")
WMT = {"lower": True, "drops_controls": True, "splits_hyphens": True, "subwords": "subword-nmt"}
SIDES = [
    (TextPreparation("en", "none"), TextPreparation("fr", "none")),
    (ENGLISH, replace(ENGLISH, language="fr")),
    (TextPreparation("en", "moses", **WMT), TextPreparation("zh", "jieba", **WMT)),
    (TextPreparation("de", "moses", keeps_punctuation=True), TextPreparation("en", "moses", keeps_punctuation=True)),
    (TextPreparation("zh", "characters"), TextPreparation("yue", "characters")),
    (ENGLISH, TextPreparation("ro", "moses", lower=True, subwords="subword-nmt", diacritics="remove")),
]


def in_transformers(model, task, sides, folder):
    """Write a model and its tokenizer as `fairseq-capsule export` does."""
    folder.mkdir()
    exported(model).save_pretrained(folder)
    tokenizer(task, sides, folder).save_pretrained(folder)
    return folder


# Values of options that are not the defaults: one that is not copied would be a default without an error.
NO_DEFAULTS = {
    "routing_iterations": 1,
    "past_future": "gdr",
    "past_future_iterations": 1,
    "guided_heads": "both",
    "past_future_capsule_dim": 5,  # it gives the weights of each reduction another shape
    "guided_reduction": "sum",
    "global_representation": "capsule",
    "global_iterations": 1,
    "global_gate": "none",
}
CASES = [*WITHOUT_MECHANISMS, *ROUTED, ("capsule_transformer", NO_DEFAULTS)]
for arch, options in WITH_MECHANISMS:
    CASES.append(pytest.param(arch, options, marks=pytest.mark.slow))


@pytest.mark.parametrize("arch, options", CASES, ids=case_name)
def test_the_checkpoint_computes_the_logits_of_the_model(arch, options, tmp_path):
    trained = build(arch, options).eval()
    folder = in_transformers(trained, make_task(), SIDES[0], tmp_path / "exported")
    out = tmp_path / "out"
    out.mkdir()
    assert write(folder, out) == "en-fr"
    (model,) = load(out / CHECKPOINT, out).models
    batch = make_batch(make_sentences([(7, 5), (1, 9)]))
    real = batch["target"].ne(1)
    with torch.no_grad():
        expected, logits = trained(**batch["net_input"])[0], model(**batch["net_input"])[0]
    torch.testing.assert_close(logits[real], expected[real], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sides", SIDES, ids=lambda sides: f"{sides[0].tokenizer}-{sides[1].language}")
def test_raw_text_is_read_and_written_as_before(sides, tmp_path):
    codes = [tmp_path / f"codes.{side.language}" for side in sides]
    for file, side in zip(codes, sides):
        file.write_text(MERGES + f"{side.language[0]} {side.language[1]}</w>\n")
    sides = tuple(replace(side, codes="" if side.subwords == "none" else str(file)) for file, side in zip(codes, sides))
    folder = in_transformers(build("gdr_transformer_base", {}), make_task(), sides, tmp_path / "exported")
    out = tmp_path / "out"
    out.mkdir()
    write(folder, out)
    hub = load(out / CHECKPOINT, out)
    for before, after in zip(sides, (hub.tokenizer.source, hub.tokenizer.target)):
        for line in ("Well-known\x01 “ABC”", "en fr  zh"):
            assert after.encode(line) == before.encode(line)
            assert after.decode(after.encode(line)) == before.decode(before.encode(line))


def test_the_command_writes_a_new_folder(tmp_path, capsys):
    folder = in_transformers(build("gdr_transformer_base", {}), make_task(), SIDES[0], tmp_path / "exported")
    out = tmp_path / "out"
    assert main(["import-model", str(folder), str(out)]) == 0
    assert capsys.readouterr().out == f"wrote {out}: en-fr; its checkpoint is {out}/model.pt\n"
    assert load(out / "model.pt", out / "bin").tokenizer.encode("a b") == "a b"
    assert main(["import-model", str(folder), str(out)]) == 1
    assert "exists already" in capsys.readouterr().err


def test_a_tokenizer_that_no_prepared_folder_can_describe_is_refused(tmp_path):
    sides = TextPreparation("en", "moses", lower=True), TextPreparation("fr", "moses")
    folder = in_transformers(build("gdr_transformer_base", {}), make_task(), sides, tmp_path / "exported")
    with pytest.raises(UserError, match="another lower for en than for fr"):
        write(folder, tmp_path)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_folder_in_half_precision_becomes_a_checkpoint_in_float32(dtype, tmp_path):
    task = make_task()
    folder = in_transformers(build("gdr_transformer_base", {}, task).to(dtype), task, SIDES[0], tmp_path / "folder")
    (tmp_path / "out").mkdir()
    write(folder, tmp_path / "out")
    state = torch.load(tmp_path / "out" / CHECKPOINT, weights_only=False)["model"]
    assert {weight.dtype for weight in state.values()} == {torch.float32}


@pytest.mark.parametrize(
    "option", [{"sinusoids": "marian"}, {"padding_has_positions": True}, {"output_bias": True}], ids=str
)
def test_what_only_pretrained_models_compute_is_refused(option):
    with pytest.raises(UserError, match=f"fairseq has no Transformer with {next(iter(option))}"):
        options_of_fairseq(CapsuleConfig(**option))


@pytest.mark.filterwarnings("ignore:Glyph")  # not every system has a font of Japanese
def test_a_folder_of_transformers_is_inspected_as_it_is(tmp_path, capsys):
    out = tmp_path / "pages"
    assert main(["inspect", "examples/ja-en", "--text", "母は台所で夕食を作っている。", "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert "note: examples/ja-en: imported as by import-model\n" in printed.err
    assert "not compared" not in printed.err
    assert "PAST" in printed.out and (out / "index.html").is_file()
    assert main(["inspect", "examples/ja-en", "tests/compatibility/data", "--text", "a", "--out", str(out)]) == 1
    assert "examples/ja-en has its own dictionaries; leave out " in capsys.readouterr().err
    assert main(["inspect", "tests/conftest.py", "--text", "a", "--out", str(out)]) == 2
    assert "Missing argument 'DATA'. (see --help)" in capsys.readouterr().err
