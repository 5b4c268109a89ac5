"""Commands that list the entries of the registries.

They are ``drives``, ``schemes``, ``layers``, ``formats`` and ``workloads``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from flashatlas import parts
from flashatlas.cli.console import out
from flashatlas.cli.explain import KINDS, entries, show_entry, show_parameters
from flashatlas.drawing import tables
from flashatlas.foreign import drive_file
from flashatlas.inputs.drive import Drive
from flashatlas.names import registries, unknown
from flashatlas.results import units

OF_SCHEMES = ("schemes", "maps", "caching", "victims", "classifiers")
"""The registries that `flashatlas schemes` lists."""


def plugin_header() -> None:
    """Print the folder of the headers `flashatlas_plugin.h` and `flashatlas_plugin.hpp`.

    For example: `cc -O2 -shared -fPIC -I "$(flashatlas plugin-header)" -o mine.so mine.c`
    """
    sys.stdout.write(f"{parts.INCLUDE}\n")


def drives(
    name: Annotated[
        str | None,
        typer.Argument(
            help="For a preset, show its file, with the source of every number. For a TOML file, "
            "show the sizes of the drive. For 'mqsim:FILE', 'femu:…', 'simplessd:FILE', "
            "'nvmevirt:FILE,…' or 'conzone:FILE,…', show the drive file into which FlashAtlas "
            "converts it."
        ),
    ] = None,
) -> None:
    """List the drives, or show one."""
    known = registries()["drives"]
    if name is None:
        rows = [
            (
                d["name"],
                units.size(d["capacity_bytes"]),
                units.size(d["unit_bytes"]),
                str(d["dies"]),
                units.percent(d["over_provisioning"]),
                d["scheme"],
                d["summary"],
            )
            for d in known
        ]
        out.print(
            tables.listing(["drive", "capacity", "unit", "dies", "spare", "scheme", ""], rows)
        )
        return
    if (foreign := drive_file(name)) is not None:
        Drive(name)
        sys.stdout.write(foreign)
        return
    if name.endswith(".toml"):
        out.print(tables.listing(["", name], _shape(Drive(name))))
        return
    chosen = [d for d in known if d["name"] == name]
    if not chosen:
        raise unknown("drive", name, [d["name"] for d in known])
    sys.stdout.write(chosen[0]["toml"])


def _shape(drive: Drive) -> list[tuple[str, str]]:
    """Return the sizes and counts with which a user checks a drive file."""
    layout = drive.layout
    parts_of = ("lanes", "dies", "blocks", "pages_per_frame", "frames_per_block", "slots_per_frame")
    words = {"slots_per_frame": "units per frame"}
    return [
        ("capacity", units.size(layout["exported_bytes"])),
        ("spare", units.percent(drive.over_provisioning)),
        ("mapping unit", units.size(layout["unit_bytes"])),
        ("logical units", units.number(layout["logical_units"])),
        ("physical units", units.number(layout["physical_units"])),
        *((words.get(key, key.replace("_", " ")), units.number(layout[key])) for key in parts_of),
        ("memory of a run, at most about", units.size(layout["memory_bytes"])),
    ]


def _one(kinds: Sequence[str], name: str) -> None:
    """Show the entry with this name in one of some registries."""
    known = {e.name: e for kind in kinds for e in entries() if e.what == KINDS[kind][0]}
    if name not in known:
        raise unknown(KINDS[kinds[0]][0], name, known)
    show_entry(known[name])


def schemes(
    name: Annotated[
        str | None, typer.Argument(help="Show this scheme, store, policy or classifier.")
    ] = None,
    parameters: Annotated[
        bool,
        typer.Option("--parameters", "-p", help="Show every parameter, with range and default."),
    ] = False,
) -> None:
    """List schemes, map stores, cache policies, victim policies and classifiers, or show one."""
    if name is not None:
        _one(OF_SCHEMES, name)
        return
    known = registries()
    kinds = [(kind, KINDS[kind][1]) for kind in OF_SCHEMES]
    for kind, key in kinds:
        out.print(
            tables.listing(
                [key, "", "source"], [(e["name"], e["summary"], e["paper"]) for e in known[kind]]
            )
        )
        out.print()
    if parameters:
        groups = [("every drive", known["params"])]
        groups += [
            (f"{key} = {e['name']}", e["params"]) for kind, key in kinds for e in known[kind]
        ]
        for title, params in groups:
            if params:
                show_parameters(title, params)
                out.print()


def layers(
    name: Annotated[str | None, typer.Argument(help="Show the parameters of this layer.")] = None,
) -> None:
    """List the layers that a host can put over a drive, or show one layer's parameters."""
    known = registries()["layers"]
    if name is None:
        out.print(
            tables.listing(
                ["layer", "", "source"], [(e["name"], e["summary"], e["paper"]) for e in known]
            )
        )
        return
    chosen = [layer for layer in known if layer["name"] == name]
    if not chosen:
        raise unknown("layer", name, [e["name"] for e in known])
    show_parameters(name, chosen[0]["params"])


def formats(
    name: Annotated[
        str | None, typer.Argument(help="Show this format: its quirks, source and licence notes.")
    ] = None,
) -> None:
    """List trace formats, or show one."""
    known = registries()["formats"]
    if name is None:
        rows = [
            (f["name"], f["times"], f["operations"], "yes" if f["writable"] else "", f["summary"])
            for f in known
        ]
        out.print(tables.listing(["format", "times", "operations", "written", ""], rows))
        return
    chosen = [f for f in known if f["name"] == name]
    if not chosen:
        raise unknown("trace format", name, [f["name"] for f in known])
    (f,) = chosen
    lines = [
        ("what it is", f["summary"]),
        ("how it is read", f["quirks"]),
        ("source", f["source"]),
        ("licence of traces", f["licence"]),
        ("times, operations", f"{f['times']}, {f['operations']}"),
        ("written", "yes" if f["writable"] else "no"),
    ]
    out.print(tables.listing(["", name], lines))
    for title, params in (("when reading", f["params"]), ("when writing", f["writing"])):
        if params:
            out.print()
            show_parameters(title, params)


def workloads(
    name: Annotated[str | None, typer.Argument(help="Show this generator.")] = None,
) -> None:
    """List workload generators and their parameters, or show one."""
    if name is not None:
        _one(("generators",), name)
        return
    for generator in registries()["generators"]:
        out.print(f"[bold]{generator['name']}[/]: {generator['summary']}", highlight=False)
        show_parameters("", generator["params"])
