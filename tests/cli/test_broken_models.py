"""Checkpoints, dictionaries and data that are invalid or do not match: one line names each."""

import copy
import dataclasses
import itertools
import math
import os
import pickle
import shutil
import time
from argparse import Namespace
from pathlib import Path
from typing import Optional

import pytest
import torch
from fairseq.dataclass.configs import DatasetConfig, GenerationConfig

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.models import load_model
from fairseq_capsule.hub import load
from fairseq_capsule.models import CapsuleTransformerModel
from fairseq_capsule.tasks.capsule_translation import CapsuleTranslationConfig
from tests.cli.world import make_world


def change_checkpoint(world, tmp_path, function):
    state = torch.load(world / "model.pt", weights_only=True)
    changed = function(state)
    torch.save(state if changed is None else changed, tmp_path / "changed.pt")
    return tmp_path / "changed.pt"


def replaced(dictionary, *keys, value=None):
    """Return a function that changes or removes an entry of a nested dictionary."""
    for key in keys[:-1]:
        dictionary = dictionary[key]
    if value is None:
        del dictionary[keys[-1]]
    else:
        dictionary[keys[-1]] = value


BROKEN = {
    "no model": (lambda s: replaced(s, "model"), "it has no model parameters"),
    "an empty model": (lambda s: replaced(s, "model", value={}), "it has no model parameters"),
    "a model of another kind": (lambda s: replaced(s, "model", value=[1]), "it has no model parameters"),
    "no options": (lambda s: replaced(s, "cfg"), "it has no model options"),
    "options of another kind": (lambda s: replaced(s, "cfg", value=["model"]), "not loaded: "),
    "no architecture's options": (lambda s: replaced(s, "cfg", "model"), "its options name no architecture"),
    "no architecture": (lambda s: replaced(s, "cfg", "model", "_name"), "its options name no architecture"),
    "an unknown architecture": (
        lambda s: replaced(s, "cfg", "model", "_name", value="rnmt"),
        "its architecture 'rnmt' is unknown; name a checkpoint of fairseq or of this package, or give the --user-dir "
        "of the plugin that defines it (in Python, import it)",
    ),
    "an architecture of another kind": (
        lambda s: replaced(s, "cfg", "model", "_name", value=[1]),
        "its architecture [1] is unknown",
    ),
    "no task's options": (lambda s: replaced(s, "cfg", "task"), "its options name no task"),
    "no task": (lambda s: replaced(s, "cfg", "task", "_name"), "its options name no task"),
    "an unknown task": (lambda s: replaced(s, "cfg", "task", "_name", value="sing"), "its task 'sing' is unknown"),
    "old options without an architecture": (
        lambda s: s.pop("cfg") and {**s, "args": Namespace(task="translation")},
        "not loaded: ",
    ),
    "a parameter that is missing": (
        lambda s: replaced(s, "model", "decoder.embed_tokens.weight"),
        "no model can be built from its options and parameters (RuntimeError: ",
    ),
    "a parameter of another shape": (
        lambda s: replaced(s, "model", "decoder.layers.0.fc1.weight", value=torch.zeros(3)),
        "no model can be built from its options and parameters (RuntimeError: ",
    ),
    "a language that the data does not have": (
        lambda s: replaced(s, "cfg", "task", "target_lang", value="fr"),
        "no dict.fr.txt, but ",
    ),
    "a list": (lambda s: [1], "not loaded: "),
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("program", ["size", "picture"])
def test_a_checkpoint_with_wrong_options_is_named(refused, world, tmp_path, kind, program):
    change, wanted = BROKEN[kind]
    checkpoint = change_checkpoint(world, tmp_path, change)
    places = {
        "size": [checkpoint, "--data", world / "data/bin"],
        "picture": [checkpoint, world / "data/bin", "--text", "a", "--out", tmp_path / "a.png"],
    }
    line = refused(program, *places[program])
    assert wanted in line and str(checkpoint) in line


@pytest.fixture(scope="module")
def other_words(world, tmp_path_factory):
    """Data with the same number of words, but other words, and a checkpoint that was trained on it."""
    folder = tmp_path_factory.mktemp("other")
    make_world(folder)
    for path in folder.glob("data/bin/dict.*.txt"):
        path.write_text(path.read_text().replace("a ", "x "))
    return folder


@pytest.fixture
def fewer_words(world, tmp_path):
    shutil.copytree(world / "data/bin", tmp_path / "bin")
    for path in tmp_path.glob("bin/dict.*.txt"):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:3]))
    return tmp_path / "bin"


