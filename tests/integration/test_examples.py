"""The mechanisms and controls of examples/, in folders outside the checkout: alone, together, and by the scripts."""

import math
import re
import shutil
from argparse import Namespace

import pytest
import torch
from fairseq import utils

from capsule_routing.errors import UserError
from experiments.tables.definitions import load_table
from experiments.tables.runs import Workspace
from experiments.tables.scales import load_scale
from experiments.tables.steps import work_of
from fairseq_capsule.models.attention import SplitAttention
from fairseq_capsule.testing import INVARIANTS, build_small, check_on_changes_logits, make_batch, make_sentences
from fairseq_capsule.testing.small_models import LENGTHS
from fairseq_capsule_lab.runs import RunFolder
from tests.integration.commands import REPOSITORY, SMALL, TRAINING, last_line, run, train
from tests.integration.conftest import with_plugin
from tests.integration.preparing import Workplace
from tests.processes import run_forked

CONTROLS_FOLDER = REPOSITORY / "examples/controls"
CONTROLS = ("extra_ffn_transformer_tiny", "state_losses_transformer_tiny")


@pytest.fixture(scope="module", autouse=True)
def controls():
    """Register the controls. Not at import: other tests take their cases from the registry when they are collected."""
    utils.import_user_module(Namespace(user_dir=str(CONTROLS_FOLDER)))


@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda invariant: invariant.__name__)
@pytest.mark.parametrize("arch", CONTROLS)
def test_controls_keep_the_invariants(arch, invariant):
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
        output = run("train", data, "--arch", arch, *options, "--save-dir", tmp_path / arch, user_dir=CONTROLS_FOLDER)
        assert ("| state_bow_loss " in output) == ("| state_bca_loss " in output) == bool(suffix)


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
def test_mechanisms_keep_the_invariants(arch, options, invariant):
    invariant(arch, options)


def test_two_parts_that_combine_the_heads_are_refused():
    attention = SplitAttention(8, 2)
    attention.attach("head_routing", "heads", torch.nn.Identity())
    with pytest.raises(UserError, match="selective_attention and head_routing both combine the heads of an attention"):
        attention.attach("selective_attention", "heads", torch.nn.Identity())
    with pytest.raises(UserError, match="an attention already has a part head_routing; turn one of them off"):
        attention.attach("head_routing", "logits", torch.nn.Identity())
    with pytest.raises(ValueError, match="an attention has no part head; name factors, logits or heads"):
        attention.attach("selective_attention", "head", torch.nn.Identity())


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
    own = ["--user-dir", both]
    inspect = [*own, "inspect", checkpoint, data, "--ids", "0", "--out", tmp_path / "pages"]
    assert run_forked("fairseq_capsule_lab.cli", "main", inspect, tmp_path).returncode == 0
    assert (tmp_path / "pages/test-0-past-future.png").stat().st_size > 0
    analyze = [*own, "analyze", "iterations", checkpoint, "--data", data, "--out", tmp_path / "iterations"]
    options = ["--option", "head-routing-iterations", "--iterations", "1-2"]
    assert run_forked("fairseq_capsule_lab.cli", "main", [*analyze, *options], tmp_path).returncode == 0


EXAMPLE = REPOSITORY / "examples" / "k_means_routing"
ARCHITECTURE = "k_means_transformer_tiny"


@pytest.fixture(scope="module")
def k_means_routing(tmp_path_factory):
    """The folder of the package outside the checkout. The package is imported as by `--user-dir`."""
    folder = tmp_path_factory.mktemp("elsewhere") / "k_means_routing"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    utils.import_user_module(Namespace(user_dir=str(folder)))
    return folder


