"""Identity of a run: everything that determines its results, with a digest as key in a store."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flashatlas._core import InputError
from flashatlas.files import digest_of_content
from flashatlas.running.api import build


class Digests:
    """Digests of files, each file read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int], str] = {}
        self.sources: str = build()["sources"]
        """The digest of the native module's sources."""

    def of(self, path: str) -> str:
        """Return ``sha256:`` and the digest of a file's content.

        Raises:
            InputError: The file cannot be read.

        """
        try:
            about = os.stat(path)
            place = (os.path.realpath(path), about.st_size, about.st_mtime_ns)
            if place not in self._known:
                with open(path, "rb") as file:
                    self._known[place] = digest_of_content(file)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        return self._known[place]

    @staticmethod
    def key(identity: Mapping[str, Any]) -> str:
        """Return the digest of an identity: 40 hexadecimal digits."""
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:40]


def identity(
    spec: Mapping[str, Any], planned: Mapping[str, Any], digests: Digests
) -> dict[str, Any]:
    """Return everything that determines the results of a run, and nothing else.

    The identity is the configuration as in the record (every parameter, the options, no paths), the
    seed, the digest of each file, the added parts with the digests of their sources, and the digest
    of this build's sources. The places of files, the user and the name of the study play no part.

    Args:
        spec: The run's specification.
        planned: The core's plan for it (``_core.planned``).
        digests: Digests of files.

    """
    config = dict(planned["config"])
    if isinstance(begin := config["precondition"], dict):
        config["precondition"] = next(iter(begin))
    # the folder of a drive file is no part of the identity
    config["drive"] = Path(config["drive"]).name
    return {
        "config": config,
        "seed": spec["seed"],
        "fingerprint": spec["fingerprint"],
        "explain": spec["explain"],
        "files": [digests.of(path) for path in planned["files"]],
        "job": planned["job"],
        "parts": planned["parts"],
        "sources": digests.sources,
    }
