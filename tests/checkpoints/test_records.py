"""Archives that show each reader another content: every disagreement between the parts of a zip file is refused."""

import io
import random
import struct
import zipfile

import pytest
import torch

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints import records
from fairseq_capsule.checkpoints.contents import rebuild
from fairseq_capsule.checkpoints.loading import read_options
from tests.checkpoints.hostile_files import NO_ARCHIVE, saved

STATE = {"model": {"a": torch.arange(3.0), "empty": torch.zeros(0, 4), "b": torch.ones(40)}, "extra_state": {}}
FILE = saved(STATE)
LISTED = zipfile.ZipFile(io.BytesIO(FILE)).start_dir
INFOS = zipfile.ZipFile(io.BytesIO(FILE)).infolist()


def paddings():
    """Yield the places of the bytes that may be anything."""
    for info in INFOS:
        length, extra = struct.unpack_from("<2H", FILE, info.header_offset + 26)
        start = info.header_offset + 30 + length
        yield from range(start + 4, start + extra)


def refused(content):
    try:
        rebuild(bytes(content))
    except UserError as error:
        return str(error).isprintable()
    return False


def field(form, place, value):
    """Return the file with another value of a field."""
    content = bytearray(FILE)
    struct.pack_into(form, content, place, value)
    return bytes(content)


@pytest.mark.parametrize("options", [{}, NO_ARCHIVE])
def test_what_torch_writes_is_read(options, tmp_path):
    torch.save(STATE, tmp_path / "ünï cödé (1).pt", **options)
    for content in (saved(STATE, **options), (tmp_path / "ünï cödé (1).pt").read_bytes()):
        rebuilt = rebuild(content)["model"]
        assert all(torch.equal(rebuilt[name], value) for name, value in STATE["model"].items())


def test_every_flipped_bit_outside_of_the_padding_is_refused():
    anything = set(paddings())
    for place in range(len(FILE)):
        content = bytearray(FILE)
        content[place] ^= 1 << random.Random(place).randrange(8)
        if place in anything:
            assert torch.equal(rebuild(bytes(content))["model"]["b"], torch.ones(40))
        elif place >= 4:  # without the first four bytes it is no archive
            assert refused(content), place


def test_every_cut_and_everything_added_is_refused():
    for size in range(4, len(FILE), 7):
        assert refused(FILE[:size]) and refused(FILE[:size] + FILE), size
    for extra in (b"x", b"\0" * 22, FILE[-22:], FILE[LISTED:], FILE):
        assert refused(FILE + extra)
        assert refused(FILE[:LISTED] + extra + FILE[LISTED:])


@pytest.mark.parametrize("extra", [b"x", b"\0", bytes(512), saved(STATE, **NO_ARCHIVE), FILE])
def test_bytes_after_a_file_in_the_older_format_are_refused(extra):
    content = saved(STATE, **NO_ARCHIVE)
    assert rebuild(content)
    with pytest.raises(UserError, match="bytes after its end"):
        rebuild(content + extra)


def end_records(listed, directory, count):
    return records._end(count, len(directory), listed)


