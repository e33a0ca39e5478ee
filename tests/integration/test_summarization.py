"""Summarisation with the real command lines: ROUGE at validation, the best checkpoint by ROUGE, its score."""

import re

import pytest

from fairseq_capsule_lab.cli import main
from tests.integration.commands import REPOSITORY, run
from tests.integration.preparing import Workplace

CONFIG = ("--config-dir", REPOSITORY / "configs/headlines", "--config-name", "gret_transformer")
SMALL = (
    *("+model.encoder_embed_dim=32", "+model.decoder_embed_dim=32", "+model.encoder_ffn_embed_dim=48"),
    *("+model.decoder_ffn_embed_dim=48", "optimization.max_update=2", "common.cpu=true", "dataset.max_tokens=2000"),
    """+task.eval_rouge_args='{"beam": 2, "max_len_b": 9}'""",
)


@pytest.fixture(scope="module")
def headlines(tmp_path_factory):
    workplace = Workplace(tmp_path_factory.mktemp("headlines"), "prepare-headlines.sh")
    return workplace.prepared("--train", 60, "--valid", 9, "--test", 10).out


def test_hydra_validates_by_rouge(headlines, tmp_path, capsys):
    output = run(
        *("hydra_train", *CONFIG, f"task.data={headlines}/bin", f"checkpoint.save_dir={tmp_path}/run", *SMALL),
        user_dir=None,
    )
    assert "rouge1" in output and "rougeL" in output
    best = tmp_path / "run/checkpoint_best.pt"
    task = ("--task", "capsule_summarization", "--path", best, "--cpu", "--required-batch-size-multiple", 1)
    generated = run("generate", headlines / "bin", *task, "--beam", 2, "--max-len-b", 20)
    (tmp_path / "test.out").write_text(generated)
    assert main(["score", "--rouge", str(tmp_path / "test.out"), str(headlines / "raw/test.summary")]) == 0
    assert "ROUGE-L F1 = " in capsys.readouterr().out
    spoken = run(
        *("interactive", headlines / "bin", "--task", "capsule_summarization", "--path", best, "--cpu"),
        *("--bpe", "characters", "--beam", 2, "--max-len-b", 20),
        stdin="成都市政府宣布,地铁3号线将于5月1日开通。\n",
    )
    assert "地 铁 3 号 线" in spoken  # the model's input
    assert re.search(r"^D-0\t\S+\t.+$", spoken, re.MULTILINE)