COMMANDS = {
    "size": "size {model} --data {data}",
    "probe": "probe {model} --data {data}",
    "iterations": "analyze iterations {model} --data {data} --out {out} --option past-future-iterations",
    "overlap": "analyze overlap {model} --data {data} --out {out}",
    "inspect": "inspect {model} {data} --text a --out {out}",
    "against": "inspect {right} {data} --against {model} --text a --out {out}",
    "picture": "picture {model} {data} --text a --out {out}.png",
    "serve": "serve {model} {data} --port 0",
    "nll": "nll {model} --data {data} --split test",
    "export": "export {model} {prepared} {out} --to transformers",
}
OF_TEXT = ("inspect", "picture", "serve")  # they split raw text and search for a translation


def option(*keys, value):
    return lambda state: replaced(state["cfg"], *keys, value=value)


def too_large(state):
    for parameter in state["model"].values():
        parameter.mul_(1e30)


def files(name):
    """Options by which a checkpoint names a file."""
    return {
        "bpe_codes": option("bpe", value={"_name": "subword_nmt", "bpe_codes": name, "bpe_separator": "@@"}),
        "sentencepiece_model": option("bpe", value={"_name": "sentencepiece", "sentencepiece_model": name}),
        "gpt2": option("bpe", value={"_name": "gpt2", "gpt2_encoder_json": name, "gpt2_vocab_bpe": name}),
        "replace_unk": option("generation", "replace_unk", value=name),
    }


UNKNOWN = ({"_name": "nosuch"}, {"_name": 5}, 5, [1], "nosuch", "???")
ANYWHERE = {
    **{f"bpe {value}": option("bpe", value=value) for value in UNKNOWN},
    **{f"tokenizer {value}": option("tokenizer", value=value) for value in UNKNOWN[:2]},  # --tokenizer replaces others
    **{f"{name} ???": option("task", name, value="???") for name in ("source_lang", "target_lang", "data")},
    **{f"{part} {value}": option(part, value=value) for part in ("dataset", "generation") for value in (5, [1])},
    **{f"{place} in {name}": change for place in ("pipe", "/dev/zero") for name, change in files(place).items()},
    "pipe in a part of a part": option("model", "encoder", value={"embed_path": "pipe"}),
    "max_tokens x": option("dataset", "max_tokens", value="x"),
    "parameters that are too large": too_large,
}
IN_TEXT = {
    **{f"{place} in {name}": change for place in ("junk", "/missing") for name, change in files(place).items()},
    "nltk without its data": option("tokenizer", value={"_name": "nltk"}),
    "two searches": lambda state: state["cfg"]["generation"].update(sampling=True, diverse_beam_groups=2),
    "a temperature of 0": option("generation", "temperature", value=0.0),
}
TYPES = [item.name for item in dataclasses.fields(GenerationConfig) if item.type in (int, float, bool, Optional[str])]


def paired(programs, kinds):
    """Each kind with a command and each command with a kind: one rule refuses them, where a model is loaded."""
    count = max(len(programs), len(kinds))
    return list(itertools.islice(zip(itertools.cycle(programs), itertools.cycle(kinds)), count))


@pytest.fixture
def refused_model(refused, world, tmp_path, monkeypatch):
    """Run a command with a changed checkpoint, which it must refuse in one line that names a file."""

    def run(program, change):
        monkeypatch.chdir(tmp_path)
        os.mkfifo("pipe")
        Path("junk").write_bytes(bytes(range(256)))
        places = {"model": change_checkpoint(world, tmp_path, change)}
        places.update(out=tmp_path / "out", right=world / "model.pt", prepared=world / "prepared")
        line = refused(*COMMANDS[program].format(**places, data=world / "data/bin").split())
        assert str(places["model"]) in line or line.startswith(("junk", "/missing"))
        assert not (tmp_path / "out").exists()
        return line

    return run


