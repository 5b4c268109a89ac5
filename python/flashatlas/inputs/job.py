"""Fio job files as workloads."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Job(os.PathLike[str]):
    """A fio job file; ``docs/howto/run-a-fio-job.md`` describes the options that are modelled.

    Args:
        path: The job file. Environment variables in it are taken from this process.

    """

    path: str | os.PathLike[str]

    def __fspath__(self) -> str:
        return os.fspath(self.path)
