"""Repetition of a run from its record alone."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from flashatlas import parts
from flashatlas._core import InputError
from flashatlas.api import carried_out, specification
from flashatlas.elsewhere import at_hand
from flashatlas.inputs import input_files, other_file
from flashatlas.result import (
    Result,
    given_results,
    jobs_without_texts,
    results_of,
)
from flashatlas.run_options import of_groups
from flashatlas.trace import Progress

LARGEST_SHOWN = 12
"""The largest number of differences that a message names."""


def specification_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run as the core takes it, such that it gives this record again.

    The drive is made of the record's parameters: today's presets and drive files play no part.
    """
    config, trace = record["config"], record["trace"]
    names = {option.name for option in of_groups("workload", "playing")}
    options = {key: value for key, value in config.items() if key in names}
    begin = options["precondition"]
    if isinstance(begin, dict):
        ((kind, path),) = begin.items()
        options["precondition"] = f"{kind}:{path}"
    options.update(config.get("reading", {}))
    if trace["format"] != "generator":
        options["job" if trace["format"] == "fio" else "trace"] = trace["path"]
    options |= {"seed": record["seed"], "fingerprint": "fingerprint" in record}
    options["explain"] = record.get("explain", {}).get("percentile")
    spec = specification(**options)
    return {**spec, "drive": config["drive"], "drive_toml": _drive_file(config["params"])}


def _drive_file(params: Mapping[str, Any]) -> str:
    """Return parameters as the text of a drive file."""
    sections: dict[str, list[str]] = {"": []}
    for key, value in params.items():
        section, _, name = key.rpartition(".")
        # a small rate without a unit is refused: people mean megabytes
        text = f"{value}B" if name.endswith("_rate") else value
        sections.setdefault(section, []).append(f"{name} = {json.dumps(text)}")
    blocks = ["\n".join(sections.pop(""))]
    blocks += ["\n".join([f"[{name}]", *lines]) for name, lines in sections.items()]
    return "\n".join(blocks) + "\n"


def rerun(
    result: Result,
    progress: Progress | None = None,
    *,
    trace: str | os.PathLike[str] | None = None,
    inputs: str | os.PathLike[str] | None = None,
    within: str | os.PathLike[str] | None = None,
) -> Result:
    """Carry out a run again, from its record.

    Args:
        result: A result of this session, or a loaded one (:meth:`Result.load`).
        progress: As for :func:`flashatlas.run`.
        trace: The present path of the trace or job file that the run read; its content must be the
            same.
        inputs: A folder that is searched, with the folders below it, for input files that have been
            moved: by the digest in the record, and by name for the file of a precondition.
        within: A folder outside which nothing is read, for records that somebody else made.

    Raises:
        InputError: An input file is missing, or has another content now.

    """
    (result,) = given_results(result)
    said = result.record["trace"]
    if "digest" not in said and said["format"] != "generator":
        raise InputError(
            f"{said['path']}: the record has no digest of it (trace.digest): what the run read "
            "cannot be told from another file"
        )
    record = at_hand(result.record, trace, inputs)
    read = record["trace"]
    if (why := parts.missing(result.record.get("parts", ()))) is not None:
        raise InputError(f"the run used a part that was added to FlashAtlas: {why}")
    spec = specification_of(record)
    try:
        again = carried_out(spec, progress, result.label, within)
    except InputError as error:
        # a line of the drive file that was made of the record is no place that a user could look at
        place = rf"^{re.escape(spec['drive'])}:\d+:\d+: "
        raise InputError(re.sub(place, "config.params of the record: ", str(error))) from error
    now = again.record["trace"]
    if now.get("digest") != read.get("digest"):
        before, after = dict(input_files(read)), dict(input_files(now))
        path = next((path for path in before if before[path] != after.get(path)), read["path"])
        found, expected = after.get(path, now.get("digest")), before.get(path, read.get("digest"))
        raise InputError(other_file(path, found, expected))
    # a job file that is the same names the same files
    for file, before in zip(now.get("named", ()), read.get("named", ()), strict="named" in read):
        if file["digest"] != before["digest"]:
            raise InputError(other_file(file["path"], file["digest"], before["digest"]))
    return again


def differences(before: Result, after: Result) -> list[str]:
    """Return the differences between two results, in words; empty if they are equal.

    Tables that were not kept are compared by their digest. Tables that were kept are compared by
    content: another version may have computed the digest by another rule.
    """
    if before.record.get("results_digest") == after.record["results_digest"]:
        return []
    was_found, now_found = results_of(before.record), results_of(after.record)
    # a parameter that an earlier version did not have is no result: what it does shows in others
    known = was_found["config"]["params"]
    params = {key: value for key, value in now_found["config"]["params"].items() if key in known}
    now_found["config"] = {**now_found["config"], "params": params}
    found = [
        f"{key}: {was!r} before, {now!r} now" for key, was, now in _unequal(was_found, now_found)
    ]
    for name in sorted({*before.tables, *after.tables} if before.tables else ()):
        if before.tables.get(name) != after.tables.get(name):
            found.append(f"table {name}: differs")
    if jobs_without_texts(before.jobs) != jobs_without_texts(after.jobs):
        found.append("statistics of jobs: differ")
    if found or before.tables or "results_digest" not in before.record:
        return found
    return [
        f"results_digest: {before.record['results_digest']} before, "
        f"{after.record['results_digest']} now"
    ]


def _unequal(before: Any, after: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the keys of two records whose values differ, with both values."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in {**before, **after}:
            yield from _unequal(before.get(name), after.get(name), f"{key}.{name}" if key else name)
    elif before != after:
        yield key, before, after
