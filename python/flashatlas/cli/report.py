"""The command ``report``: pages about earlier runs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from flashatlas import InputError
from flashatlas.cli.console import command_line, err, say
from flashatlas.cli.options import AllowIncomplete, Jobs, Quiet, Title
from flashatlas.drawing import charts
from flashatlas.report import write_report
from flashatlas.results.result import changed_records_are_bad_input
from flashatlas.results.runs import load_all
from flashatlas.sweep import results
from flashatlas.sweep.page import write_page
from flashatlas.sweep.store import Store


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...|STORE:STUDY",
            help="Folders that `run --out` or `compare --out` wrote, or a study in a store of "
            "results that `sweep` made.",
        ),
    ],
    out_: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="File of the report.")
    ] = Path("report.html"),
    title: Title = None,
    each: Annotated[
        bool,
        typer.Option(
            "--each",
            help="For a study: also write a report of each run into a folder beside the page. The "
            "points and rows of the page link to these reports.",
        ),
    ] = False,
    jobs: Jobs = None,
    allow_incomplete: AllowIncomplete = False,
    quiet: Quiet = False,
) -> None:
    """Write one report of earlier runs, or the page of a study.

    For example: `flashatlas report out/demo out/other --out both.html`

    or: `flashatlas report flashatlas-results:victims --each --out victims.html`
    """
    study = results.store_and_name(runs[0]) if len(runs) == 1 else None
    if study is not None:
        _of_study(*study, out_, title, each=each, jobs=jobs, allowed=allow_incomplete, quiet=quiet)
        return
    if allow_incomplete:
        raise InputError("--allow-incomplete: only a study (STORE:STUDY) can have missing runs")
    if each:
        raise InputError("--each: only the page of a study (STORE:STUDY) has a report of each run")
    _of_runs(runs, out_, title)


def _of_runs(runs: Sequence[Path], file: Path, title: str | None) -> None:
    with changed_records_are_bad_input():
        loaded = load_all(runs)
        commands = dict.fromkeys(result.command for result in loaded if result.command)
        name = title or ("One run" if len(loaded) == 1 else f"{len(loaded)} runs")
        write_report(file, name, loaded, "\n".join(commands) or command_line())
    say(f"Report: {file}")


def _of_study(
    root: Path,
    name: str | None,
    file: Path,
    title: str | None,
    *,
    each: bool,
    jobs: int | None,
    allowed: bool,
    quiet: bool,
) -> None:
    charts.must_be_there()
    store = Store.open(root)
    study = results.noted(store, name)
    runs = results.frame_of(store, study)
    runs.must_be_whole(allowed=allowed, with_failures=True)
    if title:
        study = {**study, "title": title}
    reports = ""
    if each:
        folder = file.with_name(f"{file.stem}-runs")
        reports = folder.name
        _write_each(store, [run["key"] for run in study["runs"] if store.has(run["key"])], folder,
                    jobs, quiet=quiet)  # fmt: skip
    write_page(file, runs, study, store, reports)
    say(f"Report: {file}")


def _write_each(
    store: Store, keys: Sequence[str], folder: Path, jobs: int | None, *, quiet: bool
) -> None:
    """Write the report of each run."""
    work = [(str(store.root), key, str(folder / f"{key}.html")) for key in keys]
    # start new interpreters: the threads of Arrow do not survive a fork
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        written = pool.map(_write_one, work, chunksize=4)
        for _ in track(written, "Reports of runs", len(work), console=err, disable=quiet):
            pass


def _write_one(work: tuple[str, str, str]) -> None:
    root, key, file = work
    store = Store(Path(root))
    result = store.load(key)
    command = result.command or f"flashatlas rerun {store.folder(key)}"
    write_report(Path(file), result.name, [result], command)
