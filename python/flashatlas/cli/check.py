"""The command that tests whether parts keep the promises of their kind."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated, Any

import typer

from flashatlas import InputError, _core, parts
from flashatlas.cli.console import EXIT_VIOLATION, out, say
from flashatlas.cli.isolated import isolated
from flashatlas.cli.options import Json, Quiet, write_json
from flashatlas.drawing import tables
from flashatlas.progress import Bars

COLOURS = {"kept": "green", "broken": "bold red", "not_tried": "dim"}


MOST = 10**9
"""Number of cases of a swarm that only ``--for`` limits."""


@isolated
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PART]...",
            help="Names of parts of any kind; by default every part that --plugin added.",
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Test every part.")] = False,
    one_in: Annotated[
        int, typer.Option("--one-in", min=1, help="Try one in N power failures.")
    ] = 20,
    requests: Annotated[
        int,
        typer.Option(
            "--requests", min=100, max=10_000_000, help="Number of requests in a workload."
        ),
    ] = 6000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")] = 1,
    swarm: Annotated[
        int,
        typer.Option("--swarm", min=0, help="Number of random combinations of parts to try."),
    ] = 0,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--for",
            min=1,
            metavar="SECONDS",
            help="Try random combinations for this time.",
        ),
    ] = None,
    rerun: Annotated[
        int | None,
        typer.Option(
            "--rerun", metavar="N", help="Run the case with this number of the swarm again."
        ),
    ] = None,
    json_: Json = None,
    quiet: Quiet = False,
) -> None:
    """Test whether parts (yours, or parts of FlashAtlas) keep the promises of their kind.

    One suite tests all parts. It compares the data of a drive with an array of pages under writes,
    reads, trims and FLUSHes. It tries a full drive, a drive that wears out, and power failures,
    also during mounts. It checks that equal requests get equal answers, and that the declarations
    of a part are true. If a promise is broken, the exit code is 4, and a command that shows the
    failure again is printed.

    For example: `flashatlas check --plugin ./mine.so`, `flashatlas check greedy`

    With `--swarm N` or `--for SECONDS`, random combinations of schemes, stores, layers, policies,
    shapes and parameters are tested, with faults while the drive runs. `--rerun` repeats the case
    with a given number.
    """
    if rerun is not None and (swarm or seconds):
        raise InputError("--rerun repeats one case: leave out --swarm and --for")
    if swarm or seconds or rerun is not None:
        first = rerun if rerun is not None else seed
        _swarm(first, swarm or (MOST if seconds else 1), seconds, json_, quiet)
        return
    known = json.loads(_core.all_parts())
    wanted = list(names or ())
    if all_:
        wanted = [name for _, name in known]
    elif not wanted:
        wanted = [part["name"] for part in parts.added()]
    if not wanted:
        raise InputError("nothing to check: name a part, add a part with --plugin, or use --all")
    reports = []
    with Bars(wanted, enabled=not quiet) as bars:
        for number, name in enumerate(wanted):
            tell = partial(_tell, bars, number, "promises")
            reports.append(json.loads(_core.check_part(name, one_in, requests, seed, tell)))
    write_json(json_, json.dumps(reports, indent=1))
    if json_ != "-":
        for report in reports:
            _print(report)
    if any(p["outcome"] == "broken" for report in reports for p in report["promises"]):
        raise typer.Exit(EXIT_VIOLATION)


def _tell(bars: Bars, number: int, unit: str, _: str, done: int, share: float | None) -> None:
    bars.update(number, "run", done, share, unit)


def _print(report: dict[str, Any]) -> None:
    rows = [
        (p["outcome"].replace("_", " "), p["promise"], p.get("tried") or p.get("why") or "")
        for p in report["promises"]
    ]
    say(f"[bold]{report['kind']} `{report['name']}`[/]")
    out.print(tables.listing(["", "promise", "what was tried"], rows))
    for promise in report["promises"]:
        if promise["outcome"] == "broken":
            say(f"[bold red]{promise['promise']}[/]")
            out.print(f"  {promise['found']}", highlight=False, markup=False, soft_wrap=True)
            again = "".join(f" --plugin {path}" for path in parts.files())
            line = f"  {promise['rerun']}{again}"
            out.print(line, highlight=False, markup=False, soft_wrap=True)


def _swarm(first: int, count: int, seconds: float | None, json_: str | None, quiet: bool) -> None:
    with Bars(["swarm"], enabled=not quiet) as bars:
        text = _core.run_swarm(first, count, seconds, partial(_tell, bars, 0, "cases"))
    found = json.loads(text)
    write_json(json_, json.dumps(found, indent=1))
    if json_ != "-":
        tally = found["tally"]
        say(
            f"from {first}: {tally['cases']:,} cases, {tally['steps']:,} commands, "
            f"{tally['mounts']:,} mounts, "
            f"{tally['compared']:,} units compared, {tally['failed_operations']:,} failed "
            f"operations: [bold]{len(found['found']):,} findings[/]"
        )
        for finding in found["found"]:
            say(f"\n[bold red]flashatlas check --rerun {finding['id']}[/]")
            for line in (finding["found"], f"tiny {finding['drive']}", *finding["features"]):
                out.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
    if found["found"]:
        raise typer.Exit(EXIT_VIOLATION)
