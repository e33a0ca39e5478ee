"""A trained Transformer in other libraries: the translations of fairseq-generate, from raw text, without fairseq."""

import math
import os
import random
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from sacremoses import MosesDetokenizer

from tests.huggingface.program import TRANSLATING
from tests.integration.commands import REPOSITORY, run, train
from tests.integration.preparing import Workplace
from tests.libraries import library
from tests.processes import run_forked

library("ctranslate2")
library("transformers")

WORDS = "the dog's house “red” isn't U-Bahn café Tom & Jerry 3,000 he said: small. old green".split()
SENTENCES = 104  # fairseq leaves out a last batch that does not fill a multiple of 8
PAGE = (REPOSITORY / "docs/bridges.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"```python\n(import ctranslate2\n.*?)```", PAGE, re.DOTALL)
BLOCKED = "import sys; sys.modules.update(dict.fromkeys(('fairseq', 'fairseq_capsule', 'torch')))\n"
MODELS = {
    "plain": "--encoder-routing none --decoder-routing none --share-all-embeddings".split(),
    "routed": "--past-future gdr --global-representation capsule --global-capsules 4 --decoder-layers 1".split(),
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Prepare sentences whose translation is their reverse."""
    place = Workplace(tmp_path_factory.mktemp("export"), "prepare.sh")
    rng = random.Random(1)
    sentences = [rng.choices(WORDS, k=rng.randint(2, 8)) for _ in range(900)]
    for language, step in (("en", 1), ("fr", -1)):
        text = "".join(" ".join(words[::step]) + "\n" for words in sentences)
        (place.root / f"my.{language}").write_text(text, encoding="utf-8")
    options = "--source en --target fr --train my.en my.fr --valid-lines 50 --merges 60".split()
    return place.root, place.prepared(*options, "--lower", "--tokenise", "moses", "--test-lines", SENTENCES).out


def trained(prepared, name):
    """Train a model and translate the test set. Returns the checkpoint and the hypotheses with their scores."""
    root, data = prepared
    checkpoint = root / name / "checkpoint_last.pt"
    settings = ["--max-epoch", 6, "--no-epoch-checkpoints", "--lr", 5e-3]
    train(data / "bin", checkpoint.parent, *MODELS[name], *settings)
    output = run("generate", data / "bin", "--path", checkpoint, "--beam", 5, "--max-tokens", 800, "--cpu")
    return checkpoint, {
        int(number): (hypothesis, float(score) / math.log2(math.e))  # fairseq prints logarithms to the base 2
        for number, score, hypothesis in re.findall(r"^H-(\d+)\t(\S+)\t(.*)$", output, re.MULTILINE)
    }


def export(checkpoint, data, out, *options):
    finished = run_forked("fairseq_capsule_lab.cli", "main", ["export", checkpoint, data, out, *options], REPOSITORY)
    assert finished.returncode == 0, finished.stderr


def raw_sources(data):
    return (data / "raw/test.en").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def exported(prepared):
    """A plain Transformer, exported by the commands of the page."""
    root, data = prepared
    checkpoint, hypotheses = trained(prepared, "plain")
    export(checkpoint, data, root / "fairseq", "--to", "fairseq")
    convert = (sys.executable, "-m", "ctranslate2.converters.fairseq", "--model_path", root / "fairseq/model.pt")
    places = ("--data_dir", root / "fairseq", "--output_dir", root / "float32", "--unsafe_deserialization")
    subprocess.run([*convert, *places], check=True)
    return SimpleNamespace(root=root, data=data, hypotheses=hypotheses)


def test_transformers_translates_raw_text_as_fairseq_generate_without_fairseq(prepared):
    root, data = prepared
    checkpoint, hypotheses = trained(prepared, "routed")
    export(checkpoint, data, root / "transformers", "--to", "transformers")
    command = [sys.executable, "-c", TRANSLATING, str(root / "transformers"), "left"]
    finished = subprocess.run(command, input=raw_sources(data), capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    found = [line.split("\t") for line in finished.stdout.splitlines()]
    assert len(found) == len(hypotheses) == SENTENCES and len({words for _, words, _ in found}) > 50
    detokenizer, same = MosesDetokenizer("fr"), 0
    for number, (text, words, score) in enumerate(found):
        hypothesis, fairseqs = hypotheses[number]
        if words == hypothesis:
            same += 1
            assert text == detokenizer.detokenize((hypothesis + " ").replace("@@ ", "").split())
        assert abs(float(score) - fairseqs) < 1e-4
    assert same >= SENTENCES - 2


def test_fairseq_translates_alike_without_this_package(exported):
    options = ["--path", exported.root / "fairseq/model.pt", "--beam", "5", "--max-tokens", "800", "--cpu"]
    command = [sys.executable, "-m", "fairseq_cli.generate", exported.data / "bin", *options]
    trusting = {**os.environ, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}  # torch trusts no checkpoint by itself
    finished = subprocess.run(command, env=trusting, check=True, capture_output=True, text=True)
    found = dict(re.findall(r"^H-(\d+)\t\S+\t(.*)$", finished.stdout, re.MULTILINE))
    assert found == {str(number): hypothesis for number, (hypothesis, _) in exported.hypotheses.items()}


def test_raw_text_is_translated_by_the_program_of_the_page_without_fairseq_and_torch(exported):
    """The program has one sentence; here it has those of the test set, which was prepared with `--lower`."""
    program = PROGRAM.replace("exported/my-student-ctranslate2", str(exported.root / "float32"))
    program = program.replace("data/my", str(exported.data)).replace("return_str=True)", "return_str=True).lower()")
    start = program.index("text = ")
    loop = "for line in sys.stdin:\n" + "".join(f"    {line}\n" for line in program[start:].splitlines())
    program = BLOCKED + program[:start] + loop.replace('"This is a sentence."', "line")
    finished = subprocess.run(
        [sys.executable, "-c", program], input=raw_sources(exported.data), capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
    translations = finished.stdout.splitlines()
    detokenizer = MosesDetokenizer("fr")
    expected = [
        detokenizer.detokenize(exported.hypotheses[number][0].replace("@@ ", "").split()) for number in range(SENTENCES)
    ]
    assert sum(map(str.__eq__, translations, expected)) >= SENTENCES - 2 and len(set(expected)) > 50
