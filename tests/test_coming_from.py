"""The table of counterparts to FEMU, NVMeVirt and QEMU: every name of ours exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest
from conftest import ROOT
from flashatlas.cli import explain
from flashatlas.cli.root import load
from flashatlas.foreign import femu, nvmevirt
from flashatlas.foreign.keys import Does, Key

PAGE = ROOT / "docs/howto/coming-from-femu-nvmevirt-qemu.md"
NOT_THERE = "not there"

SPAN = re.compile(r"`([^`]+)`")
KEY = re.compile(r"([a-z]+\.[a-z_]+)(?:=(\S+))?")
OPTION = re.compile(r"(?:([a-z-]+) )?(--[a-z-]+)(?: \S+)?")


class Row(NamedTuple):
    """A row of a table: its section and part, other programs' names, ours, and the note."""

    section: str
    part: str
    theirs: tuple[str, ...]
    here: str
    note: str


@cache
def rows() -> tuple[Row, ...]:
    return tuple(found())


def found() -> Iterator[Row]:
    section = part = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("### "):
            part = line[4:]
        elif line.startswith("| `"):
            theirs, here, note = (cell.strip() for cell in line.strip("|").split("|"))
            yield Row(section, part, tuple(SPAN.findall(theirs)), here, note)


def names(section: str, *parts: str) -> list[str]:
    """Return other programs' names in the parts whose titles begin with one of these words."""
    return [
        name
        for row in rows()
        if row.section == section and row.part.startswith(parts)
        for name in row.theirs
    ]


def test_every_row_has_a_name_of_ours_or_says_that_there_is_none():
    assert len(rows()) > 100 and {row.section for row in rows()} == {"FEMU", "NVMeVirt", "QEMU"}
    for row in rows():
        assert row.here == NOT_THERE or "".join(SPAN.split(row.here)[::2]).strip(", ") == "", row
        assert row.here != NOT_THERE or row.note, f"{row.theirs}: why is it not there?"


@cache
def options(command: str) -> set[str]:
    """Return the options of a command of ours."""
    return {word for option in load(command).params for word in option.opts}


def test_every_name_of_ours_is_a_key_or_an_option():
    keys, wrong = explain.keys(), []
    theirs = {name for row in rows() for name in row.theirs}
    for row in rows():
        spans = SPAN.findall(row.here) + [s for s in SPAN.findall(row.note) if s not in theirs]
        for span in spans:
            key, option = KEY.fullmatch(span), OPTION.fullmatch(span)
            if key:
                name, value = key.groups()
                known = name in keys and value_is_known(value, keys[name].about["range"])
            elif option:
                known = option[2] in options(option[1] or "serve")
            else:
                known = row.part.startswith("Properties: the FTL") and span in VALUES_OF_FEMU
            if not known:
                wrong.append(f"{' '.join(row.theirs)}: `{span}`")
    assert wrong == []


VALUES_OF_FEMU = {"page", "dftl", "hybrid", "fast", "d-choice"}
"""Values of `mapping` and `gc_policy`."""


def value_is_known(value: str | None, among: str) -> bool:
    return value is None or value in among.split(", ")


def ours(key: Key) -> set[str]:
    """Return the keys of ours that an importer sets."""
    return {match[1] for match in map(KEY.fullmatch, SPAN.findall(key.says)) if match}


@pytest.mark.parametrize(
    ("section", "parts", "keys"),
    [
        ("FEMU", ("Properties",), femu.KEYS),
        ("NVMeVirt", ("Constants",), nvmevirt.KEYS),
    ],
)
def test_the_page_has_every_key_of_the_importer_and_agrees_with_it(section, parts, keys):
    listed = names(section, *parts)
    assert len(set(listed)) == len(listed), "a name stands twice"
    assert [name for name in keys if name not in listed] == []
    for row in rows():
        for name in row.theirs:
            if row.section == section and row.part.startswith(parts) and name in keys:
                key = keys[name]
                assert key.does is not Does.USED or ours(key) <= {*SPAN.findall(row.here)}, name
                assert key.does is not Does.USED or row.here != NOT_THERE, name


def test_femus_page_has_no_property_that_the_importer_does_not_know():
    assert set(names("FEMU", "Properties")) == set(femu.KEYS)
