"""inseq attributes translations to the words of the source by the gradients of the exported model."""

import json

import torch

from tests.libraries import library
from tests.zoo import build, make_task

inseq = library("inseq")
from capsule_routing.huggingface import CapsuleTokenizer  # noqa: E402
from fairseq_capsule_lab.export.to_transformers import exported  # noqa: E402

ROUTED = {"past_future": "gdr", "global_representation": "capsule", "share_all_embeddings": True}


def test_attributions_are_those_of_the_gradients(tmp_path):
    task = make_task()
    copy = exported(build("capsule_transformer", ROUTED, task))
    words = json.dumps(dict.fromkeys(("source", "target"), task.source_dictionary.symbols))
    (tmp_path / "vocabulary.json").write_text(words, encoding="utf-8")
    side = {"language": "en", "tokenizer": "none"}
    tokenizer = CapsuleTokenizer(str(tmp_path / "vocabulary.json"), source=side, target=side)

    model = inseq.load_model(copy, "input_x_gradient", tokenizer=tokenizer)
    attribution = model.attribute("w1 w2 w3 w4", "w5 w6", show_progress=False)[0]
    assert [token.token for token in attribution.source] == ["w1", "w2", "w3", "w4", "</s>"]
    assert [token.token for token in attribution.target] == ["</s>", "w5", "w6", "</s>"]

    source, target = (tokenizer(text, return_tensors="pt")["input_ids"] for text in ("w1 w2 w3 w4", "w5 w6"))
    embedded = copy.get_input_embeddings()(source).detach().requires_grad_()
    before = torch.cat([target[:, -1:], target[:, :-1]], dim=1)
    probabilities = copy(inputs_embeds=embedded, decoder_input_ids=before, use_cache=False).logits.softmax(-1)
    for step, word in enumerate(target[0]):
        (gradient,) = torch.autograd.grad(probabilities[0, step, word], embedded, retain_graph=True)
        expected = (embedded * gradient)[0]
        assert expected.abs().sum(-1).min() > 0
        assert (attribution.source_attributions[:, step] - expected).abs().max() < 1e-6 + 1e-4 * expected.abs().max()
