"""examples/transformers_training: a plain model, its training resumed, and GDR on it, without fairseq."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_capsule.hub import load
from fairseq_capsule_lab.export.from_transformers import CHECKPOINT, write

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples/transformers_training/train.py"
PROGRAM = f"import runpy, sys; sys.modules['fairseq'] = None; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
OPTIONS = "--source en --target de --use_cpu --generation_max_length 6 --report_to tensorboard"
OPTIONS += " --eval_strategy steps --eval_steps 1 --save_strategy steps --save_steps 1"
SIZES = '{"encoder_embed_dim": 16, "encoder_ffn_embed_dim": 16, "encoder_layers": 2, "decoder_layers": 1}'


def train(folder, *words, fails=False):
    command = [sys.executable, "-c", PROGRAM, "--data", ".", *OPTIONS.split(), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    finished = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert (finished.returncode != 0) == fails, finished.stderr
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
    assert "--label_smoothing_factor leaves out losses" in train(
        tmp_path, *plain, "--label_smoothing_factor", "0.1", fails=True
    )
    gdr = ("--output_dir", "gdr", "--baseline", "plain", "--preset", "gdr_transformer_tiny", "--logging_steps", "1")
    output = train(tmp_path, *gdr, "--max_steps", "1")
    assert "new parameters, in decoder.past_future" in output and "bow_loss" in output
    translations = (tmp_path / "gdr/test.txt").read_text(encoding="utf-8").splitlines()
    assert len(translations) == 4
    imported = tmp_path / "imported"  # fairseq reads what was trained, and translates as in the test
    imported.mkdir()
    assert write(tmp_path / "gdr", imported) == "en-de"
    sources = (tmp_path / "test.en").read_text(encoding="utf-8").splitlines()
    assert len(load(imported / CHECKPOINT, imported).translate(sources, beam=5)) == 4
