"""fairseq's commands and those of the package with the dictionaries of another run."""

import shutil

import pytest
from fairseq.data import Dictionary

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.averaging import average_checkpoints
from fairseq_capsule.mechanisms.registry import routing_options
from fairseq_capsule.models.capsule_transformer import CapsuleTransformerModel
from fairseq_capsule.testing import build_small

OTHER_WORDS = "trained with other words than those of the"


@pytest.fixture
def others(place, tmp_path):
    """Data with dictionaries of the same size as the checkpoint's, and other words."""
    data = shutil.copytree(place.data, tmp_path / "bin")
    for language in ("en", "de"):
        words = Dictionary.load(str(data / f"dict.{language}.txt"))
        words.symbols[-2:] = words.symbols[:-3:-1]
        words.save(str(data / f"dict.{language}.txt"))
    return data


def without_digests(place, name, **task_state):
    """A checkpoint that does not say its words, and whose data are gone."""
    state = place.state()
    del state["task_state"]
    state["cfg"]["task"]["data"] = str(place.folder / "gone")
    return place.write(name, {**state, **task_state})


@pytest.mark.parametrize("task", ["translation", "capsule_translation"])
def test_generate_and_ensembles_refuse_other_words(place, others, task):
    for checkpoints in (place.good, f"{without_digests(place, 'older.pt')}:{place.good}"):
        with pytest.raises(UserError, match=f"{OTHER_WORDS} source dictionary"):
            place.generate(checkpoints, others, task)


def test_half_a_dictionary_is_refused(place, others):
    dictionary = others / "dict.de.txt"
    dictionary.write_text(dictionary.read_text()[:70])
    with pytest.raises(UserError, match=f"{OTHER_WORDS}|Incorrect dictionary format"):
        place.generate(place.good, others)


def test_the_hub_refuses_other_words(place, others):
    with pytest.raises(UserError, match=OTHER_WORDS):
        CapsuleTransformerModel.from_pretrained(str(place.folder), place.good.name, str(others))


def test_the_training_data_folder_may_be_missing(place, others, tmp_path):
    """Commands of this package compare the words even if the data of the training are missing."""
    state = place.state()
    state["cfg"]["task"]["data"] = str(tmp_path / "nowhere")
    moved = place.write("moved.pt", state)
    place.size(moved)
    with pytest.raises(UserError, match=f"{moved}: it was trained with other words than .* of {tmp_path}/nowhere"):
        place.command("size", moved, "--data", others)


def test_checkpoints_without_a_digest_are_accepted_with_a_line_that_says_so(place, others, caplog):
    for task_state in ({}, {"task_state": {}}):
        older = without_digests(place, "older.pt", **task_state)
        place.generate(older, others, "translation")
        lines = [record.message for record in caplog.records if record.levelname == "WARNING"]
        assert [line for line in lines if "older.pt" in line] == [
            f"{older}: words not compared with those of {others}: its digests or languages are missing, and so is the "
            "data folder of its training"
        ]
        caplog.clear()


def test_an_average_keeps_the_digest(place):
    digests = place.state()["task_state"]["dictionary_digests"]
    assert set(digests) == {"source", "target"}
    assert average_checkpoints([place.good, place.good], routing_options)["task_state"]["dictionary_digests"] == digests


@pytest.mark.parametrize("arch", ["gdr_lstm", "capsnmt"])
def test_every_kind_of_model_keeps_the_digest(place, arch):
    task = type(place.task)(place.task.cfg, place.task.src_dict, place.task.tgt_dict)
    build_small(arch, task=task)
    assert task.state_dict() == place.state()["task_state"]
