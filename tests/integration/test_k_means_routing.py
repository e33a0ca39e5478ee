"""The example of a mechanism in a separate package, used from a folder outside the checkout."""

import re
import shutil
from argparse import Namespace

import pytest
import torch
from fairseq import utils

from fairseq_capsule.tasks.capsule_translation import routing_sums
from fairseq_capsule.testing import INVARIANTS, build_small, make_batch, make_sentences
from fairseq_capsule.testing.small_models import LENGTHS
from fairseq_capsule_lab.analysis.iterations import routing_option
from fairseq_capsule_lab.runs import RunFolder
from fairseq_capsule_lab.tables.definitions import load_table
from fairseq_capsule_lab.tables.runs import Places
from fairseq_capsule_lab.tables.scales import load_scale
from fairseq_capsule_lab.tables.steps import work_of
from tests.integration.commands import REPOSITORY, SMALL, TRAINING, last_line, run
from tests.integration.conftest import with_plugin
from tests.integration.preparing import Workplace
from tests.processes import run_forked

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


def test_the_python_blocks_of_the_page_are_one_program_whose_tests_pass(tmp_path):
    """They check the invariants and exact resuming. A fork imports the example from its real folder."""
    program = "import sys\n\nsys.path.insert(0, 'examples')\n" + "".join(blocks("py(?:thon)?"))
    (tmp_path / "test_page.py").write_text(program, encoding="utf-8")
    words = ["-q", "-p", "no:cacheprovider", tmp_path / "test_page.py"]
    finished = run_forked("pytest", "console_main", words, REPOSITORY)
    assert finished.returncode == 0, finished.stdout
    assert f"{3 * len(INVARIANTS) + 1} passed" in finished.stdout


def test_the_table_of_the_page_is_one(tmp_path):
    (table,) = blocks("yaml")
    (tmp_path / "mine.yaml").write_text(table, encoding="utf-8")
    work = work_of(load_table(str(tmp_path / "mine.yaml")), load_scale("smoke"), Places(tmp_path, tmp_path, REPOSITORY))
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


def test_it_trains_translates_and_can_be_inspected(k_means_routing, data, tmp_path):
    """With the real commands, in a folder that is not a checkout."""
    criterion = [
        "--criterion",
        "label_smoothed_cross_entropy_with_routing_losses",
        "--task",
        "capsule_translation",
        "--log-routing",
    ]
    arguments = ["--arch", ARCHITECTURE, *SMALL, *TRAINING, *criterion, "--max-epoch", 2]
    output = run("train", data, *arguments, "--save-dir", tmp_path, user_dir=k_means_routing, cwd=tmp_path)
    assert all(name in output for name in ("progress_loss", "routing_k_means_entropy", "routing_k_means_past"))
    checkpoint = tmp_path / "checkpoint_last.pt"
    generated = run("generate", data, "--path", checkpoint, "--cpu", "--beam", 3, user_dir=k_means_routing)
    assert "Generate test with beam=3: BLEU4 = " in generated
    words = ["--user-dir", k_means_routing, "inspect", checkpoint, data, "--ids", "0", "--out", tmp_path / "pages"]
    inspected = run_forked("fairseq_capsule_lab.cli", "main", words, tmp_path)
    assert inspected.returncode == 0, inspected.stderr
    assert (tmp_path / "pages" / "test-0-k-means.png").stat().st_size > 0
    assert "PAST and FUTURE by k-means" in (tmp_path / "pages" / "test-0.html").read_text(encoding="utf-8")


CONFIGURATION = """
common: {user_dir: k_means_routing, seed: 1}
task: {_name: capsule_translation, data: "???", source_lang: en, target_lang: de}
model: {_name: k_means_transformer_tiny, encoder_layers: 1, decoder_layers: 1, share_all_embeddings: true}
criterion: {_name: label_smoothed_cross_entropy_with_routing_losses, label_smoothing: 0.1}
optimizer: {_name: adam}
lr_scheduler: {_name: inverse_sqrt, warmup_updates: 10}
optimization: {max_epoch: 1, lr: [0.001]}
dataset: {max_tokens: 2000, num_workers: 0}
hydra: {job: {chdir: false}}
"""


def test_the_scripts_train_evaluate_and_distil_with_it(k_means_routing, data, tmp_path):
    place = with_plugin(Workplace(tmp_path, "train.sh"))
    (tmp_path / "k_means_routing").symlink_to(k_means_routing)  # a relative user_dir is in the current folder
    (tmp_path / "mine.yaml").write_text(CONFIGURATION)
    place.prepared("mine.yaml", data, "--gpus", 0)
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

    place.script = "distill.sh"
    options = ["--shards", 1, "--beam", 1, "out/checkpoint_last.pt", data, "distilled"]
    assert "the architecture 'k_means_transformer_tiny' is unknown; " in last_line(place.prepare(*options).errors)
    process = place.prepare("--user-dir", plugin, *options)
    assert process.returncode == 0, process.errors


def test_its_iterations_are_an_option_of_analyze(k_means_routing):
    assert routing_option("it", build_small(ARCHITECTURE)) == "k_means_iterations"


@pytest.mark.parametrize("arch", [ARCHITECTURE, "k_means_lstm"])
@pytest.mark.parametrize("left_pad", [True, False])
def test_its_statistics_ignore_padding(k_means_routing, arch, left_pad):
    model, sentences = build_small(arch), make_sentences(LENGTHS)
    together = routing_sums(model, make_batch(sentences, left_pad)["net_input"])
    apart = [routing_sums(model, make_batch([sentence])["net_input"]) for sentence in sentences]
    for name, total in together.items():
        torch.testing.assert_close(total, sum(sums[name] for sums in apart), rtol=1e-4, atol=1e-4)
    assert together["routing_k_means_past_count"] == sum((i + 1) * (t + 1) for i, t in LENGTHS)
