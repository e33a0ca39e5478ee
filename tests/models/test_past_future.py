"""PAST and FUTURE in a model: parameters, options, and the cache of decoding."""

from functools import partial

import pytest
import torch

from tests.zoo import LENGTHS, build, count_parameters, make_batch, make_sentences


def test_the_base_preset_has_the_expected_parameters():
    """d = 512, d_c = 256, J = 6, inner size 1,024."""
    parameters = partial(count_parameters, "gdr_transformer_base")
    routed = parameters(guided_heads="none") - parameters(past_future="none", guided_heads="none")
    votes, agreement = 6 * 512 * 256, 256 * (512 + 2 * 256) + 256
    feed_forward = (512 + 4 * 256) * 1024 + 1024 + 1024 * 512 + 512
    assert routed == votes + agreement + feed_forward == 3_147_520
    whole = parameters()
    for head in ("bow", "bca"):
        assert parameters(guided_heads=head) == whole - 2 * 512 * 512
    assert whole - parameters(redundant_capsules=0) == 2 * 512 * 256
    assert whole - parameters(past_future_iterations=1) == agreement


def test_sizes_follow_the_decoders_output():
    part = build("gdr_transformer_base", {"decoder_output_dim": 20}).decoder.past_future
    assert part.routing.vote_weight.shape == (6, 32, 10) and part.feed_forward[0].out_features == 40
    part = build("gdr_lstm", {"encoder_hidden_size": 12}).decoder.past_future
    assert part.routing.vote_weight.shape == (6, 24, 16)  # a source word has the outputs of both directions


@pytest.mark.parametrize("arch", ["gdr_transformer_base", "gdr_lstm"])
@pytest.mark.parametrize("hint, rows", [(3, 4), (2, 12)])
def test_the_source_is_prepared_once_for_each_sentence(arch, hint, rows, monkeypatch):
    """With the correct beam size, the copies of a generator are not projected. A wrong beam size changes no result."""
    model = build(arch)
    routing, projected = model.decoder.past_future.routing, []
    project = routing.project
    monkeypatch.setattr(routing, "project", lambda source, mask: projected.append(len(source)) or project(source, mask))
    model.set_beam_size(hint)
    batch = make_batch(make_sentences(LENGTHS))["net_input"]
    with torch.no_grad():
        encoder_out = model.encoder(batch["src_tokens"], batch["src_lengths"])
        encoder_out = model.encoder.reorder_encoder_out(encoder_out, torch.arange(4).repeat_interleave(3))
        tokens, state = torch.full((12, 1), 2), {}
        for _ in range(4):
            model.decoder(tokens, encoder_out=encoder_out, incremental_state=state)
            tokens = torch.cat([tokens, torch.randint(4, 40, (12, 1))], dim=1)
    assert projected == [rows]


def test_the_outputs_of_a_step_have_a_row_for_each_hypothesis():
    model = build("gdr_transformer_base")
    model.set_beam_size(3)
    with torch.no_grad():
        encoded = model.encoder(torch.tensor([[4, 5, 2], [6, 7, 2]]), torch.tensor([3, 3]))
        encoded = model.encoder.reorder_encoder_out(encoded, torch.arange(2).repeat_interleave(3))
        tokens = torch.tensor([[2], [4], [5], [6], [7], [8]])
        _, extra = model.decoder(tokens, encoder_out=encoded, incremental_state={})
        _, expected = model.decoder(tokens, encoder_out=encoded)
    for name in ("state", "past", "future", "coupling"):
        torch.testing.assert_close(getattr(extra["past_future"], name), getattr(expected["past_future"], name))


@pytest.mark.parametrize("arch", ["gdr_transformer_base", "gdr_lstm"])
def test_copies_of_a_sentence_are_not_treated_as_beams(arch):
    """The model samples after a beam search and still has its beam size. The copies end one by one."""
    model = build(arch)
    model.set_beam_size(3)
    batch = make_batch(make_sentences([(7, 5), (4, 5)]))["net_input"]
    order = torch.arange(2).repeat_interleave(3)
    kept = torch.tensor([1, 3, 4, 5])  # three rows have ended
    with torch.no_grad():
        encoder_out = model.encoder(batch["src_tokens"], batch["src_lengths"])
        encoder_out = model.encoder.reorder_encoder_out(encoder_out, order)
        tokens, state = torch.randint(4, 40, (6, 3)), {}
        for step in (1, 2):
            model.decoder(tokens[:, :step], encoder_out=encoder_out, incremental_state=state)
        model.decoder.reorder_incremental_state_scripting(state, kept)
        encoder_out = model.encoder.reorder_encoder_out(encoder_out, kept)
        stepwise = model.decoder(tokens[kept], encoder_out=encoder_out, incremental_state=state)[0]
        expected = model.decoder(tokens[kept], encoder_out=encoder_out)[0]
    torch.testing.assert_close(stepwise[:, -1], expected[:, -1], rtol=1e-5, atol=1e-5)
