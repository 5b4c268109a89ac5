"""Commands that carry out runs: ``run``, ``compare``, ``checkpoint``."""

from __future__ import annotations

import itertools
import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from flashatlas import InputError
from flashatlas.cli import complete, explain
from flashatlas.cli.before import say_cost, say_spare
from flashatlas.cli.console import command_line, err, finish, notes, out, replaced, say, show
from flashatlas.cli.options import (
    NO_LAYERS,
    Force,
    Jobs,
    Json,
    Layers,
    Out,
    Playing,
    Quiet,
    Set,
    Title,
    Workload,
    option_value,
    shared,
    try_outputs,
    with_layers,
    write_json,
)
from flashatlas.drawing import charts, tables
from flashatlas.files import file_must_be_writable
from flashatlas.fio_json import to_fio_json
from flashatlas.names import hint, registries
from flashatlas.progress import Bars
from flashatlas.results import units
from flashatlas.results.paths import short_name
from flashatlas.results.result import Result, save_one
from flashatlas.results.runs import comparison_json, save_all
from flashatlas.running import api
from flashatlas.running.run_options import run_options

Drive = Annotated[
    str,
    typer.Option(
        "--drive",
        "-d",
        help="Preset (see `flashatlas drives`) or path of a TOML file.",
        autocompletion=complete.drives,
    ),
]


@shared
def run(
    common: Playing,
    drive: Drive = "tiny",
    layers: Layers = None,
    set: Set = [],  # noqa: B006
    fio_json: Annotated[
        str | None,
        typer.Option(
            "--fio-json",
            metavar="FILE",
            help="With --job: write the results to this file in fio's json+ format. Give '-' to "
            "print them.",
        ),
    ] = None,
    json_: Json = None,
    out_: Out = None,
    force: Force = False,
    title: Title = None,
    quiet: Quiet = False,
) -> None:
    """Replay one workload on one drive; every read is checked.

    For example:
    `flashatlas run --drive tiny --workload uniform:requests=20000,size=2KiB --precondition fill`

    or:
    `flashatlas run -d superpage-sata --layers hard -w uniform:requests=20000,size=4KiB`
    """
    if fio_json and not common["job"]:
        raise InputError("--fio-json is for fio job files: it needs --job")
    if fio_json == json_ == "-":
        raise InputError("--fio-json and --json: only one of them can go to standard output")
    try_outputs(out_, force, json_, fio_json)
    say_spare(drive, with_layers(set, layers))
    say_cost([(drive, with_layers(set, layers), common["precondition"])], 1, common["base"])
    with Bars(["run"], enabled=not quiet) as bars:
        result = api.run(
            drive,
            set=with_layers(set, layers),
            **common,
            progress=lambda *at: bars.update(0, *at),
        )
    result = replace(result, command=command_line())
    shown = "-" not in (json_, fio_json)
    if shown:
        show([result])
        if result.jobs is not None:
            out.print()
            out.print(tables.jobs(result.jobs))
        notes([result])
    write_json(json_, result.to_json())
    write_json(
        fio_json, json.dumps(to_fio_json(result.record, result.jobs), indent=2) if fio_json else ""
    )
    if out_:
        replaced(out_, save_one(result, out_))
        drawn = reported(out_, title or f"{result.name}: {_workload(common)}", [result])
        if shown:
            say(drawn)
    finish([result])


def reported(folder: Path, title: str, results: Sequence[Result]) -> str:
    """Write the report of runs into a folder if the drawing library exists; return a line."""
    if not charts.there():
        return escape(f"No report: {charts.MISSING}, then flashatlas report {folder}")
    from flashatlas.report import write_report  # noqa: PLC0415

    path = folder / "report.html"
    write_report(path, title, results, command_line())
    return escape(f"Report: {path}")


def _workload(common: Workload) -> str:
    return common["workload"] or short_name(str(common["job"] or common["trace"] or "nothing"))


def _once(option: str, name: str, names: Sequence[str]) -> str:
    """Return a name; refuse a name that occurs twice, because two runs would have one label."""
    if names.count(name) > 1:
        raise InputError(f"{option}: `{name}` is named twice")
    return name


