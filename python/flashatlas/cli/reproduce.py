"""Commands that compute published results again."""

from __future__ import annotations

import functools
import inspect
import itertools
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from flashatlas import InputError, mechanisms, reproduce, steadiness, tables
from flashatlas.cli.console import command_line, err, finish, notes, out, say
from flashatlas.cli.options import Jobs, Json, Out, Quiet, write_json
from flashatlas.files import write_whole
from flashatlas.progress import Bars
from flashatlas.reproduce.protocol import Experiment, ExperimentOption, Made, Planned
from flashatlas.result import save_all
from flashatlas.theory import MODELS

Traces = Annotated[
    Path | None,
    typer.Option(
        "--traces", metavar="DIR", help="Folder of recorded traces; by default FLASHATLAS_TRACES."
    ),
]
Ablate = Annotated[
    bool,
    typer.Option(
        "--ablate", help="Run again without each mechanism, where a setting turns it off."
    ),
]
StandIns = Annotated[bool, typer.Option("--stand-ins", help="Generated workloads only.")]

app = typer.Typer(
    no_args_is_help=True, help="Compute published results again, and show the deviation."
)


@app.command("theory")
def reproduce_theory(
    blocks: Annotated[
        int, typer.Option("--blocks", min=16, help="Blocks of the simulated drives.")
    ] = 2000,
    drive_writes: Annotated[
        int,
        typer.Option(
            "--drive-writes", min=2, help="Writes of the whole drive; the second half is measured."
        ),
    ] = 20,
    rho: Annotated[list[float], typer.Option("--rho", help="Utilisations.")] = [0.7, 0.8, 0.9],  # noqa: B006
    b: Annotated[list[int], typer.Option("--b", help="Pages of a block.")] = [32, 64, 128],  # noqa: B006
    policy: Annotated[
        list[str], typer.Option("--policy", help=f"One of: {', '.join(MODELS)}; all by default.")
    ] = [],  # noqa: B006
    trim: Annotated[list[float], typer.Option("--trim", help="Shares of trims.")] = [0.0],  # noqa: B006
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Write amplification under uniform random writes.

    Models beside simulation, with the error of each.
    """
    chosen = policy or list(MODELS)
    for name in chosen:
        if name not in MODELS:
            raise InputError(f"policy `{name}` has no model (allowed: {', '.join(MODELS)})")
    if any(not 0 < r < 1 for r in rho):
        raise InputError("--rho: a utilisation lies between 0 and 1")
    if any(not 0 <= t < 1 for t in trim):
        raise InputError("--trim: a share of the requests is at least 0 and below 1")
    labels = [f"{p} ρ={r} b={n} trim={t}" for p, r, n, t in itertools.product(chosen, rho, b, trim)]
    with Bars(labels, enabled=not quiet) as bars:
        points = reproduce.theory(
            rho,
            b,
            chosen,
            trims=trim,
            blocks=blocks,
            drive_writes=drive_writes,
            jobs=jobs,
            progress=bars.update,
        )
    rows = [
        (
            p.policy,
            f"{p.rho:g}",
            str(p.b),
            *([f"{p.trim:g}"] if any(trim) else []),
            f"{p.theory:.4f}",
            f"{p.simulated:.4f}",
            f"{100 * p.error:+.2f} %",
        )
        for p in points
    ]
    head = ["policy", "ρ", "b", *(["trim"] if any(trim) else []), "theory", "simulated", "error"]
    out.print(tables.listing(head, rows))
    worst = max(points, key=lambda p: abs(p.error))
    out.print(
        f"largest error: {100 * worst.error:+.2f} % ({worst.policy}, ρ = {worst.rho:g}, b = "
        f"{worst.b})",
        highlight=False,
    )


def run_experiment(
    experiment: Experiment,
    traces: Traces = None,
    stand_ins: StandIns = False,
    jobs: Jobs = None,
    json_: Json = None,
    out_: Out = None,
    quiet: Quiet = False,
    ablate: Ablate = False,
    **own: Any,
) -> None:
    """Carry out an experiment, and write and print what it found, as the options say."""
    planned = experiment.plan(traces=traces, stand_ins=stand_ins, **own)
    if not stand_ins:
        _say_missing(planned)
    with Bars(planned.labels, enabled=not quiet) as bars:
        made = planned.carry_out(jobs=jobs, progress=bars.update)
    fired = mechanisms.fired(made.results)
    tried = mechanisms.ablations(made.results, jobs=jobs) if ablate else []
    coverage = mechanisms.rows(fired, tried)
    found = {
        **made.to_json(),
        "mechanisms": [dict(zip(mechanisms.HEAD, row, strict=True)) for row in coverage],
        "unsteady": [result.name for result, _ in steadiness.unsteady(made.results)],
    }
    text = json.dumps(found, indent=2)
    if out_:
        save_all(made.results, out_)
        write_whole(out_ / "report.html", experiment.page(made, command_line()))
        write_whole(out_ / f"{experiment.name}.json", text + "\n")
    write_json(json_, text)
    if json_ != "-":
        _show(experiment, made)
        if coverage:
            say("\n[bold]Mechanisms[/]")
            out.print(tables.listing(list(mechanisms.HEAD), coverage))
        notes(made.results)
        if out_:
            say(f"Report: {out_ / 'report.html'}")
    finish(made.results)


def _say_missing(planned: Planned) -> None:
    """Which recorded traces were not found."""
    names = [w.name for w in planned.workloads if w.published and not w.recorded]
    if names:
        where = "Traces not found (--traces, FLASHATLAS_TRACES)"
        err.print(f"{where}: {', '.join(names)} generated instead", highlight=False)


def _show(experiment: Experiment, made: Made) -> None:
    for table in experiment.listings(made):
        aside = f"  {escape(table.aside)}" if table.aside else ""
        say(f"\n[bold]{escape(table.title)}[/]{aside}")
        out.print(tables.listing(list(table.head), table.rows))
        if table.note:
            say(f"[dim]{escape(table.note)}[/]")


def _parameter(option: ExperimentOption) -> inspect.Parameter:
    """An option of an experiment as a parameter of its command."""
    flag = f"--{option.name.replace('_', '-')}"
    if option.type is bool and option.default:
        flag = f"{flag}/--no-{option.name.replace('_', '-')}"
    declared = typer.Option(flag, min=option.least, help=option.help)
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=option.default,
        annotation=Annotated[option.type, declared],
    )


def _register(experiment: Experiment) -> None:
    """Add the command of an experiment: the options of all, with its own among them."""
    common = inspect.signature(run_experiment, eval_str=True).parameters
    shared = [
        p.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, p in common.items()
        if name not in ("experiment", "own")
    ]
    own = [_parameter(option) for option in experiment.options]
    parameters = [*shared[:2], *own, *shared[2:]]

    @functools.wraps(run_experiment)
    def command(**arguments: Any) -> None:
        run_experiment(experiment, **arguments)

    command.__doc__ = experiment.help
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    app.command(experiment.name)(command)


for _experiment in reproduce.EXPERIMENTS:
    _register(_experiment)
