"""Documents agree with the code: versions, crates and their order, and numbers of parts."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from conftest import ROOT
from flashatlas.names import registries

NUMBERS = dict(
    zip(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
        range(1, 12),
        strict=True,
    )
)

DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "HACKING.md",
    *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name != "CLAIMS.md"),
    *sorted((ROOT / "docs/howto").glob("*.md")),
]


def test_every_document_names_the_rust_version_of_the_workspace():
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    (needed,) = re.findall(r'^rust-version = "([\d.]+)"', manifest, re.MULTILINE)
    named = {
        (path.name, version)
        for path in [*DOCUMENTS, ROOT / "Makefile"]
        for version in re.findall(
            r"Rust ([\d.]+\d)|rustup\.rs\), ([\d.]+) or", path.read_text(encoding="utf-8")
        )
        for version in version
        if version
    }
    assert {name for name, _ in named} >= {"README.md", "CONTRIBUTING.md", "Makefile"}
    assert {version for _, version in named} == {needed}


def section_of_architecture(title: str) -> str:
    text = (ROOT / "docs/ARCHITECTURE.md").read_text(encoding="utf-8")
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def crates_of_the_table() -> list[str]:
    return re.findall(r"^\| `([a-z-]+)` \|", section_of_architecture("Crates"), re.MULTILINE)


def packages_of_the_workspace() -> dict[str, list[str]]:
    """Return the crates, each with the crates of the project that it uses outside of tests."""
    done = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"cargo metadata: {done.stderr.strip()}")
    return {
        package["name"].removeprefix("flashatlas-"): [
            one["name"].removeprefix("flashatlas-")
            for one in package["dependencies"]
            if one["name"].startswith("flashatlas") and one["kind"] is None
        ]
        for package in json.loads(done.stdout)["packages"]
    }


def test_each_crate_uses_only_crates_above_it_in_the_table():
    table = crates_of_the_table()
    packages = packages_of_the_workspace()
    packages.pop("benches")
    assert sorted(table) == sorted(packages)
    below = [
        f"{name} uses {other}, which stands below it"
        for name, used in packages.items()
        for other in used
        if table.index(other) >= table.index(name)
    ]
    assert below == []


def test_each_crate_has_its_invariant_and_three_files_to_read_first():
    packages = packages_of_the_workspace()
    _, *parts = re.split(
        r"^### `([a-z-]+)`\n",
        section_of_architecture("What holds in each crate"),
        flags=re.MULTILINE,
    )
    said = dict(zip(parts[::2], parts[1::2], strict=True))
    assert [*parts[::2]] == [*crates_of_the_table(), "benches"]
    assert sorted(said) == sorted(packages)
    wrong = []
    for name, text in said.items():
        wrong += [
            f"{name}: no {word}" for word in ("Invariant", "Absent") if f"**{word}:**" not in text
        ]
        first = re.findall(r"`([^`]+)`", text.partition("\nRead first: ")[2])
        if len({*first}) != 3 or len(first) != 3:
            wrong.append(f"{name}: {len(first)} files to read first, expected three")
        wrong += [f"{name}: no file {path}" for path in first if not (ROOT / path).is_file()]
    assert wrong == []


def test_numbers_of_parts_are_those_of_the_registries():
    """Numbers of map stores, policies, formats and schemes in documents agree with the code."""
    known = registries()
    log_blocks = [one for one in known["schemes"] if one["name"] not in ("page", "block")]
    expected = {
        "map stores": len(known["maps"]),
        "victim policies": len(known["victims"]),
        "trace formats": len(known["formats"]),
        "classifiers": len(known["classifiers"]),
        "log-block schemes": len(log_blocks),
    }
    counted = re.compile(rf"\b(\w+) ({'|'.join(expected)})\b")
    wrong = []
    for path in DOCUMENTS:
        for number, what in counted.findall(path.read_text(encoding="utf-8")):
            value = NUMBERS.get(number.lower(), int(number) if number.isdigit() else None)
            if value is not None and value != expected[what]:
                wrong.append(f"{path.name}: {number} {what}, in the registry {expected[what]}")
    assert wrong == []


def test_kinds_of_error_are_counted_alike():
    said = {
        NUMBERS[word.lower()]
        for name in ("docs/ARCHITECTURE.md", "crates/types/src/error.rs")
        for word in re.findall(
            r"\b(?:the )?(\w+) kinds of error",
            (ROOT / name).read_text(encoding="utf-8"),
            re.IGNORECASE,
        )
        if word.lower() in NUMBERS
    }
    assert len(said) == 1
