"""What the tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def cli(tmp_path):
    """Run the command line in an empty folder; returns the finished process."""

    def call(*arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from flashatlas.cli import main; main()", *arguments]
        env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "110"}
        return subprocess.run(
            command,
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return call


@pytest.fixture
def trace(tmp_path) -> Path:
    """A trace of four writes in the format of MSR Cambridge."""
    path = tmp_path / "four.csv"
    path.write_text("".join(f"{1000 * i},host,0,Write,{4096 * i},4096,0\n" for i in range(4)))
    return path


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether the printed lines are the shown ones, dots standing for any."""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(matches(shown[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and matches(shown[1:], printed[1:])
