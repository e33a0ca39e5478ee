"""fairseq's commands with broken dictionaries and with those of another run, for every task."""

import copy
import functools
import shutil

import pytest
from fairseq import options
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli import generate, interactive

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.averaging import average_checkpoints
from fairseq_capsule.models.capsule_transformer import CapsuleTransformerModel
from fairseq_capsule.testing import build_small
from tests.checkpoints.ways_in import SETTINGS

COMMANDS = {
    "generate": (generate, options.get_generation_parser),
    "interactive": (interactive, options.get_interactive_generation_parser),
}
BROKEN = {
    "missing": (lambda path: path.unlink(), "No such file or directory; name a folder that fairseq-preprocess made"),
    "a symbol twice": (lambda path: path.write_text("a 1\na 1\n"), "line 2: 'a' is already in line 1"),
    "half": (
        lambda path: path.write_text(path.read_text()[:70]),
        "with other words than those of the data's|SYMBOL COUNT",
    ),
}


@functools.cache
def parsed(command, task):
    _, parser = COMMANDS[command]
    words = ["DATA", "--task", task, "-s", "en", "-t", "de", "--path", "CHECKPOINT", *SETTINGS]
    words += ["--beam", "1", "--max-len-b", "2"]
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(parser(), words))


def run(command, task, data, checkpoint, monkeypatch):
    module, _ = COMMANDS[command]
    monkeypatch.setattr(interactive, "buffered_read", lambda *_: [["w1 w2"]])
    cfg = copy.deepcopy(parsed(command, task))
    cfg.task.data, cfg.common_eval.path = str(data), str(checkpoint)
    module.main(cfg)


@pytest.fixture
def data(place, tmp_path):
    return shutil.copytree(place.data, tmp_path / "bin")


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_dictionary_is_refused(place, data, monkeypatch, kind):
    change, reason = BROKEN[kind]
    change(data / "dict.de.txt")
    with pytest.raises(UserError, match=reason):
        run("generate", "capsule_translation", data, place.good, monkeypatch)


class TestOtherWords:
    """A dictionary of the same size as the checkpoint's, with other words."""

    @pytest.fixture
    def others(self, data):
        for language in ("en", "de"):
            words = Dictionary.load(str(data / f"dict.{language}.txt"))
            words.symbols[-2:] = words.symbols[:-3:-1]
            words.save(str(data / f"dict.{language}.txt"))
        return data

    @pytest.mark.parametrize("task", ["translation", "capsule_translation"])
    @pytest.mark.parametrize("command", COMMANDS)
    def test_commands_refuse_them(self, place, others, monkeypatch, command, task):
        with pytest.raises(UserError, match="trained with other words than those of the data's source dictionary"):
            run(command, task, others, place.good, monkeypatch)

    def test_the_hub_and_ensembles_refuse_them(self, place, others, monkeypatch):
        with pytest.raises(UserError, match="trained with other words"):
            CapsuleTransformerModel.from_pretrained(str(place.folder), place.good.name, str(others))
        older = place.state()
        del older["task_state"]
        older = place.write("older.pt", older)
        with pytest.raises(UserError, match="trained with other words"):
            run("generate", "translation", others, f"{older}:{place.good}", monkeypatch)

    def test_the_training_data_folder_may_be_missing(self, place, others, tmp_path):
        """Commands of this package compare the words even if the data of the training are missing."""
        state = place.state()
        state["cfg"]["task"]["data"] = str(tmp_path / "nowhere")
        moved = place.write("moved.pt", state)
        place.size(moved)
        with pytest.raises(UserError, match=f"{moved}: it was trained with other words"):
            place.command("size", moved, "--data", others)

    def test_checkpoints_without_a_digest_are_accepted(self, place, others, monkeypatch):
        for task_state in (None, {}):
            state = place.state()
            del state["task_state"]
            state.update({} if task_state is None else {"task_state": task_state})
            run("generate", "translation", others, place.write("older.pt", state), monkeypatch)

    def test_an_average_keeps_the_digest(self, place):
        digests = place.state()["task_state"]["dictionary_digests"]
        assert set(digests) == {"source", "target"}
        assert average_checkpoints([place.good, place.good])["task_state"]["dictionary_digests"] == digests


@pytest.mark.parametrize("arch", ["capsule_transformer_tiny", "gdr_lstm", "capsnmt"])
def test_every_kind_of_model_keeps_the_digest(place, arch):
    task = type(place.task)(place.task.cfg, place.task.src_dict, place.task.tgt_dict)
    build_small(arch, task=task)
    assert task.state_dict() == place.state()["task_state"]
