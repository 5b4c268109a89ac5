"""BibTeX of the schemes, maps, policies and tools that runs used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from flashatlas import _core

PAGE_MAPPING = "page"
"""The scheme that uses map stores, victim policies and classifiers."""


def parts_of(record: Mapping[str, Any]) -> list[str]:
    """Return the parts that a run used: ``schemes/page``, ``maps/dftl``, ``victims/greedy``."""
    params = record["config"]["params"]
    scheme = params["ftl.scheme"]
    parts = [f"schemes/{scheme}"]
    if scheme == PAGE_MAPPING:
        parts.append(f"maps/{params['map.store']}")
        parts.append(f"victims/{params['ftl.victim']}")
        if params["ftl.classifier"] != "none":
            parts.append(f"classifiers/{params['ftl.classifier']}")
        if params.get("map.policy", "keep") != "keep":
            parts.append(f"caching/{params['map.policy']}")
    return parts + [f"layers/{layer}" for layer in params["layers"].split(",") if layer]


def references() -> dict[str, str]:
    """Return the BibTeX entry of each part that has a paper."""
    text = files("flashatlas").joinpath("references.bib").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for entry in re.findall(r"^@.*?^}", text, re.MULTILINE | re.DOTALL):
        named = re.search(r"keywords = {(.*?)}", entry)
        if named is None:
            raise _core.InternalError(f"references.bib: an entry without keywords: {entry[:40]}")
        found |= {part.strip(): entry for part in named[1].split(",")}
    return found


def bibtex(records: Iterable[Mapping[str, Any]]) -> tuple[str, list[str]]:
    """Return BibTeX entries of FlashAtlas and of the runs' parts, and the parts without a paper."""
    known = references()
    entries: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for record in records:
        build = record.get("build", {})
        version = f"{record['version']}, {(build.get('commit') or build.get('sources', ''))[:19]}"
        entries[_software(version.rstrip(", "))] = None
        for part in parts_of(record):
            if part in known:
                entries[known[part]] = None
            else:
                unknown[part] = None
    return "\n\n".join(entries), list(unknown)


def _software(version: str) -> str:
    return (
        "@software{flashatlas,\n"
        "  author = {{The FlashAtlas developers}},\n"
        "  title = {FlashAtlas: the atlas of a flash drive's address maps},\n"
        f"  version = {{{version}}},\n"
        "  url = {https://github.com/flashatlas/flashatlas}\n"
        "}"
    )
