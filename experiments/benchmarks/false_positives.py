"""Measure how often a comparison over seeds finds a difference where there is none, for three forms of the test.

    python experiments/benchmarks/false_positives.py        # a minute on one core

- `t`: the form of `fairseq-capsule seeds` (fairseq_capsule_lab/evaluation/seeds.py)
- `counted once`: the same, but the variation over sentences in one training only is subtracted from the jackknife,
  because the variation over seeds contains it too
- `bootstrap`: seeds and sentences drawn with replacement, the sentences alike for all seeds; the middle of the means

The score of a training is a mean over sentences. The difference of a sentence is a sum of three normal variables: one
for the training (standard deviation A of the mean), one for the sentence in this training (B), one for the sentence in
all trainings alike (C). Each form is measured at the level of one comparison and at that of one claim of several.
"""

import argparse

import numpy as np

from fairseq_capsule_lab.evaluation.seeds import half_width

# (A, B, C) in BLEU; the first has about the sizes of the fine-tuned systems in docs/results.md.
DEVIATIONS = [(0.16, 0.18, 0.04), (0.25, 0.18, 0.04), (0.5, 0, 0.25), (0.5, 0, 0.1), (0, 0, 0.25), (0.5, 0, 0)]


def differences(random, deviations, comparisons, seeds, sentences):
    """Draw the difference of each sentence: `[comparisons, seeds, sentences]`. The true difference is 0."""
    of_seed, of_both, of_sentence = deviations
    drawn = random.normal(0, of_seed, (comparisons, seeds, 1))
    drawn = drawn + random.normal(0, of_sentence * sentences**0.5, (comparisons, 1, sentences))
    drawn += random.normal(0, of_both * sentences**0.5, (comparisons, seeds, sentences))
    return drawn.astype(np.float32)


def resampled_means(random, drawn, samples=1000):
    """Compute means of seeds and sentences that are drawn with replacement: `[comparisons, samples]`."""
    _, seeds, sentences = drawn.shape
    of_sentences = random.multinomial(sentences, [1 / sentences] * sentences, samples).astype(np.float32) / sentences
    of_seeds = random.multinomial(seeds, [1 / seeds] * seeds, samples).astype(np.float32) / seeds
    return np.einsum("csr,rs->cr", drawn @ of_sentences.T, of_seeds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--comparisons", type=int, default=5000)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--claims", type=int, default=8, help="with which the level of one comparison, 5%%, is divided")
    args = parser.parse_args()
    random = np.random.default_rng(1)
    levels = (0.05, 0.05 / args.claims)
    forms = [f"{form}, {100 * level:.2g}%" for level in levels for form in ("t", "counted once", "bootstrap")]
    print("| " + " | ".join(["A", "B", "C", "seeds", *forms]) + " |")
    print("|---|---|---|---|" + "---|" * len(forms))
    for deviations in DEVIATIONS:
        for seeds in (3, 5):
            drawn = differences(random, deviations, args.comparisons, seeds, args.sentences)
            scores = drawn.mean(2)
            distance = abs(scores.mean(1))
            over_seeds = scores.var(1, ddof=1) / seeds
            jackknife = drawn.mean(1).var(1, ddof=1) / args.sentences  # C² + B² / seeds
            within = drawn.var(2, ddof=1).mean(1) / args.sentences  # C² + B²
            once = np.maximum(0, (seeds * jackknife - within) / (seeds - 1))  # C²
            means = resampled_means(random, drawn)
            cells = []
            for level in levels:
                low, high = np.quantile(means, [level / 2, 1 - level / 2], axis=1)
                cells.append(distance > half_width(over_seeds, jackknife**0.5, seeds, level))
                cells.append(distance > half_width(over_seeds, once**0.5, seeds, level))
                cells.append((low > 0) | (high < 0))
            rates = (f"{100 * cell.mean():.1f}%" for cell in cells)
            print("| " + " | ".join([*map(str, deviations), str(seeds), *rates]) + " |", flush=True)


if __name__ == "__main__":
    main()
