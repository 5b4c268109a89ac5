"""Commands about stores of results: ``results ls``, ``show``, ``export``, ``gc``."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from flashatlas import InputError
from flashatlas.cli.console import notes_of_study, out, say
from flashatlas.cli.frames import TableFile, say_unsteady, write_frame
from flashatlas.cli.options import AllowIncomplete
from flashatlas.cli.strict import App
from flashatlas.cli.sweep import show_groups
from flashatlas.drawing import tables
from flashatlas.results import units
from flashatlas.results.frame import Frame
from flashatlas.running.api import build
from flashatlas.sweep import results, rows
from flashatlas.sweep.numbers import asked_of
from flashatlas.sweep.store import Store
from flashatlas.sweep.summary import write_summary

app = App(no_args_is_help=True, help="Inspect a store of results that `sweep` made.")

At = Annotated[Path, typer.Argument(metavar="STORE[:STUDY]", help="Store, or a study in it.")]

LISTED = 20
"""Number of runs that ``ls`` lists."""

LOOKED_INTO = 5000
"""The largest study whose runs ``ls`` checks one by one, because more would take seconds."""


def _opened(path: Path) -> tuple[Store, str | None]:
    found = results.store_and_name(path)
    if found is None:
        return Store.open(path), None  # raises the error
    return Store.open(found[0]), found[1]


@app.command()
def ls(
    at: At,
    all_: Annotated[
        bool, typer.Option("--all", help="List every run, not only the last 20.")
    ] = False,
) -> None:
    """List the studies of a store, and its runs.

    For example: `flashatlas results ls flashatlas-results`
    """
    store, name = _opened(at)
    listed, every_failed = [], store.failed_keys()
    every_one = set(store.all_keys())
    for one in store.studies() if name is None else [name]:
        study = results.noted(store, one)
        keys = [run["key"] for run in study["runs"]]
        some = len(keys) <= LOOKED_INTO
        there = sum(map(store.has, keys)) if some else len(every_one & set(keys))
        failed = len(every_failed & set(keys))
        listed.append((one, str(len(keys)), str(there), str(failed), study["title"]))
    out.print(tables.listing(("study", "runs", "done", "failed", "title"), listed))
    wanted = ("drive", "ftl.scheme", "map.store", "layers", "trace", "seed", "waf")
    table = rows.read(store, wanted)
    if name is not None:
        own = {run["key"] for run in results.noted(store, name)["runs"]}
        table = table.filter([key in own for key in table["key"].to_pylist()])
    columns = [column for column in wanted if column in table.column_names]
    shown = table if all_ else table.slice(max(table.num_rows - LISTED, 0))
    lines = [
        (row["key"][:12], *(_cell(row[column]) for column in columns), _ago(row["made"]))
        for row in shown.to_pylist()
    ]
    say("")
    out.print(tables.listing(("run", *columns, "made"), lines))
    say(
        f"{table.num_rows} runs"
        + ("" if len(lines) == table.num_rows else f", the last {len(lines)} listed (--all)")
    )


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "–" if value is None or value == "" else str(value).rpartition("/")[2]


def _ago(made: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(made))


@app.command()
def show(
    at: At,
    of: Annotated[
        list[str],
        typer.Option(
            "--of",
            metavar="COLUMN",
            help="Number to show; may be repeated. By default the most important numbers.",
        ),
    ] = [],  # noqa: B006
    out_: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write the table to this file: .tex (LaTeX, booktabs) or .csv.",
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run", metavar="KEY", help="Show the run whose key begins with these digits."
        ),
    ] = None,
    across: Annotated[
        str | None,
        typer.Option(
            "--across",
            metavar="COLUMN",
            help="With --out FILE.tex: give the table a column for each value of this factor.",
        ),
    ] = None,
    allow_incomplete: AllowIncomplete = False,
) -> None:
    """Show the means of a study over its seeds; or show one run, and how to repeat it.

    The spread beside a mean is its 95 % interval if there are five seeds or more, else the range.

    For example: `flashatlas results show flashatlas-results:victims --of waf --of iops`

    or: `flashatlas results show STORE:STUDY --of waf --across ftl.victim -o victims.tex`
    """
    store, name = _opened(at)
    if run is not None:
        _show_run(store, run)
        return
    study = results.noted(store, name)
    runs = results.frame_of(store, study)
    if out_ is not None:
        runs.must_be_whole(allowed=allow_incomplete)
        write_summary(out_, runs, asked_of(runs.numbers, of), across)
        say(escape(f"Table: {out_}"))
        say_unsteady(runs)
        return
    if across is not None:
        raise InputError("--across needs --out: the option changes the columns of that table")
    say(f"[bold]{escape(study['title'])}[/]: {runs.incomplete() or f'all {len(runs)} runs'}")
    show_groups(runs, of or None)
    notes_of_study(results.notes_in(store, runs))


def _show_run(store: Store, digits: str) -> None:
    found = [key for key in store.all_keys() if key.startswith(digits)]
    if len(found) != 1:
        what = "several keys begin so" if found else "no key begins so"
        raise InputError(f"--run {digits}: {what} in {store.root}")
    folder = store.folder(found[0])
    result = store.load(found[0])
    out.print(tables.turned([result]))
    say(f"Folder: {escape(str(folder))}")
    say(f"Again:  flashatlas rerun {escape(str(folder))} --check")
    say(f"Report: flashatlas report {escape(str(folder))} --out run.html")


@app.command()
def export(
    at: At,
    out_: TableFile = "-",
    allow_incomplete: AllowIncomplete = False,
) -> None:
    """Write a study, or all runs of a store, as a table with a row for each run.

    For example: `flashatlas results export flashatlas-results:victims -o victims.parquet`
    """
    store, name = _opened(at)
    whole = name is None and len(store.studies()) != 1
    runs = Frame(rows.read(store)) if whole else results.frame_of(store, results.noted(store, name))
    runs.must_be_whole(allowed=allow_incomplete, with_failures=True)
    write_frame(runs, out_)
    if out_ != "-":
        say(f"Table: {out_} ({len(runs)} runs)")


@app.command()
def gc(
    at: Annotated[Path, typer.Argument(metavar="STORE", help="Folder of a store.")],
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Report the number of runs and the size; remove nothing."),
    ] = False,
    other_builds: Annotated[
        bool, typer.Option("--other-builds", help="Also remove runs of other builds of FlashAtlas.")
    ] = False,
) -> None:
    """Remove unused content: runs of no study, unfinished runs, shared checkpoints.

    For example: `flashatlas results gc flashatlas-results --other-builds --dry-run`
    """
    store = Store.open(at)
    used = {run["key"] for name in store.studies() for run in results.noted(store, name)["runs"]}
    own = build()["sources"]
    going = []
    for key in store.all_keys():
        entry = store.entry(key)
        other = entry is not None and entry["identity"]["sources"] != own
        if entry is None or (other_builds and other) or (key not in used and not other):
            going.append(key)
    size = sum(map(store.size, going))
    beside = [
        folder for name in ("unfinished", "checkpoints") if (folder := store.root / name).is_dir()
    ]
    size += sum(
        file.stat().st_size for folder in beside for file in folder.rglob("*") if file.is_file()
    )
    if not dry_run:
        store.remove(going)
        for folder in beside:
            shutil.rmtree(folder, ignore_errors=True)
    said = "would be removed" if dry_run else "removed"
    say(f"{len(going)} runs and {units.size(size)} {said}")
