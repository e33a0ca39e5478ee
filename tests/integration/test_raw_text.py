"""Every way from raw text to a model and back makes what the prepared folder made."""

import re
from argparse import Namespace
from types import SimpleNamespace

import pytest
from fairseq.data import Dictionary
from fairseq.data.encoders import build_tokenizer

from capsule_routing.text.folders import preparations
from fairseq_capsule.hub import load
from fairseq_capsule_lab.cli.arguments import data_folder, load_model
from fairseq_capsule_lab.export.to_transformers import tokenizer
from fairseq_capsule_lab.pages.sentences import sentences_of_data, sentences_of_text
from tests.cli.world import PLAIN, save_checkpoint
from tests.integration.commands import run
from tests.integration.preparing import Workplace, read
from tests.libraries import library

library("transformers")
library("sentencepiece")
library("jieba")

ENGLISH = ["A well-known man has 5 T-shirts – it’s small.", "“Tom & Jerry” <b>run</b>\tat 3,000 dogs | cats …"]
FRENCH = ["L’homme bien-aimé n’a que 5 T-shirts – c’est « petit ».", "Tom & Jerry  courent : l'herbe ! …"]
CHINESE = ["我们 喜欢3,000只小猫，真的。", "他说：“你好”！"]
KINDS = {
    "moses": ("fr", "--share separate"),
    "lower": ("fr", "--lower"),
    "pieces": ("fr", "--bpe sentencepiece --lower"),
    "pieces of words": ("fr", "--bpe sentencepiece --tokenise moses"),
    "none": ("fr", "--tokenise none"),
    "characters": ("fr", "--tokenise characters"),
    "characters and words": ("fr", "--tokenise characters,moses"),
    "jieba": ("zh", ""),
}


@pytest.fixture(scope="module", params=KINDS)
def folder(request, tmp_path_factory):
    """A folder that was prepared up to its subwords, with dictionaries of all of them, and an untrained model."""
    target, options = KINDS[request.param]
    place = Workplace(tmp_path_factory.mktemp("text"), "prepare.sh")
    for language, lines in (("en", ENGLISH), (target, CHINESE if target == "zh" else FRENCH)):
        (place.root / f"my.{language}").write_text("".join(f"{line}\n" for line in lines * 3), encoding="utf-8")
    place.fail("bin")
    texts = " ".join(f"--{split} my.en my.{target}" for split in ("train", "valid", "test"))
    words = [*f"--source en {texts} --merges 120 --max-length none".split(), *options.split()]
    place.refused(place.prepare("--target", target, *words, "out"), "stage 'bin' failed")
    out = place.out
    (out / "bin").mkdir()
    stage = "bpe" if (out / "bpe").is_dir() else "tokenised"
    for language in ("en", target):
        dictionary = Dictionary()
        for line in [*read(out / stage / "train.en"), *read(out / stage / f"train.{target}")]:
            dictionary.encode_line(line)
        dictionary.save(str(out / f"bin/dict.{language}.txt"))
    checkpoint = out / "model.pt"
    save_checkpoint(out / "bin", checkpoint, PLAIN, target)
    subwords = [read(out / stage / f"test.{language}") for language in ("en", target)]
    return SimpleNamespace(out=out, target=target, checkpoint=checkpoint, raw=read(out / "raw/test.en"), bpe=subwords)


def test_every_way_in_makes_the_subwords_of_the_folder(folder, tmp_path):
    expected, target = folder.bpe
    hub = load(folder.checkpoint, folder.out)
    of_command = load_model(folder.checkpoint, data_folder(str(folder.out)), codes=None, tokenizer=None)
    exported = tokenizer(hub.task, preparations(folder.out / "bin", "en", folder.target), tmp_path)
    of_fairseq = build_tokenizer(
        Namespace(
            tokenizer="prepared", data=str(folder.out), source_lang="en", target_lang=folder.target, constraints=None
        )
    )
    ways = {
        "hub": [hub.string(hub.encode(line)) for line in folder.raw],
        "inspect, picture, serve": [" ".join(s.words[:-1]) for s in sentences_of_text(of_command, folder.raw)],
        "export": [" ".join(exported.tokenize(line)) for line in folder.raw],
        "--tokenizer prepared": [of_fairseq.encode(line) for line in folder.raw],
    }
    assert ways == dict.fromkeys(ways, expected)
    # And back: each way makes the same text of the subwords of the target.
    texts = [hub.decode(hub.tgt_dict.encode_line(line, add_if_not_exist=False)) for line in target]
    assert texts == [exported.convert_tokens_to_string(line.split()) for line in target]
    assert texts == [of_fairseq.decode(line) for line in target]
    assert not any(mark in text for text in texts for mark in ("@@", "▁", "&apos;", "&amp;"))


@pytest.mark.parametrize("folder", ["moses"], indirect=True)
def test_fairseq_interactive_reads_and_writes_raw_text(folder):
    lines = "".join(f"{line}\n" for line in folder.raw)
    words = ["--path", folder.checkpoint, "-s", "en", "-t", "fr", "--cpu", "--max-len-b", 2, "--tokenizer", "prepared"]
    output = run("interactive", folder.out / "bin", *words, stdin=lines)
    sources, hypotheses, texts = (re.findall(rf"^{kind}-\d+\t.*?([^\t]+)$", output, re.MULTILINE) for kind in "SHD")
    assert sources == folder.bpe[0]
    of_target = preparations(folder.out, "en", "fr")[1]
    assert texts == [of_target.decode(line) for line in hypotheses]


def test_options_replace_the_preparation(folder):
    hub = load(folder.checkpoint, folder.out, tokenizer="space")
    assert hub.tokenize("A  well-known") == "A well-known" and hub.bpe is None


def test_the_text_of_a_prepared_folder_is_shown_raw(prepared, tmp_path):
    """The folder of Multi30k is lower-cased: the reference is too, because BLEU compares a translation with it."""
    save_checkpoint(prepared.out / "bin", tmp_path / "model.pt", PLAIN)
    for data in (prepared.out, prepared.out / "bin"):
        hub = load(tmp_path / "model.pt", data)
        sentence, *_ = sentences_of_data(hub, "test", [0, 3])
        assert sentence.text == "Don't  touch “Tom & Jerry”!"
        assert sentence.reference == "über 1.000 männer (u.a. tom & jerry) laufen."


def test_an_ensemble_is_loaded(data, trained):
    files = [trained / f"checkpoint{number}.pt" for number in (1, 3)]
    listed, joined = load(files, data), load(":".join(map(str, files)), str(data))
    source = listed.encode("a b c d e")
    ensemble, again, alone = (hub.generate(source)[0] for hub in (listed, joined, load(files[0], data)))
    assert ensemble["score"] == again["score"] != alone["score"]
