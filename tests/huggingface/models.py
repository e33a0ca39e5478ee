"""Exported small models and the batches that they are compared on."""

import fairseq.modules
import fairseq.utils
import torch

from tests.zoo import CASES, OFF, PLAIN, PLAIN_OPTIONS, make_sentences

# Layers that route keep their places when others are pruned, or are pruned too.
PRUNED = {"encoder_layers": 3, "encoder_routing_layers": "3", "decoder_layers": 1}
WITHOUT_MECHANISMS = [(PLAIN, {**OFF[PLAIN][0], **more}) for more in [*PLAIN_OPTIONS, {"activation_fn": "linear"}]]
WITH_MECHANISMS = [case for case in CASES if "transformer" in case[0]]
WITH_MECHANISMS += [("capsule_transformer", {**PRUNED, "encoder_layers_to_keep": kept}) for kept in ("0,2", "0,1")]
TRANSFORMERS = WITHOUT_MECHANISMS + WITH_MECHANISMS
# Options for each kind of cache and of source parts.
ROUTED = [
    ("capsule_transformer", {}),
    ("gdr_transformer_base", {}),
    ("gdr_transformer_base", {"past_future": "attn"}),
    ("gret_transformer_base", {}),
    ("selective_transformer_base", {"selective_attention": "none", "query_key_norm": "decoder"}),
    ("selective_transformer_base", {"encoder_routing": "both", "decoder_routing": "horizontal"}),
    ("capsule_transformer", {"past_future": "gdr", "guided_heads": "both", "global_representation": "capsule"}),
]
SENTENCES = make_sentences([(7, 5), (1, 9), (12, 2), (5, 8)])


def use_the_precision_of_the_model(monkeypatch):
    """fairseq computes its softmax and its GELU in float32, also for a model in float64."""

    def softmax(logits, dim, onnx_trace=False):
        return logits.softmax(dim, dtype=torch.promote_types(logits.dtype, torch.float32))

    monkeypatch.setattr(fairseq.utils, "softmax", softmax)
    monkeypatch.setattr(fairseq.modules, "gelu", torch.nn.functional.gelu)


def inputs_of(batch):
    """Return the inputs of the exported model for a batch of fairseq, and where its targets are no padding."""
    inputs = {
        "input_ids": batch["net_input"]["src_tokens"],
        "decoder_input_ids": batch["net_input"]["prev_output_tokens"],
    }
    return inputs, batch["target"].ne(1)


def step_by_step(model, input_ids, decoder_input_ids):
    """Return the logits of a model that gets one token at a time."""
    encoded, cache, steps = model.encoder(input_ids), None, []
    for tokens in decoder_input_ids.split(1, dim=1):
        output = model(encoder_outputs=encoded, decoder_input_ids=tokens, cache=cache, use_cache=True)
        cache = output.cache
        steps.append(output.logits)
    return torch.cat(steps, dim=1)
