import random

import pytest

from fairseq_capsule_lab.cli import main
from tests.integration import multi30k
from tests.integration.commands import PATH, PLUGIN, SCRIPTED, run, train
from tests.integration.preparing import Workplace

# The longest start first, so that no core is idle while another ends the last of them.
LONGEST = (
    "pages",
    "train_script",
    "export",
    "training",
    "results",
    "examples",
    "reproduce",
    "demo",
    "prepare_wmt",
)


def pytest_collection_modifyitems(items):
    order = {f"test_{name}.py": number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(LONGEST)))


def write_reversals(folder, split, number, rng):
    """Write sentences of an invented language. The translation is the sentence in reverse order."""
    with open(folder / f"{split}.en", "w") as source, open(folder / f"{split}.de", "w") as target:
        for _ in range(number):
            words = [rng.choice("abcdefghijkl") for _ in range(rng.randint(2, 7))]
            print(*words, file=source)
            print(*reversed(words), file=target)


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A binarised corpus of 300 pairs."""
    folder = tmp_path_factory.mktemp("reversals")
    rng = random.Random(1)
    for split, number in (("train", 300), ("valid", 30), ("test", 20)):
        write_reversals(folder, split, number, rng)
    prefixes = [argument for split in ("train", "valid", "test") for argument in (f"--{split}pref", folder / split)]
    arguments = ["-s", "en", "-t", "de", "--joined-dictionary", "--destdir", folder / "bin"]
    run("preprocess", *prefixes, *arguments, user_dir=None)
    return folder / "bin"


@pytest.fixture(scope="session")
def trained(data, tmp_path_factory):
    """A run of three epochs with all checkpoints."""
    folder = tmp_path_factory.mktemp("trained")
    train(data, folder, "--max-epoch", 3)
    return folder


@pytest.fixture(scope="session")
def trained_run(data, tmp_path_factory):
    """A run folder of `train.sh`: three epochs in one process. `output` is the output of the script."""
    place = with_plugin(Workplace(tmp_path_factory.mktemp("run"), "train.sh"))
    return place.prepared(*SCRIPTED, data)


def with_plugin(place):
    (place.root / "fairseq_capsule").symlink_to(PLUGIN)
    return place


@pytest.fixture(scope="session")
def archives(tmp_path_factory):
    """Tiny archives of Multi30k."""
    folder = tmp_path_factory.mktemp("archives")
    multi30k.make_archives(folder)
    return folder


@pytest.fixture(scope="session")
def prepared(archives, tmp_path_factory):
    """A finished run of `prepare-multi30k.sh` on the tiny archives."""
    return Workplace(tmp_path_factory.mktemp("prepared"), "prepare-multi30k.sh").prepared("--from", archives)


@pytest.fixture
def refuses(capsys, monkeypatch):
    """Run `fairseq-capsule prepare` in this process. Its second stage fails. Returns the line that is no warning."""

    def run_and_fail(*words):
        assert main(["prepare", *map(str, words)]) == 1
        *warnings, line = capsys.readouterr().err.splitlines()
        assert all(": warning: " in warning for warning in warnings)
        return line

    def fail(*arguments):
        raise RuntimeError("out of luck")

    monkeypatch.setenv("PATH", PATH)
    monkeypatch.setattr("fairseq_capsule_lab.corpora.preparation.filter_folder", fail)
    return run_and_fail