DIRECTORY = FILE[LISTED : -records.END.size]
OTHER = saved({**STATE, "model": {"a": torch.full((3,), 7.0)}})


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(OTHER + FILE, id="one archive after another"),
        pytest.param(FILE[:LISTED] + OTHER[LISTED:], id="the list of another archive"),
        pytest.param(FILE[:-2] + b"\x04\0PK\5\6", id="an end record in a comment"),
        pytest.param(
            FILE[:LISTED] + DIRECTORY + DIRECTORY + end_records(LISTED, DIRECTORY + DIRECTORY, 2 * len(INFOS)),
            id="every record listed twice",
        ),
        pytest.param(
            FILE[:LISTED] + DIRECTORY + DIRECTORY + end_records(LISTED + len(DIRECTORY), DIRECTORY, len(INFOS)),
            id="the second of two lists",
        ),
        pytest.param(
            FILE[:LISTED] + DIRECTORY + DIRECTORY + end_records(LISTED, DIRECTORY, len(INFOS)),
            id="the first of two lists",
        ),
        pytest.param(field("<I", len(FILE) - 6, LISTED - 1), id="another place in the end record"),
        pytest.param(field("<Q", len(FILE) - 50, LISTED + 1), id="another place in the large end record"),
        pytest.param(field("<Q", len(FILE) - 34, 5), id="another place of the large end record"),
        pytest.param(field("<H", LISTED + 10, 8), id="compressed in the list"),
        pytest.param(field("<H", 8, 8), id="compressed in the header"),
        pytest.param(field("<I", LISTED + 42, INFOS[1].header_offset), id="a record of another name"),
        pytest.param(field("<I", LISTED + 24, 0), id="no bytes in the list"),
        pytest.param(field("<I", 22, 5), id="a size in the header"),
        pytest.param(b"PK\3\4" + bytes(40), id="only the first bytes"),
        pytest.param(b"PK\3\4" + FILE[-records.END.size :], id="only the end"),
    ],
)
def test_an_archive_that_disagrees_with_itself_is_refused(content):
    assert refused(content)


def archive(names):
    """Write an archive with the writer of torch."""
    content = io.BytesIO()
    writer = torch._C.PyTorchFileWriter(content)
    for name, data in names.items():
        writer.write_record(name, data, len(data))
    writer.write_end_of_file()
    return content.getvalue()


def records_of_torch():
    """Return the records of the file that torch's writer does not add by itself."""
    file = zipfile.ZipFile(io.BytesIO(FILE))
    content = {info.filename.partition("/")[2]: file.read(info) for info in INFOS}
    own = (".data/serialization_id", ".format_version", ".storage_alignment", "version")
    return {name: data for name, data in content.items() if name not in own}


def test_a_byte_order_is_one_of_two(place):
    assert torch.equal(rebuild(archive({**records_of_torch(), "byteorder": b"little"}))["model"]["b"], torch.ones(40))
    swapped = rebuild(archive({**records_of_torch(), "byteorder": b"big"}))["model"]["b"]
    assert (
        swapped.shape == (40,)
        and swapped.untyped_storage().nbytes() == 160
        and not torch.equal(swapped, torch.ones(40))
    )
    for number, order in enumerate((b"middle", b"", b"Little", b"little\0", b"\xff\xfe", b"big" * 10**5)):
        path = place.folder / f"order{number}.pt"
        path.write_bytes(archive({**records_of_torch(), "byteorder": order}))
        with pytest.raises(UserError, match="not loaded: the file is damaged") as error:
            read_options(path)
        assert len(str(error.value)) < 500


def test_two_records_that_torch_does_not_tell_apart_are_refused():
    copied = records_of_torch()
    assert torch.equal(rebuild(archive(copied))["model"]["b"], torch.ones(40))
    for twin in ("DATA/0", "data.PKL"):
        with pytest.raises(UserError, match="twice"):
            rebuild(archive({**copied, twin: b"x" * 12}))


@pytest.mark.parametrize("change", [-1, 1, 10**6])
def test_a_storage_of_another_size_than_its_record_is_refused(change):
    pickled = zipfile.ZipFile(io.BytesIO(FILE)).read("archive/data.pkl")
    assert pickled.count(b"K\x28tq") == 1  # the length of b
    length = b"J" + struct.pack("<i", 40 + change)
    names = {"data.pkl": pickled.replace(b"K\x28tq", length + b"tq")}
    for info in INFOS:
        if "/data/" in info.filename:
            names[info.filename.partition("/")[2]] = zipfile.ZipFile(io.BytesIO(FILE)).read(info)
    with pytest.raises((UserError, RuntimeError), match="size|larger"):
        rebuild(archive(names))
