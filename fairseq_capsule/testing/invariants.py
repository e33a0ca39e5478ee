"""Invariants of each architecture: padding, incremental decoding, gradients, half precision, all options off.

Others stand in `effects`, `inspection` and `resuming`.
"""

from argparse import Namespace
from typing import Any, Dict, Mapping

import torch
from fairseq.criterions import FairseqCriterion
from fairseq.models import BaseFairseqModel, build_model
from fairseq.models.lstm import LSTMModel
from fairseq.models.transformer import TransformerModelBase
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from fairseq_capsule.mechanisms.base import options_off
from fairseq_capsule.testing import small_models as small
from fairseq_capsule.testing.small_models import PRESET, Options, build_small

WITHOUT_DROPOUT = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}


def check_padding(arch: str, options: Options = PRESET) -> None:
    """Check that encoder output, logits and losses of a sentence are the same alone and in a padded batch.

    The source is padded on the left and on the right in turn.
    """
    names = small.config_of(arch).__dataclass_fields__
    without = {name: value for name, value in WITHOUT_DROPOUT.items() if name in names}
    model = build_small(arch, {**options, **without})
    sentences = small.make_sentences(small.LENGTHS)
    criterion = small.make_criterion(model, small.make_task())
    # fairseq's LSTM encoder does not accept a column that is padding in every sentence.
    pad_to = 0 if isinstance(model, LSTMModel) else 16
    for left_pad_source in (True, False):
        batch = small.make_batch(sentences, left_pad_source, pad_to)
        together = _by_id(batch, small.logits_of(model, batch))
        encoded_together, mask = (_by_id(batch, part) for part in small.encode(model, batch))
        losses = []
        for sentence in sentences:
            alone = small.make_batch([sentence])
            identity, length = sentence["id"], len(sentence["target"])
            _assert_close(together[identity][:length], small.logits_of(model, alone)[0])
            _assert_close(encoded_together[identity][~mask[identity]], small.encode(model, alone)[0][0])
            losses.append(criterion(model, alone)[0])
        _assert_close(criterion(model, batch)[0], sum(losses))


def check_translations(arch: str, options: Options = PRESET) -> None:
    """Check that the translation of a sentence does not depend on its batch."""
    task = small.make_task()
    model = build_small(arch, options, task)
    generator = SequenceGenerator([model], task.target_dictionary, beam_size=3, max_len_b=12)
    sentences = small.make_sentences(small.LENGTHS)
    batch = small.make_batch(sentences)
    together = _by_id(batch, generator.generate([model], batch))
    for sentence in sentences:
        alone = generator.generate([model], small.make_batch([sentence]))[0]
        for got, expected in zip(together[sentence["id"]], alone):
            assert got["tokens"].tolist() == expected["tokens"].tolist()
            torch.testing.assert_close(got["score"], expected["score"], rtol=1e-4, atol=1e-5)


def check_scores(arch: str, options: Options = PRESET) -> None:
    """Check that the scores of a generator are the log-probabilities of its hypotheses in one pass over them."""
    task = small.make_task()
    model = build_small(arch, options, task)
    generator = SequenceGenerator([model], task.target_dictionary, beam_size=3, max_len_b=12, normalize_scores=False)
    for sentence in small.make_sentences(small.LENGTHS):
        batch = small.make_batch([sentence])
        source, length = batch["net_input"]["src_tokens"], batch["net_input"]["src_lengths"]
        (hypotheses,) = generator.generate([model], batch)
        for hypothesis in hypotheses:
            target = hypothesis["tokens"].unsqueeze(0)
            previous = torch.cat([target[:, -1:], target[:, :-1]], 1)
            with torch.no_grad():
                logits = model(source, length, previous)[0]
            scores = logits.log_softmax(-1).gather(2, target.unsqueeze(2)).flatten()
            torch.testing.assert_close(hypothesis["positional_scores"], scores, rtol=1e-4, atol=1e-4)


