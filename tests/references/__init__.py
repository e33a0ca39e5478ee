"""The papers' equations as plain loops over one sentence, a file for each paper, and the comparison with a batch."""

import torch


def sentences(mask, *batched):
    """Return each sentence of a batch alone, without its padding: a list of its tensors for each. None: no padding."""
    rows = range(len(batched[0]))
    return [[tensor[b] if mask is None else tensor[b][~mask[b]] for tensor in batched] for b in rows]


def padded(mask, of_sentences, *dims):
    """Stack results of sentences, with 0 where the mask `[B, L]` is True; `dims` of a result have the words."""
    batch = []
    for b, result in enumerate(of_sentences):
        for dim in () if mask is None else dims:
            shape = list(result.shape)
            shape[dim] = mask.size(1)
            result = result.new_zeros(shape).index_copy(dim, (~mask[b]).nonzero().squeeze(1), result)
        batch.append(result)
    return torch.stack(batch)


def stacked(nested):
    """Turn lists of lists of tensors of one shape into one tensor."""
    return nested if torch.is_tensor(nested) else torch.stack([stacked(part) for part in nested])


def assert_same(got, want, inputs, seed=3):
    """Check that tensors, and the gradients of a random projection of them, agree to 1e-10.

    A gradient that one side has not computed counts as 0.
    """
    generator = torch.Generator().manual_seed(seed)
    directions = [torch.randn(part.shape, generator=generator, dtype=part.dtype) for part in got]
    gradients = []
    for parts in (got, want):
        projected = sum((part * direction).sum() for part, direction in zip(parts, directions, strict=True))
        options = dict(allow_unused=True, materialize_grads=True, retain_graph=True)
        gradients.append(torch.autograd.grad(projected, inputs, **options))
    for part, expected in zip((*got, *gradients[0]), (*want, *gradients[1]), strict=True):
        torch.testing.assert_close(part, expected, rtol=1e-10, atol=1e-10)