def _scheme_axis(
    names: str, settings: list[str], vary: list[str]
) -> tuple[list[str], list[list[str]]]:
    """Return the schemes to compare, and for each the common settings that apply to it.

    A setting that belongs to certain schemes is applied only to these schemes.
    """
    known = registries()
    keys = {s["name"]: {p["key"] for p in s["params"]} for s in known["schemes"]}
    # the parameters of parts of page mapping belong to the scheme `page`
    for parts in ("maps", "caching", "hashes", "victims", "classifiers"):
        keys["page"] |= {p["key"] for part in known[parts] for p in part["params"]}
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in keys:
            raise InputError(
                f"--schemes: `{name}` is not a scheme{hint(name, keys)} (allowed: "
                f"{', '.join(keys)})"
            )
        _once("--schemes", name, wanted)
    applied: dict[str, list[str]] = {name: [] for name in wanted}
    everywhere = {p["key"] for part in known.values() for p in _params(part)}
    for option, setting in [("--vary", text) for text in vary] + [
        ("--set", text) for text in settings
    ]:
        key = setting.partition("=")[0].strip()
        if key not in everywhere and key not in run_options():
            raise InputError(f"{option}: {key}: no such key{hint(key, everywhere)}")
        owners = [name for name in wanted if key in keys[name]]
        others = [name for name in wanted if owners and name not in owners]
        if key == "ftl.scheme":
            raise InputError(f"{option} {setting}: the option --schemes already names the schemes")
        if option == "--vary" and others:
            raise InputError(
                f"--vary {setting}: {', '.join(others)} of --schemes has no key {key}: run "
                "separate comparisons"
            )
        if option == "--set":
            for name in owners or wanted:
                applied[name].append(setting)
            if others:
                err.print(
                    f"{key} belongs to {', '.join(owners)} only, and not to {', '.join(others)}",
                    highlight=False,
                )
    return wanted, [[f"ftl.scheme={name}", *applied[name]] for name in wanted]


def _params(part: Any) -> list[dict[str, Any]]:
    """Return the parameters in a registry: entries with a key, and parameters of other entries."""
    entries = part if isinstance(part, list) else []
    own = [entry for entry in entries if isinstance(entry, dict) and "key" in entry]
    return own + [p for e in entries if isinstance(e, dict) for p in e.get("params", ())]


def _stack_axis(stacks: str, settings: list[str]) -> list[tuple[str, list[str]]]:
    """Return the stacks to compare, each with its label and its layers."""
    if any(setting.partition("=")[0].strip() == "layers" for setting in settings):
        raise InputError("--stacks already names the layers: leave out --layers and --set layers=…")
    wanted = [name.strip() for name in stacks.split(",")]
    known = [layer["name"] for layer in registries()["layers"]]
    for stack in wanted:
        for name in [] if stack == NO_LAYERS else stack.split("+"):
            if name not in known:
                near = hint(name, known)
                raise InputError(
                    f"--stacks: `{name}` is not a layer{near} (allowed: {NO_LAYERS}, "
                    f"{', '.join(known)}; A+B)"
                )
        _once("--stacks", stack, wanted)
    return [(stack, [] if stack == NO_LAYERS else stack.split("+")) for stack in wanted]


def _of_stack(settings: list[str], layers: list[str]) -> list[str]:
    """Return the settings of a stack.

    Settings of layers that are not in the stack are left out.
    """
    registry = {
        layer["name"]: {p["key"] for p in layer["params"]} for layer in registries()["layers"]
    }
    absent = {key for name, keys in registry.items() if name not in layers for key in keys}
    kept = [setting for setting in settings if setting.partition("=")[0].strip() not in absent]
    return [*kept, f"layers={','.join(layers)}"] if layers else kept


