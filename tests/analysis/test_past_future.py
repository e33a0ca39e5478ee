import pytest
import torch

from fairseq_capsule.analysis.past_future import past_future_assignment
from fairseq_capsule.analysis.plots import plot_assignment
from fairseq_capsule.errors import UserError
from tests.zoo import build, make_batch, make_sentences

SENTENCE = make_sentences([(6, 4)])[0]


@pytest.mark.parametrize("arch", ["gdr_transformer_base", "gdr_lstm"])
@pytest.mark.parametrize("past_future, columns", [("gdr", 3), ("clf", 3), ("attn", 2)])
def test_the_assignment_is_the_forward_passs_own(arch, past_future, columns):
    model = build(arch, {"past_future": past_future}).train()
    shares = past_future_assignment(model, SENTENCE["source"], SENTENCE["target"])
    assert shares.shape == (5, 7, columns) and model.training
    routed = model.eval()(**make_batch([SENTENCE])["net_input"])[1]["past_future"]
    capsules = {"gdr": [[0, 1], [2, 3], [4, 5]], "clf": [[0], [1], [2]], "attn": [[0], [1]]}[past_future]
    expected = torch.stack([routed.coupling[0][..., own].sum(-1) for own in capsules], dim=-1)
    torch.testing.assert_close(shares, expected)
    if past_future != "attn":  # every word goes somewhere; there, every content takes from somewhere
        torch.testing.assert_close(shares.sum(-1), torch.ones(5, 7))
    else:
        torch.testing.assert_close(shares.sum(1), torch.ones(5, 2))


def test_without_redundant_capsules_there_are_two_contents():
    model = build("gdr_transformer_base", {"redundant_capsules": 0})
    assert past_future_assignment(model, SENTENCE["source"], SENTENCE["target"]).shape == (5, 7, 2)


@pytest.mark.parametrize("arch", ["capsule_transformer", "capsule_lstm"])
def test_a_model_without_past_and_future_is_named(arch):
    with pytest.raises(UserError, match="has no PAST and FUTURE to show"):
        past_future_assignment(build(arch), SENTENCE["source"], SENTENCE["target"])


def test_the_picture_shows_the_numbers():
    shares = past_future_assignment(build("gdr_transformer_base"), SENTENCE["source"], SENTENCE["target"])
    figure = plot_assignment(shares, [*"abcdefg"], [*"vwxyz"], "a title")
    panels = [axis for axis in figure.axes if axis.images and axis.get_title()]
    assert [axis.get_title() for axis in panels] == ["PAST", "FUTURE", "redundant"]
    for axis, expected in zip(panels, shares.unbind(-1)):
        torch.testing.assert_close(torch.tensor(axis.images[0].get_array().data), expected)
        assert [label.get_text() for label in axis.get_xticklabels()] == [*"abcdefg"]
