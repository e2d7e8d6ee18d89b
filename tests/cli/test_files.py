"""Files are written whole or not at all, and unreadable input is one line."""

import io
import os

import pytest

from equipoise.cli import files
from equipoise.cli.errors import FAILED, CommandError
from equipoise.cli.files import check_target, read_text, write_text


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    target = tmp_path / "plan.json"
    target.write_text("old")

    def refuse(*names):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", refuse)
    with pytest.raises(CommandError, match="No space left") as caught:
        write_text(target, "new")
    assert caught.value.code == FAILED
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_write_replaces_and_respects_the_umask(tmp_path):
    target = tmp_path / "plan.json"
    before = os.umask(0o027)
    try:
        write_text(target, "one")
        write_text(target, "two")
    finally:
        os.umask(before)
    assert target.read_text() == "two"
    assert target.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [target]


def test_a_link_keeps_pointing_and_its_target_is_written(tmp_path):
    real = tmp_path / "real.json"
    link = tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    write_text(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_a_pipe_is_written_in_place():
    reader, writer = os.pipe()
    write_text(files.Path(f"/dev/fd/{writer}"), "through")
    os.close(writer)
    with os.fdopen(reader) as stream:
        assert stream.read() == "through"


def test_targets_are_checked_before_the_work(tmp_path):
    check_target("--out", None)
    check_target("--out", tmp_path / "new.json")
    with pytest.raises(CommandError, match=r"--out .*none: is a folder|--out .*: is a folder"):
        check_target("--out", tmp_path)
    with pytest.raises(CommandError, match=r"--html .*/none/x: the folder .*/none does not exist"):
        check_target("--html", tmp_path / "none" / "x")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n\t", "is empty"),
        (b"\x89PNG\r\n", "is not text \\(byte 0x89 at offset 0\\)"),
        (b'{"a": "\xff"}', "is not text \\(byte 0xff at offset 7\\)"),
    ],
)
def test_unreadable_content_is_named(tmp_path, content, message):
    source = tmp_path / "in.json"
    source.write_bytes(content)
    with pytest.raises(CommandError, match=message):
        read_text(str(source))


def test_missing_files_folders_and_bad_names_are_refused(tmp_path):
    with pytest.raises(CommandError, match="no such file"):
        read_text(str(tmp_path / "none.json"))
    with pytest.raises(CommandError, match="is a folder"):
        read_text(str(tmp_path))
    with pytest.raises(CommandError):
        read_text("a\0b")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_every_encoding_a_shell_writes_is_read(tmp_path, encoding):
    source = tmp_path / "in.json"
    source.write_bytes('{"id": "é"}'.encode(encoding))
    assert read_text(str(source)) == '{"id": "é"}'


def test_standard_input_is_read_as_bytes(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'\xef\xbb\xbf{"a": 1}')))
    assert read_text("-") == '{"a": 1}'
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(CommandError, match="standard input: is closed"):
        read_text("-")
