"""Self-attention that may subtract what its logits agree on, and simpler changes of the logits: a set of trials.

    fairseq-train DATA --user-dir examples/subtractive_attention --arch trial_transformer_tiny \
        --subtraction mean …

The capsule-Transformer (Duan et al. 2020) adds to the logits `E` what heads and earlier positions agree on. Here each
head has a gain that is free in sign and starts at 0. `FORMS` lists the changes. `e_l` is a row of `E`, `n_l` the number
of keys that it may attend to, `m_l` the number of words up to it.
"""

import math
from dataclasses import dataclass, field
from functools import partial

import torch
import torch.nn.functional as F
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from torch import nn

from capsule_routing import dynamic_routing, in_float32
from capsule_routing.functions.naive import squash
from fairseq_capsule.extending import add_mechanism
from fairseq_capsule.inspection import Inspection, mean_where
from fairseq_capsule.mechanisms import Mechanism
from fairseq_capsule.mechanisms.base import parts_of


def valid_rows(logits, padding_mask):
    """Return `[B, 1, L, 1]`: 1 for words, 0 for padding, in the dtype of the logits."""
    if padding_mask is None:
        return logits.new_ones(1, 1, logits.size(2), 1)
    return (~padding_mask).to(logits.dtype)[:, None, :, None]


class Scale(nn.Module):
    """`0.3 E`: attention that is flat from the start, and learns nothing for it."""

    def forward(self, logits, padding_mask=None, factors=None):
        return 0.3 * logits


class Gain(nn.Module):
    """One number for each head, `[H, 1, 1]`: free, kept positive, or 1."""

    def __init__(self, heads, kind="free"):
        super().__init__()
        self.kind = kind
        if kind != "one":
            self.weight = nn.Parameter(torch.full((heads, 1, 1), 0.0 if kind == "free" else math.log(0.1)))

    def forward(self):
        if self.kind == "one":
            return torch.ones(())
        return self.weight if self.kind == "free" else self.weight.exp()


class Temperature(nn.Module):
    """`(1 + g_h) E`."""

    def __init__(self, heads):
        super().__init__()
        self.gain = Gain(heads)

    def forward(self, logits, padding_mask=None, factors=None):
        return (1 + self.gain()) * logits


class NormedFactors(nn.Module):
    """`s_h q̂ k̂ᵀ / √d`; `q̂` and `k̂` have a root mean square of 1, `s` starts at 1."""

    def __init__(self, heads):
        super().__init__()
        self.gain = Gain(heads)

    def forward(self, logits, padding_mask=None, factors=None):
        queries, keys = self.normed(factors)
        return (1 + self.gain()) * (queries @ keys.transpose(2, 3)) / math.sqrt(keys.size(3))

    @staticmethod
    def normed(factors):
        return [F.rms_norm(factor, factor.shape[-1:]) for factor in factors]


class Direction(NormedFactors):
    """`(s_h q̂_l + g_h ĉ_l) k̂ᵀ / √d`; `ĉ_l` has the direction of `Σ_{t ≤ l} q̂_t` and a root mean square of 1."""

    def __init__(self, heads):
        super().__init__(heads)
        self.direction_gain = Gain(heads)

    def forward(self, logits, padding_mask=None, factors=None):
        queries, keys = self.normed(factors)
        sums = queries.cumsum(2)
        earlier = F.rms_norm(sums, sums.shape[-1:]) * valid_rows(logits, padding_mask)
        queries = (1 + self.gain()) * queries + self.direction_gain() * earlier
        return queries @ keys.transpose(2, 3) / math.sqrt(keys.size(3))


class Mean(nn.Module):
    """`e_l + g_h Σ_{t ≤ l} e_t / m_l`, the running mean of the rows.

    Args:
        heads: `H`.
        zeroed: whether entries of keys after their query are 0, as in a decoder's routing. Otherwise it is the running
            mean of the queries.
        everywhere: the mean over all rows instead; only where a word may attend to later ones.
        own: whether `e_l` is part of the mean of row `l`.
    """

    def __init__(self, heads, *, zeroed=False, everywhere=False, own=True):
        super().__init__()
        self.zeroed, self.everywhere, self.own = zeroed, everywhere, own
        self.gain = Gain(heads)

    @in_float32
    def forward(self, logits, padding_mask=None, factors=None):
        rows, valid = logits.tril() if self.zeroed else logits, valid_rows(logits, padding_mask)
        if self.everywhere:
            return logits + self.gain() * valid * rows.sum(2, keepdim=True) / valid.sum(2, keepdim=True).clamp(min=1)
        sums, number = rows.cumsum(2), valid.cumsum(2)
        if not self.own:
            sums, number = sums - rows, number - valid
        return logits + self.gain() * valid * sums / number.clamp(min=1)