@pytest.mark.parametrize("program, kind", paired(COMMANDS, ANYWHERE))
def test_what_cannot_be_built_is_refused_by_every_command(refused_model, program, kind):
    refused_model(program, ANYWHERE[kind])


@pytest.mark.parametrize("program, kind", paired(OF_TEXT, IN_TEXT))
def test_what_splits_text_and_searches_is_built_when_a_model_is_loaded(refused_model, program, kind):
    refused_model(program, IN_TEXT[kind])


@pytest.mark.parametrize("name", TYPES)
def test_options_of_another_type_are_refused(refused_model, name):
    line = refused_model("size", option("generation", name, value={"a": 1}))
    assert "no model can be built from its options and parameters" in line and name in line


SCHEMAS = {"dataset": DatasetConfig, "generation": GenerationConfig, "task": CapsuleTranslationConfig}
NUMBERS = [
    (part, item.name)
    for part, schema in SCHEMAS.items()
    for item in dataclasses.fields(schema)
    if item.type in (int, float, Optional[int], Optional[float]) or "dataset." in str(item.default)
]
IMPOSSIBLE = itertools.cycle([0, -1, -(10**9), math.nan, 0])


@pytest.mark.parametrize("start, program", enumerate(["nll", "picture"]))
def test_numbers_of_a_config_that_no_training_has(world, tmp_path, command, start, program):
    """Each has an effect or one line. What fails while a command uses a model is an error of the checkpoint."""
    for (part, name), value in list(zip(NUMBERS, IMPOSSIBLE))[start::2]:
        checkpoint = change_checkpoint(world, tmp_path, option(part, name, value=value))
        places = {"model": checkpoint, "data": world / "data/bin", "out": tmp_path / "out"}
        done = command(*COMMANDS[program].format(**places).split())
        last = done.err.splitlines()[-1] if done.status else ""
        assert (done.status == 0 and "nan" not in done.out) or (done.status == 1 and str(checkpoint) in last), last
        assert "Traceback" not in done.err


@pytest.mark.parametrize("program", ["nll", "probe", "overlap", "iterations"])
def test_batches_that_cannot_be_made_are_named(refused_model, program):
    line = refused_model(program, option("task", "required_seq_len_multiple", value=0))
    split = "valid" if program == "iterations" else "test"
    assert f"changed.pt: no batches of {split} can be made with its options (ZeroDivisionError" in line


@pytest.mark.parametrize("start, program", enumerate(["nll", "picture", "probe"]))
def test_parameters_that_are_too_large_for_some_words_only(world, tmp_path, command, start, program):
    """They are seen when such a word is read. The line names the reason, not what fails because of it."""
    parameters = torch.load(world / "model.pt", weights_only=True)["model"]
    values = itertools.cycle([3e38, 1e37, 1e20, 1e6, 3e38])
    for (name, parameter), value in list(zip(parameters.items(), values))[start::3]:
        large = torch.full_like(parameter, value)
        checkpoint = change_checkpoint(world, tmp_path, lambda state: replaced(state["model"], name, value=large))
        places = {"model": checkpoint, "data": world / "data/bin", "out": tmp_path / "out"}
        done = command(*COMMANDS[program].format(**places).split())
        assert "Traceback" not in done.err and "nan" not in done.out
        if done.status:
            line = done.err.splitlines()[-1]
            assert f"{checkpoint}: what its model computes is not finite, or absurdly large, so its parameters" in line
        elif program == "nll":
            assert float(done.out.split()[0]) < 2**17


@pytest.mark.parametrize("word", range(4, 9))
@pytest.mark.parametrize("program", ["nll", "picture"])
def test_an_embedding_that_is_too_large(world, tmp_path, refused, program, word):
    def change(state):
        for side in ("encoder", "decoder"):
            state["model"][f"{side}.embed_tokens.weight"][word, ::2] = 3e38

    checkpoint = change_checkpoint(world, tmp_path, change)
    words = COMMANDS[program].format(model=checkpoint, data=world / "data/bin", out=tmp_path / "out").split()
    line = refused(*("a b c d e" if argument == "a" else argument for argument in words))
    assert line.startswith(f"{checkpoint}: what its model computes is not finite, or absurdly large")


