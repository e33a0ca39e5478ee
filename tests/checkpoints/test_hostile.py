"""Hostile checkpoints and archives are refused: nothing runs, is written, fetched or read from the environment."""

import io
import tarfile

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed_utils
from omegaconf import open_dict

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints import loading
from fairseq_capsule.models.capsule_transformer import CapsuleTransformerModel
from tests.checkpoints.hostile import HOSTILE, MARKER, saved
from tests.checkpoints.ways_in import WAYS, Place
from tests.processes import start_fork

SAMPLE = ("os.system", "older format", "a call", "a call, args", "an interpolation")  # of HOSTILE


@pytest.fixture(scope="module")
def written(place):
    """Write all hostile checkpoints; return their paths by kind."""
    paths = {}
    for number, (kind, make) in enumerate(HOSTILE.items()):
        made = make({**place.state(), "last_optimizer_state": None})  # it would be half of the file
        paths[kind] = place.folder / f"hostile{number}.pt"
        paths[kind].write_bytes(made if isinstance(made, bytes) else saved(made))
    return paths


@pytest.fixture(autouse=True)
def no_marker(monkeypatch):
    monkeypatch.setenv("SECRET", "a secret of the environment")
    yield
    assert not MARKER.exists()


def refused(load, path, nothing_starts):
    with nothing_starts(), pytest.raises(UserError, match=r"hostile\d+.pt: not loaded: ") as error:
        load(path)
    assert "a secret" not in str(error.value) and "weights_only=False" not in str(error.value)


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_checkpoint_is_refused(place, written, nothing_starts, kind):
    refused(place.generate, written[kind], nothing_starts)


@pytest.mark.parametrize("way", WAYS)
def test_hostile_checkpoints_are_refused_in_every_way(place, written, nothing_starts, way):
    for kind in SAMPLE:
        refused(getattr(place, way), written[kind], nothing_starts)


@pytest.mark.parametrize("way", WAYS)
def test_a_real_checkpoint_loads_in_every_way(place, way):
    getattr(place, way)(place.good)


class _TorchOfUpstream:
    """torch as upstream's main calls it: it reads every checkpoint with `weights_only=False`."""

    def __getattr__(self, name):
        return getattr(torch, name)

    def load(self, *args, **kwargs):
        return torch.load(*args, **{**kwargs, "weights_only": False})


def test_a_fork_that_turns_weights_only_off_changes_nothing(place, written, nothing_starts, monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    monkeypatch.setattr(checkpoint_utils, "torch", _TorchOfUpstream())
    loading.install()
    for path in written.values():
        with nothing_starts(), pytest.raises(UserError, match="not loaded: "):
            checkpoint_utils.load_checkpoint_to_cpu(str(path))
    place.generate(place.good)


def resume(rank, paths, folder):
    """Let one of two processes resume from each checkpoint, and note how it went."""
    (folder / f"place{rank}").mkdir()
    place = Place(folder / f"place{rank}")
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    with open_dict(place.trainer.cfg):
        place.trainer.cfg.distributed_training.distributed_world_size = 2
    for path in paths:
        try:
            place.trainer.load_checkpoint(str(path))
            outcome = "loaded"
        except UserError:
            outcome = "refused"
            distributed_utils.broadcast_object(None, 0, place.trainer.data_parallel_process_group)  # the other waits
        except Exception:
            outcome = "waited"
        with open(folder / f"rank{rank}", "a") as notes:
            notes.write(f"{outcome}\n")


def test_two_processes_refuse_to_resume(place, written, tmp_path):
    """Rank 0 reads the file; the other process gets what rank 0 has read."""
    paths = [written[kind] for kind in SAMPLE]
    ranks = [start_fork(resume, rank, [*paths, place.good], tmp_path) for rank in range(2)]
    for process in ranks:
        process.join(200)
        process.kill()
    notes = [(tmp_path / f"rank{rank}").read_text().split() for rank in range(2)]
    assert notes == [["refused"] * len(paths) + ["loaded"], ["waited"] * len(paths) + ["loaded"]]


ARCHIVES = {
    "above": [("../evil", tarfile.REGTYPE, "")],
    "a link": [("a", tarfile.SYMTYPE, "{outside}"), ("a/evil", tarfile.REGTYPE, "")],
    "a hard link": [("a", tarfile.LNKTYPE, "{outside}/theirs")],
    "no archive": None,
}


def archive(path, *members):
    with tarfile.open(path, "w:gz") as packed:
        for name, kind, target in members:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, target
            packed.addfile(entry, io.BytesIO())


# Without it, as in Debian 12, no archive is unpacked.
unpacks = pytest.mark.skipif(not hasattr(tarfile, "data_filter"), reason="Python 3.11.4 can unpack safely")


def test_a_python_that_cannot_unpack_safely_says_so(tmp_path, monkeypatch):
    monkeypatch.delattr(tarfile, "data_filter", raising=False)
    archive(tmp_path / "model.tar.gz", ("model/good", tarfile.REGTYPE, ""))
    with pytest.raises(UserError, match="model.tar.gz: not unpacked: safe unpacking needs Python 3.11.4; unpack it"):
        CapsuleTransformerModel.from_pretrained(str(tmp_path / "model.tar.gz"), "model.pt", ".")
    assert (tmp_path / "model.tar.gz").is_file()


@pytest.mark.parametrize("kind", ARCHIVES)
def test_a_hostile_archive_is_not_unpacked(tmp_path, kind):
    outside, path = tmp_path / "outside", tmp_path / "inside/model.tar.gz"
    outside.mkdir()
    path.parent.mkdir()
    (outside / "theirs").write_text("theirs")
    path.write_bytes(b"no archive")
    if ARCHIVES[kind]:
        members = [(name, kind, target.format(outside=outside)) for name, kind, target in ARCHIVES[kind]]
        archive(path, ("model/good", tarfile.REGTYPE, ""), *members)
    content = path.read_bytes()
    with pytest.raises(UserError, match="model.tar.gz: not unpacked"):
        CapsuleTransformerModel.from_pretrained(str(path), "model.pt", ".")
    assert [file.name for file in outside.iterdir()] == ["theirs"]
    assert path.read_bytes() == content and list(path.parent.iterdir()) == [path]


@unpacks
def test_an_archive_moves_no_file_from_elsewhere(tmp_path):
    """fairseq would move the common beginning of the names, which is an absolute path here."""
    (tmp_path / "theirs").write_text("theirs")
    archive(tmp_path / "model.tar.gz", (f"{tmp_path}/theirs", tarfile.REGTYPE, ""))
    with pytest.raises(OSError, match="model.pt"):  # there is none
        CapsuleTransformerModel.from_pretrained(str(tmp_path / "model.tar.gz"), "model.pt", ".")
    assert (tmp_path / "theirs").read_text() == "theirs"


@unpacks
def test_an_archive_of_a_model_loads(place, tmp_path):
    path = tmp_path / "model.tar.gz"
    with tarfile.open(path, "w:gz") as packed:
        packed.add(place.good, "model/model.pt")
        for file in place.data.glob("dict.*.txt"):
            packed.add(file, f"model/{file.name}")
    assert CapsuleTransformerModel.from_pretrained(str(path), "model.pt", ".").models
    assert path.is_dir()  # fairseq replaces the archive by its folder