class Coverage(nn.Module):
    """`e_t + g_h Σ_{s < t} e_s / (t − 1)` in cross-attention: what earlier steps attended to."""

    def __init__(self, heads):
        super().__init__()
        self.gain = Gain(heads)

    @in_float32
    def forward(self, logits, padding_mask=None, factors=None):
        number = torch.arange(logits.size(2), device=logits.device).clamp(min=1).view(-1, 1)
        return logits + self.gain() * (logits.cumsum(2) - logits) / number


class Capsules(nn.Module):
    """`e_l + g↔_h √n_l Ω↔_{h,l} + g↑_h λ_h √n_l Ω↑_l`: the routing of the capsule-Transformer with free gains.

    A capsule has a root mean square below 1. Agreements are divided by `√n`. `λ = H softmax(W† mean_l B_l + b)`.

    Args:
        heads: `H`.
        causal: whether a word may not attend to later ones.
        positions, over_heads: which of `Ω↔` and `Ω↑` there is; `Ω↑` only without `causal`.
        iterations: with 1, all couplings are equal.
        gain: the kind of both gains.
        acceptance: whether `λ` is learnt, or 1.
        own: whether `e_l` is part of `Ω↔_l`; read with one iteration.
    """

    def __init__(
        self,
        heads,
        causal,
        *,
        positions=True,
        over_heads=True,
        iterations=1,
        gain="free",
        acceptance=True,
        own=True,
    ):
        super().__init__()
        self.causal, self.iterations, self.own = causal, iterations, own
        self.positions_gain = Gain(heads, gain) if positions else None
        self.heads_gain = Gain(heads, gain) if over_heads and not causal else None
        self.acceptance = nn.Linear(heads, heads) if self.heads_gain and acceptance else None
        if self.acceptance is not None:
            nn.init.zeros_(self.acceptance.weight)
            nn.init.zeros_(self.acceptance.bias)

    @in_float32
    def forward(self, logits, padding_mask=None, factors=None):
        rows, valid = logits.tril() if self.causal else logits, valid_rows(logits, padding_mask)
        keys = (valid.cumsum(2) if self.causal else valid.sum(2, keepdim=True)).clamp(min=1)
        changed = logits
        if self.positions_gain is not None:
            capsules = self._over_positions(rows, valid, keys)
            changed = changed + self.positions_gain() * keys.sqrt() * valid * capsules
        if self.heads_gain is not None:
            capsules, agreements = self._over_heads(rows, valid, keys)
            changed = changed + self.heads_gain() * self._accepted(agreements, valid) * keys.sqrt() * valid * capsules
        return changed

    def _over_positions(self, rows, valid, keys):
        """Return `Ω↔` `[B, H, L, K]`: the words up to a position vote for its heads."""
        if self.iterations == 1:
            sums = rows.cumsum(2)
            return squash((sums if self.own else sums - rows) / rows.size(1))
        length = rows.size(2)
        later = torch.ones(length, length, dtype=torch.bool, device=rows.device).triu(1)
        padding = valid.eq(0)
        votes = rows.transpose(1, 2)  # [B, word, H, K]
        scale = keys.sqrt().transpose(1, 2)  # [B or 1, word or 1, 1, 1]
        return dynamic_routing(
            votes.unsqueeze(1),
            self.iterations,
            padding_mask=(later | padding.squeeze(3) | padding.view(-1, length, 1)).expand(rows.size(0), -1, -1),
            agreement=lambda _, capsules: torch.einsum("bthk,blhk->blth", votes / scale, capsules),
            initial_logits=rows.new_zeros(rows.size(0), length, length, rows.size(1)),
        ).capsules.transpose(1, 2)

    def _over_heads(self, rows, valid, keys):
        """Return `Ω↑` `[B, 1, L, K]` and the agreements `B` `[B, H, L]`: heads vote for positions."""
        start = rows.new_zeros(rows.shape[:3]).masked_fill(valid.squeeze(3).eq(0), torch.finfo(rows.dtype).min)
        agreements = []

        def agreement(votes, capsules):
            agreements.append((votes * capsules.unsqueeze(1)).sum(-1) / keys.squeeze(3).sqrt())
            return agreements[-1]

        capsules = dynamic_routing(rows, self.iterations, agreement=agreement, initial_logits=start).capsules
        if len(agreements) < self.iterations:
            agreement(rows, capsules)
        return capsules.unsqueeze(1), sum(agreements)

    def _accepted(self, agreements, valid):
        """Return `λ` `[B, H, 1, 1]`."""
        if self.acceptance is None:
            return 1
        valid = valid.squeeze(3)
        means = (agreements * valid).sum(2) / valid.sum(2).clamp(min=1)
        weight, bias = (parameter.to(means.dtype) for parameter in self.acceptance.parameters())
        return (agreements.size(1) * F.linear(means, weight, bias).softmax(-1))[:, :, None, None]


