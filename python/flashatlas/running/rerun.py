"""Repetition of a run from its record alone."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from flashatlas import parts
from flashatlas._core import InputError
from flashatlas.inputs.as_read import other_file
from flashatlas.inputs.trace import Progress
from flashatlas.results.folders import COMPARISON, EXPECTED, numbered
from flashatlas.results.paths import input_files
from flashatlas.results.renamed_keys import JUDGED, upgraded
from flashatlas.results.result import DAMAGE, Result, is_as_written, jobs_without_texts, results_of
from flashatlas.results.runs import given_results
from flashatlas.running.api import build, carried_out, specification
from flashatlas.running.elsewhere import at_hand
from flashatlas.running.run_options import of_groups
from flashatlas.untrusted import json_file

LARGEST_SHOWN = 12
"""The largest number of differences that are printed."""


def specification_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the specification of the run that produced a record.

    The drive is built from the parameters in the record. Presets and drive files are not read,
    because they may have changed.
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
        # the core refuses a small rate without a unit, because bytes or megabytes could be meant
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
        result: A result of this session, or a loaded result (:meth:`Result.load`).
        progress: See :func:`flashatlas.run`.
        trace: The present path of the trace or job file that the run read; its content must be the
            same.
        inputs: A folder that is searched, with the folders below it, for input files that have been
            moved. They are found by the digest in the record; the file of a precondition is found
            by its name.
        within: A folder outside which the run reads no file; for records that somebody else made.

    Raises:
        InputError: An input file is missing or has changed.

    """
    (result,) = given_results(result)
    said = result.record["trace"]
    if "digest" not in said and said["format"] != "generator":
        raise InputError(
            f"{said['path']}: the record has no digest of this file (trace.digest), so its content "
            "may differ from what the run read"
        )
    record = at_hand(result.record, trace, inputs)
    read = record["trace"]
    if (why := parts.missing(result.record.get("parts", ()))) is not None:
        raise InputError(f"the run used a part that was added to FlashAtlas: {why}")
    spec = specification_of(record)
    try:
        again = carried_out(spec, progress, result.label, within)
    except InputError as error:
        # the drive file was made from the record, and the user has only the record
        place = rf"^{re.escape(spec['drive'])}:\d+:\d+: "
        raise InputError(re.sub(place, "config.params of the record: ", str(error))) from error
    now = again.record["trace"]
    if now.get("digest") != read.get("digest"):
        before, after = dict(input_files(read)), dict(input_files(now))
        path = next((path for path in before if before[path] != after.get(path)), read["path"])
        found, expected = after.get(path, now.get("digest")), before.get(path, read.get("digest"))
        raise InputError(other_file(path, found, expected))
    # the same job file names the same files
    for file, before in zip(now.get("named", ()), read.get("named", ()), strict="named" in read):
        if file["digest"] != before["digest"]:
            raise InputError(other_file(file["path"], file["digest"], before["digest"]))
    return again


LATER_SECTIONS = ("smart",)
"""Sections of every record of one drive that records of earlier versions lack."""


def differences(before: Result, after: Result) -> list[str]:
    """Return the differences between two results, in words; empty if they are equal.

    Every number of the records and every saved table is compared. Equal digests are not enough,
    because an edited record keeps its digest. If the tables were not saved, the digests are
    compared instead, unless a section is new. Two records of the same build must also have the same
    notes and the same digest.
    """
    was_found, now_found = results_of(before.record), results_of(after.record)
    # skip parameters that the earlier version did not have: if they matter, the results differ
    known = was_found["config"]["params"]
    params = {key: value for key, value in now_found["config"]["params"].items() if key in known}
    now_found["config"] = {**now_found["config"], "params": params}
    # and sections of which it had none
    later = [key for key in LATER_SECTIONS if key in now_found and key not in was_found]
    for key in later:
        del now_found[key]
    found = list(_said(was_found, now_found))
    for name in sorted({*before.tables, *after.tables} if before.tables else ()):
        if name not in before.tables or name not in after.tables:
            found.append(f"table {name}: missing {'now' if name in before.tables else 'before'}")
        elif before.tables[name] != after.tables[name]:
            found.append(f"table {name}: differs")
    if jobs_without_texts(before.jobs) != jobs_without_texts(after.jobs):
        found.append("statistics of jobs: differ")
    same = same_build(before.record, after.record)
    if same:
        found += _said(_notes_of(before.record), _notes_of(after.record))
    if found or later or "results_digest" not in before.record or (before.tables and not same):
        return found
    return list(_said(*({"results_digest": r.record["results_digest"]} for r in (before, after))))


def copy_differences(folder: Path, runs: Sequence[Result]) -> list[str]:
    """Return the differences between ``compare.json`` and the records of its runs, in words.

    Args:
        folder: The folder of results; without a ``compare.json`` in it, the result is empty.
        runs: The runs in the folder.

    Raises:
        InputError: An entry of ``compare.json`` is not a run record.

    """
    file = folder if folder.name == COMPARISON else folder / COMPARISON
    if not file.is_file():
        return []
    found = []
    for number, (run, copy) in enumerate(zip(runs, json_file(file, EXPECTED)["runs"], strict=True)):
        try:
            there = results_of(upgraded(copy))
        except DAMAGE as error:
            raise InputError(f"{file}: damaged: runs.{number} must be {EXPECTED}") from error
        for key, was, own in _unequal(there, results_of(run.record)):
            place = f"{COMPARISON}: runs.{number}.{key}"
            found.append(f"{place}: {was!r} there, {own!r} in {numbered(number + 1)}")
    return found


def same_build(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return ``True`` if both records name the same sources of the program."""
    builds = [record.get("build", {}).get("sources") for record in (before, after)]
    return builds[0] is not None and builds[0] == builds[1]


def edited(result: Result) -> str | None:
    """Return a sentence if a loaded record was changed after it was written; else ``None``.

    A record without saved tables cannot be checked, because its digest covers the tables as well.
    """
    if "results_digest" not in result.record or not result.tables or is_as_written(result):
        return None
    said = "the digest of the record (results_digest) does not match its content and its tables"
    if same_build(result.record, {"build": build()}):
        return f"the record was changed after its run: {said}"
    return (
        f"{said}: the record was changed after its run, or its version computed digests "
        "by another rule"
    )


def _said(before: Any, after: Any) -> Iterator[str]:
    """Yield a line for each key whose values differ, with both values."""
    for key, was, now in _unequal(before, after):
        yield f"{key}: {was!r} before, {now!r} now"


def _notes_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the codes and numbers of a record's notes, without the texts: these may name files.

    The note about a shared preconditioned drive is left out, because a run that is repeated alone
    does not have this note.
    """
    kinds = {"approximations": record["approximations"]}
    kinds |= {f"{key}.reasons": record[key].get("reasons", ()) for key in JUDGED if key in record}
    return {
        kind: [
            [note["code"], {k: v for k, v in note["values"].items() if not isinstance(v, str)}]
            for note in notes
            if note["code"] != "precondition-shared"
        ]
        for kind, notes in kinds.items()
    }


def _unequal(before: Any, after: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the keys of two records whose values differ, with both values."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in {**before, **after}:
            yield from _unequal(before.get(name), after.get(name), f"{key}.{name}" if key else name)
    elif before != after:
        yield key, before, after
