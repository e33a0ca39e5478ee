"""examples/transformers_training: a plain model, its training resumed, and GDR on it, without fairseq."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples/transformers_training/train.py"
PROGRAM = f"import runpy, sys; sys.modules['fairseq'] = None; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
OPTIONS = "--source en --target de --use_cpu --generation_max_length 6 --report_to tensorboard"
OPTIONS += " --eval_strategy steps --eval_steps 1 --save_strategy steps --save_steps 1"
SIZES = '{"encoder_embed_dim": 16, "encoder_ffn_embed_dim": 16, "encoder_layers": 2, "decoder_layers": 1}'


def train(folder, *words):
    command = [sys.executable, "-c", PROGRAM, "--data", ".", *OPTIONS.split(), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    finished = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout + finished.stderr


@pytest.mark.slow
def test_a_plain_model_is_trained_resumed_and_fine_tuned(tmp_path):
    for language in ("en", "de"):
        lines = (ROOT / f"examples/parallel/train.{language}").read_text(encoding="utf-8").splitlines()
        for split, kept in (("train", lines[:16]), ("valid", lines[16:20]), ("test", lines[20:24])):
            (tmp_path / f"{split}.{language}").write_text("\n".join(kept) + "\n", encoding="utf-8")
    plain = ("--output_dir", "plain", "--preset", "transformer_tiny", "--options", SIZES, "--vocab_size", "100")
    assert "BLEU = " in train(tmp_path, *plain, "--max_steps", "1")
    train(tmp_path, *plain, "--max_steps", "2")
    assert {f"checkpoint-{step}" for step in (1, 2)} <= {path.name for path in (tmp_path / "plain").iterdir()}
    gdr = ("--output_dir", "gdr", "--baseline", "plain", "--preset", "gdr_transformer_tiny", "--logging_steps", "1")
    output = train(tmp_path, *gdr, "--max_steps", "1")
    assert "new parameters, in decoder.past_future" in output and "bow_loss" in output
    assert len((tmp_path / "gdr/test.txt").read_text(encoding="utf-8").splitlines()) == 4


def test_a_library_that_bleu_needs_is_required_before_the_training(tmp_path):
    program = f"import sys; sys.modules['MeCab'] = None; {PROGRAM}"
    words = ["--data", "missing", "--source", "en", "--target", "ja", "--output_dir", str(tmp_path), "--use_cpu"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", program, *words], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'fairseq-capsule[japanese]'; or compare characters" in done.stderr.splitlines()[-1]