class Chain(nn.ModuleList):
    """Several changes, one after the other."""

    def forward(self, logits, padding_mask=None, factors=None):
        for change in self:
            logits = change(logits, padding_mask, factors)
        return logits


def _everywhere(heads, causal):
    return Mean(heads, zeroed=causal, everywhere=not causal)


# The part of a self-attention with `heads` heads, `causal` or not; None: no part.
FORMS = {
    "temperature": lambda heads, causal: Temperature(heads),
    "scale": lambda heads, causal: Scale(),
    "qk_norm": lambda heads, causal: NormedFactors(heads),
    "one_iteration": Capsules,
    "three_iterations": partial(Capsules, iterations=3),
    "temperature_one_iteration": lambda heads, causal: Chain([Temperature(heads), Capsules(heads, causal)]),
    "others": partial(Capsules, own=False),
    "positions": partial(Capsules, over_heads=False),
    "qk_norm_positions": lambda heads, causal: Chain([NormedFactors(heads), Capsules(heads, causal, over_heads=False)]),
    "qk_norm_query": lambda heads, causal: Chain([NormedFactors(heads), Mean(heads)]),
    "qk_norm_mean": lambda heads, causal: Chain([NormedFactors(heads), Mean(heads, zeroed=causal)]),
    "qk_norm_direction": lambda heads, causal: Direction(heads),
    "heads": lambda heads, causal: None if causal else Capsules(heads, causal, positions=False),
    "added": partial(Capsules, gain="one"),
    "positive": partial(Capsules, gain="positive"),
    "accepted": partial(Capsules, acceptance=False),
    "mean": lambda heads, causal: Mean(heads, zeroed=causal),
    "mean_of_others": lambda heads, causal: Mean(heads, zeroed=causal, own=False),
    "mean_of_all": _everywhere,
    "query": lambda heads, causal: Mean(heads),
    "coverage": None,  # of cross-attention
}


@dataclass
class SubtractionConfig(FairseqDataclass):
    subtraction: ChoiceEnum([*FORMS, "none"]) = field(
        default="none", metadata={"help": "what changes the logits of self-attention (coverage: of cross-attention)"}
    )
    subtraction_sides: ChoiceEnum(["both", "encoder", "decoder"]) = field(
        default="both", metadata={"help": "where self-attention changes"}
    )


class Subtraction(Mechanism):
    name = "subtraction"
    summary = "subtracts from the logits of self-attention what heads and earlier words agree on, or flattens them"
    options = SubtractionConfig
    preset = "trial"
    on = {"subtraction": "mean"}

    def attention(self, config, place):
        heads = getattr(config, f"{place.side}_attention_heads")
        if config.subtraction == "coverage":
            return {"logits": Coverage(heads)} if place.kind == "cross" else {}
        if place.kind == "cross" or config.subtraction_sides not in ("both", place.side):
            return {}
        part = FORMS[str(config.subtraction)](heads, place.side == "decoder")
        return {} if part is None else {"logits": part}


class Gains(Inspection):
    def statistics(self, model, source, previous):
        """Return each gain, by the number of its attention in the order of the model, its part and its head."""
        return {
            f"{name.replace('.', '_') or 'gain'}_{index}_{head}": mean_where(value, torch.ones_like(value).bool())
            for index, part in enumerate(parts_of(model, SUBTRACTION), start=1)
            for name, module in part.named_modules()
            if isinstance(module, Gain) and module.kind != "one"
            for head, value in enumerate(module().detach().view(-1), start=1)
        }


SUBTRACTION = add_mechanism(Subtraction(), Gains(), before="attention_routing")
