"""Preconditioned drives that several runs share through a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from flashatlas import _core
from flashatlas.results.notes import note
from flashatlas.results.result import Result, digest_of
from flashatlas.running.run_options import of_groups

BETWEEN = ("timing.", "host.")
"""Prefixes of parameters that affect only times, so that preconditioning ignores them."""


def shared(
    specs: Sequence[Mapping[str, Any]], alone: Collection[int]
) -> list[tuple[str, list[int]]]:
    """Return the groups of runs whose preconditioned drives are equal.

    A group is a text that identifies the drive, and the numbers of its runs. The runs in ``alone``
    belong to no group.
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


def as_given(result: Result, given: Any) -> Result:
    """Return the result of a run from a shared checkpoint as if its own drive was preconditioned.

    The new record names the precondition ``given``, and has a note that the drive was shared.
    """
    record = dict(result.record)
    record["config"] = {**record["config"], "precondition": given}
    record["config_hash"] = _core.config_hash(json.dumps(record["config"]))
    del record["checkpoint"]
    if given == "steady":
        record["random_streams"] = sorted({*record["random_streams"], "precondition.steady"})
    record["approximations"] = [
        note("precondition-shared") if each["code"] == "precondition-checkpoint" else each
        for each in record["approximations"]
        if not (each["code"] == "nothing-drawn" and record["random_streams"])
    ]
    record["results_digest"] = digest_of(record, result.tables, result.jobs)
    return replace(result, record=record)
