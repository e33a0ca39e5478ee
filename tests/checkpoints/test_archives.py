"""Archives that the hub unpacks: nothing is written, moved or linked outside their folder."""

import io
import shutil
import struct
import tarfile
import zlib

import pytest

from capsule_routing.errors import UserError
from fairseq_capsule.models.capsule_transformer import CapsuleTransformerModel


def member(name, kind=tarfile.REGTYPE, target=""):
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


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
    "a control character": [member("a\x1b[2J")],
    "a sparse file": [member("a", tarfile.GNUTYPE_SPARSE)],  # of any size, without bytes in the archive
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
        for entry in HOSTILE[kind]:
            name, target = (text.format(outside=outside) for text in (entry.name, entry.linkname))
            archive.addfile(member(name, entry.type, target))
    content = path.read_bytes()
    for places in ([path, path.parent], [path.parent, path]):
        with pytest.raises(UserError, match="not unpacked: "):
            CapsuleTransformerModel.from_pretrained(str(places[0]), "model.pt", str(places[1]))
    assert [file.name for file in outside.iterdir()] == ["theirs"] and (outside / "theirs").read_text() == "theirs"
    assert path.read_bytes() == content and list(path.parent.iterdir()) == [path]


def two_archives_in_one(first, second):
    """Return bytes that are the gzipped archive `first`, and an uncompressed archive with the members of `second`."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = deflate.compress(first) + deflate.flush() + struct.pack("<II", zlib.crc32(first), len(first))
    # The header of the uncompressed archive's first member is the extra field of the gzip header.
    header = bytearray(tarfile.TarInfo("x").tobuf(tarfile.USTAR_FORMAT))
    header[:12] = b"\x1f\x8b\x08\x04" + bytes(6) + struct.pack("<H", 512 - 12)
    header[124:136] = b"%011o\0" % len(packed)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + packed + bytes(-len(packed) % 512) + second


def archived(*names):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name in names:
            archive.addfile(member(name))
    return content.getvalue()


def test_an_archive_of_two_formats_is_read_once(tmp_path):
    path = tmp_path / "inside" / "model.tar"
    path.parent.mkdir()
    path.write_bytes(two_archives_in_one(archived("model/model.pt"), archived("../evil", f"{tmp_path}/evil")))
    assert tarfile.open(path).getnames() == ["model/model.pt"]
    assert "../evil" in tarfile.open(path, "r:tar").getnames()
    with pytest.raises(Exception, match="model.pt"):  # it is empty
        CapsuleTransformerModel.from_pretrained(str(path), "model.pt", ".")
    assert list(tmp_path.iterdir()) == [path.parent] and list(path.parent.iterdir()) == [path]


def test_folders_with_a_common_beginning_are_kept(tmp_path):
    path = tmp_path / "model.tar"
    path.write_bytes(archived("ab/x", "ac/y"))
    with pytest.raises(Exception, match="model.pt"):  # there is none
        CapsuleTransformerModel.from_pretrained(str(path), "model.pt", ".")
    assert (path / "ab/x").is_file() and (path / "ac/y").is_file()


def test_a_file_that_is_twice_in_an_archive_is_the_last(tmp_path):
    path = tmp_path / "model.tar"
    path.write_bytes(archived("model/x", "model/x", "y"))
    with pytest.raises(Exception, match="model.pt"):  # there is none
        CapsuleTransformerModel.from_pretrained(str(path), "model.pt", ".")
    assert sorted(file.name for file in path.iterdir()) == ["model", "y"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "model.tar").write_bytes(archived("model/x"))

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr("tempfile.TemporaryDirectory", refuse)
    with pytest.raises(UserError, match="model.tar: not unpacked: .*Permission denied"):
        CapsuleTransformerModel.from_pretrained(str(tmp_path / "model.tar"), "model.pt", ".")


def test_an_archive_that_would_fill_the_disk_is_refused(tmp_path):
    path = tmp_path / "model.tar.xz"
    with tarfile.open(path, "w:xz") as archive:
        entry = member("model/model.pt")
        entry.size = 50_000_000
        archive.addfile(entry, io.BytesIO(bytes(entry.size)))
    content = path.read_bytes()
    with pytest.raises(UserError, match="1000 times as large"):
        CapsuleTransformerModel.from_pretrained(str(path), "model.pt", ".")
    assert path.read_bytes() == content and list(tmp_path.iterdir()) == [path]


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
