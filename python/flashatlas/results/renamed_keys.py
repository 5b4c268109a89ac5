"""Renamed keys of run records, by which records of earlier versions are still read.

The renaming is one to one: no two old keys have the same new key, and no new key is also an old
key. A renamed key is never removed from this list.
"""

from __future__ import annotations

from typing import Any

from flashatlas._core import RUN_SCHEMA

LAYER_COUNTERS = {
    "believed": "valid_entries",
    "handed_out": "exported_entries",
    "beneath_reads": "lower_reads",
    "beneath_writes": "lower_writes",
    "beneath_flushes": "lower_flushes",
    "beneath_trims": "lower_trims",
    "beneath_read_bytes": "lower_read_bytes",
    "beneath_write_bytes": "lower_write_bytes",
}
"""Old and new names of counters under ``layers.NAME``."""


MAP_COUNTERS = {"handed_out": "exported_pages"}
"""Old and new names of keys under ``map``."""


JUDGED = ("steadiness", "settling")
"""Parts of a record that have ``reasons``."""

EARLIER_SCHEMA = "flashatlas.run/1"
"""The earlier schema, with times as ``KEY_ps`` in picoseconds and wall times in the record."""


def _times_with_units(params: dict[str, Any]) -> dict[str, Any]:
    """Return an earlier record's parameters with renamed times, such as ``timing.t_read``."""
    changed = {}
    for key, value in params.items():
        if key.endswith("_ps") and key != "dram.tck_ps":
            changed[key.removesuffix("_ps")] = f"{value}ps"
        else:
            changed[key] = value
    return changed


def _renamed(counters: Any, names: dict[str, str]) -> Any:
    if not isinstance(counters, dict):
        return counters
    return {names.get(key, key): value for key, value in counters.items()}


def upgraded(record: dict[str, Any]) -> dict[str, Any]:
    """Return a run record with the present keys, in the same order; keep other data unchanged."""
    changed: dict[str, Any] = {}
    if isinstance(layers := record.get("layers"), dict):
        changed["layers"] = {name: _renamed(of, LAYER_COUNTERS) for name, of in layers.items()}
    if "map" in record:
        changed["map"] = _renamed(record["map"], MAP_COUNTERS)
    if record.get("schema") == EARLIER_SCHEMA:
        config = record["config"]
        params = _times_with_units(config.get("params", {}))
        changed["config"] = {**config, "params": params}
        changed["schema"] = RUN_SCHEMA
    if any(isinstance(note, str) for note in record.get("approximations", ())):
        changed["approximations"] = [_note(note) for note in record["approximations"]]
        for key in JUDGED:
            if isinstance(judged := record.get(key), dict):
                reasons = [_note(reason) for reason in judged.get("reasons", ())]
                changed[key] = {**judged, "reasons": reasons}
        # remove the old digest: it covers the sentences of notes, and present digests do not
        record = {key: value for key, value in record.items() if key != "results_digest"}
    return {**record, **changed}


def are_notes(found: Any) -> bool:
    """Return ``True`` if this is a list of notes of a present or an earlier record."""
    return isinstance(found, list) and all(isinstance(n, str) or _is_note(n) for n in found)


def _is_note(found: Any) -> bool:
    return (
        isinstance(found, dict)
        and set(found) == {"code", "text", "values"}
        and isinstance(found["code"], str | None)
        and isinstance(found["text"], str)
        and isinstance(found["values"], dict)
        and all(isinstance(value, str | int | float) for value in found["values"].values())
    )


def _note(note: Any) -> Any:
    """Return a note; convert a sentence of an earlier record to a note without a code."""
    return {"code": None, "text": note, "values": {}} if isinstance(note, str) else note
