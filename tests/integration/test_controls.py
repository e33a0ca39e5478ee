"""examples/controls: they keep the invariants, have the size that they state, and start where their baseline ends."""

from argparse import Namespace

import pytest
import torch
from fairseq import utils

from fairseq_capsule.testing import INVARIANTS, build_small, check_on_changes_logits, make_batch, make_sentences
from fairseq_capsule.testing.small_models import LENGTHS
from tests.integration.commands import REPOSITORY, SMALL, TRAINING, run, train

PLUGIN = REPOSITORY / "examples/controls"
CONTROLS = ("extra_ffn_transformer_tiny", "state_losses_transformer_tiny")


@pytest.fixture(scope="module", autouse=True)
def plugin():
    """Register the controls. Not at import: other tests take their cases from the registry when they are collected."""
    utils.import_user_module(Namespace(user_dir=str(PLUGIN)))


@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda invariant: invariant.__name__)
@pytest.mark.parametrize("arch", CONTROLS)
def test_they_keep_the_invariants(arch, invariant):
    if arch.startswith("state") and invariant is check_on_changes_logits:
        with pytest.raises(AssertionError, match="state_losses has no effect"):  # it adds losses only
            invariant(arch)
    else:
        invariant(arch)


def test_the_feed_forward_layers_have_as_many_parameters_as_gdr():
    def added(arch, part, **options):
        return sum(weight.numel() for weight in getattr(build_small(arch, **options).decoder, part).parameters())

    gdr, control = added("gdr_transformer_tiny", "past_future"), added("extra_ffn_transformer_tiny", "extra_ffn")
    size = build_small("extra_ffn_transformer_tiny").decoder.output_embed_dim
    assert gdr == 16 * size**2 + 3.5 * size and control == gdr + 5.5 * size


def test_the_losses_change_the_state_but_not_the_translation():
    model = build_small("state_losses_transformer_tiny")
    batch = make_batch(make_sentences(LENGTHS))
    logits, extra = model(**batch["net_input"])
    for head in model.decoder.state_losses.parameters():
        torch.nn.init.normal_(head)
    torch.testing.assert_close(model(**batch["net_input"])[0], logits, rtol=0, atol=0)
    assert extra["state_losses"][0].requires_grad


def test_the_commands_of_the_page_start_from_a_baseline(data, tmp_path):
    train(data, tmp_path / "baseline", *SMALL, "--max-epoch", 1, arch="transformer")
    start = ["--task", "capsule_translation", "--init-from-baseline", tmp_path / "baseline/checkpoint_last.pt"]
    for arch in CONTROLS:
        suffix = "_with_routing_losses" if arch.startswith("state") else ""
        options = [*SMALL, *TRAINING, *start, "--criterion", f"label_smoothed_cross_entropy{suffix}", "--max-epoch", 1]
        output = run("train", data, "--arch", arch, *options, "--save-dir", tmp_path / arch, user_dir=PLUGIN)
        assert ("| state_bow_loss " in output) == ("| state_bca_loss " in output) == bool(suffix)
