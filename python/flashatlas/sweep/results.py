"""Results of a study as a table with a row for each run, axes first."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from flashatlas._core import InputError, quantity
from flashatlas.names import hint
from flashatlas.record import Note
from flashatlas.results import arrow
from flashatlas.results.folders import RECORD, run_folders
from flashatlas.results.frame import FAILURE, Frame
from flashatlas.results.renamed_keys import are_notes, upgraded
from flashatlas.results.result import Result
from flashatlas.results.runs import frame, load_all
from flashatlas.results.units import unit_of
from flashatlas.sweep import rows
from flashatlas.sweep.plan import Plan
from flashatlas.sweep.store import Store, is_store
from flashatlas.untrusted import json_file


def note(plan: Plan, store: Store, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Write the runs of a study into the store's note, with further facts about it.

    Raises:
        InputError: Another study file already has this name.

    """
    study = plan.study
    source = None if study.source is None else str(study.source.resolve())
    before = store.study(study.name)
    if before and source and before.get("source") not in (None, source):
        raise InputError(
            f"{study.at('name')}name `{study.name}`: {store.root} has a study of this name, from "
            f'{before["source"]}: give one of them another name (name = "…")'
        )
    content = {
        "name": study.name,
        "title": study.title or study.name,
        "source": source,
        "text": study.text,
        "when": time.time(),
        "axes": study.axis_names,
        "runs": [{"key": run.key, "label": run.label, "axes": dict(run.axes)} for run in plan.runs],
    }
    content |= more or {}
    store.write_study(study.name, content)
    return content


def noted(store: Store, name: str | None) -> dict[str, Any]:
    """Return the note of a study, or of the only study if no name is given.

    Raises:
        InputError: No study has this name, or there are several studies and no name is given.

    """
    names = store.studies()
    if name is None:
        if len(names) != 1:
            raise InputError(
                f"{store.root}: the store holds {len(names)} studies: name one "
                f"of them ({', '.join(f'{store.root}:{one}' for one in names) or 'it has none'})"
            )
        name = names[0]
    found = store.study(name)
    if found is None:
        raise InputError(
            f"{store.root}: the store has no study `{name}`{hint(name, names)} (studies: "
            f"{', '.join(names) or 'none'})"
        )
    return found


def frame_of(store: Store, study: Mapping[str, Any]) -> Frame:
    """Return a study's runs that are done or failed, as a frame whose factors are its axes.

    Failed runs have only their axes and the column ``failure``.

    Raises:
        InputError: No run is done yet.

    """
    table = rows.read(store)
    at = {key: number for number, key in enumerate(table["key"].to_pylist())}
    done = [run for run in study["runs"] if run["key"] in at]
    failed = [(run, why) for run in study["runs"] if run["key"] not in at
              and (why := store.failure(run["key"])) is not None]  # fmt: skip
    if not done and not failed:
        raise InputError(f"{store.root}: no run of `{study['name']}` is done yet")
    table = table.take(arrow.column([at[run["key"]] for run in done], pa.int64()))
    runs = [*done, *(run for run, _ in failed)]
    made: list[tuple[pa.Field, pa.Array]] = []

    def add(name: str, values: pa.Array, role: str, unit: str) -> None:
        made.append((pa.field(name, values.type, metadata={"role": role, "unit": unit}), values))

    add("label", arrow.column([run["label"] for run in runs], pa.string()), "name", "")
    for name in study["axes"]:
        if name not in table.column_names:
            add(name, _mixed([run["axes"].get(name) for run in runs]), "factor", "")
    for field in table.schema:
        metadata = field.metadata or {}
        role, unit = (metadata.get(k, b"").decode() for k in (b"role", b"unit"))
        column = table[field.name].combine_chunks()
        if column.null_count == len(column):
            continue
        if field.name in study["axes"]:
            role = "factor"
            given = [_as_column(run["axes"].get(field.name), field.type, unit) for run, _ in failed]
            column = pa.concat_arrays([column, arrow.column(given, field.type)])
        else:
            role = "setting" if role == "factor" else role
            column = pa.concat_arrays([column, pa.nulls(len(failed), field.type)])
        add(field.name, column, role, unit or unit_of(field.name))
    if failed:
        said = [None] * len(done) + [why.get("error", "") for _, why in failed]
        add(FAILURE, arrow.column(said, pa.string()), "name", "")
    order = ["label", *study["axes"]]
    made.sort(key=lambda one: order.index(one[0].name) if one[0].name in order else len(order))
    fields, columns = zip(*made, strict=True)
    table = pa.table(list(columns), schema=pa.schema(list(fields)))
    return Frame(table, len(study["runs"]))


