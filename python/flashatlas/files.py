"""Output files appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from flashatlas._core import InputError


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file (text as UTF-8) by way of a temporary one beside it, so that no reader ever sees half of it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        os.unlink(temporary)
        raise InputError(f"{path}: cannot write: {error.strerror}") from error
    except BaseException:
        os.unlink(temporary)
        raise
