"""Archives that the hub unpacks: nothing is written, moved or linked outside their folder."""

import io
import shutil
import tarfile

import pytest

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.capsule_transformer import CapsuleTransformerModel


def member(name, kind=tarfile.REGTYPE, target=""):
    found = tarfile.TarInfo(name)
    found.type, found.linkname = kind, target
    return found


HOSTILE = {
    "above": [member("../evil")],
    "deep above": [member("a/b/../../../evil")],
    "absolute": [member("{outside}/evil")],
    "absolute, moved": [member("{outside}/theirs")],
    "a link": [member("a", tarfile.SYMTYPE, "{outside}")],
    "through a link": [member("a", tarfile.SYMTYPE, "{outside}"), member("a/evil")],
    "a hard link": [member("a", tarfile.LNKTYPE, "{outside}/theirs")],
    "a device": [member("a", tarfile.CHRTYPE)],
    "a pipe": [member("a", tarfile.FIFOTYPE)],
}


@pytest.fixture
def outside(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/theirs").write_text("theirs")
    return tmp_path / "outside"


@pytest.mark.parametrize("compression", ["", "gz", "bz2", "xz"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_is_not_unpacked(outside, tmp_path, kind, compression):
    path = tmp_path / "inside" / f"model.tar{compression and f'.{compression}'}"
    path.parent.mkdir()
    with tarfile.open(path, f"w:{compression}") as archive:
        archive.addfile(member("model/good"))
        for found in HOSTILE[kind]:
            name, target = (text.format(outside=outside) for text in (found.name, found.linkname))
            archive.addfile(member(name, found.type, target))
    content = path.read_bytes()
    for places in ([path, path.parent], [path.parent, path]):
        with pytest.raises(UserError, match="not unpacked: "):
            CapsuleTransformerModel.from_pretrained(str(places[0]), "model.pt", str(places[1]))
    assert [file.name for file in outside.iterdir()] == ["theirs"] and (outside / "theirs").read_text() == "theirs"
    assert path.read_bytes() == content and list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    "content", [b"", b"no archive", bytes(1024), b"\x1f\x8b\x08\0cut", b"BZh9cut", b"\xfd7zXZ\0cut"]
)
def test_files_that_are_not_archives_are_refused(tmp_path, content):
    path = tmp_path / "model.pt"
    path.write_bytes(content)
    with pytest.raises(UserError, match="model.pt: "):
        CapsuleTransformerModel.from_pretrained(str(path), "model.pt", str(tmp_path))
    with pytest.raises(UserError, match="nothing: no such file or folder"):
        CapsuleTransformerModel.from_pretrained(str(tmp_path / "nothing"))


def test_an_archive_of_a_model_loads(place, tmp_path):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(place.good, "model/model.pt")
        for file in place.data.glob("dict.*.txt"):
            archive.add(file, f"model/{file.name}")
    path = tmp_path / "model.tar.gz"
    path.write_bytes(packed.getvalue())
    hub = CapsuleTransformerModel.from_pretrained(str(path), "model.pt", ".")
    assert hub.models and path.is_dir()  # fairseq replaces the archive by its folder
    shutil.rmtree(path)
