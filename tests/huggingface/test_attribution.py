"""inseq attributes translations to the words of the source by the gradients of the exported model."""

import json
import re
from pathlib import Path

import pytest
import torch

from tests.libraries import library
from tests.zoo import build, make_task

inseq = library("inseq")
from capsule_routing.huggingface import CapsuleTokenizer  # noqa: E402
from fairseq_capsule_lab.export.to_transformers import exported  # noqa: E402
from tests.huggingface.systems import SYSTEMS  # noqa: E402
from tests.huggingface.systems import build as build_exported  # noqa: E402

ROUTED = {"past_future": "gdr", "global_representation": "capsule", "share_all_embeddings": True}
PAGE = Path(__file__).parents[2] / "docs/bridges.md"


def tokenizer_of(folder, source, target):
    (folder / "vocabulary.json").write_text(json.dumps({"source": source, "target": target}), encoding="utf-8")
    side = {"language": "en", "tokenizer": "none"}
    return CapsuleTokenizer(str(folder / "vocabulary.json"), source=side, target=side)


def assert_gradients(attribution, model, tokenizer, texts):
    """Compare inputs times gradients of each word of the target with those of torch."""
    source = tokenizer(texts[0], return_tensors="pt")["input_ids"]
    target = tokenizer(text_target=texts[1], return_tensors="pt")["input_ids"]
    embedded = model.get_input_embeddings()(source).detach().requires_grad_()
    before = torch.cat([target[:, -1:], target[:, :-1]], dim=1)
    probabilities = model(inputs_embeds=embedded, decoder_input_ids=before, use_cache=False).logits.softmax(-1)
    for step, word in enumerate(target[0]):
        (gradient,) = torch.autograd.grad(probabilities[0, step, word], embedded, retain_graph=True)
        expected = (embedded * gradient)[0]
        assert expected.abs().sum(-1).min() > 0
        assert (attribution.source_attributions[:, step] - expected).abs().max() < 1e-6 + 1e-4 * expected.abs().max()


def test_attributions_are_those_of_the_gradients(tmp_path):
    task = make_task()
    copy = exported(build("capsule_transformer", ROUTED, task))
    tokenizer = tokenizer_of(tmp_path, *[task.source_dictionary.symbols] * 2)
    model = inseq.load_model(copy, "input_x_gradient", tokenizer=tokenizer)
    texts = "w1 w2 w3 w4", "w5 w6"
    attribution = model.attribute(*texts, show_progress=False)[0]
    assert [token.token for token in attribution.source] == ["w1", "w2", "w3", "w4", "</s>"]
    assert [token.token for token in attribution.target] == ["</s>", "w5", "w6", "</s>"]
    assert_gradients(attribution, copy, tokenizer, texts)


@pytest.mark.parametrize("system", SYSTEMS)
def test_two_dictionaries_are_read_apart_as_the_page_says(tmp_path, system):
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    words = ([*special, *(f"{side}{number}" for number in range(size))] for side, size in (("s", 30), ("t", 40)))
    tokenizer = tokenizer_of(tmp_path, *words)
    model = build_exported(**SYSTEMS[system], source_vocab_size=34).eval()
    (block,) = re.findall(r"```text\n(encode, embed = .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    attributed = inseq.load_model(model, "input_x_gradient", tokenizer=tokenizer)
    exec(block, {"model": attributed})
    texts = "s1 s2 s3", "t35 t6"
    attribution = attributed.attribute(*texts, show_progress=False)[0]
    assert [token.token for token in attribution.source] == ["s1", "s2", "s3", "</s>"]
    assert [token.token for token in attribution.target] == ["</s>", "t35", "t6", "</s>"]
    assert_gradients(attribution, model, tokenizer, texts)
