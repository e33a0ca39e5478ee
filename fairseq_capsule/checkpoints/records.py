"""The archive of records that torch >= 1.6 writes, which is a zip file.

A zip file lists its records at its end, and readers differ in where they look for that list: a crafted file shows each
reader another archive. Therefore this module builds all headers and the end of the file again, as every version of
torch writes them, and compares them with the file. Only the padding before a record's data and its time may differ.
"""

import struct
import zlib
from typing import Set, Tuple

from capsule_routing.errors import UserError

FIRST = b"PK\x03\x04"
LARGE, MANY = 0xFFFFFFFF, 0xFFFF  # a larger number is in another field
HEADER = struct.Struct("<4s5H3I2H")
ENTRY = struct.Struct("<4s6H3I5H2I")
END = struct.Struct("<4sQ2H2I4Q4sIQI4s4H2IH")  # for large archives, where it is, and for small archives


def check_records(content: bytes) -> None:
    """Check that a file is an archive as torch writes it: records from its first byte on, and one list of them.

    A compressed record, a wrong checksum, a name that occurs twice, and anything else raise a UserError.
    """
    view = memoryview(content)
    try:
        listed = END.unpack_from(view, max(0, len(view) - END.size))[9]
        names: Set[bytes] = set()
        position, directory = 0, b""
        while position < listed:
            name, entry, position = _record(view, position, listed + len(directory), listed)
            if name in names or names and next(iter(names)).partition(b"/")[0] != name.partition(b"/")[0]:
                raise UserError(f"its records have the name {_excerpt(name)} twice, or are in several folders")
            names.add(name)
            directory += entry
    except (struct.error, OverflowError):
        raise UserError("the file is damaged or not a checkpoint (its end is missing); copy it again") from None
    if view[listed:] != directory + _end(len(names), len(directory), listed):
        raise _foreign("the list of its records")


def _record(view: memoryview, position: int, entry: int, most: int) -> Tuple[bytes, bytes, int]:
    """Check the record at `position`, with an entry in the list at `entry`; all records end at `most`.

    Return its name in lower case, as torch looks it up; its entry in the list; and its end.
    """
    _, _, _, _, method, time, date, checksum, size, _, length, more, *_ = ENTRY.unpack_from(view, entry)
    entry += ENTRY.size
    name = bytes(view[entry : entry + length])
    if method:  # a compressed megabyte can expand to a terabyte
        raise UserError(f"its record {_excerpt(name)} is compressed; torch never writes such records")
    if size == LARGE:
        size = struct.unpack_from("<Q", view, entry + length + 4)[0]
    extra, in_header = (_large(size, packed, position) for packed in (size, 0))  # torch writes a header before the data
    common = 0x808 if size else 0x800, 0, time, date
    padding = HEADER.unpack_from(view, position)[-1] - len(extra) - 4
    if more != len(extra) or padding < 0:
        raise _foreign(f"record {_excerpt(name)}")
    header = HEADER.pack(FIRST, 0, *common, 0, 0, 0, length, len(extra) + 4 + padding)
    header += name + in_header + struct.pack("<2sH", b"FB", padding)
    data = position + len(header) + padding
    form = "<4sI2Q" if extra else "<4sI2I"
    footer = struct.pack(form, b"PK\x07\x08", checksum, size, size) if size else b""
    end = data + size + len(footer)
    if end > most or view[position : position + len(header)] != header or view[data + size : end] != footer:
        raise _foreign(f"record {_excerpt(name)}")
    if zlib.crc32(view[data : data + size]) != checksum:
        raise UserError(f"its record {_excerpt(name)} is damaged (wrong checksum); copy the file again or train again")
    shortened = min(size, LARGE), min(size, LARGE), length, len(extra), 0, 0, 0, 0, min(position, LARGE)
    return name.lower(), ENTRY.pack(b"PK\x01\x02", 0, 0, *common, checksum, *shortened) + name + extra, end


def _large(size: int, packed: int, position: int) -> bytes:
    numbers = [size, packed] * (size >= LARGE) + [position] * (position >= LARGE)
    return struct.pack(f"<2H{len(numbers)}Q", 1, 8 * len(numbers), *numbers) if numbers else b""


def _end(count: int, size: int, listed: int) -> bytes:
    large = b"PK\x06\x06", 44, 0x31E, 45, 0, 0, count, count, size, listed
    where = b"PK\x06\x07", 0, listed + size, 1
    few = min(count, MANY)
    return END.pack(*large, *where, b"PK\x05\x06", 0, 0, few, few, min(size, LARGE), min(listed, LARGE), 0)


def _excerpt(name: bytes) -> str:
    return repr(name.decode(errors="replace"))[1:-1][:100]


def _foreign(what: str) -> UserError:
    return UserError(f"the file is damaged, or torch did not write it ({what}); copy it again or train again")
