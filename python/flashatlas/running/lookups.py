"""The lookup engine alone: LPMT and block tables in the banks of a DRAM, without a drive."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flashatlas import _core
from flashatlas.files import whole_file
from flashatlas.inputs.drive import Settings, setting_list
from flashatlas.inputs.trace import Trace
from flashatlas.results.columns import table_of
from flashatlas.results.frame import as_file, must_be_table

ADDRESSES = ("low-bits", "dense", "exact")


def lookup(
    trace: str | os.PathLike[str] | Trace | None = None,
    *,
    workload: str | None = None,
    sets: Mapping[str, Any] | None = None,
    files: Mapping[str, Any] | None = None,
    set: Settings = (),
    address: str = "low-bits",
    unit_sectors: int = 1,
    page_bytes: int = 4096,
    limit: int | None = None,
    seed: int = 1,
    commands: str | os.PathLike[str] | None = None,
    progress: _core.Progress | None = None,
) -> dict[str, Any]:
    """Look up every request of a source, and return the record.

    The record has the clocks of a lookup, the classes of lookups, the numbers of each tenth of the
    run, and the tables.

    Exactly one source is given.

    Args:
        trace: Path of a trace file, or a :class:`Trace` with how to read it.
        workload: A generator: ``"uniform:requests=100000,size=4KiB"``.
        sets: Random sets that are scanned to their ends: ``lookups``, and optionally ``repeat``
            (share of lookups in the previous set) and ``skew`` (share of the other lookups in
            sets whose number is a multiple of four).
        files: Files at random addresses, each looked up and inserted: ``files``, and optionally
            ``stride``, ``again`` (share of requests for the previous file), ``known`` (share of
            requests for any known file) and ``lookups`` (number of lookups of known files at
            the end).
        set: Settings, such as ``{"lookup.hash": "radix"}``, that change the paper's sizes and DRAM.
        address: Translation of host addresses to logical ones: ``low-bits``, ``dense`` or
            ``exact``.
        unit_sectors: Sectors of an address unit.
        page_bytes: Bytes of a page of the flash, for ``lookup.pages = all``.
        limit: Requests after which the study ends.
        seed: Seed of everything random.
        commands: File for every command of the DRAM with its clock, so that other programs can
            check it: a ``.csv``, ``.jsonl`` or ``.parquet``.
        progress: Called now and then with the phase, the number of requests and the share done.

    Raises:
        InputError: A setting is bad, a source cannot be read, or the tables are too small for it.

    """
    if commands is not None:
        must_be_table(os.fspath(commands))
    spec = specification(
        trace,
        workload=workload,
        sets=sets,
        files=files,
        set=set,
        address=address,
        unit_sectors=unit_sectors,
        page_bytes=page_bytes,
        limit=limit,
        seed=seed,
        commands=commands is not None,
    )
    return carried_out(spec, progress, commands)


SOURCES = ("workload", "sets", "files", "trace")


def specification(
    trace: str | os.PathLike[str] | Trace | None = None, *, set: Settings = (), **given: Any
) -> dict[str, Any]:
    """Return the specification of a study for the core; :func:`lookup` has the same arguments.

    Raises:
        InputError: There is no source, or there are several.

    """
    reading: dict[str, Any] = {}
    if isinstance(trace, Trace):
        reading, given["trace"] = trace.options, trace.name
    elif trace is not None:
        given["trace"] = os.fspath(trace)
    wanted = {name: given.pop(name, None) for name in SOURCES}
    source = {name: one for name, one in wanted.items() if one is not None}
    if len(source) != 1:
        raise _core.InputError(
            f"a study needs one source of {', '.join(SOURCES)}; {len(source)} were given"
        )
    return {"set": setting_list(set), "source": source, "reading": reading, **given}


def carried_out(
    spec: Mapping[str, Any],
    progress: _core.Progress | None = None,
    commands: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Carry out a study from its specification (see :func:`specification`).

    If ``commands`` is given, the DRAM commands of the study are written to that file.
    """
    text, tables = _core.lookup(json.dumps(spec), progress)
    if commands is not None:
        with whole_file(Path(commands)) as file:
            file.write_bytes(as_file(table_of(dict(tables)["commands"]), os.fspath(commands)))
    found: dict[str, Any] = json.loads(text)
    return found
