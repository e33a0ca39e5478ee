"""Dynamic Past and Future with the real command lines."""

import re

import pytest

from fairseq_capsule.checkpoints.loading import read_checkpoint
from fairseq_capsule.models import CapsuleTransformerModel
from fairseq_capsule_lab.cli import main
from tests.integration.commands import REPOSITORY, run, train
from tests.processes import run_script

FROM_BASELINE = "--init-from-baseline"


@pytest.fixture(scope="module")
def baselines(data, tmp_path_factory):
    """fairseq's models for each of our kinds, trained for one epoch."""
    folder = tmp_path_factory.mktemp("baselines")
    layers = "--encoder-layers 2 --decoder-layers 2 --encoder-ffn-embed-dim 48 --decoder-ffn-embed-dim 48".split()
    width = "--encoder-embed-dim 32 --decoder-embed-dim 32".split()
    heads = "--encoder-attention-heads 4 --decoder-attention-heads 4".split()
    train(data, folder / "transformer", "--max-epoch", 1, *width, *layers, *heads, arch="transformer")
    directions = ["--encoder-bidirectional", "--decoder-out-embed-dim", 32]
    train(data, folder / "lstm", "--max-epoch", 1, *width, *directions, arch="lstm")
    return {kind: folder / kind / "checkpoint_last.pt" for kind in ("transformer", "lstm")}


def hypotheses(checkpoint, data):
    """Return the hypotheses by the number of the sentence, and their scores."""
    options = "--cpu --beam 3 --max-len-b 20 --required-batch-size-multiple 1".split()
    output = run("generate", data, "--path", checkpoint, *options)
    found = re.findall(r"^H-(\d+)\t(\S+)\t(.*)", output, re.M)
    return {number: text for number, _, text in found}, {number: float(score) for number, score, _ in found}


@pytest.mark.parametrize("kind, arch", [("transformer", "gdr_transformer_tiny"), ("lstm", "gdr_lstm")])
def test_before_training_it_translates_like_its_baseline(data, tmp_path, baselines, kind, arch):
    start = (FROM_BASELINE, baselines[kind])
    output = train(data, tmp_path / "untrained", *start, "--max-update", 1, "--lr", 0, arch=arch)
    assert re.search(r"took \d+ of the model's \d+ parameter tensors; new: decoder.past_future", output)
    texts, scores = hypotheses(tmp_path / "untrained/checkpoint_last.pt", data)
    baseline_texts, baseline_scores = hypotheses(baselines[kind], data)
    assert len(texts) == 20 and texts == baseline_texts
    assert scores == pytest.approx(baseline_scores, abs=1e-4)


def test_it_trains_resumes_and_translates(data, tmp_path, baselines):
    arch, baseline = "gdr_transformer_tiny", baselines["transformer"]
    start, logged = (FROM_BASELINE, baseline), ("--log-routing", "--log-routing-interval", 1)
    output = train(data, tmp_path, *start, *logged, "--max-epoch", 1, arch=arch)
    for part in ("train", "valid"):
        line = next(line for line in output.splitlines() if re.search(rf"\b{part}( \| |:)epoch 001 \| ", line))
        assert all(f"| {name} " in line for name in ("loss", "nll_loss", "ppl", "bow_loss", "bca_loss")), line
        shares = re.findall(r"\| routing_past_future_(?:past|future|redundant) (\S+)", line)
        assert sum(map(float, shares)) == pytest.approx(1, abs=1e-3)
        assert "| routing_past_future_overlap_past " in line and "| routing_past_future_overlap_future " in line
    assert "Loaded checkpoint" in train(data, tmp_path, *start, "--max-epoch", 2, arch=arch)

    checkpoint = tmp_path / "checkpoint_last.pt"
    translated = run("interactive", data, "--path", checkpoint, "--cpu", "--beam", 2, stdin="a b c\nd\n")
    assert len(re.findall(r"^H-\d+", translated, re.M)) == 2
    arguments = ("--task", "capsule_translation", "--path", checkpoint, "--cpu", "--max-tokens", 400)
    assert "bow_loss" in run("validate", data, *arguments)
    hub = CapsuleTransformerModel.from_pretrained(str(tmp_path), "checkpoint_last.pt", str(data))
    assert hub.translate(["a b c d", "e f"], beam=3)[0] == hub.translate("a b c d", beam=3)
    picture = ["picture", str(checkpoint), str(data), "--text", "a b c", "--show", "assignment", "--out"]
    assert main([*picture, str(tmp_path / "assignment.png")]) == 0
    assert (tmp_path / "assignment.png").read_bytes().startswith(b"\x89PNG")
    before, after = (read_checkpoint(path)["model"] for path in (baseline, checkpoint))
    count, ours, others = gradient_norms(checkpoint, baseline, data)
    assert count == sum(after[name].numel() for name in after.keys() - before.keys())
    assert ours > 0 and others > 0


def gradient_norms(checkpoint, baseline, data):
    """Return how many parameters were added, and the two sizes that experiments/gradient_norms.py prints."""
    finished = run_script(
        REPOSITORY / "experiments/gradient_norms.py", [checkpoint, "--baseline", baseline, "--data", data]
    )
    assert finished.returncode == 0, finished.stderr
    count, *sizes = re.match(r"added \(([\d,]+) parameters\) (\S+), others (\S+): ", finished.stdout).groups()
    return int(count.replace(",", "")), *map(float, sizes)


def test_hydra_trains_it(data, tmp_path, baselines):
    small = [
        *("model.encoder_embed_dim=32", "model.decoder_embed_dim=32", "model.encoder_layers=2"),
        *("model.decoder_layers=2", "+model.encoder_ffn_embed_dim=48", "+model.decoder_ffn_embed_dim=48"),
        *("model.share_all_embeddings=false", "optimization.max_epoch=1", "common.cpu=true"),
    ]
    small = [option if option.startswith(("+", "model.share", "opt", "common")) else f"+{option}" for option in small]
    output = run(
        "hydra_train",
        *("--config-dir", REPOSITORY / "configs/multi30k", "--config-name", "gdr_transformer"),
        *(f"task.data={data}", f"task.init_from_baseline={baselines['transformer']}"),
        *(f"checkpoint.save_dir={tmp_path}/run", "dataset.max_tokens=400", "model.past_future=clf", *small),
        user_dir=None,
    )
    assert "done training" in output and "bow_loss" in output
    assert len(hypotheses(tmp_path / "run/checkpoint_last.pt", data)[0]) == 20