def _cases(
    drives: list[str],
    vary: list[str],
    case: list[str],
    axes_named: tuple[str | None, str | None],
    settings: list[str],
) -> list[Any]:
    """Return the runs of a comparison.

    The runs are explicit cases, or all combinations of drives, stacks, schemes and varied keys.
    """
    schemes, stacks = axes_named
    for name in drives:
        _once("--drive", name, drives)
    if case and (vary or schemes is not None or stacks is not None):
        raise InputError(
            "--case cannot be mixed with --vary, --schemes and --stacks: a case names all its "
            f"differences; {STUDY}"
        )
    if case:
        cases = []
        for text in case:
            label, colon, own_settings = text.partition(":")
            if not colon:
                raise InputError(
                    f"--case: `{text}` has no colon; write LABEL:KEY=VALUE KEY=VALUE … "
                    "(nothing after the "
                    "colon is fine)"
                )
            cases.append({"label": label.strip(), "set": settings + shlex.split(own_settings)})
        given = [str(one["label"]) for one in cases]
        for name in given:
            _once("--case", name, given)
        combined = [{**c, "drive": d} for d in drives for c in cases]
        for one in combined if len(drives) > 1 else []:
            one["label"] = f"{one['drive']} {one['label']}"
        return combined
    named, choices = (
        _scheme_axis(schemes, settings, vary) if schemes is not None else ([""], [settings])
    )
    stacked = _stack_axis(stacks, settings) if stacks is not None else [("", [])]
    axes: list[list[str]] = []
    for text in vary:
        key, equals, values = text.partition("=")
        if not equals or not values:
            raise InputError(f"--vary: `{text}` is not a list of values; write KEY=VALUE,VALUE,…")
        _not_twice(key.strip(), axes, settings)
        # values that contain commas are separated by semicolons
        listed = values.split(";" if ";" in values else ",")
        axes.append([f"{key.strip()}={_once('--vary', v, listed)}" for v in listed])
    combined = []
    for d, (stack, layers), (scheme, own), chosen in itertools.product(
        drives, stacked, zip(named, choices, strict=True), itertools.product(*axes)
    ):
        options, keys = _options_apart(chosen)
        names = [name for name in (stack, scheme, *map(_short, chosen)) if name]
        label = " ".join(([d] if len(drives) > 1 or not names else []) + names)
        given = [*_of_stack(own, layers), *keys]
        combined.append({"label": label, "drive": d, "set": given, **options})
    for axis in axes:
        _must_apply(axis[0].partition("=")[0], combined)
    return combined


STUDY = (
    "a study allows both (`flashatlas sweep`, docs/howto/sweep-a-space.md): `variants` are cases, "
    "and `when` is the condition under which an axis applies"
)


def _must_apply(key: str, cases: Sequence[Mapping[str, Any]]) -> None:
    """Refuse to vary a key in a case in which no part has the key.

    Raises:
            InputError: A case has no part with the key; the error names the parts with the key.

    """
    declared = explain.keys().get(key)
    # a part may be followed by its own default: `map.store=dftl (default 64KiB)`
    parts = [part.partition(" (")[0].partition("=") for part in declared.parts] if declared else []
    for case in cases:
        chosen = {k.strip(): v for k, _, v in (text.partition("=") for text in case["set"])}
        several = {
            part: [one.strip() for one in given.split(",")] for part, given in chosen.items()
        }
        apart = [part for part, _, value in parts if value not in several.get(part, [value])]
        if parts and len(apart) == len(parts):
            owner = parts[0][0]
            known = [value for part, _, value in parts if part == owner]
            when = f"{owner} in {json.dumps(known)}" if known[1:] else f'{owner} == "{known[0]}"'
            raise InputError(
                f"--vary {key}: the key belongs to {owner} = {', '.join(known)}; in "
                f"`{case['label']}` {owner} is {chosen[owner]}; {STUDY}, as in {key} = "
                f"{{ values = […], when = "
                f"'{when}' }}"
            )


@contextmanager
def _blamed_on_vary(vary: Sequence[str]) -> Iterator[None]:
    """Name ``--vary`` instead of ``--set`` in an error about a key that ``--vary`` gave."""
    try:
        yield
    except InputError as error:
        varied = {text.partition("=")[0].strip() for text in vary}
        if getattr(error, "place", "") == "set" and getattr(error, "field", "") in varied:
            said = error.on_command_line.removeprefix("--set")
            error.on_command_line = f"--vary{said}"
        raise


def _not_twice(key: str, axes: list[list[str]], settings: list[str]) -> None:
    """Refuse to vary a key that is already varied or set, or the drive."""
    own = {"drive": "--drive A --drive B", "layers": "--stacks A,B,A+B"}
    if key in own and key == "drive":
        raise InputError(f"--vary {key}: drives are compared with {own[key]}")
    if any(axis[0].partition("=")[0] == key for axis in axes):
        raise InputError(f"--vary: {key} is given twice; write one --vary {key}=A,B,C")
    if any(setting.partition("=")[0].strip() == key for setting in settings):
        raise InputError(f"--vary: {key} is given with --set as well; give one of the two")


