"""The vector of GRET in a model: parameters, the encoder's output, options."""

from functools import partial

import pytest
import torch

from tests.zoo import LENGTHS, build, count_parameters, make_batch, make_sentences

BATCH = make_batch(make_sentences(LENGTHS))
SOURCE = BATCH["net_input"]["src_tokens"], BATCH["net_input"]["src_lengths"]


def test_the_base_preset_has_the_expected_parameters():
    """Table 3: 1.5M for the capsules. Its 4.7M for the cell and 0.2M for the gate do not follow from the equations."""
    parameters = partial(count_parameters, "gret_transformer_base")
    whole = parameters()
    votes, query, output = 512 * 512, 2 * (16 * 16 + 16), 16 * 512 + 512 + 512 * 512 + 512
    gate, aggregation = 2 * 512 * 512 + 512, 2 * (3 * 512 * 512 + 3 * 512)
    assert whole - parameters(global_representation="none") == 6 * (votes + query + output) + gate + aggregation
    assert whole - parameters(global_gate="none") == gate == 524_800
    assert whole - parameters(global_aggregation="none") == aggregation + 5 * (votes + query + output)
    mean = 2 * (512 * 512 + 512)
    assert whole - parameters(global_representation="mean") == 6 * (votes + query + output - mean)


@pytest.mark.parametrize("normalize_before", [False, True])
def test_the_vector_is_computed_from_the_output_of_every_layer(normalize_before):
    model = build("gret_transformer_base", {"encoder_normalize_before": normalize_before})
    encoded = model.encoder(*SOURCE, return_all_hiddens=True)
    assert len(encoded["encoder_states"]) == 3  # embeddings and two layers
    layers = [encoded["encoder_states"][1].transpose(0, 1), encoded["encoder_out"][0].transpose(0, 1)]
    vector = model.encoder.global_representation(layers, encoded["encoder_padding_mask"][0])
    torch.testing.assert_close(encoded["global_representation"][0], vector)


def test_the_vector_is_part_of_the_encoder_s_output():
    model = build("gret_transformer_base")
    encoded = model.encoder(*SOURCE)
    assert encoded["encoder_states"] == []  # otherwise a generator reorders them at every step
    order = torch.tensor([2, 2, 0])
    reordered = model.encoder.reorder_encoder_out(encoded, order)
    assert torch.equal(reordered["global_representation"][0], encoded["global_representation"][0][order])
    assert "global_representation" not in build("capsule_transformer").encoder(*SOURCE)