def test_a_copy_of_a_loaded_model_has_its_own_parameters(world):
    model, *_ = load_model(world / "model.pt", world / "data/bin")
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        for parameter in copied.parameters():
            parameter.data.zero_()
        inputs = {"src_tokens": torch.tensor([[4, 2]]), "src_lengths": torch.tensor([2])}
        logits = copied(**inputs, prev_output_tokens=torch.tensor([[2]]))[0]
        assert not logits.any()


def test_parameters_of_a_criterion_are_finite(refused_model):
    def change(state):
        for parameter in state["criterion"].values():
            parameter.fill_(math.nan)

    assert "is not finite (NaN or infinite); leave this checkpoint out" in refused_model("probe", change)


def test_a_search_that_fails_is_one_line(world):
    hub = load(world / "model.pt", world / "data/bin")
    hub.cfg.generation.min_len = 500
    with pytest.raises(UserError, match="model.pt: it cannot translate this .*min_len cannot be larger than max_len"):
        hub.translate("a b")


@pytest.mark.parametrize("program", [name for name in COMMANDS if name != "export"])
def test_data_with_other_words_are_refused(refused, world, other_words, fewer_words, tmp_path, program):
    places = {"model": other_words / "model.pt", "out": tmp_path / "out", "right": world / "model.pt"}
    line = refused(*COMMANDS[program].format(**places, data=world / "data/bin").split())
    assert "which differ from those of the data" in line and str(places["model"]) in line
    line = refused(*COMMANDS[program].format(**places, data=fewer_words).split())
    assert "binarise the data with the checkpoint's dictionary" in line and "model.pt: its encoder's dictionary" in line
    assert not (tmp_path / "out").exists()


class TestNames:
    def test_a_checkpoint_s_name_may_contain_a_colon(self, command, world, tmp_path):
        folder = tmp_path / "run:1"
        folder.mkdir()
        shutil.copy(world / "model.pt", folder / "a:b.pt")
        assert command("size", folder / "a:b.pt", "--data", world / "data/bin").status == 0
        places = [folder / "a:b.pt", world / "data/bin", "--text", "a", "--out", folder / "a.png"]
        assert command("picture", *places).status == 0

    def test_codes_are_no_pipe(self, refused, world, tmp_path):
        os.mkfifo(tmp_path / "codes")
        places = [world / "model.pt", world / "data/bin", "--text", "a", "--out", tmp_path / "a.png"]
        assert "codes: a pipe or a device; name a file" in refused("picture", *places, "--codes", tmp_path / "codes")

    def test_a_colon_in_the_name_of_the_data_is_refused(self, refused, world, tmp_path):
        shutil.copytree(world / "data/bin", tmp_path / "a:b")
        line = refused("size", world / "model.pt", "--data", tmp_path / "a:b")
        assert line.startswith(f"{tmp_path / 'a:b'}: fairseq would read it as several folders, because of the ':'")

    @pytest.mark.parametrize("name", ["code", "bpecodes"])
    def test_a_file_beside_the_checkpoint_is_not_changed(self, world, tmp_path, name):
        shutil.copy(world / "model.pt", tmp_path)
        (tmp_path / name).write_text("broken")
        hub = load(tmp_path / "model.pt", world / "data/bin", bpe="subword_nmt", bpe_codes=str(world / "codes"))
        assert hub.apply_bpe("ab") == "ab" and hub.cfg.bpe.bpe_codes == str(world / "codes")

    @pytest.mark.parametrize(
        "wrong", ["a b\nc\n", "a b c\n", "#version: x\na b\n", "a  b\n", "#version: 0.2\n", "", "sch\udcf6n b\n"]
    )
    def test_broken_codes_are_named(self, refused, world, tmp_path, wrong):
        codes = tmp_path / "codes"
        codes.write_text(wrong, encoding="utf-8", errors="surrogateescape")
        places = [world / "model.pt", world / "data/bin", "--text", "a", "--out", tmp_path / "a.png"]
        assert refused("picture", *places, "--codes", codes).startswith(str(codes))


