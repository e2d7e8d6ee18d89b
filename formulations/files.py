"""Write text files whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path


def write_text(path: str | os.PathLike[str], text: str, *, errors: str = "strict") -> None:
    """Write `text` as UTF-8 to `path` through a temporary file in the same folder, so that no reader sees half a file.

    Devices and pipes are written in place. A symbolic link stays; the file that it points to is replaced. `errors` is
    that of `str.encode`: "strict" raises UnicodeEncodeError for a lone surrogate.

    Raises
    ------
    OSError
        If the file cannot be written; the old file stays, and no temporary file is left.
    """
    data = text.encode("utf-8", errors=errors)
    target = Path(path)
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    target = Path(os.path.realpath(target))
    temporary = target.with_name(f".writing-{os.getpid()}-{threading.get_ident()}")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def written(text: str, path: str | os.PathLike[str] | None) -> str:
    """Return `text`, after writing it to `path` if one is given."""
    if path is not None:
        write_text(path, text)
    return text
