"""Read text from a file or standard input, and write it to a file, with one readable line for each failure."""

from __future__ import annotations

import codecs
import os
import sys
from pathlib import Path

from ..formulations import files
from .errors import FAILED, CommandError

STANDARD_INPUT = "-"


def read_text(source: str) -> str:
    """Return the text of a file, or of standard input for "-".

    A file that is missing, a folder, unreadable, empty, or not text is a CommandError.
    """
    name = "standard input" if source == STANDARD_INPUT else source
    if source == STANDARD_INPUT:
        raw = _standard_input()
    else:
        try:
            raw = Path(source).read_bytes()
        except FileNotFoundError:
            raise CommandError(f"{source}: no such file", "give the path of a file, or - for standard input.") from None
        except IsADirectoryError:
            raise CommandError(f"{source}: is a folder, not a file", "name a file inside it.") from None
        except OSError as error:
            raise CommandError(f"{source}: {error.strerror}", "check that the file may be read.") from None
        except ValueError as error:  # a NUL inside a path
            raise CommandError(f"{source!r}: {error}", "give the path of a file, or - for standard input.") from None
    if not raw.strip():
        raise CommandError(f"{name}: is empty", "an instance is a JSON object; `equipoise snapshot` makes one.")
    # A shell on Windows writes UTF-16 when it redirects.
    encoding = "utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{name}: is not text (byte 0x{raw[error.start]:02x} at offset {error.start})",
            "an instance is JSON in UTF-8.",
        ) from None


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise CommandError("standard input: is closed", "pipe an instance in, or name a file.")
    buffer = getattr(sys.stdin, "buffer", None)
    return buffer.read() if buffer is not None else sys.stdin.read().encode()


def check_target(option: str, target: Path | None) -> None:
    """Check that a file can be written at `target`, before any work is done for it; CommandError names the option."""
    if target is None:
        return
    if target.is_dir():
        raise CommandError(f"{option} {target}: is a folder", "name a file inside it.")
    folder = target.parent
    if not folder.is_dir():
        raise CommandError(f"{option} {target}: the folder {folder} does not exist", "create it first.")
    if not os.access(folder, os.W_OK) and not os.access(target, os.W_OK):
        raise CommandError(f"{option} {target}: the folder {folder} may not be written", "choose another folder.")


def write_text(target: Path, text: str) -> None:
    """Write `text` to `target` whole or, with a CommandError, not at all; what UTF-8 cannot hold is escaped."""
    try:
        files.write_text(target, text, errors="backslashreplace")
    except OSError as error:
        raise CommandError(
            f"{target}: cannot be written ({error.strerror})", "check the disk and the folder.", code=FAILED
        ) from None
