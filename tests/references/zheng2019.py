"""Zheng et al. (2019), Dynamic Past and Future: one sentence, plain loops, written from the paper alone.

A vector is a tensor, everything above it a list. `targets[t - 1]` is the paper's word y_t.

Where the paper leaves something open:

- Section 3.1 says that the assignment probabilities of one input capsule sum to 1, and prints a sum over i: a softmax
  over the capsules (`over="capsules"`) or over the words (`over="words"`). The text, and a group that competes for
  words, mean the first.
- Equation 5 writes W_j h_i with W_j of d rows: one of both is transposed.
- The hidden size, the activation and the order of the inputs of FeedForward (section 3.2) are not given.
- How several capsules of one group enter W_BoW and W_BCA is not given: side by side, or their mean. Table 1 prints
  0.3M new parameters for BoW and 0.5M for BCA: 2 * 256 * 512 is 0.26M, 2 * 512 * 512 is 0.52M.
- The bags have three descriptions, see `bags`. The sum of the BoW loss begins at t = 0, where there is no decoder
  state: the bag of the past is empty there, and that of the future is the whole sentence. Here it begins at 1.
- The BCA loss is called a mean square and printed as a squared norm. Its sum over t covers both norms, though it has no
  bracket.
- The likelihood sums over words and both losses are means over words: their ratio depends on the length.
"""

import torch

from tests.references.sabour2017 import softmax, squash, zeros


def guided_routing(z, h, transforms, w_b, w, iterations, over="capsules"):
    """Algorithm 1, equations 4 to 7, at one state `z`: the capsules and the last assignment probabilities `c[i][j]`."""
    votes = [[transform @ h_i for transform in transforms] for h_i in h]  # equation 5
    words, capsules = range(len(h)), range(len(transforms))
    b = zeros(len(h), len(transforms))
    for _ in range(iterations):
        if over == "capsules":
            c = [softmax(b[i]) for i in words]  # equation 6
        else:
            columns = [softmax([b[i][j] for i in words]) for j in capsules]
            c = [[columns[j][i] for j in capsules] for i in words]
        omega = [squash(sum(c[i][j] * votes[i][j] for i in words)) for j in capsules]  # equation 4
        for i in words:
            for j in capsules:
                agreement = w.dot((w_b @ torch.cat([z, votes[i][j], omega[j]])).tanh())
                b[i][j] = b[i][j] + agreement  # equation 7
    return omega, c


def groups(omega, past, future):
    """Line 7 of Algorithm 1: the capsules of the past, of the future, and the redundant ones."""
    return omega[:past], omega[past : past + future], omega[past + future :]


def holistic_context(z, past, future, feed_forward):
    """Section 3.2: o = FeedForward(z, past, future) + z."""
    return feed_forward(torch.cat([z, *past, *future])) + z


def bags(t, length, described):
    """The words, counted from 1, that are the past and the future of step `t`, as the paper describes them.

    `printed`: the BoW loss, y_<=t and y_>=t; its product runs over [1, t] too. The current word is in both.
    `disjoint`: section 1 and the product's left side, y_<t and y_>=t. The current word is still to come.
    `overlap`: the overlap rate of section 4.3, y_<=t and y_>t. The current word has been translated.
    """
    before, after = list(range(1, t)), list(range(t + 1, length + 1))
    past = before if described == "disjoint" else [*before, t]
    future = after if described == "overlap" else [t, *after]
    return past, future


def log_bag_probability(bag, capsule, projection, embeddings, targets):
    """log p(bag | capsule): the sum of log softmax(E W capsule) over the words of the bag (section 3.3)."""
    projected = projection @ capsule
    logs = torch.stack([embedding.dot(projected) for embedding in embeddings])
    total = logs.exp().sum().log()
    return sum((logs[targets[tau - 1]] - total for tau in bag), torch.zeros_like(total))


def bow_loss(past, future, w_past, w_future, embeddings, targets, described="printed", average=False):
    """L_BoW of one sentence; `past[t - 1]` is the vector of the past at step t.

    With `average`, as in the authors' program, a bag counts with the mean over its words, an empty one with 0.
    """
    length = len(targets)
    loss = torch.zeros((), dtype=embeddings.dtype)
    for t in range(1, length + 1):
        parts = zip(bags(t, length, described), (past, future), (w_past, w_future), strict=True)
        for bag, capsules, projection in parts:
            of_bag = -log_bag_probability(bag, capsules[t - 1], projection, embeddings, targets)
            loss = loss + (of_bag / max(1, len(bag)) if average else of_bag)
    return loss / length


def bca_loss(past, future, w_past, w_future, z, program=False):
    """L_BCA of one sentence: a squared norm, the contents of the target mapped to capsules, as printed.

    With `program`, as in the authors', capsules are mapped to contents, and it is a mean over dimensions.
    """
    length = len(z)
    loss = torch.zeros((), dtype=w_past.dtype)
    for t in range(1, length + 1):
        translated = sum(z[tau - 1] for tau in range(1, t + 1)) / t
        untranslated = sum(z[tau - 1] for tau in range(t, length + 1)) / (length - t + 1)
        for capsule, weight, content in ((past, w_past, translated), (future, w_future, untranslated)):
            if program:
                difference = weight @ capsule[t - 1] - content
                loss = loss + difference.dot(difference) / len(difference)
            else:
                difference = capsule[t - 1] - weight @ content
                loss = loss + difference.dot(difference)
    return loss / length


def training_loss(log_likelihoods, bow_losses, bca_losses, lambda_1=1, lambda_2=1):
    """L(theta): the mean over sentences of their negative log-likelihood and weighted losses."""
    total = 0
    for log_likelihood, bow, bca in zip(log_likelihoods, bow_losses, bca_losses, strict=True):
        total = total - log_likelihood + lambda_1 * bow + lambda_2 * bca
    return total / len(log_likelihoods)


def overlap_rates(past, future, w_past, w_future, embeddings, targets, described="overlap", top=5):
    """The overlap rates r_OL of the past and of the future (section 4.3), None without a bag.

    The bags are sets of words, Top_5t counts the words of a bag with repetitions, and a step with an empty bag (0 / 0:
    the future of the last one) is left out of the mean; `described` as for `bags`.
    """
    rates = []
    for group, (capsules, projection) in enumerate(((past, w_past), (future, w_future))):
        of_steps = []
        for t in range(1, len(targets) + 1):
            bag = [int(targets[tau - 1]) for tau in bags(t, len(targets), described)[group]]
            scores = [float(embedding.dot(projection @ capsules[t - 1])) for embedding in embeddings]
            probable = sorted(range(len(scores)), key=lambda word: -scores[word])[: top * len(bag)]
            if bag:
                of_steps.append(len(set(bag).intersection(probable)) / len(set(bag)))
        rates.append(sum(of_steps) / len(of_steps) if of_steps else None)
    return rates


def coverage_difference_ratio(reference_covers, generated_covers):
    """CDR of section 4.3: the share of the source words covered by the reference that the translation covers too."""
    return 1 - len(reference_covers - generated_covers) / len(reference_covers)
