"""Drives that several runs begin with: made once, kept in a checkpoint, and shared."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from flashatlas import _core
from flashatlas.result import Result, digest_of
from flashatlas.run_options import of_groups

NOTHING_DRAWN = "no random number was drawn: another seed gives the same results"
"""The note of a run that no seed changes."""

BETWEEN = ("timing.", "host.")
"""Prefixes of parameters that only change when things happen: preconditioning ignores them."""


def shared(
    specs: Sequence[Mapping[str, Any]], alone: Collection[int]
) -> list[tuple[str, list[int]]]:
    """Groups of runs whose drives are the same when preconditioned.

    Each has what decides that (a text) and the numbers of its runs; none of ``alone`` is in one.
    """
    playing = {"set", "filesystem", *(option.name for option in of_groups("playing"))}
    groups: dict[str, list[int]] = {}
    for number, spec in enumerate(specs):
        if number in alone:
            continue
        kind = spec["precondition"]
        if kind == "none" or (isinstance(kind, dict) and "checkpoint" in kind) or spec.get("job"):
            continue
        what = {key: value for key, value in spec.items() if key not in playing}
        what["set"] = [
            setting for setting in spec["set"] if not setting.strip().startswith(BETWEEN)
        ]
        groups.setdefault(json.dumps(what, sort_keys=True), []).append(number)
    return [(what, users) for what, users in groups.items() if len(users) > 1]


def as_given(result: Result, given: Any, checkpoint: str) -> Result:
    """A run from a shared checkpoint, as it is by itself.

    Its record has the precondition as it was ``given``, and a note that it was shared.
    """
    record = dict(result.record)
    record["config"] = {**record["config"], "precondition": given}
    record["config_hash"] = _core.config_hash(json.dumps(record["config"]))
    del record["checkpoint"]
    if given == "steady":
        record["random_streams"] = sorted({*record["random_streams"], "precondition.steady"})
    begun = f"the drive began as the checkpoint {checkpoint} holds it"
    note_of = "the preconditioned drive was shared with other runs of the comparison"
    record["approximations"] = [
        note_of if note == begun else note
        for note in record["approximations"]
        if not (note == NOTHING_DRAWN and record["random_streams"])
    ]
    record["results_digest"] = digest_of(record, result.tables, result.jobs)
    return replace(result, record=record)
