"""Files are written completely or not at all, and errors name file and line."""

import os

import pytest

from capsule_routing.errors import UserError
from capsule_routing.text.files import read_lines
from fairseq_capsule_lab.files import write_whole


def test_lines_end_at_line_feeds_only(tmp_path):
    file = tmp_path / "text"
    file.write_bytes("\ufeffein Satz\u2028noch derselbe\r\n\nzwei\x85\n".encode())
    assert read_lines(file) == ["ein Satz\u2028noch derselbe", "", "zwei\x85"]
    file.write_bytes(b"without an end")
    assert read_lines(file) == ["without an end"]


@pytest.mark.parametrize(
    "content, message",
    [
        (b" \n\n", "text: empty"),
        ("ein\nzwei\ngrün\n".encode("latin-1"), "text, line 3: not UTF-8"),
        ("ein\nzwei\ngrün\n".encode("utf-16-be"), "text: UTF-16, not UTF-8; convert it: iconv -f UTF-16 -t UTF-8"),
    ],
)
def test_an_empty_text_and_another_encoding_are_refused(tmp_path, content, message):
    (tmp_path / "text").write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_lines(tmp_path / "text")


def test_a_failed_write_does_not_change_the_older_file(tmp_path, monkeypatch):
    file = tmp_path / "file"
    write_whole(file, b"older")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="file: not written: No space left on device"):
        write_whole(file, b"newer")
    assert file.read_bytes() == b"older"
    assert list(tmp_path.iterdir()) == [file]


def test_links_and_pipes_are_written_to_and_not_replaced(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_whole(tmp_path / "link", b"content")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"content"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(tmp_path / "pipe", b"content")
    assert os.read(reader, 100) == b"content"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()
    reader, writer = os.pipe()  # /dev/stdout is such a link if the output goes to a pipe
    (tmp_path / "stdout").symlink_to(f"/proc/self/fd/{writer}")
    write_whole(tmp_path / "stdout", b"content")
    assert os.read(reader, 100) == b"content"
    os.close(reader)
    os.close(writer)


def test_a_planted_link_is_not_followed(tmp_path):
    (tmp_path / "victim").write_bytes(b"untouched")
    for name in (f".file.{os.getpid()}.part", f".file.{os.getpid()}-0.part"):
        (tmp_path / name).symlink_to(tmp_path / "victim")
    write_whole(tmp_path / "file", b"content")
    assert (tmp_path / "victim").read_bytes() == b"untouched"
    assert (tmp_path / "file").read_bytes() == b"content" and not (tmp_path / "file").is_symlink()
    assert len(list(tmp_path.iterdir())) == 4