def _options_apart(chosen: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Split varied keys into options of a run (``trace``, ``seed`` …) and other settings."""
    known = run_options()
    options, settings = {}, []
    for setting in chosen:
        key, _, text = setting.partition("=")
        if key in known:
            try:
                options[key] = option_value(known[key], text)
            except InputError as error:
                raise InputError(f"--vary {setting}: {error}") from error
        else:
            settings.append(setting)
    return options, settings


def _short(setting: str) -> str:
    """Return a varied value for a label; for a file, its name without folders."""
    key, _, text = setting.partition("=")
    option = run_options().get(key)
    return short_name(text) if option is not None and option.kind == "file" else text


@shared
def compare(
    common: Playing,
    drive: Annotated[
        list[str],
        typer.Option(
            "--drive",
            "-d",
            help="Preset or TOML file; may be repeated.",
            autocompletion=complete.drives,
        ),
    ] = ["tiny"],  # noqa: B006
    vary: Annotated[
        list[str],
        typer.Option(
            "--vary",
            metavar="KEY=A,B,…",
            autocompletion=complete.settings,
            help="Run each value of a key or of an option ('trace', 'seed' …). If a value contains "
            "commas, separate the values with ';'. If --vary is repeated, every combination is "
            "run.",
        ),
    ] = [],  # noqa: B006
    schemes: Annotated[
        str | None,
        typer.Option(
            "--schemes",
            metavar="A,B,…",
            autocompletion=complete.schemes,
            help="Run these schemes. A --set setting is applied only to the schemes that have its "
            "key.",
        ),
    ] = None,
    stacks: Annotated[
        str | None,
        typer.Option(
            "--stacks",
            metavar="A,B,A+B,…",
            help="Run these stacks of layers. 'none' is the drive without layers. The --set "
            "settings of a layer are applied only to the stacks with this layer.",
        ),
    ] = None,
    case: Annotated[
        list[str],
        typer.Option(
            "--case",
            metavar="LABEL:KEY=VALUE …",
            help="One run with these settings; may be repeated.",
        ),
    ] = [],  # noqa: B006
    layers: Layers = None,
    set: Set = [],  # noqa: B006
    jobs: Jobs = None,
    json_: Json = None,
    out_: Out = None,
    force: Force = False,
    title: Title = None,
    quiet: Quiet = False,
) -> None:
    """Run several drives or configurations on one workload, and compare the results.

    The command writes `compare.json`, `report.html` and a folder for each run into the folder of
    `--out`. Drives that would be equal after preconditioning are preconditioned once.

    For example:
    `flashatlas compare --vary ftl.victim=greedy,fifo -w hotcold:requests=50000 --precondition fill`

    or:
    `flashatlas compare --schemes fast,mast -d mast-4gb -w hotcold:requests=50000`

    or:
    `flashatlas compare --stacks none,hard -d superpage-sata -w uniform:requests=20000,size=4KiB`
    """
    cases = _cases(drive, vary, case, (schemes, stacks), with_layers(set, layers))
    for name in {key for one in cases for key in one} & common.keys():
        if common[name] != run_options()[name].default:
            flag = f"--{name.replace('_', '-')}"
            raise InputError(f"{flag}: the option is also varied with --vary; give one of the two")
    try_outputs(out_, force, json_)
    for name in drive:
        say_spare(name, set)
    say_cost(
        [(c["drive"], c["set"], c.get("precondition", common["precondition"])) for c in cases],
        min(jobs or os.cpu_count() or 1, len(cases)),
        common["base"],
    )
    with Bars([c["label"] for c in cases], enabled=not quiet) as bars, _blamed_on_vary(vary):
        results = api.compare(cases, jobs=jobs, progress=bars.update, **common)
    results = [replace(result, command=command_line()) for result in results]
    if json_ != "-":
        show(results)
        notes(results)
    write_json(json_, comparison_json(results))
    if out_:
        replaced(out_, save_all(results, out_))
        drawn = reported(out_, title or f"Comparison: {_workload(common)}", results)
        if json_ != "-":
            say(drawn)
    finish(results)


@shared
def checkpoint(
    common: Workload,
    path: Annotated[Path, typer.Argument(help="The file to write.")],
    drive: Drive = "tiny",
    set: Set = [],  # noqa: B006
    quiet: Quiet = False,
) -> None:
    """Precondition a drive and save it in a file, for `--precondition checkpoint:FILE`.

    The checkpoint contains the content of the flash, and the value that a read of each page must
    return. Drives can share a checkpoint if all parameters that determine the place of data are
    equal; timing, queue depth, cache and victim policy may differ. With `--fit compact`, name the
    workload of the later runs, so that the drive has room for its addresses.

    For example: `flashatlas checkpoint aged.ckpt --drive tlc-small --precondition steady`
    """
    file_must_be_writable(path)
    say_cost([(drive, set, common["precondition"])], 1, common["base"])
    with Bars(["checkpoint"], enabled=not quiet) as bars:
        api.save_checkpoint(
            path, drive, set=set, **common, progress=lambda *at: bars.update(0, *at)
        )
    say(f"Checkpoint: {path} ({units.size(path.stat().st_size)})")