class TestData:
    @pytest.fixture
    def data(self, world, tmp_path):
        shutil.copytree(world / "data/bin", tmp_path / "bin")
        return tmp_path / "bin"

    @pytest.mark.parametrize("program", ["probe", "iterations", "overlap"])
    @pytest.mark.parametrize("ending", ["idx", "bin"])
    def test_a_truncated_data_file_is_named(self, refused, world, data, tmp_path, program, ending):
        for split in ("test", "valid"):
            path = data / f"{split}.en-de.de.{ending}"
            path.write_bytes(path.read_bytes()[:-5])
        places = {"model": world / "model.pt", "data": data, "out": tmp_path / "out"}
        line = refused(*COMMANDS[program].format(**places).split())
        assert line.startswith(str(data)) and f".en-de.de.{ending}: " in line and "binarise the text again" in line

    def test_languages_with_different_numbers_of_sentences_are_refused(self, refused, world, data):
        for ending in ("idx", "bin"):
            shutil.copy(world / f"data/bin/train.en-de.en.{ending}", data / f"test.en-de.en.{ending}")
        index = data / "test.en-de.en.idx"
        content = bytearray(index.read_bytes())
        content[18] -= 1  # sentences
        del content[26 + 4 * 4 : 26 + 4 * 5], content[-8:]
        index.write_bytes(bytes(content))
        cut = data / "test.en-de.en.bin"
        cut.write_bytes(cut.read_bytes()[: -2 * 5])
        line = refused("probe", world / "model.pt", "--data", data)
        assert "test.en-de.en.idx: 4 sentences, but test.en-de.de.idx has 5" in line

    def test_other_language_pairs_in_the_folder_are_not_read(self, command, world, data):
        """fairseq's multilingual tasks keep all pairs in one folder."""
        for ending in ("idx", "bin"):
            for split in ("test", "valid", "train"):
                shutil.copy(data / f"{split}.en-de.en.{ending}", data / f"{split}.en-fr.en.{ending}")
                (data / f"{split}.en-fr.fr.{ending}").write_bytes(b"cut short")
        assert command("nll", world / "model.pt", "--data", data, "--split", "test").status == 0
        hub = CapsuleTransformerModel.from_pretrained(str(world), "model.pt", str(data))
        hub.task.load_dataset("test")

    def test_the_tasks_report_the_same_errors(self, world, data):
        """Users of fairseq's commands see these errors."""
        hub = CapsuleTransformerModel.from_pretrained(str(world), "model.pt", str(data))
        (data / "test.en-de.de.idx").write_bytes(b"MMIDIDX\0\0")
        with pytest.raises(UserError, match="test.en-de.de.idx: cut short, only 9 bytes: binarise the text again"):
            hub.task.load_dataset("test")
        (data / "dict.de.txt").write_text("a 1\na 2\n")
        with pytest.raises(UserError, match="dict.de.txt, line 2: 'a' is already in line 1"):
            CapsuleTransformerModel.from_pretrained(str(world), "model.pt", str(data))

    def test_a_beam_of_zero_is_refused(self, world):
        with pytest.raises(UserError, match="--beam must be at least 1, not 0"):
            load(world / "model.pt", world / "data/bin").models[0].prepare_for_inference_(
                Namespace(generation=Namespace(beam=0))
            )


class TestEarly:
    @pytest.mark.parametrize(
        "arguments",
        [
            ["toy-corpus", "/dev/full"],
            ["toy-corpus", "{out}", "--train", str(10**18)],
            ["toy-corpus", "{out}", "--train", "10^18"],
            ["toy-corpus", "{out}", "--train", str(10**9)],
            ["reproduce", "duan-table2", "--dry-run", "--seeds", "1-99999999999"],
            ["score", "{world}/first.out", "{world}/text.de", "--samples", "10000000000"],
            ["analyze", "iterations", "{world}/model.pt", "--data", "{world}/data/bin", "--out", "{out}"]
            + ["--iterations", "1-99999999999"],
            ["analyze", "lengths", "{world}/first.out", "--out", "{out}", "--groups", "99999999999"],
        ],
    )
    def test_excessive_values_are_refused_immediately(self, world, tmp_path, command, arguments):
        start = time.process_time()
        try:
            status = command(*(word.format(world=world, out=tmp_path / "out") for word in arguments)).status
        except SystemExit as error:
            status = error.code
        assert status in (1, 2) and time.process_time() - start < 20
        assert not (tmp_path / "out").exists()
