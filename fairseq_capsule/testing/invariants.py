"""Invariants of each architecture: padding, incremental decoding, gradients, half precision, mechanisms off and on."""

from argparse import Namespace
from typing import Any, Dict, Mapping, Sequence

import torch
from fairseq.criterions import FairseqCriterion
from fairseq.models import BaseFairseqModel, build_model
from fairseq.models.lstm import LSTMModel
from fairseq.models.transformer import TransformerModelBase
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from fairseq_capsule.mechanisms.attaching import parts_of
from fairseq_capsule.mechanisms.registry import active_mechanisms, options_off
from fairseq_capsule.models.attention import SplitAttention
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
    sentences = small.make_sentences()
    criterion = small.make_criterion(model)
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
    model = build_small(arch, options)
    generator = _generator(model)
    sentences = small.make_sentences()
    batch = small.make_batch(sentences)
    together = _by_id(batch, generator.generate([model], batch))
    for sentence in sentences:
        _assert_same(together[sentence["id"]], generator.generate([model], small.make_batch([sentence]))[0])


def check_scores(arch: str, options: Options = PRESET) -> None:
    """Check that the scores of a generator are the log-probabilities of its hypotheses in one pass over them."""
    model = build_small(arch, options)
    generator = _generator(model, normalize_scores=False)
    for sentence in small.make_sentences():
        batch = small.make_batch([sentence])
        source, length = batch["net_input"]["src_tokens"], batch["net_input"]["src_lengths"]
        (hypotheses,) = generator.generate([model], batch)
        for hypothesis in hypotheses:
            target = hypothesis["tokens"].unsqueeze(0)
            with torch.no_grad():
                logits = model(source, length, target.roll(1, dims=1))[0]
            scores = logits.log_softmax(-1).gather(2, target.unsqueeze(2)).flatten()
            _assert_close(hypothesis["positional_scores"], scores, rtol=1e-4, atol=1e-4)


def check_steps(arch: str, options: Options = PRESET, *, beam_size: int = 3) -> None:
    """Check that incremental decoding gives the same logits as decoding all steps at once.

    The check reorders the beams within each sentence, and drops a finished sentence. `beam_size` is what the model is
    told. The real one is 3, so another number is a wrong hint.
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
    model = build_small(arch, options).train()
    criterion = small.make_criterion(model)
    batch = small.make_batch(small.make_sentences())
    _train_step(model, criterion, batch)
    torch.optim.Adam(model.parameters(), lr=1e-2).step()
    _train_step(model, criterion, batch)
    zero = [name for name, parameter in model.named_parameters() if not parameter.grad.any()]
    # The bias of the keys does not change the softmax of attention.
    allowed = [name for name in zero if name.endswith("k_proj.bias") and "routing" not in name]
    assert zero == allowed, f"with a gradient of zero: {sorted(set(zero) - set(allowed))}"


def check_half_precision(arch: str, options: Options = PRESET) -> None:
    """Check that the loss and all gradients of a training step are finite in float16, bfloat16 and with autocast.

    Autocast is left out on a CPU on which it cannot compute torch's own LSTM.
    """
    batch = small.make_batch(small.make_sentences())
    precisions = [(torch.float16, False), (torch.bfloat16, False)]
    if _autocast_computes_lstms():
        precisions.append((torch.float32, True))
    for dtype, autocast in precisions:
        precision = "autocast" if autocast else dtype
        model = build_small(arch, options).to(dtype).train()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            loss = _train_step(model, small.make_criterion(model), batch)
        assert torch.isfinite(loss), f"{precision}: the loss is {loss}"
        infinite = [name for name, value in model.named_parameters() if not torch.isfinite(value.grad).all()]
        assert not infinite, f"{precision}: gradients that are not finite: {infinite}"


def _autocast_computes_lstms() -> bool:
    """Return whether autocast computes an LSTM here: it takes oneDNN's in bfloat16, which older CPUs lack."""
    inputs = torch.zeros(1, 2, 4)
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            torch.nn.LSTM(4, 4, batch_first=True)(inputs)
    except RuntimeError:
        return False
    return True


