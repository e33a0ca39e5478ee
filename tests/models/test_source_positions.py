"""What a model says of source positions is the same for a sentence alone and in a batch with a longer one."""

from argparse import Namespace

import numpy as np
import pytest
from fairseq import utils
from fairseq.data.language_pair_dataset import collate
from fairseq.models import build_model
from fairseq.sequence_generator import SequenceGeneratorWithAlignment

from fairseq_capsule.tasks.capsule_translation import CapsuleTranslationConfig, CapsuleTranslationTask
from fairseq_capsule_lab.analysis.assignment import assignments
from tests.zoo import SYSTEMS, build, make_batch, make_sentences, make_task

SHORT, LONG = make_sentences([(5, 4), (11, 9)])
ATTENTIVE = [arch for arch in SYSTEMS if not arch.startswith(("capsnmt", "simple_aggregation"))]

ENSEMBLE = ["gdr_lstm", "capsule_transformer_tiny", "capsule_lstm"]


def alone_and_together(consumer):
    """Return what a consumer of batches says of the short sentence, alone and in a batch with the long one."""
    results = []
    for sentences in ([SHORT], [SHORT, LONG]):
        batch = make_batch(sentences)
        results.append(consumer(batch, batch["id"].tolist().index(SHORT["id"])))
    return results


def aligned(models):
    """Return a consumer of a batch that gives hard and soft alignments of the translations of a row."""
    dictionary = models[0].decoder.dictionary
    generator = SequenceGeneratorWithAlignment(models, dictionary, beam_size=2, max_len_b=6)

    def align(batch, row):
        hypotheses = generator.generate(models, batch)[row]
        source = batch["net_input"]["src_tokens"][row]
        soft = [
            utils.extract_soft_alignment(item["attention"].T, source, item["tokens"], dictionary.pad(), None)
            for item in hypotheses
        ]
        return [item["alignment"] for item in hypotheses], [np.array(shares, dtype=float) for shares in soft]

    return align


@pytest.mark.parametrize("systems", [*([arch] for arch in ATTENTIVE), ENSEMBLE], ids="+".join)
def test_alignments(systems):
    models = [build(arch) for arch in systems]
    (hard, soft), (hard_together, soft_together) = alone_and_together(aligned(models))
    assert hard == hard_together and any(hard)
    for alone, together in zip(soft, soft_together, strict=True):
        np.testing.assert_allclose(together, alone, atol=1e-5)


@pytest.mark.parametrize("arch", sorted(set(SYSTEMS) - set(ATTENTIVE)))
def test_a_model_without_attention_to_words_has_no_alignments(arch):
    with pytest.raises(IndexError):  # of fairseq, which finds no attention
        alone_and_together(aligned([build(arch)]))


def test_alignments_of_fairseqs_lstm():
    """fairseq's encoder moves the padding to the right. The task gives it sources that are padded there already."""
    model = build_model(Namespace(arch="lstm", criterion=None), make_task()).eval()
    task = CapsuleTranslationTask(CapsuleTranslationConfig(), *[make_task().src_dict] * 2)
    generator = task.build_generator([model], Namespace(beam=2, print_alignment="hard", max_len_b=8))

    def align(batch, row):
        return [hypothesis["alignment"] for hypothesis in task.inference_step(generator, [model], batch)[row]]

    alone, together = alone_and_together(align)
    assert alone == together and any(alone)


@pytest.mark.parametrize("arch", [arch for arch in SYSTEMS if arch.startswith("gdr")])
def test_assignments(arch):
    model = build(arch)

    def shares(batch, row):
        words = [[*range(length - 1)] for length in batch["net_input"]["src_lengths"]]
        systems = assignments(model, batch["net_input"]["src_tokens"], batch["net_input"]["prev_output_tokens"], words)
        return [array for assignment in [*systems][row].values() for array in assignment if array is not None]

    for alone, together in zip(*alone_and_together(shares), strict=True):
        np.testing.assert_allclose(together, alone, atol=1e-5)


@pytest.mark.parametrize("arch", [arch for arch in SYSTEMS if arch.startswith("gdr_transformer")])
def test_assignments_of_targets_that_are_padded_on_the_left(arch):
    model, batches = build(arch), []
    for side in (False, True):
        batch = collate([SHORT, LONG], pad_idx=1, eos_idx=2, left_pad_target=side)
        words = [[*range(length - 1)] for length in batch["net_input"]["src_lengths"]]
        inputs = batch["net_input"]["src_tokens"], batch["net_input"]["prev_output_tokens"]
        batches.append([*assignments(model, *inputs, words)])
    for right, left in zip(*batches, strict=True):
        for name, assignment in right.items():
            for one, other in zip(assignment, left[name], strict=True):
                assert one is other is None or np.allclose(one, other, atol=1e-5)
