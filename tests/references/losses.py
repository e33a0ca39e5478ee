"""Literal guided losses: Zheng et al. (2019), §3.3 and §4.3, as loops over sentences, steps and words."""

import torch


def _words(target, padding_mask, b):
    return [t for t in range(target.size(1)) if padding_mask is None or not padding_mask[b, t]]


def bag_of_words_loss(past, future, embeddings, target, padding_mask=None, reduction="sum"):
    total = 0
    for b in range(len(target)):
        steps = _words(target, padding_mask, b)
        for t in steps:
            for features, bag in ((past, [s for s in steps if s < t]), (future, [s for s in steps if s >= t])):
                log_probabilities = torch.log_softmax(embeddings @ features[b, t], 0)
                for word in bag:
                    share = 1 / len(bag) if reduction == "mean" else 1
                    total = total - share * log_probabilities[target[b, word]] / len(steps)
    return total


def content_agreement_loss(past, future, state, past_weight, future_weight, padding_mask=None, reduction="sum"):
    """The projections map states to capsules with "sum", and capsules to states with "mean"."""
    total = 0
    for b in range(len(state)):
        steps = _words(state[..., 0], padding_mask, b)
        for t in steps:
            until = torch.stack([state[b, s] for s in steps if s <= t]).mean(0)
            from_here = torch.stack([state[b, s] for s in steps if s >= t]).mean(0)
            if reduction == "mean":
                distance = (past_weight @ past[b, t] - until).square().sum()
                distance = distance + (future_weight @ future[b, t] - from_here).square().sum()
                total = total + distance / len(steps) / state.size(-1)
            else:
                distance = (past[b, t] - past_weight @ until).square().sum()
                distance = distance + (future[b, t] - future_weight @ from_here).square().sum()
                total = total + distance / len(steps)
    return total


def bag_overlap(past, future, embeddings, target, padding_mask=None, top=5):
    sums, counts = [0.0, 0.0], [0, 0]
    for b in range(len(target)):
        steps = _words(target, padding_mask, b)
        for which, features in enumerate((past, future)):
            rates = []
            for t in steps:
                bag = [int(target[b, s]) for s in steps if (s < t if which == 0 else s >= t)]
                if bag:
                    ranked = (embeddings @ features[b, t]).argsort(descending=True).tolist()
                    found = set(ranked[: top * len(bag)]) & set(bag)
                    rates.append(len(found) / len(set(bag)))
            if rates:
                sums[which] += sum(rates) / len(rates)
                counts[which] += 1
    return sums[0], counts[0], sums[1], counts[1]
