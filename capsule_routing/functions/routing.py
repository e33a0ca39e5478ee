"""Squashing, dynamic routing, and the two routings of attention logits of the capsule-Transformer.

A routing repeats three steps. A softmax of the logits gives the couplings. The sums of the coupled votes, squashed, are
the capsules. The agreements of votes and capsules, their dot products, are added to the logits. All functions are plain
autograd: `torch.compile` and `torch.func` work on them, and the first derivative is finite everywhere.
"""

from typing import Callable, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor

from capsule_routing.functions.compiled import is_exported
from capsule_routing.functions.precision import in_float32
from capsule_routing.functions.types import Factors, Mask

Softmax = Callable[[Tensor, int], Tensor]

COMPETITIONS = ("output", "leaky", "input")
# On a CPU, if the last dimension is shorter than this, a softmax over it is several times faster as one over the first.
FEW = 32
# With fewer keys than this times their rank, products of the logits themselves are cheaper than those of their factors.
FACTORS_PAY = 2


@in_float32
def squash(s: Tensor, dim: int = -1) -> Tensor:
    """Squash capsules: `s·n/(1+n²)` with `n = ‖s‖` (Sabour et al. 2017, Eq. 1; Duan et al. 2020, Eq. 6).

    Args:
        s: capsules before squashing, of any shape. Norms are below the square root of the type's largest number, about
            1.8e19 in float32; the squares of larger ones overflow, and the result is 0.
        dim: the dimension of the capsules' components.

    Returns:
        A tensor with the shape of `s`. Its vectors along `dim` have norms below 1. A vector of 0 stays exactly 0, with
        a zero gradient. The second derivative there is NaN.
    """
    norm = torch.linalg.vector_norm(s, dim=dim, keepdim=True)
    return s * (norm / (1 + norm.square()))


@in_float32
def leaky_softmax(logits: Tensor, dim: int) -> Tensor:
    """Softmax with an additional logit of 0; the share of this logit is dropped (Zhao et al. 2018; CapsNMT preprint).

    So an input capsule may go to no output capsule, and the result sums to less than 1 along `dim`. Logits of minus
    infinity give 0, even if all logits are.
    """
    highest = logits.amax(dim, keepdim=True).clamp(min=0).detach()
    exponentials = (logits - highest).exp()
    return exponentials / (exponentials.sum(dim, keepdim=True) + (-highest).exp())


def masked_softmax(logits: Tensor, dim: int, mask: Optional[Tensor], softmax: Softmax = torch.softmax) -> Tensor:
    """Softmax over the elements that are not masked. Masked elements get exactly 0.

    If all elements along `dim` are masked, the result is 0, with a zero gradient.

    Args:
        logits: a tensor of any shape.
        dim: the dimension of the softmax.
        mask: broadcasts against `logits`; True marks masked elements.
        softmax: `torch.softmax` or `leaky_softmax`.
    """
    if mask is not None:
        logits, mask = torch.broadcast_tensors(logits, mask)
    few = logits.device.type == "cpu" and logits.dim() > 1 and dim in (-1, logits.dim() - 1) and logits.size(-1) < FEW
    if few:
        logits, dim = logits.movedim(-1, 0).contiguous(), 0
        mask = None if mask is None else mask.movedim(-1, 0)
    if mask is None:
        shares = softmax(logits, dim)
    else:
        # The lowest finite number, not minus infinity: if all elements are masked, the softmax is then uniform instead
        # of NaN. The zeros that are filled in afterwards stop the gradient.
        shares = softmax(logits.masked_fill(mask, torch.finfo(logits.dtype).min), dim).masked_fill(mask, 0)
    return shares.movedim(0, -1) if few else shares


class RoutingResult(NamedTuple):
    """Output capsules `[..., N, D]`, and the coupling of each input with each output that gave them, `[..., M, N]`."""

    capsules: Tensor
    coupling: Tensor


def by_output(votes: Tensor) -> Tensor:
    """Return the same votes `[..., M, N, D]`, contiguous for each output, as sums over inputs read them."""
    return votes.transpose(-3, -2).contiguous().transpose(-3, -2)


def dot_product_agreement(votes: Tensor, capsules: Tensor) -> Tensor:
    """`Σ_D votes · capsules`: votes `[..., M, N, D]` and capsules `[..., N, D]` give `[..., M, N]`."""
    # A matrix times a vector is several times slower on a CPU.
    return (votes * capsules.unsqueeze(-3)).sum(-1)


