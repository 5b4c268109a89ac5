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

    The record contains the clocks of a lookup, the classes of lookups, the results of each tenth of
    the run, and the sizes of the tables.

    Give exactly one source: ``trace``, ``workload``, ``sets`` or ``files``.

    Args:
        trace: Path of a trace file, or a :class:`Trace`.
        workload: A generator: ``"uniform:requests=100000,size=4KiB"``.
        sets: Random sets that are scanned to their ends: ``lookups``, and optionally ``repeat``
            (share of lookups in the previous set) and ``skew`` (share of the other lookups in
            sets whose number is a multiple of four).
        files: Files at random addresses, which are looked up and inserted one by one: ``files``
            (their number), and optionally ``stride``, ``again`` (share of requests for the previous
            file), ``known`` (share of requests for any file that was inserted before) and
            ``lookups`` (number of lookups of inserted files at the end).
        set: Settings that replace the sizes and the DRAM of the paper, such as ``{"lookup.hash":
            "radix"}``.
        address: Translation of host addresses to logical ones: ``low-bits``, ``dense`` or
            ``exact``.
        unit_sectors: Number of sectors in an address unit.
        page_bytes: Number of bytes in a flash page, for ``lookup.pages = all``.
        limit: Number of requests after which the study ends.
        seed: Seed of everything random.
        commands: File (``.csv``, ``.jsonl`` or ``.parquet``) to which every command of the DRAM is
            written with its clock, so that other programs can check the commands.
        progress: Called now and then with the phase, the number of requests and the share done.

    Raises:
        InputError: A setting is bad, or the source cannot be read or does not fit into the tables.

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
        InputError: No source was given, or several.

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
