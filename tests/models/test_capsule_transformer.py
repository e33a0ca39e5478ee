"""The options and parameters of the capsule-Transformer, its attention, and its decoding."""

import pytest
import torch
from fairseq.data.language_pair_dataset import collate

from capsule_routing.errors import UserError
from capsule_routing.modules import AttentionRouting
from fairseq_capsule.models.attention import SplitAttention
from fairseq_capsule.models.beams import SENTENCES
from tests.references import duan2020
from tests.zoo import LENGTHS, build, count_parameters, make_batch, make_criterion, make_sentences, make_task


@pytest.mark.parametrize("size, added", [("base", 432), ("big", 1632), ("tiny", 80)])
def test_routing_adds_the_parameters_of_the_paper(size, added):
    """6·(8·8+8) at Base and 6·(16·16+16) at Big, which is the 1.6K of the paper."""
    routed = count_parameters(f"capsule_transformer_{size}")
    assert routed - count_parameters(f"gdr_transformer_{size}", past_future="none", guided_heads="none") == added


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_the_attention_of_a_layer_equals_the_loops(stack):
    """Eq. 1-14 from the states of a sentence; in the decoder without vertical routing, under the forward mask."""
    attention = getattr(build("capsule_transformer"), stack).layers[0].self_attn.double()
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    states = torch.randn(6, attention.embed_dim, dtype=torch.float64, requires_grad=True)
    masked = stack == "decoder"
    mask = torch.full((6, 6), float("-inf")).triu(1) if masked else None
    got = attention(states.unsqueeze(1), need_weights=False, attn_mask=mask)[0].squeeze(1)

    projections = attention.q_proj, attention.k_proj, attention.v_proj
    queries, keys, values = (
        [head.unbind(0) for head in projection(states).chunk(attention.num_heads, dim=1)]  # Eq. 1
        for projection in projections
    )
    vectors = duan2020.attention_vectors(queries, keys, masked)
    acceptance = attention.routing.acceptance
    parameters = (None, None) if masked else (acceptance.weight, acceptance.bias)
    routed = duan2020.routed_vectors(vectors, attention.routing.iterations, *parameters)
    want = attention.out_proj(torch.stack(duan2020.attention(routed, values, masked)))
    torch.testing.assert_close(got, want, rtol=0, atol=1e-6)  # fairseq's softmax is in float32


def routed_layers(stack):
    layers = [stack.layers[index] for index in range(len(stack.layers))]
    return [number for number, layer in enumerate(layers, 1) if isinstance(layer.self_attn, SplitAttention)]


def test_the_chosen_layers_route():
    model = build("capsule_transformer", {"encoder_layers": 6, "decoder_layers": 3, "encoder_routing_layers": "1,4-5"})
    assert routed_layers(model.encoder) == [1, 4, 5]
    assert routed_layers(model.decoder) == [1, 2, 3]
    for seed in range(3):  # layer dropout must not drop them while the model is built
        model = build("capsule_transformer", {"encoder_layerdrop": 0.5, "decoder_layerdrop": 0.5}, seed=seed)
        assert routed_layers(model.encoder) == routed_layers(model.decoder) == [1, 2]
    model = build("capsule_transformer", {"encoder_routing": "none", "decoder_routing": "none"})
    assert routed_layers(model.encoder) == routed_layers(model.decoder) == []


@pytest.mark.parametrize(
    "parts, routed", [("both", (True, True)), ("vertical", (True, False)), ("horizontal", (False, True))]
)
def test_the_encoder_has_the_named_parts_of_routing(parts, routed):
    routing = build("capsule_transformer", {"encoder_routing": parts}).encoder.layers[0].self_attn.routing
    assert (routing.acceptance is not None, routing.horizontal) == routed


def test_a_checkpoint_of_another_dictionary_is_named():
    state = build("gdr_lstm", task=make_task(50)).state_dict()
    with pytest.raises(UserError, match="source dictionary has 54 entries, but the data's has 44"):
        build("gdr_lstm").load_state_dict(state)


@pytest.mark.parametrize("hint, rows", [(3, 4), (2, 12)])
def test_the_source_is_projected_once_for_each_sentence(hint, rows):
    """Keys and values of the source are computed once and cached as in fairseq, for every beam."""
    model, projected = build("capsule_transformer"), []
    batch = make_batch(make_sentences(LENGTHS))["net_input"]
    with torch.no_grad():
        encoder_out = model.encoder(batch["src_tokens"], batch["src_lengths"])
        encoder_out = model.encoder.reorder_encoder_out(encoder_out, torch.arange(4).repeat_interleave(3))
        as_fairseq, state = {}, {}
        model.decoder(torch.full((12, 1), 2), encoder_out=encoder_out, incremental_state=as_fairseq)
        for layer in model.decoder.layers:
            for projection in (layer.encoder_attn.k_proj, layer.encoder_attn.v_proj):
                projection.register_forward_hook(lambda _, inputs, __: projected.append(inputs[0].size(1)))
        model.set_beam_size(hint)
        for step in (1, 2):
            model.decoder(torch.full((12, step), 2), encoder_out=encoder_out, incremental_state=state)
    assert projected == [rows] * 4
    for layer in model.decoder.layers:
        kept = layer.encoder_attn._get_input_buffer(state)
        expected = layer.encoder_attn._get_input_buffer(as_fairseq)
        assert kept.keys() == expected.keys()
        for name, part in expected.items():
            torch.testing.assert_close(kept[name].to(part), part, rtol=1e-5, atol=1e-6)


