import functools
import random
from pathlib import Path
from types import SimpleNamespace

import pytest

import fairseq_capsule
from fairseq_capsule_lab.cli import main
from tests.cli.scored import GENERATED, REFERENCES, write
from tests.cli.world import make_world
from tests.processes import run_forked

WORDS = ["ein", "der", "hund", "ha@@ us", "läuft", "sieht", "rot@@ es", "kind", ",", "&apos;s", "U-@@ Bahn", "rot-weiß"]


@pytest.fixture
def command(capsys):
    """Run a command line. Returns its exit status, its output and its stderr."""

    def run(*arguments):
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return SimpleNamespace(status=status, out=captured.out, err=captured.err)

    return run


@pytest.fixture
def refused(command):
    """Run a command line that must fail with one line. Returns the line without the command's name."""

    def run(*arguments):
        result = command(*arguments)
        assert result.status == 1
        assert result.out == ""
        (line,) = result.err.splitlines()
        start = f"fairseq-capsule {arguments[0]}: error: "
        assert line.startswith(start)
        return line[len(start) :]

    return run


@pytest.fixture
def reference(tmp_path):
    return write(tmp_path / "reference.de", REFERENCES)


@pytest.fixture
def generated(tmp_path):
    (tmp_path / "generated").write_text(GENERATED, encoding="utf-8")
    return tmp_path / "generated"


@pytest.fixture(scope="session")
def training(tmp_path_factory):
    """Train fairseq's Transformer for three epochs on 24 sentences with subwords. The test set has an unknown word."""
    folder = tmp_path_factory.mktemp("training")
    generator = random.Random(1)
    for split, vocabulary in [("train", WORDS), ("test", [*WORDS, "unbekannt"])]:
        sentences = [" ".join(generator.choices(vocabulary, k=generator.randint(6, 12))) for _ in range(24)]
        for language in ("en", "de"):
            (folder / f"{split}.{language}").write_text("\n".join(sentences) + "\n", encoding="utf-8")
    fairseq(folder, "preprocess", "-s en -t de --trainpref train --validpref test --testpref test --destdir bin")
    fairseq(
        folder,
        "train",
        "bin -s en -t de --arch transformer --encoder-layers 1 --decoder-layers 1 --encoder-embed-dim 8 "
        "--decoder-embed-dim 8 --encoder-ffn-embed-dim 8 --decoder-ffn-embed-dim 8 --encoder-attention-heads 2 "
        "--decoder-attention-heads 2 --share-decoder-input-output-embed --optimizer adam --lr 0.01 --max-tokens 200 "
        "--max-epoch 3 --keep-best-checkpoints 2 --save-dir run --cpu --seed 1 --num-workers 0",
    )
    return folder


@pytest.fixture(scope="session")
def generate(training):
    """`fairseq-generate` on the test sentences, once per checkpoint and options. Returns the output file."""

    @functools.cache
    def run(checkpoint, options):
        # An untrained model has no correct 4-gram. With a forced prefix of the reference BLEU is above 0.
        output = fairseq(training, "generate", f"bin --path {checkpoint} --prefix-size 5 --max-len-b 9 --cpu {options}")
        file = training / f"{checkpoint} {options}".replace("/", " ")
        file.write_text(output, encoding="utf-8")
        return file

    return run


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """The files of `tests.cli.world`. Tests must not change them."""
    folder = tmp_path_factory.mktemp("world")
    make_world(folder)
    return folder


def fairseq(folder, command, options):
    plugin = Path(fairseq_capsule.__file__).parent
    done = run_forked(f"fairseq_cli.{command}", "cli_main", [*options.split(), "--user-dir", plugin], cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