def check_off_is_fairseqs_own(arch: str, options: Options = PRESET) -> None:
    """Check that a model with all mechanisms off is bit-identical to fairseq's: parameters, logits and gradients.

    This applies to Transformers and LSTMs. For other models nothing is checked. `options` are those of fairseq's model.
    """
    off = build_small(arch, {**options, **options_off(small.config_of(arch)())})
    if isinstance(off, LSTMModel):
        plain_options = Namespace(**vars(off.cfg.lstm_options()), arch="lstm")
    elif isinstance(off, TransformerModelBase):
        plain_options = Namespace(**{**small.SIZES, **options}, arch="transformer")
    else:
        return
    plain = build_model(plain_options, small.make_task()).eval()
    plain.load_state_dict(off.state_dict())
    batch = small.make_batch(small.make_sentences())
    assert torch.equal(small.logits_of(off, batch), small.logits_of(plain, batch))
    for model in (off, plain):
        _train_step(model.train(), small.make_criterion(off), batch)
    assert [name for name, _ in off.named_parameters()] == [name for name, _ in plain.named_parameters()]
    for got, expected in zip(off.parameters(), plain.parameters()):
        assert torch.equal(got.grad, expected.grad)


def check_on_changes_logits(arch: str, options: Options = PRESET) -> None:
    """Check that each mechanism of a model has an effect, with random parameters.

    - The logits differ from those of a model without it that has the same other parameters.
    - Each parameter of its parts changes the logits or the loss.
    - A part in place of `W_O` is no affine map of the heads. `W_O` could be the same map.
    """
    model = build_small(arch, options)
    batch = small.make_batch(small.make_sentences())
    criterion = small.make_criterion(model)
    logits = small.word_logits(model, batch)
    for mechanism in active_mechanisms(model.cfg):
        off = small.without(mechanism, model, arch, options)
        assert not small.is_close(small.word_logits(off, batch), logits), f"{mechanism.name} has no effect"
        for part in parts_of(model, mechanism):
            idle = [name for name, value in part.named_parameters() if _is_idle(value, model, criterion, batch)]
            assert not idle, f"{mechanism.name}: parameters of {type(part).__name__} have no effect: {idle}"
    for attention in model.modules():
        if isinstance(attention, SplitAttention) and attention.combines_heads:
            part = getattr(attention, attention.combines_heads)
            left, right = torch.randn(2, 2, 3, attention.num_heads, attention.head_dim)
            with torch.no_grad():
                affine = small.is_close(part(left + right) + part(0 * left), part(left) + part(right))
            assert not affine, f"{attention.combines_heads} combines the heads as `W_O` can"


def _generator(model: BaseFairseqModel, **options: Any) -> SequenceGenerator:
    return SequenceGenerator([model], model.decoder.dictionary, beam_size=3, max_len_b=12, **options)


def _assert_same(got: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, Any]]) -> None:
    """Compare the hypotheses of two searches by rank. Those with equal scores may have exchanged their ranks."""
    for rank, (first, second) in enumerate(zip(got, expected, strict=True), start=1):
        _assert_close(first["score"], second["score"], rtol=1e-4)
        ties = [other for other in expected if torch.isclose(first["score"], other["score"], rtol=1e-4, atol=1e-5)]
        found = first["tokens"].tolist() in [other["tokens"].tolist() for other in ties]
        tokens = f"{first['tokens'].tolist()} in a batch, {second['tokens'].tolist()} alone"
        assert found, f"the hypothesis of rank {rank} depends on the batch: {tokens}"


def _by_id(batch: Mapping[str, Any], rows: Any) -> Dict[int, Any]:
    """Map the ids of the sentences to their rows, because fairseq sorts a batch by length."""
    return {int(identity): row for identity, row in zip(batch["id"], rows)}


def _assert_close(got: Tensor, expected: Any, rtol: float = 1e-5, atol: float = 1e-5) -> None:
    torch.testing.assert_close(got, expected, rtol=rtol, atol=atol)


def _train_step(model: BaseFairseqModel, criterion: FairseqCriterion, batch: Mapping[str, Any]) -> Tensor:
    """Compute the loss and the gradients, which no parameter may lack."""
    model.zero_grad()
    loss, sample_size, _ = criterion(model, batch)
    (loss / sample_size).backward()
    missing = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert not missing, f"without a gradient: {missing}"
    return loss


@torch.no_grad()
def _is_idle(parameter: Tensor, model: BaseFairseqModel, criterion: FairseqCriterion, batch: Mapping[str, Any]) -> bool:
    """Return whether another value of a parameter changes neither the logits nor the loss."""
    results, kept = [], parameter.clone()
    for change in (torch.zeros_like(parameter), torch.randn_like(parameter)):
        parameter.add_(change)
        results.append((small.word_logits(model, batch), criterion(model, batch)[0]))
    parameter.copy_(kept)
    return all(small.is_close(before, after) for before, after in zip(*results))