def test_the_encoder_s_output_is_copied_only_if_a_sentence_moves():
    model = build("gret_transformer_base")
    batch = make_batch(make_sentences(LENGTHS))["net_input"]
    encoded = model.encoder(batch["src_tokens"], batch["src_lengths"])
    one_each, beams = torch.arange(4), torch.arange(4).repeat_interleave(3)
    assert model.encoder.reorder_encoder_out(encoded, one_each) is encoded
    expanded = model.encoder.reorder_encoder_out(encoded, beams)
    within = torch.arange(12).view(4, 3).flip(1).flatten()
    assert model.encoder.reorder_encoder_out(expanded, within) is expanded
    rows, moved = torch.arange(12), expanded
    for order in (torch.arange(12).roll(1), within, torch.tensor([3, 4, 5, 9, 10, 11]), torch.tensor([1, 0, 2, 5])):
        moved, rows = model.encoder.reorder_encoder_out(moved, order), rows[order]
        assert torch.equal(moved["encoder_out"][0], expanded["encoder_out"][0][:, rows])
        for name in ("encoder_padding_mask", "global_representation"):
            assert torch.equal(moved[name][0], expanded[name][0][rows])


@pytest.mark.parametrize("order", [[2, 0, 1, 5, 3, 4], [1, 0]])
@pytest.mark.parametrize("name", ["encoder_out", "global_representation"])
def test_an_encoder_s_output_that_the_caller_changed_is_reordered(name, order):
    """The rows of a sentence need not be equal any longer, and their number may be another."""
    model = build("gret_transformer_base")
    batch = make_batch(make_sentences(LENGTHS[:2]))["net_input"]
    encoded = model.encoder(batch["src_tokens"], batch["src_lengths"])
    expanded = model.encoder.reorder_encoder_out(encoded, torch.arange(2).repeat_interleave(3))
    edited = dict(expanded)
    if len(order) < 6:
        for part in expanded.keys() - {SENTENCES}:
            edited[part] = [tensor.narrow(int(part == "encoder_out"), 0, len(order)) for tensor in expanded[part]]
    dim, order = int(name == "encoder_out"), torch.tensor(order)
    values = torch.arange(edited[name][0].numel()).view_as(edited[name][0])
    edited[name] = [values]
    for _ in range(2):
        edited, values = model.encoder.reorder_encoder_out(edited, order), values.index_select(dim, order)
        assert torch.equal(edited[name][0], values)


def test_any_layer_can_give_the_alignment():
    """The attention of other layers is not computed."""
    model = build("capsule_transformer")
    batch = make_batch(make_sentences(LENGTHS))["net_input"]
    with torch.no_grad():
        encoder_out = model.encoder(batch["src_tokens"], batch["src_lengths"])
        for layer in range(2):
            used = []
            hooks = [
                each.encoder_attn.register_forward_hook(lambda _, __, output: used.append(output[1]))
                for each in model.decoder.layers
            ]
            _, extra = model.decoder(batch["prev_output_tokens"], encoder_out=encoder_out, alignment_layer=layer)
            for hook in hooks:
                hook.remove()
            assert [weights is not None for weights in used] == [index == layer for index in range(2)]
            torch.testing.assert_close(extra["attn"][0], used[layer].mean(0))


def test_packed_projections_equal_separate_ones():
    """In training, queries, keys and values are one product. A projection with a hook is called as a module."""
    torch.manual_seed(1)
    attention = SplitAttention(12, 3).double()
    attention.attach("attention_routing", "logits", AttentionRouting(3).double())
    x = torch.randn(5, 2, 12, dtype=torch.float64, requires_grad=True)
    called = []
    found = []
    for hooked in (False, True):
        if hooked:
            for projection in (attention.q_proj, attention.k_proj, attention.v_proj):
                projection.register_forward_pre_hook(lambda module, _: called.append(module))
        output = attention(x, need_weights=False)[0]
        found.append([output, *torch.autograd.grad(output.square().sum(), [x, *attention.parameters()])])
        assert len(called) == 3 * hooked
    for packed, apart in zip(*found, strict=True):
        torch.testing.assert_close(packed, apart, rtol=0, atol=1e-12)


def test_a_target_may_be_padded_on_the_left():
    mechanisms = {"past_future": "gdr", "guided_heads": "both", "global_representation": "capsule"}
    model = build("capsule_transformer", mechanisms).train()
    samples = make_sentences(LENGTHS)
    losses, gradients = [], []
    for left in (True, False):
        batch = collate(samples, pad_idx=1, eos_idx=2, left_pad_source=True, left_pad_target=left)
        model.zero_grad()
        loss = make_criterion(model, make_task())(model, batch)[0]
        loss.backward()
        losses.append(loss)
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in model.parameters()]))
    torch.testing.assert_close(*losses)
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-4)


def test_decoding_in_half_precision_equals_one_pass():
    dtype = torch.float16
    model = build("capsule_transformer", {"decoder_layers": 1}).to(dtype)
    batch = make_batch(make_sentences([(7, 5)]))
    tokens = torch.randint(4, 40, (1, 60), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        encoder_out = model.encoder(batch["net_input"]["src_tokens"], batch["net_input"]["src_lengths"])
        whole = model.decoder(tokens, encoder_out=encoder_out)[0]
        state = {}
        for step in range(tokens.size(1)):
            logits = model.decoder(tokens[:, : step + 1], encoder_out=encoder_out, incremental_state=state)[0]
            assert logits.dtype == dtype
            difference = (logits[:, -1] - whole[:, step]).float().abs().max()
            assert difference <= 8 * torch.finfo(dtype).eps * whole.float().abs().max()


@pytest.mark.parametrize("arch", ["capsule_transformer_tiny", "gdr_transformer_tiny", "gdr_lstm"])
def test_an_option_compiles_the_routing(arch):
    routings = [module for module in build(arch, {"compile_routing": True}).modules() if hasattr(module, "compiled")]
    assert routings and all(routing.compiled for routing in routings)