def blocks(language):
    page = (REPOSITORY / "docs/extending.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


@pytest.mark.parametrize("all_tests", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_python_blocks_of_the_page_are_one_program_whose_tests_pass(tmp_path, all_tests):
    """They check the invariants and, in minutes, exact resuming. A fork imports the example from its real folder."""
    program = "import sys\n\nsys.path.insert(0, 'examples')\n" + "".join(blocks("py(?:thon)?"))
    (tmp_path / "test_page.py").write_text(program, encoding="utf-8")
    chosen = [] if all_tests else ["-k", "not resumes"]
    words = ["-q", "-p", "no:cacheprovider", *chosen, tmp_path / "test_page.py"]
    finished = run_forked("pytest", "console_main", words, REPOSITORY)
    assert finished.returncode == 0, finished.stdout
    assert f"{2 * len(INVARIANTS) + all_tests} passed" in finished.stdout


def test_the_table_of_the_page_is_one(tmp_path):
    (table,) = blocks("yaml")
    (tmp_path / "mine.yaml").write_text(table, encoding="utf-8")
    work = work_of(
        load_table(str(tmp_path / "mine.yaml")), load_scale("smoke"), Workspace(tmp_path, tmp_path, REPOSITORY)
    )
    work.refuse_wrong_plugins()
    assert any("+model.k_means_iterations=5" in step.words for step in work.steps())


def test_shares_of_a_word_sum_to_one_and_centres_are_means(k_means_routing):
    from k_means_routing import k_means

    torch.manual_seed(1)
    values, centres = torch.randn(2, 5, 4, dtype=torch.float64), torch.randn(2, 3, 2, 4, dtype=torch.float64)
    padding_mask = torch.tensor([[False] * 5, [True, True, False, False, False]])
    for count in (1, 2):
        found = k_means(values, centres, count, padding_mask)
        for b in range(2):
            for t in range(3):
                expected = centres[b, t] if count == 1 else k_means(values, centres, 1, padding_mask).capsules[b, t]
                shares = torch.zeros(5, 2, dtype=torch.float64)
                for i in range(5):
                    if not padding_mask[b, i]:
                        cosines = [torch.cosine_similarity(values[b, i], expected[j], dim=0) for j in range(2)]
                        shares[i] = torch.stack(cosines).mul(4).softmax(0)
                means = [sum(shares[i, j] * values[b, i] for i in range(5)) / shares[:, j].sum() for j in range(2)]
                torch.testing.assert_close(found.coupling[b, t], shares, rtol=0, atol=1e-10)
                torch.testing.assert_close(found.capsules[b, t], torch.stack(means), rtol=0, atol=1e-10)


CONFIGURATION = """
common: {user_dir: k_means_routing, seed: 1}
task: {_name: capsule_translation, data: "???", source_lang: en, target_lang: de, log_routing: true}
model: {_name: k_means_transformer_tiny, encoder_layers: 1, decoder_layers: 1, share_all_embeddings: true}
criterion: {_name: label_smoothed_cross_entropy_with_routing_losses, label_smoothing: 0.1}
optimizer: {_name: adam}
lr_scheduler: {_name: inverse_sqrt, warmup_updates: 10}
optimization: {max_epoch: 1, lr: [0.001]}
dataset: {max_tokens: 2000, num_workers: 0}
hydra: {job: {chdir: false}}
"""


def test_the_scripts_train_evaluate_and_distil_with_it_and_it_can_be_inspected(k_means_routing, data, tmp_path):
    place = with_plugin(Workplace(tmp_path, "train.sh"))
    (tmp_path / "k_means_routing").symlink_to(k_means_routing)  # a relative user_dir is in the current folder
    (tmp_path / "mine.yaml").write_text(CONFIGURATION)
    log = place.prepared("mine.yaml", data, "--gpus", 0).output
    assert all(name in log for name in ("progress_loss", "routing_k_means_entropy", "routing_k_means_past"))
    plugin = str(tmp_path / "k_means_routing")
    assert RunFolder(place.out).settings().get("common.user_dir") == plugin

    (tmp_path / "prepared").mkdir()
    (tmp_path / "prepared/bin").symlink_to(data)
    (tmp_path / "prepared/raw").symlink_to(data.parent)
    options = ["--checkpoints", "checkpoint_last.pt", "--beam", 1, "out", "prepared"]
    place.script = "evaluate.sh"
    assert place.refused(place.prepare(*options), f"trained with the plugin {plugin}", "give its folder by --user-dir")
    process = place.prepare("--user-dir", plugin, *options)
    assert process.returncode == 0, process.errors
    assert (place.out / "evaluation/test/scores.json").exists()

    words = ["--user-dir", plugin, "inspect", "out/checkpoint_last.pt", data, "--ids", "0", "--out", "pages"]
    inspected = run_forked("fairseq_capsule_lab.cli", "main", words, tmp_path)
    assert inspected.returncode == 0, inspected.stderr
    assert (tmp_path / "pages/test-0-k-means.png").stat().st_size > 0
    assert "PAST and FUTURE by k-means" in (tmp_path / "pages/test-0.html").read_text(encoding="utf-8")

    place.script = "distill.sh"
    options = ["--shards", 1, "--beam", 1, "out/checkpoint_last.pt", data, "distilled"]
    assert "its architecture 'k_means_transformer_tiny' is unknown; " in last_line(place.prepare(*options).errors)
    process = place.prepare("--user-dir", plugin, *options)
    assert process.returncode == 0, process.errors
