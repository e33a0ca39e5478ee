"""Every architecture of the package is exported, or refused with a reason. tests/huggingface compares the logits."""

from types import SimpleNamespace

import pytest
import torch

from tests.huggingface.models import TRANSFORMERS
from tests.libraries import library
from tests.zoo import CASES, OFF, PLAIN, SYSTEMS, build, case_name, make_task

library("transformers")
from capsule_routing.huggingface import CapsuleTokenizer  # noqa: E402
from capsule_routing.text.preparation import TextPreparation  # noqa: E402
from fairseq_capsule_lab.export.to_transformers import configuration, exported, refusal, tokenizer  # noqa: E402

OTHERS = [case for case in CASES if case not in TRANSFORMERS]


def test_every_architecture_is_in_one_of_the_tests():
    assert {arch for arch, _ in [*TRANSFORMERS, *OTHERS]} >= set(SYSTEMS)


@pytest.mark.parametrize("arch, options", OTHERS, ids=case_name)
def test_what_is_no_transformer_is_refused_by_name(arch, options):
    model = build(arch, options)
    assert refusal(model) == f"it is a {type(model).__name__}, not a Transformer"


@pytest.mark.parametrize("options", [{}, {"share_all_embeddings": True}], ids=case_name)
def test_a_transformer_of_fairseq_is_exported_too(options):
    from argparse import Namespace

    from fairseq.models import build_model
    from fairseq.models.transformer import transformer_legacy

    names = Namespace(arch="transformer", encoder_embed_dim=32, encoder_layers=2, decoder_layers=2, **options)
    transformer_legacy.base_architecture(names)
    model = build_model(names, make_task()).eval()
    assert refusal(model) is None
    config = configuration(model)
    assert (config.encoder_routing, config.past_future, config.global_representation) == ("none",) * 3
    tokens = torch.tensor([[5, 6, 7, 2]])
    with torch.no_grad():
        expected = model(tokens, None, tokens)[0]
        assert (exported(model)(tokens, decoder_input_ids=tokens).logits - expected).abs().max() < 1e-4


def test_a_mechanism_of_another_package_is_refused_by_name():
    model = build("gdr_transformer_base")
    model.decoder.mechanism_parts["past_future"] = "mine"
    with pytest.MonkeyPatch.context() as patch:
        other = SimpleNamespace(name="mine")
        patch.setattr("fairseq_capsule_lab.export.transformer.mechanisms", lambda: (other,))
        assert refusal(model) == "it contains mine, a mechanism of another package"


def test_a_word_that_the_preparation_protects_stays_whole(tmp_path):
    """So it does at fairseq's doors (tests/data/test_prepared.py)."""
    task = make_task()
    task.source_dictionary.add_symbol("<BT>")
    (tmp_path / "merges").write_text("#version: 0.2\nB T</w>\n", encoding="utf-8")
    options = {"subwords": "subword-nmt", "codes": str(tmp_path / "merges"), "protected": "<BT>"}
    sides = tuple(TextPreparation(language, "moses", **options) for language in ("en", "de"))
    tokenizer(task, sides, tmp_path).save_pretrained(tmp_path / "saved")
    loaded = CapsuleTokenizer.from_pretrained(tmp_path / "saved")
    assert loaded.tokenize("<BT> BT") == ["<BT>", "BT"]
    assert loaded("<BT>").input_ids == [task.source_dictionary.index("<BT>"), task.source_dictionary.eos()]


def test_the_search_is_that_of_fairseq_generate():
    options = exported(build(PLAIN, OFF[PLAIN][0])).generation_config
    assert (options.num_beams, options.max_length, options.early_stopping) == (5, 202, True)
