"""What holds for every architecture: padding, decoding step by step, gradients, half precision, all options off.

A new architecture joins by being registered (tests/zoo.py). Exact resume is in tests/integration.
"""

from argparse import Namespace

import pytest
import torch
from fairseq.models import build_model
from fairseq.sequence_generator import SequenceGenerator

from tests.zoo import (
    CASES,
    LENGTHS,
    LSTMS,
    OFF,
    SMALL,
    build,
    case_name,
    encode,
    logits_of,
    make_batch,
    make_criterion,
    make_sentences,
    make_task,
)

every_case = pytest.mark.parametrize("arch, options", CASES, ids=case_name)


def by_id(batch, tensor):
    """Rows of a batch in the order of its sentences' ids, since fairseq sorts a batch by length."""
    return {int(identity): row for identity, row in zip(batch["id"], tensor)}


@every_case
@pytest.mark.parametrize("left_pad_source", [True, False])
def test_padding_changes_nothing(arch, options, left_pad_source):
    model = build(arch, {**options, "dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0})
    sentences = make_sentences(LENGTHS)
    criterion = make_criterion(model, make_task())
    # fairseq's LSTM encoder takes no column that is padding in every sentence.
    batch = make_batch(sentences, left_pad_source, pad_to=0 if arch in LSTMS else 16)
    together = by_id(batch, logits_of(model, batch))
    encoded_together, mask = (by_id(batch, part) for part in encode(model, batch))
    losses = []
    for sentence in sentences:
        alone = make_batch([sentence])
        identity, length = sentence["id"], len(sentence["target"])
        torch.testing.assert_close(together[identity][:length], logits_of(model, alone)[0], rtol=1e-5, atol=1e-5)
        encoded_alone = encode(model, alone)[0][0]
        torch.testing.assert_close(encoded_together[identity][~mask[identity]], encoded_alone, rtol=1e-5, atol=1e-5)
        losses.append(criterion(model, alone)[0])
    torch.testing.assert_close(criterion(model, batch)[0], sum(losses), rtol=1e-5, atol=1e-5)


@every_case
def test_translations_do_not_depend_on_the_batch(arch, options):
    task = make_task()
    model = build(arch, options, task)
    generator = SequenceGenerator([model], task.target_dictionary, beam_size=3, max_len_b=12)
    sentences = make_sentences(LENGTHS)
    batch = make_batch(sentences)
    together = by_id(batch, generator.generate([model], batch))
    for sentence in sentences:
        alone = generator.generate([model], make_batch([sentence]))[0]
        for got, want in zip(together[sentence["id"]], alone):
            assert got["tokens"].tolist() == want["tokens"].tolist()
            torch.testing.assert_close(got["score"], want["score"], rtol=1e-4, atol=1e-5)


@every_case
@pytest.mark.parametrize("hint", [1, 2, 3], ids=lambda hint: f"beam {hint}")
def test_step_by_step_equals_at_once(arch, options, hint):
    """Under reorderings within each sentence's beams, and when a finished sentence is dropped half way; whether the
    model was told the beam size, not told, or told another."""
    model = build(arch, options)
    beam, steps = 3, 9
    if hasattr(model, "set_beam_size"):
        model.set_beam_size(hint)
    batch = make_batch(make_sentences([(7, steps), (4, steps), (10, steps)]))
    source = batch["net_input"]["src_tokens"], batch["net_input"]["src_lengths"]
    torch.manual_seed(1)
    with torch.no_grad():
        encoder_out = model.encoder(*source)
        order = torch.arange(3).repeat_interleave(beam)
        encoder_out = model.encoder.reorder_encoder_out(encoder_out, order)
        tokens = torch.randint(4, 40, (len(order), steps + 1))
        tokens[:, 0] = 2
        state, kept = {}, torch.arange(3)
        for step in range(steps):
            if step:
                within = torch.randint(beam, (len(kept), beam))
                new_order = (torch.arange(len(kept))[:, None] * beam + within).flatten()
                if step == 5:  # the sentence in the middle is finished
                    new_order = new_order.view(len(kept), beam)[[0, 2]].flatten()
                    kept = kept[[0, 2]]
                    encoder_out = model.encoder.reorder_encoder_out(encoder_out, new_order)
                tokens = tokens[new_order]
                tokens[:, step] = torch.randint(4, 40, (len(tokens),))
                model.decoder.reorder_incremental_state_scripting(state, new_order)
            logits = model.decoder(tokens[:, : step + 1], encoder_out=encoder_out, incremental_state=state)[0]
            expected = model.decoder(tokens[:, : step + 1], encoder_out=encoder_out)[0]
            torch.testing.assert_close(logits[:, -1], expected[:, -1], rtol=1e-5, atol=1e-5)
    assert len(kept) == 2


def train_step(model, criterion, batch):
    model.zero_grad()
    loss, sample_size, _ = criterion(model, batch)
    (loss / sample_size).backward()
    return loss


@every_case
def test_every_parameter_has_a_gradient(arch, options):
    """One that is not None, and after an update of all parameters not zero."""
    task = make_task()
    model = build(arch, options, task).train()
    criterion = make_criterion(model, task)
    batch = make_batch(make_sentences(LENGTHS))
    train_step(model, criterion, batch)
    missing = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert not missing
    torch.optim.Adam(model.parameters(), lr=1e-2).step()
    train_step(model, criterion, batch)
    zero = [name for name, parameter in model.named_parameters() if not parameter.grad.any()]
    assert not [name for name in zero if not name.endswith("k_proj.bias")]  # softmax does not see a key's bias
    for name in zero:
        assert "routing" not in name


@every_case
@pytest.mark.parametrize("precision", ["float16", "bfloat16", "autocast"])
def test_half_precision_steps_are_finite(arch, options, precision):
    task = make_task()
    model = build(arch, options, task).train()
    criterion = make_criterion(model, task)
    batch = make_batch(make_sentences(LENGTHS))
    if precision == "autocast":
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = train_step(model, criterion, batch)
    else:
        model.to(getattr(torch, precision))
        loss = train_step(model, criterion, batch)
    assert torch.isfinite(loss)
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


@pytest.mark.parametrize("arch", OFF)
@pytest.mark.parametrize("normalize_before", [False, True])
def test_with_everything_off_it_is_fairseqs_own_model(arch, normalize_before):
    task = make_task()
    options = dict(encoder_normalize_before=normalize_before, decoder_normalize_before=normalize_before)
    without, plain_arch = OFF[arch]
    off = build(arch, {**options, **without}, task)
    plain_options = off.cfg.lstm_options() if plain_arch == "lstm" else Namespace(**SMALL, **options)
    plain_options.arch = plain_arch
    plain = build_model(plain_options, task).eval()
    plain.load_state_dict(off.state_dict())
    batch = make_batch(make_sentences(LENGTHS))
    assert torch.equal(logits_of(off, batch), logits_of(plain, batch))
    for model in (off, plain):
        train_step(model.train(), make_criterion(model, task), batch)
    assert [name for name, _ in off.named_parameters()] == [name for name, _ in plain.named_parameters()]
    for got, want in zip(off.parameters(), plain.parameters()):
        assert torch.equal(got.grad, want.grad)
