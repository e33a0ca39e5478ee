"""The probe: its input, its parameters and its recall."""

import pytest
import torch
from omegaconf import OmegaConf

from capsule_routing.errors import UserError
from capsule_routing.losses import bag_prediction_loss, bag_recall
from capsule_routing.modules import GlobalRepresentation
from fairseq_capsule.criterions.bag_of_words_probe import source_vector
from fairseq_capsule.tasks.capsule_translation import CapsuleTranslationConfig, CapsuleTranslationTask
from tests.references import weng2020
from tests.zoo import LENGTHS, build, encode, make_batch, make_sentences, make_task

BATCH = make_batch(make_sentences(LENGTHS))


def probe(arch, reads, **options):
    plain = make_task()
    task = CapsuleTranslationTask(CapsuleTranslationConfig(), plain.src_dict, plain.tgt_dict)
    model = task.model = build(arch, options, task)
    return model, task.build_criterion(OmegaConf.create({"_name": "bag_of_words_probe", "probe_reads": reads}))


@pytest.mark.parametrize("arch, left_pad_source", [("gret_transformer_base", True), ("capsule_lstm", False)])
def test_the_probe_reads_the_configured_vector(arch, left_pad_source):
    batch = make_batch(make_sentences(LENGTHS), left_pad_source)
    model = build(arch, {"dropout": 0.3}).train()
    states, mask = encode(model.eval(), batch)
    model.train()
    last, mean = (source_vector(model, batch["net_input"], reads) for reads in ("last", "mean"))
    for row in range(4):
        own = states[row][~mask[row]]
        torch.testing.assert_close(last[row], own[-1])
        torch.testing.assert_close(mean[row], own.mean(0))
    assert model.training
    if arch == "gret_transformer_base":
        vector = model.eval().encoder(batch["net_input"]["src_tokens"], batch["net_input"]["src_lengths"])
        torch.testing.assert_close(
            source_vector(model, batch["net_input"], "global"), vector["global_representation"][0]
        )


@pytest.mark.parametrize("arch, reads", [("gret_transformer_base", "global"), ("gdr_lstm", "mean")])
def test_only_the_predictor_is_trained(arch, reads):
    model, criterion = probe(arch, reads)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert not [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(criterion.parameters(), lr=1e-2)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss, sample_size, log = criterion(model, BATCH)
        (loss / sample_size).backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.8 * losses[0] and "bag_recall_200" not in log
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    log = criterion.eval()(model, BATCH)[2]
    assert log["bag_recall_200"] == log["bag_recall_1000"] == 4  # all 44 words are among the first 200


def test_the_bag_is_the_target_without_the_end_of_the_sentence():
    model, criterion = probe("gret_transformer_base", "global")
    rows = zip(criterion.logits(model, BATCH).log_softmax(-1), BATCH["target"])
    expected = -sum(row[target[target > 2]].mean() for row, target in rows)  # no <pad>, no </s>
    torch.testing.assert_close(criterion(model, BATCH)[0], expected)


def test_a_model_without_a_global_vector_is_refused():
    with pytest.raises(UserError, match="--probe-reads global: no mechanism of the model gives a vector"):
        probe("capsule_transformer", "global")


def test_a_tensor_of_another_shape_is_refused(monkeypatch):
    monkeypatch.setattr(GlobalRepresentation, "forward", lambda self, layers, mask: torch.zeros(len(mask), 31))
    message = r"global_representation gives a tensor \[1, 31\], not one vector for each sentence \[1, 32\]; read last"
    with pytest.raises(UserError, match=message):
        probe("gret_transformer_base", "global")


def test_recall_equals_a_result_by_hand():
    logits = torch.tensor([[4.0, 3, 2, 1], [1, 2, 3, 4]])
    target = torch.tensor([[0, 0, 2], [1, 3, 9]])
    mask = torch.tensor([[False, False, False], [False, False, True]])
    # The two most probable words are {0, 1} and {2, 3}. The bags are {0, 2} and {1, 3}: one of two words in each.
    assert float(bag_recall(logits, target, mask, 2)) == pytest.approx(0.5 + 0.5)
    for scores, bag in ((logits[0], [0, 0, 2]), (logits[1], [1, 3])):
        assert weng2020.bag_of_words_precision(scores, bag, top=2) == 0.5
    alike = bag_recall(torch.zeros(2, 8), target, mask, 2)  # only two count, even if all are equally probable
    assert float(alike) <= 1
    assert float(bag_recall(logits, target, mask, 3)) == pytest.approx(1 + 1)
    assert float(bag_recall(logits, target, mask, 100)) == pytest.approx(2)


def test_the_prediction_loss_equals_a_result_by_hand():
    logits = torch.log(torch.tensor([[0.5, 0.25, 0.25]]))
    target, mask = torch.tensor([[0, 1, 7]]), torch.tensor([[False, False, True]])
    expected = -(torch.log(torch.tensor(0.5)) + torch.log(torch.tensor(0.25))) / 2
    torch.testing.assert_close(bag_prediction_loss(logits, target, mask), expected)
