"""The house rules of form, which hold in every file."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

COLUMNS = 100
LINES = 550
"""A file that grows past about 500 lines usually holds two things."""


def files(*suffixes: str) -> list[Path]:
    """Return the files of the project whose names have one of the suffixes."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout: which files are the project's is not known")
    paths = [ROOT / name for name in listed.stdout.splitlines()]
    return [path for path in paths if path.suffix in suffixes and path.exists()]


def prose(path: Path) -> list[tuple[int, str]]:
    """Return lines with their numbers, except tables, code and links, which cannot be wrapped."""
    lines = list(enumerate(path.read_text(encoding="utf-8").splitlines(), 1))
    if path.suffix != ".md":
        table = re.compile(r"\s*//[/!] \|")
        return [(n, line) for n, line in lines if not table.match(line) and "# noqa" not in line]
    kept, code = [], False
    for number, line in lines:
        if line.lstrip().startswith("```"):
            code = not code
        elif not code and not line.startswith("|") and "](" not in line:
            kept.append((number, line))
    return kept


def test_no_line_is_longer_than_100_columns():
    long = [
        f"{path.relative_to(ROOT)}:{number}: {len(line)} columns"
        for path in [*files(".rs", ".py", ".pyi", ".md"), ROOT / "Makefile"]
        for number, line in prose(path)
        if len(line) > COLUMNS
    ]
    assert long == []


def test_no_file_holds_two_things():
    long = {
        str(path.relative_to(ROOT)): lines
        for path in files(".rs", ".py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LINES
    }
    assert long == {}


def test_a_module_with_parts_is_a_folder_with_mod_rs():
    both = [
        str(path.relative_to(ROOT))
        for path in files(".rs")
        if path.with_suffix("").is_dir() and path.stem not in ("lib", "main")
    ]
    assert both == []


def test_documents_link_traits_instead_of_copying_them():
    traits = set()
    for path in files(".rs"):
        traits.update(re.findall(r"^pub trait (\w+)", path.read_text(encoding="utf-8"), re.M))
    assert "MapStore" in traits
    copied = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files(".md")
        for name in re.findall(r"^\s*(?:pub )?trait (\w+)", path.read_text(encoding="utf-8"), re.M)
        if name in traits
    ]
    assert copied == []


def test_links_between_documents_lead_somewhere():
    broken = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in files(".md")
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
        if "://" not in target and not (path.parent / target).exists()
    ]
    assert broken == []


def test_documents_name_files_that_exist():
    """The names are paths in backticks, from the root or from the document's crate."""
    examples = re.compile("foo|mine|append|threshold")
    paths = re.compile(r"`((?:crates|python|tests|docs|devices|fuzz|headers|papers)/[\w./-]+)`")
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files(".md")
        if path.name != "CHANGELOG.md" and path.parent.name != "adr"
        for name in paths.findall(path.read_text(encoding="utf-8"))
        if not (ROOT / name).exists() and not examples.search(name)
    ]
    assert missing == []


def test_a_dict_with_optional_keys_knows_them_in_python_3_10():
    """``typing.TypedDict`` of Python 3.10 takes ``NotRequired`` keys for required ones."""
    files = [path for path in (ROOT / "python").rglob("*.py") if "NotRequired[" in path.read_text()]
    assert files
    for path in files:
        typing = re.findall(r"^from typing import (.*)$", path.read_text(), re.MULTILINE)
        assert "TypedDict" not in " ".join(typing).split(", "), path


def test_an_error_that_wraps_another_one_names_it_as_its_source():
    wrapped = re.compile(r"\b(?:\w+Error|io::Error|Violation|PartFault)\b")
    silent = []
    for path in files(".rs"):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"^impl (?:std::error::)?Error for (\w+) \{\}", text, re.M):
            definition = rf"^pub (?:enum|struct) {name}\b([^;{{]*;|.*?^\}})"
            (fields,) = re.findall(definition, text, re.M | re.S)
            if wrapped.search(re.sub(r"//[^\n]*|\bmore: Vec<\w+>", "", fields)):
                silent.append(f"{path.relative_to(ROOT)}: {name}")
    assert silent == []