def _mixed(values: Sequence[Any]) -> pa.Array:
    """Return the values of one axis as an array; texts if they are of several kinds."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) > 1 and not kinds <= {int, float}:
        return arrow.column([None if v is None else str(v) for v in values], pa.string())
    return arrow.column(values)


def _as_column(value: Any, kind: pa.DataType, unit: str) -> Any:
    """Return a value of an axis in the form of its column: bytes, nanoseconds or text."""
    if value is None:
        return None
    if pa.types.is_string(kind):
        return str(value)
    if isinstance(value, str):
        try:
            return quantity(value) / 1000 if unit == "ns" else quantity(value)
        except InputError:
            return None
    return value


def store_and_name(path: Path) -> tuple[Path, str | None] | None:
    """Return a store, and the study in it that a path such as ``results:victims`` names.

    ``None`` if the path is not a store.
    """
    if is_store(path):
        return path, None
    folder, colon, name = str(path).rpartition(":")
    if colon and folder and is_store(Path(folder)):
        return Path(folder), name
    return None


def study_at(path: Path) -> tuple[Store, dict[str, Any]] | None:
    """Return the store and the study's note that a path names; ``None`` if it is not a store.

    Raises:
        InputError: The store has no such study, or has several and the path names none.

    """
    found = store_and_name(path)
    if found is None:
        return None
    store = Store.open(found[0])
    return store, noted(store, found[1])


def notes_in(store: Store, runs: Frame) -> list[list[Note]]:
    """Return the notes of each finished run of a study, without reading its tables.

    Raises:
        InputError: A record is damaged.

    """
    found = []
    for key, failure in zip(runs.column("key"), _failures(runs), strict=True):
        if failure is None:
            file = store.folder(key) / RECORD
            record = json_file(file, "a run record")
            notes = record.get("approximations") if isinstance(record, dict) else None
            if not are_notes(notes):
                raise InputError(
                    f"{file}: damaged: the value of `approximations` is not a list of notes"
                )
            found.append(upgraded({"approximations": notes})["approximations"])
    return found


def _failures(runs: Frame) -> list[str | None]:
    """Return for each row why the run failed; ``None`` where it did not."""
    there = FAILURE in runs.table.column_names
    return runs.column(FAILURE) if there else [None] * len(runs)


def named_results(path: Path) -> list[tuple[str, Result]]:
    """Return the runs that a path stands for, each with its name.

    The names are folders in a folder of results, and labels in a study (``STORE:STUDY``).

    Raises:
        InputError: There are no results, one is damaged, or the study lacks runs.

    """
    study = study_at(path)
    if study is None:
        return [(folder.name, Result.load(folder)) for folder in run_folders(path)]
    store, content = study
    there = [run for run in content["runs"] if store.has(run["key"])]
    if len(there) < len(content["runs"]):
        raise InputError(
            f"{path}: {len(there)} of the {len(content['runs'])} runs of `{content['name']}` are "
            "done: carry out the others first (`flashatlas sweep`)"
        )
    return [(run["label"], replace(store.load(run["key"]), label=run["label"])) for run in there]


def frame_at(paths: Sequence[Path]) -> Frame:
    """Return the runs that paths stand for: folders of results, or one store (``STORE:STUDY``)."""
    found = [store_and_name(path) for path in paths]
    if not any(found):
        return frame(load_all(paths))
    if len(found) > 1 or found[0] is None:
        raise InputError(
            "a store of results cannot be combined with others: give one STORE or STORE:STUDY"
        )
    study = study_at(paths[0])
    assert study is not None, "the path is a store"
    return frame_of(*study)