def check_steps(arch: str, options: Options = PRESET, *, beam_size: int = 3) -> None:
    """Check that incremental decoding gives the same logits as decoding all steps at once.

    The check reorders the beams within each sentence, and drops a finished sentence.

    Args:
        arch: the architecture.
        options: its options.
        beam_size: the beam size that the model is told. The real one is 3, so another number is a wrong hint.
    """
    model = build_small(arch, options)
    beam, steps = 3, 9
    if hasattr(model, "set_beam_size"):
        model.set_beam_size(beam_size)
    batch = small.make_batch(small.make_sentences([(7, steps), (4, steps), (10, steps)]))
    torch.manual_seed(1)
    with torch.no_grad():
        encoder_out = model.encoder(batch["net_input"]["src_tokens"], batch["net_input"]["src_lengths"])
        order = torch.arange(3).repeat_interleave(beam)
        encoder_out = model.encoder.reorder_encoder_out(encoder_out, order)
        tokens = torch.randint(4, small.WORDS, (len(order), steps + 1))
        tokens[:, 0] = 2
        state: Dict[str, Any] = {}
        kept = torch.arange(3)
        for step in range(steps):
            if step:
                within = torch.randint(beam, (len(kept), beam))
                new_order = (torch.arange(len(kept))[:, None] * beam + within).flatten()
                if step == 5:  # the second sentence is finished
                    new_order = new_order.view(len(kept), beam)[[0, 2]].flatten()
                    kept = kept[[0, 2]]
                encoder_out = model.encoder.reorder_encoder_out(encoder_out, new_order)
                tokens = tokens[new_order]
                tokens[:, step] = torch.randint(4, small.WORDS, (len(tokens),))
                model.decoder.reorder_incremental_state_scripting(state, new_order)
            logits = model.decoder(tokens[:, : step + 1], encoder_out=encoder_out, incremental_state=state)[0]
            expected = model.decoder(tokens[:, : step + 1], encoder_out=encoder_out)[0]
            _assert_close(logits[:, -1], expected[:, -1])
    assert len(kept) == 2


def check_gradients(arch: str, options: Options = PRESET) -> None:
    """Check that each parameter has a gradient, and that it is not zero after an update of all parameters."""
    task = small.make_task()
    model = build_small(arch, options, task).train()
    criterion = small.make_criterion(model, task)
    batch = small.make_batch(small.make_sentences(small.LENGTHS))
    _train_step(model, criterion, batch)
    missing = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert not missing, f"without a gradient: {missing}"
    torch.optim.Adam(model.parameters(), lr=1e-2).step()
    _train_step(model, criterion, batch)
    zero = [name for name, parameter in model.named_parameters() if not parameter.grad.any()]
    # The bias of the keys does not change the softmax of attention.
    allowed = [name for name in zero if name.endswith("k_proj.bias") and "routing" not in name]
    assert zero == allowed, f"with a gradient of zero: {sorted(set(zero) - set(allowed))}"


def check_half_precision(arch: str, options: Options = PRESET) -> None:
    """Check that the loss and all gradients of a training step are finite in float16, bfloat16 and with autocast."""
    batch = small.make_batch(small.make_sentences(small.LENGTHS))
    for precision in (torch.float16, torch.bfloat16, "autocast"):
        task = small.make_task()
        model = build_small(arch, options, task).train()
        criterion = small.make_criterion(model, task)
        if isinstance(precision, torch.dtype):
            loss = _train_step(model.to(precision), criterion, batch)
        else:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = _train_step(model, criterion, batch)
        assert torch.isfinite(loss), f"{precision}: the loss is {loss}"
        missing = [name for name, value in model.named_parameters() if value.grad is None]
        assert not missing, f"{precision}: without a gradient: {missing}"
        infinite = [name for name, value in model.named_parameters() if not torch.isfinite(value.grad).all()]
        assert not infinite, f"{precision}: gradients that are not finite: {infinite}"


def check_off_is_fairseqs_own(arch: str, options: Options = PRESET) -> None:
    """Check that a model with all mechanisms off is bit-identical to fairseq's: parameters, logits and gradients.

    This applies to Transformers and LSTMs. For other models nothing is checked.

    Args:
        arch: the architecture.
        options: options of fairseq's model.
    """
    task = small.make_task()
    off = build_small(arch, {**options, **options_off(small.config_of(arch)())}, task)
    if isinstance(off, LSTMModel):
        plain_options = Namespace(**vars(off.cfg.lstm_options()), arch="lstm")
    elif isinstance(off, TransformerModelBase):
        plain_options = Namespace(**small.SIZES, **options, arch="transformer")
    else:
        return
    plain = build_model(plain_options, task).eval()
    plain.load_state_dict(off.state_dict())
    batch = small.make_batch(small.make_sentences(small.LENGTHS))
    assert torch.equal(small.logits_of(off, batch), small.logits_of(plain, batch))
    for model in (off, plain):
        _train_step(model.train(), small.make_criterion(off, task), batch)
    assert [name for name, _ in off.named_parameters()] == [name for name, _ in plain.named_parameters()]
    for got, expected in zip(off.parameters(), plain.parameters()):
        assert torch.equal(got.grad, expected.grad)


def _by_id(batch: Mapping[str, Any], rows: Any) -> Dict[int, Any]:
    """Map the ids of the sentences to their rows, because fairseq sorts a batch by length."""
    return {int(identity): row for identity, row in zip(batch["id"], rows)}


def _assert_close(got: Tensor, expected: Any) -> None:
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


def _train_step(model: BaseFairseqModel, criterion: FairseqCriterion, batch: Mapping[str, Any]) -> Tensor:
    model.zero_grad()
    loss, sample_size, _ = criterion(model, batch)
    (loss / sample_size).backward()
    return loss
