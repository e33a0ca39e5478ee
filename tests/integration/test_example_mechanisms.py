"""examples/head_routing and examples/layer_aggregation outside the checkout, alone and in a model with GDR and GRET."""

import copy
import math
import pickle
import shutil
import subprocess
import sys
from argparse import Namespace

import pytest
import torch
from fairseq import utils

from capsule_routing.errors import UserError
from fairseq_capsule.models.attention import SplitAttention
from fairseq_capsule.testing import INVARIANTS, build_small
from tests.integration.commands import REPOSITORY, SMALL, TRAINING, run, train

BOTH = """
from fairseq_capsule.extending import add_presets
from head_routing import HEAD_ROUTING
from layer_aggregation import LAYER_AGGREGATION

OTHERS = {"past_future": "gdr", "guided_heads": "both", "global_representation": "capsule", "global_capsules": 4}
add_presets("both", HEAD_ROUTING, LAYER_AGGREGATION, on={**OTHERS, "head_routing_capsules": 4})
"""
CASES = [
    ("head_routing_transformer_tiny", {"head_routing_capsules": 4}),
    ("head_routing_transformer_tiny", {"head_routing_capsules": 4, "head_routing": "em"}),
    ("layer_aggregation_transformer_tiny", {}),
    ("both_transformer_tiny", {}),
]


@pytest.fixture(scope="module", autouse=True)
def both(tmp_path_factory):
    """The folder of a package that imports both examples. It is imported as by `--user-dir`."""
    place = tmp_path_factory.mktemp("elsewhere")
    for name in ("head_routing", "layer_aggregation"):
        shutil.copytree(REPOSITORY / "examples" / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    (place / "both").mkdir()
    (place / "both/__init__.py").write_text(BOTH)
    utils.import_user_module(Namespace(user_dir=str(place / "both")))
    return place / "both"


@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda invariant: invariant.__name__)
@pytest.mark.parametrize("arch, options", CASES, ids=str)
def test_they_keep_the_invariants(arch, options, invariant):
    invariant(arch, options)


@pytest.mark.parametrize("arch, options", CASES, ids=str)
def test_they_can_be_copied_and_pickled(arch, options):
    model = build_small(arch, options)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        for name, value in other.state_dict().items():
            assert torch.equal(value, model.state_dict()[name])


def test_two_parts_that_combine_the_heads_are_refused():
    attention = SplitAttention(8, 2)
    attention.attach("head_routing", "heads", torch.nn.Identity())
    with pytest.raises(UserError, match="selective_attention and head_routing both combine the heads of an attention"):
        attention.attach("selective_attention", "heads", torch.nn.Identity())
    with pytest.raises(UserError, match="an attention already has a part head_routing; turn one of them off"):
        attention.attach("head_routing", "logits", torch.nn.Identity())
    with pytest.raises(ValueError, match="an attention has no part head; name factors, logits or heads"):
        attention.attach("selective_attention", "head", torch.nn.Identity())


def test_layerdrop_is_refused_by_name():
    message = "layerdrop does not work with layer_aggregation, which reads the output of every layer; use no --lay"
    for side in ("encoder", "decoder"):
        with pytest.raises(UserError, match=message):
            build_small("layer_aggregation_transformer_tiny", {f"{side}_layerdrop": 0.1})


def test_em_routing_equals_its_steps():
    from head_routing import SMALLEST_VARIANCE, em_routing

    torch.manual_seed(1)
    votes = torch.randn(2, 3, 2, 4, dtype=torch.float64)
    cost, threshold = torch.randn(2, 2, dtype=torch.float64)
    for iterations in (1, 3):
        routed = em_routing(votes, cost, threshold, iterations)
        for b in range(2):
            shares = [[0.5, 0.5] for _ in range(3)]
            for t in range(1, iterations + 1):
                means, variances, activations = [], [], []
                for n in range(2):
                    amount = sum(shares[m][n] for m in range(3))
                    mean = sum(shares[m][n] * votes[b, m, n] for m in range(3)) / amount
                    spread = sum(shares[m][n] * (votes[b, m, n] - mean) ** 2 for m in range(3)) / amount
                    variance = spread + SMALLEST_VARIANCE
                    total = sum((cost[n] + math.log(math.sqrt(v))) * amount for v in variance)
                    means.append(mean)
                    variances.append(variance)
                    activations.append(1 / (1 + math.exp(-t / iterations * (threshold[n] - total))))
                if t == iterations:
                    break
                for m in range(3):
                    densities = []
                    for n in range(2):
                        exponent = sum((votes[b, m, n] - means[n]) ** 2 / (2 * variances[n]))
                        norm = math.sqrt(math.prod(2 * math.pi * v for v in variances[n].tolist()))
                        densities.append(activations[n] * math.exp(-exponent) / norm)
                    shares[m] = [density / sum(densities) for density in densities]
            expected = torch.stack([activations[n] * means[n] for n in range(2)])
            torch.testing.assert_close(routed.capsules[b], expected, rtol=0, atol=1e-10)
            coupling = torch.tensor(shares, dtype=torch.float64)
            torch.testing.assert_close(routed.coupling[b], coupling, rtol=0, atol=1e-10)


def test_all_in_one_model(both, data, tmp_path):
    """It starts from a baseline, resumes, translates, and can be inspected and analysed."""
    layers = [*SMALL, "--encoder-layers", 3]
    train(data, tmp_path / "baseline", *layers, "--max-epoch", 1, arch="transformer")
    start = ["--task", "capsule_translation", "--init-from-baseline", tmp_path / "baseline/checkpoint_last.pt"]
    criterion = ["--criterion", "label_smoothed_cross_entropy_with_routing_losses"]
    words = ["--arch", "both_transformer_tiny", *layers, *TRAINING, *criterion, "--save-dir", tmp_path / "run"]
    output = run("train", data, *words, *start, "--max-epoch", 1, user_dir=both)
    assert "| bow_loss " in output and "head_routing" in output and "layer_aggregation" in output
    output = run("train", data, *words, *start, "--max-epoch", 2, user_dir=both)
    assert "Loaded checkpoint" in output and "epoch 002" in output
    checkpoint = tmp_path / "run/checkpoint_last.pt"
    output = run("generate", data, "--path", checkpoint, "--cpu", "--beam", 2, user_dir=both)
    assert "Generate test with beam=2: BLEU4 = " in output
    own = [sys.executable, "-m", "fairseq_capsule_lab.cli", "--user-dir", both]
    inspect = [*own, "inspect", checkpoint, data, "--ids", "0", "--out", tmp_path / "pages"]
    subprocess.run(list(map(str, inspect)), check=True)
    assert (tmp_path / "pages/test-0-past-future.png").stat().st_size > 0
    analyze = [
        *own,
        "analyze",
        "iterations",
        checkpoint,
        "--data",
        data,
        "--iterations",
        "1-2",
        "--out",
        tmp_path / "iterations",
    ]
    subprocess.run(list(map(str, [*analyze, "--option", "head-routing-iterations"])), check=True)
