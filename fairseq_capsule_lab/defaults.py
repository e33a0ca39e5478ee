"""The defaults that documents promise. Commands, help and pages read them here; tests compare documents and configs."""

BEAM, LENGTH_PENALTY, NBEST = 5, 1.0, 1  # of decoding, where the configuration of a run has none
MAX_TOKENS = 12_000  # in a batch of decoding
TEACHER_BEAM, TEACHER_LENGTH_PENALTY = 8, 0.8  # of distillation, as in Wang et al. 2019
# Of your own text.
MERGES = 10_000
MAX_LENGTH, RATIO = 250, 9  # words of a sentence, and words of a sentence for each word of the other side
DROPOUT = 0.3  # of configs/own
