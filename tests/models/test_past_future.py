"""PAST and FUTURE in a model: parameters, options, and the cache of decoding."""

from argparse import Namespace

import pytest
import torch
from fairseq.models import build_model

from capsule_routing.errors import UserError
from fairseq_capsule.mechanisms import Source, Target
from tests.zoo import LENGTHS, build, make_batch, make_sentences, make_task


def parameters(arch, **options):
    with torch.device("meta"):
        model = build_model(Namespace(arch=arch, **options), make_task())
    return sum(parameter.numel() for parameter in model.parameters())


def test_the_base_preset_has_the_expected_parameters():
    """d = 512, d_c = 256, J = 6, inner size 1,024."""
    off = dict(past_future="none", guided_heads="none")
    routed = parameters("gdr_transformer_base", guided_heads="none") - parameters("gdr_transformer_base", **off)
    votes, agreement = 6 * 512 * 256, 256 * (512 + 2 * 256) + 256
    feed_forward = (512 + 4 * 256) * 1024 + 1024 + 1024 * 512 + 512
    assert routed == votes + agreement + feed_forward == 3_147_520
    whole = parameters("gdr_transformer_base")
    for head in ("bow", "bca"):
        assert parameters("gdr_transformer_base", guided_heads=head) == whole - 2 * 512 * 512
    assert whole - parameters("gdr_transformer_base", redundant_capsules=0) == 2 * 512 * 256
    one_iteration = parameters("gdr_transformer_base", past_future_iterations=1)
    assert whole - one_iteration == agreement


def test_sizes_follow_the_decoders_output():
    part = build("gdr_transformer_base", {"decoder_output_dim": 20}).decoder.past_future
    assert part.routing.vote_weight.shape == (6, 32, 10) and part.feed_forward[0].out_features == 40
    part = build("gdr_lstm", {"encoder_hidden_size": 12}).decoder.past_future
    assert part.routing.vote_weight.shape == (6, 24, 16)  # a source word has the outputs of both directions


@pytest.mark.parametrize("arch", ["gdr_transformer_base", "gdr_lstm"])
@pytest.mark.parametrize(
    "options, message",
    [
        ({"past_future_capsules": 0}, "--past-future-capsules must be at least 1, not 0"),
        ({"redundant_capsules": -1}, "--redundant-capsules must be at least 0, not -1"),
        ({"past_future_capsule_dim": 0}, "--past-future-capsule-dim must be at least 1, not 0"),
        ({"past_future_iterations": 0}, "--past-future-iterations must be at least 1, not 0"),
        ({"past_future_ffn_dim": 0}, "--past-future-ffn-dim must be at least 1, not 0"),
        ({"past_future": "none"}, "--guided-heads both needs --past-future gdr, clf or attn"),
        ({"past_future": "lstm"}, "--past-future must be one of gdr, clf, attn, none, not lstm"),
        ({"guided_heads": "all"}, "--guided-heads must be one of none, bow, bca, both, not all"),
    ],
)
def test_wrong_options_are_named(arch, options, message):
    with pytest.raises(UserError, match=message):
        build(arch, options)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"encoder_directions": 3}, "--encoder-directions must be 1 or 2, not 3"),
        ({"encoder_layers": 2, "decoder_layers": 1}, "--encoder-layers must match --decoder-layers"),
        ({"decoder_layers": 0}, "--decoder-layers must be at least 1, not 0"),
    ],
)
def test_wrong_options_of_the_lstm_are_named(options, message):
    with pytest.raises(UserError, match=message):
        build("gdr_lstm", options)


@pytest.mark.parametrize("heads", ["bow", "bca", "both"])
def test_guided_losses_refuse_an_adaptive_softmax(heads):
    with pytest.raises(UserError, match="--adaptive-softmax-cutoff does not work with guided losses"):
        build("gdr_transformer_base", {"adaptive_softmax_cutoff": [10, 20], "guided_heads": heads})


@pytest.mark.parametrize("arch", ["gdr_transformer_base", "gdr_lstm"])
@pytest.mark.parametrize("hint, rows", [(1, 12), (3, 4), (5, 12)])
def test_the_source_is_prepared_once_for_each_sentence(arch, hint, rows, monkeypatch):
    """With the correct beam size, the copies of a generator are not prepared. A wrong beam size changes no result."""
    model = build(arch)
    routing, prepared = model.decoder.past_future.routing, []
    prepare = routing.prepare
    monkeypatch.setattr(routing, "prepare", lambda source, mask: prepared.append(len(source)) or prepare(source, mask))
    model.set_beam_size(hint)
    batch = make_batch(make_sentences(LENGTHS))["net_input"]
    with torch.no_grad():
        encoder_out = model.encoder(batch["src_tokens"], batch["src_lengths"])
        encoder_out = model.encoder.reorder_encoder_out(encoder_out, torch.arange(4).repeat_interleave(3))
        tokens, state = torch.full((12, 1), 2), {}
        for _ in range(4):
            model.decoder(tokens, encoder_out=encoder_out, incremental_state=state)
            tokens = torch.cat([tokens, torch.randint(4, 40, (12, 1))], dim=1)
    assert prepared == [rows]


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


def test_kept_votes_stay_contiguous_for_sums():
    """After finished sentences are dropped, the votes of a capsule are still contiguous in memory."""
    decoder = build("gdr_transformer_base").decoder
    decoder.beam_size = 3
    states = torch.randn(7, 4, 32).repeat_interleave(3, 1).transpose(0, 1)
    source, state = Source(states, torch.zeros(12, 7, dtype=torch.bool)), {}
    with torch.no_grad():
        decoder.run_parts(Target(torch.randn(12, 1, 32), incremental_state=state), source)
        before = decoder.get_incremental_state(state, "prepared").of_parts["past_future"].values
        decoder.reorder_incremental_state(state, torch.arange(3, 9))
    after = decoder.get_incremental_state(state, "prepared").of_parts["past_future"].values
    assert torch.equal(after, before[1:3]) and after.transpose(1, 2).is_contiguous()


def test_no_state_is_kept_between_calls():
    model = build("gdr_transformer_base")
    before = set(model.decoder.past_future.__dict__)
    model(**make_batch(make_sentences(LENGTHS))["net_input"])
    assert set(model.decoder.past_future.__dict__) == before
