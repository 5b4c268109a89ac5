"""``flashatlas new``: parts of each kind and language are built and checked outside the tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import flashatlas
import pytest
from conftest import ONE_IN, ROOT
from flashatlas import extensions, scaffold

RUST = pytest.mark.skipif(
    not os.environ.get("FLASHATLAS_TEMPLATES"),
    reason="FLASHATLAS_TEMPLATES is not set: `make test-templates` builds those in Rust (a minute)",
)


def made(folder: Path, kind: str, language: str) -> Path:
    """Make a new part with the name of its kind; return its folder."""
    into = folder / f"my-{kind}"
    scaffold.new(kind, f"my-{kind}", language, into)
    return into


def run(*command: str, cwd: Path, **more: str) -> str:
    """Return the output of a command; it must succeed."""
    there = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": there, **more},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def of(language: str) -> list[str]:
    return [name for name, kind in scaffold.KINDS.items() if language in kind.languages]


@pytest.mark.long
@pytest.mark.parametrize("kind", of("c"))
def test_a_part_in_c_is_built_and_keeps_its_promises(tmp_path, kind):
    folder = made(tmp_path, kind, "c")
    checked = ["flashatlas", "check", f"my-{kind}", "--plugin", f"./my-{kind}.so", "--quiet"]
    run("make", f"my-{kind}.so", "CFLAGS=-O2 -Wall -Wextra -Werror", cwd=folder)
    shown = run(*checked, "--one-in", "200", "--requests", "1000", cwd=folder)
    assert f"`my-{kind}`" in shown and "broken" not in shown
    assert "power failures of mounts" in shown


@pytest.mark.long
@pytest.mark.parametrize("kind", of("python"))
def test_a_part_in_python_passes_its_own_tests(tmp_path, kind):
    folder = made(tmp_path, kind, "python")
    shown = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=folder)
    assert "2 passed" in shown


@RUST
@pytest.mark.parametrize("kind", of("rust") if ONE_IN == 1 else of("rust")[::3])
def test_a_part_in_rust_keeps_its_promises(tmp_path, kind):
    folder = made(tmp_path, kind, "rust")
    shutil.copy(ROOT / "Cargo.lock", folder)
    target = {"CARGO_TARGET_DIR": str(ROOT / "target")}
    shown = run("cargo", "test", "--release", "--test", "conformance", cwd=folder, **target)
    assert "1 passed" in shown
    shown = run("cargo", "run", "--release", "--quiet", cwd=folder, **target)
    assert shown.count("units compared, 0 wrong") == 2


def test_what_cannot_be_made_is_said(tmp_path):
    def said(*arguments: object) -> str:
        with pytest.raises(flashatlas.InputError) as error:
            scaffold.new(*arguments)
        return str(error.value)

    into = tmp_path / "mine"
    assert "did you mean `victim`?" in said("victm", "mine", "c", into)
    assert "--lang: `ruby` is not known" in said("victim", "mine", "ruby", into)
    reason = said("layer", "mine", "python", into)
    assert "a layer sees every command" in reason and "(templates exist in: rust)" in reason
    assert "is not a name of lower-case letters" in said("victim", "My Policy", "c", into)
    nowhere = said("victim", "mine", "rust", into, str(tmp_path))
    assert "neither a folder with a Cargo.toml nor a version" in nowhere
    assert not into.exists()
    into.mkdir()
    assert (
        said("victim", "mine", "c", into) == f"{into}: this folder already exists; "
        f"nothing was written"
    )
    for kind in scaffold.KINDS:
        for language in scaffold.LANGUAGES:
            there = language in scaffold.KINDS[kind].languages
            assert there != ((kind, language) in scaffold.REASONS), (kind, language)


def test_a_part_in_rust_depends_on_a_path_or_a_version(tmp_path):
    manifest = (made(tmp_path, "victim", "rust") / "Cargo.toml").read_text()
    assert f'flashatlas = {{ path = "{ROOT / "crates/flashatlas"}" }}' in manifest
    scaffold.new("victim", "mine", "rust", tmp_path / "b", "0.1")
    assert 'flashatlas = { version = "0.1" }' in (tmp_path / "b/Cargo.toml").read_text()
    left = [p for p in tmp_path.rglob("*") if p.is_file() and "{{" in p.read_text()]
    assert left == []


def test_two_extensions_are_named_with_what_to_do():
    def point(name: str) -> EntryPoint:
        dist = SimpleNamespace(name=name, version="1.0")
        return EntryPoint(name, name, extensions.GROUP)._for(dist)

    assert extensions.chosen([]) is None
    assert extensions.chosen([point("one")]).name == "one"
    with pytest.raises(extensions.ExtensionError) as error:
        extensions.chosen([point("one"), point("two")])
    text = str(error.value)
    assert "one 1.0 and two 1.0" in text and "[&one::DEF, &two::DEF]" in text


def test_an_extension_of_another_version_is_refused(tmp_path, monkeypatch):
    (tmp_path / "old_extension.py").write_text("__version__ = '0.0.1'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    point = EntryPoint("old", "old_extension", extensions.GROUP)
    with pytest.raises(extensions.ExtensionError, match=r"built against FlashAtlas 0\.0\.1"):
        extensions.load(point)
    missing = EntryPoint("none", "no_such_module", extensions.GROUP)
    with pytest.raises(extensions.ExtensionError, match="cannot be imported"):
        extensions.load(missing)
