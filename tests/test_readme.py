"""The README's commands run as written, and print what it shows.

A line of dots stands for any lines.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, matches
from drawn import LEFT, drawn

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def sessions() -> list[tuple[str, list[str]]]:
    """Return each command of a console block, with the lines shown after it."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line.rstrip())
    return found


def environment() -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # a make inside a make would print the folders that it enters and leaves
    outer = {
        key: value
        for key, value in os.environ.items()
        if key not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    return {**outer, "PATH": path, "NO_COLOR": "1"}


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of a page in a shell, with the programs of this environment."""
    return subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "shown"), sessions(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_command_prints_what_the_readme_shows(command, shown):
    if command == "make test":
        pytest.skip("this is it")
    if command == "make demo" and "demo" not in drawn():
        pytest.skip(LEFT)
    if folder := re.search(r"--out (out/\S+)", command):
        shutil.rmtree(ROOT / folder[1], ignore_errors=True)  # remove the output of an earlier test
    done = run(command, ROOT)
    assert done.returncode == 0, done.stderr
    printed = [line.rstrip() for line in done.stdout.strip("\n").splitlines()]
    assert matches(shown, printed), f"shown:\n{chr(10).join(shown)}\nprinted:\n{done.stdout}"


def test_the_python_example_runs():
    (example,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == ["dftl", "sftl", "tpftl"]
    assert all(float(line[1]) > 0 and float(line[2]) > 0 for line in lines)


def test_the_site_opens_as_the_readme_does():
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    opening = TEXT.split("```console")[0].split("\n\n")[1:]
    assert len(opening) >= 4
    assert [one for one in opening[:2] if one.strip() and one not in index] == []


def test_it_is_short():
    assert len(TEXT.splitlines()) <= 120


def tools_check(env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "tools"], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )


def test_the_demo_names_what_is_missing(tmp_path):
    """Without Rust or Python on the path, make says which, before it starts."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("make", "sh", "bash", "find", "awk", "cc", "python3"):
        if real := shutil.which(name):
            (tools / name).symlink_to(real)
    env = {"PATH": str(tools)}
    without_rust = tools_check(env)
    assert without_rust.returncode != 0 and "Rust is missing" in without_rust.stdout
    (tools / "cargo").symlink_to("/bin/true")
    (tools / "python3").unlink()
    without_python = tools_check(env)
    assert without_python.returncode != 0 and "Python is missing" in without_python.stdout
