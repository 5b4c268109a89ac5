"""The profile of a measured build: its tools, and its training inputs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import flashatlas

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "packaging"))

import train  # noqa: E402


def test_without_the_tool_there_is_no_profile_and_a_warning(tmp_path):
    rustc = tmp_path / "rustc"
    rustc.write_text('#!/bin/sh\necho "host: none"\necho "LLVM version: 999.1.2"\n')
    rustc.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    script = ROOT / "packaging" / "profile.sh"
    done = subprocess.run(
        [script], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    for way_out in ("LLVM 999", "rustup component add llvm-tools", "llvm-999", "no profile"):
        assert way_out in done.stderr


def test_another_build_is_not_trained(tmp_path):
    command = [sys.executable, ROOT / "packaging" / "train.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "not the build in" in done.stderr


def test_traces_are_trained_in_every_format_that_is_written():
    written = {entry["name"] for entry in flashatlas.registries()["formats"] if entry["writable"]}
    assert written == {*train.FORMATS, "atlas"}
