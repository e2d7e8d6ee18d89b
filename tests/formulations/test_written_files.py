"""Text files are written whole or not at all, by the one function that all writers call."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from equipoise.formulations.files import write_text
from equipoise.simulation import generate_trace, write_shockwave

ROOT = Path(__file__).parents[2]


def test_text_that_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("what was there", encoding="utf-8")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "half of it \udc80")
    assert path.read_text(encoding="utf-8") == "what was there"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_replaces_the_old_one_with_the_permissions_of_the_umask(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_text("file", "old")
    before = os.umask(0o027)
    try:
        write_text("file", "new")
    finally:
        os.umask(before)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "new"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_a_relative_path_a_link_and_a_device_are_written_where_they_point(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("real").write_text("old")
    Path("link").symlink_to("real")
    write_text("link", "new")
    assert Path("link").is_symlink()
    assert Path("real").read_text() == "new"
    write_text(os.devnull, "nothing is kept")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_what_utf_8_cannot_hold_is_escaped_on_request(tmp_path):
    write_text(tmp_path / "file", "half of it \udc80", errors="backslashreplace")
    assert (tmp_path / "file").read_bytes() == b"half of it \\udc80"


def test_a_written_trace_may_be_read_by_others(tmp_path):
    path = tmp_path / "trace.csv"
    write_shockwave(generate_trace(np.random.default_rng(0), num_jobs=2), path)
    umask = os.umask(0o022)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize(
    ("call", "only"), [("os.replace(", "formulations/files.py"), ("get_close_matches(", "formulations/text.py")]
)
def test_no_other_module_replaces_files_or_looks_for_the_nearest_name(call, only):
    folders = ("cli", "formulations", "heuristics", "simulation", "solvers", "validation")
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    callers = [path.relative_to(ROOT).as_posix() for path in sources if call in path.read_text(encoding="utf-8")]
    assert callers == [only]