@in_float32
def dynamic_routing(
    votes: Union[Tensor, Sequence[Tensor]],
    iterations: int,
    *,
    padding_mask: Mask = None,
    competition: str = "output",
    agreement: Optional[Callable[[Tensor, Tensor], Tensor]] = None,
    initial_logits: Optional[Tensor] = None,
) -> RoutingResult:
    """Route input capsules to output capsules by agreement (Sabour et al. 2017, Procedure 1; Duan et al. 2020, Alg. 1).

    Args:
        votes: `[..., M, N, D]`, the vote of each of `M` inputs for each of `N` outputs; or one such tensor for each
            iteration (otherwise a ValueError is raised). Leading dimensions may broadcast against those of the
            agreement's logits and are never expanded.
        iterations: how often coupling and capsules are computed, at least 1, otherwise a ValueError is raised.
        padding_mask: `[..., M]`, True marks excluded inputs.
        competition: the capsules that compete. "output": the outputs compete for an input (softmax over `N`). "leaky":
            the same, but a share may go to no output. "input": the inputs compete for an output (softmax over `M`).
            Another text raises a ValueError.
        agreement: a function of votes `[..., M, N, D]` and capsules `[..., N, D]`. Its result `[..., M, N]` is added to
            the logits. By default it is the dot product.
        initial_logits: `[..., M, N]`, the logits of the first coupling (Sabour et al.'s log priors); 0 by default.

    Returns:
        `RoutingResult(capsules, coupling)`. The coupling of a padded input and its gradient are exactly 0. An output
        without valid inputs is 0.
    """
    _check_iterations(iterations)
    if competition not in COMPETITIONS:
        raise ValueError(f"competition must be one of {', '.join(COMPETITIONS)}, not {competition!r}")
    votes = [by_output(votes)] * iterations if isinstance(votes, Tensor) else [by_output(vote) for vote in votes]
    if len(votes) != iterations:
        raise ValueError(f"{iterations} iterations need as many votes, not {len(votes)}")

    agreement = agreement or dot_product_agreement
    mask = None if padding_mask is None else padding_mask.unsqueeze(-1)
    dim = -2 if competition == "input" else -1
    softmax = leaky_softmax if competition == "leaky" else torch.softmax
    logits = votes[0].new_zeros(votes[0].shape[:-1]) if initial_logits is None else initial_logits
    for iteration, vote in enumerate(votes, start=1):
        coupling = masked_softmax(logits, dim, mask, softmax)
        capsules = squash(torch.einsum("...mn,...mnd->...nd", coupling, vote))
        if iteration < iterations:
            logits = logits + agreement(vote, capsules)
    return RoutingResult(capsules, coupling)


@in_float32
def vertical_routing(logits: Tensor, iterations: int, *, padding_mask: Mask = None) -> Tuple[Tensor, Tensor]:
    """Route heads to query positions (Duan et al. 2020, Alg. 2 up to `Ω` and `B`).

    The rows of the logits are the votes, and positions compete for a head. For all positions `l`, with the votes of all
    heads as the rows of `V_l`: `Ω_l = squash(c_l V_l)` (Eq. 6-7), `B_l += V_l Ω_l`, `c = softmax_l(B)`.

    Args:
        logits: `E` `[B, H, L, K]`, the scaled products of queries and keys; 0 at padded queries and keys.
        iterations: routing iterations; fewer than 1 raise a ValueError.
        padding_mask: `[B, L]`, True marks padded queries.

    Returns:
        The output capsules `Ω` `[B, L, K]`, 0 at padded queries, and the vote weights `B` `[B, H, L]`, the last
        agreement included.
    """
    _check_iterations(iterations)
    mask = None if padding_mask is None else padding_mask.unsqueeze(1)
    weights = logits.new_zeros(logits.shape[:3])
    for _ in range(iterations):
        coupling = masked_softmax(weights, 2, mask)
        capsules = squash((coupling.unsqueeze(3) * logits).sum(1))
        weights = weights + (logits * capsules.unsqueeze(1)).sum(3)
    return capsules, weights


@in_float32
def horizontal_routing(
    logits: Tensor,
    iterations: int,
    *,
    padding_mask: Mask = None,
    causal: bool = False,
    factors: Factors = None,
    last: Optional[int] = None,
) -> Tensor:
    """For each position, route the tokens up to it to heads (Duan et al. 2020, Alg. 3).

    The rows of the logits are the votes. Row `l` of the lower triangular `R_h` has the couplings of the routing of
    position `l`. For all positions together and each head `h`, with the votes `V_h`: `Ω_h = squash(R_h V_h)` (Eq. 6-7),
    `B_h += Ω_h V_hᵀ`, `R_h = tril(softmax_h(B_h))`. The first couplings are uniform.

    Args:
        logits: `E` `[B, H, L, K]`, the scaled products of queries and keys; 0 at padded keys.
        iterations: routing iterations; fewer than 1 raise a ValueError.
        padding_mask: `[B, L]`, True marks padded queries.
        causal: whether keys after a query are left out of its votes, as in a decoder (§3.4.3). The cost is then cubic
            in length.
        factors: `(q [B, H, L, d], k [B, H, K, d])` with `logits = q kᵀ`; `k` must be 0 at padded keys. They make the
            cost quadratic in length; used where that is faster, and not if `causal`.
        last: compute the rows of this number of last positions only, as a decoding step does; by default all `L`.

    Returns:
        The output capsules `Ω` `[B, H, L, K]`, 0 at padded queries; with `last` only the last rows.
    """
    _check_iterations(iterations)
    batch, heads, length, words = logits.shape
    votes, keys = logits.tril() if causal else logits, None
    if factors is not None and not causal and not is_exported() and words >= FACTORS_PAY * factors[0].size(3):
        votes, keys = factors
    mask = None if padding_mask is None else padding_mask[:, None, :, None]
    if mask is not None:
        votes = votes.masked_fill(mask, 0)
    start = 0 if last is None else length - last
    coupling = votes.new_full((length - start, length), 1 / heads).tril(start).expand(batch, heads, -1, -1)
    weights = None
    for iteration in range(1, iterations + 1):
        sums = coupling @ votes
        capsules = squash(sums if keys is None else sums @ keys.mT)
        if iteration < iterations:
            agreement = (capsules if keys is None else capsules @ keys) @ votes.mT
            weights = agreement if weights is None else weights + agreement
            coupling = weights.softmax(1).tril(start)
    return capsules if mask is None else capsules.masked_fill(mask[:, :, start:], 0)


def _check_iterations(iterations: int) -> None:
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, not {iterations}")
