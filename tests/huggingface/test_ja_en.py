"""The model of the repository, examples/ja-en: README's lines translate with it, without fairseq."""

import re
from pathlib import Path

import pytest

from tests.libraries import library
from tests.processes import run_without_fairseq

library("transformers")
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples/ja-en"
README = (ROOT / "README.md").read_text(encoding="utf-8")
SENTENCES = {
    "彼は毎朝六時に起きます。": "he gets up at six every morning.",
    "この本はとても面白い。": "this book is very interesting.",
    "駅はどこですか。": "where is the station?",
    "彼女は英語を上手に話します。": "she speaks english well.",
    "明日は雨が降るでしょう。": "it will rain tomorrow.",
    "私たちは来週京都に行く予定です。": "we are going to go to kyoto next week.",
    "窓を開けてくれませんか。": "will you open the window?",
    "猫がテーブルの下で寝ています。": "a cat is sleeping under the table.",
    "私は父に手紙を書いた。": "i wrote a letter to my father.",
    "彼は若い頃音楽が好きだった。": "he was fond of music when he was young.",
}


def test_the_lines_of_the_readme_print_the_translation_of_the_readme():
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    finished = run_without_fairseq(block, ROOT)
    assert finished.returncode == 0, finished.stderr
    assert f" prints\n`{finished.stdout.strip()}`\n" in README


@pytest.fixture(scope="module")
def model():
    from capsule_routing.huggingface import CapsuleForConditionalGeneration

    return CapsuleForConditionalGeneration.from_pretrained(FOLDER, dtype="float32")


def test_sentences_of_our_own(model):
    from capsule_routing.huggingface import CapsuleTokenizer

    tokenizer = CapsuleTokenizer.from_pretrained(FOLDER)
    batch = tokenizer([*SENTENCES], return_tensors="pt", padding=True)
    assert tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True) == [*SENTENCES.values()]


def test_it_is_small_and_routes(model):
    assert model.config.past_future == "gdr"
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 7_000_000


def test_fairseq_reads_it_too(tmp_path):
    from fairseq_capsule.hub import load
    from fairseq_capsule_lab.export.from_transformers import CHECKPOINT, write

    write(FOLDER, tmp_path)
    hub = load(tmp_path / CHECKPOINT, tmp_path)
    assert hub.translate([*SENTENCES], beam=5) == [*SENTENCES.values()]
