"""Checkpoints, dictionaries and data that are invalid or do not match: one line names each."""

import copy
import pickle
import shutil

import pytest
import torch

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.models import load_model
from fairseq_capsule.hub import load
from fairseq_capsule.models import CapsuleTransformerModel
from tests.cli.world import make_world, save_checkpoint


def change_checkpoint(world, tmp_path, function):
    state = torch.load(world / "model.pt", weights_only=True)
    function(state)
    torch.save(state, tmp_path / "changed.pt")
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
    "an unknown architecture": (
        lambda s: replaced(s, "cfg", "model", "_name", value="rnmt"),
        "its architecture 'rnmt' is unknown; give the --user-dir of the plugin that defines it (in Python, import it)",
    ),
    "a missing parameter": (lambda s: replaced(s, "model", "decoder.embed_tokens.weight"), "no model can be built"),
    "a language that the data does not have": (
        lambda s: replaced(s, "cfg", "task", "target_lang", value="fr"),
        "no dict.fr.txt, but ",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_checkpoint_with_wrong_options_is_named(refused, world, tmp_path, kind):
    change, wanted = BROKEN[kind]
    checkpoint = change_checkpoint(world, tmp_path, change)
    line = refused("size", checkpoint, "--data", world / "data/bin")
    assert wanted in line and str(checkpoint) in line


@pytest.fixture(scope="module")
def other_words(world, tmp_path_factory):
    """Data with the same number of words, but other words, and a checkpoint that was trained on it."""
    folder = tmp_path_factory.mktemp("other")
    make_world(folder)
    for path in folder.glob("data/bin/dict.*.txt"):
        path.write_text(path.read_text().replace("a ", "x "))
    save_checkpoint(folder / "data/bin", folder / "model.pt")
    return folder


@pytest.fixture
def fewer_words(world, tmp_path):
    shutil.copytree(world / "data/bin", tmp_path / "bin")
    for path in tmp_path.glob("bin/dict.*.txt"):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:3]))
    return tmp_path / "bin"


COMMANDS = {  # one for each way to load a model
    "size": "size {model} --data {data}",
    "overlap": "analyze overlap {model} --data {data} --out {out}",
    "inspect": "inspect {model} {data} --text a --out {out}",
    "against": "inspect {right} {data} --against {model} --text a --out {out}",
}


def test_a_copy_of_a_loaded_model_has_its_own_parameters(world):
    model, *_ = load_model(world / "model.pt", world / "data/bin")
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        for parameter in copied.parameters():
            parameter.data.zero_()
        inputs = {"src_tokens": torch.tensor([[4, 2]]), "src_lengths": torch.tensor([2])}
        logits = copied(**inputs, prev_output_tokens=torch.tensor([[2]]))[0]
        assert not logits.any()


def test_a_search_that_fails_is_one_line(world):
    hub = load(world / "model.pt", world / "data/bin")
    hub.cfg.generation.min_len = 500
    with pytest.raises(UserError, match="model.pt: it cannot translate this .*min_len cannot be larger than max_len"):
        hub.translate("a b")


@pytest.mark.parametrize("program", COMMANDS)
def test_data_with_other_words_are_refused(refused, world, other_words, fewer_words, tmp_path, program):
    places = {"model": other_words / "model.pt", "out": tmp_path / "out", "right": world / "model.pt"}
    line = refused(*COMMANDS[program].format(**places, data=world / "data/bin").split())
    assert "was trained with other words than those of the source dictionary of " in line
    assert line.startswith(str(places["model"])) and line.endswith(f"--codes and --dict of {other_words}/data/bin")
    line = refused(*COMMANDS[program].format(**places, data=fewer_words).split())
    assert "model.pt: its encoder's dictionary has " in line and "; prepare the text with --codes and --dict of" in line
    assert not (tmp_path / "out").exists()


class TestNames:
    def test_a_checkpoint_s_name_may_contain_a_colon(self, command, world, tmp_path):
        folder = tmp_path / "run:1"
        folder.mkdir()
        shutil.copy(world / "model.pt", folder / "a:b.pt")
        assert command("size", folder / "a:b.pt", "--data", world / "data/bin").status == 0
        places = [folder / "a:b.pt", world / "data/bin", "--text", "a", "--out", folder / "a.png"]
        assert command("picture", *places).status == 0

    @pytest.mark.parametrize("name", ["code", "bpecodes"])
    def test_a_file_beside_the_checkpoint_is_not_changed(self, world, tmp_path, name):
        shutil.copy(world / "model.pt", tmp_path)
        (tmp_path / name).write_text("broken")
        hub = load(tmp_path / "model.pt", world / "data/bin", bpe="subword_nmt", bpe_codes=str(world / "codes"))
        assert hub.apply_bpe("ab") == "ab" and hub.cfg.bpe.bpe_codes == str(world / "codes")


class TestData:
    @pytest.fixture
    def data(self, world, tmp_path):
        shutil.copytree(world / "data/bin", tmp_path / "bin")
        return tmp_path / "bin"

    @pytest.mark.parametrize("ending", ["idx", "bin"])
    def test_a_truncated_data_file_is_named(self, refused, world, data, ending):
        path = data / f"test.en-de.de.{ending}"
        path.write_bytes(path.read_bytes()[:-5])
        line = refused("probe", world / "model.pt", "--data", data)
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
