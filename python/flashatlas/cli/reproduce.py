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

from flashatlas import InputError, reproduce
from flashatlas.cli.console import (
    NOTHING_KEPT,
    command_line,
    err,
    finish,
    keeping,
    notes,
    out,
    replaced,
    say,
)
from flashatlas.cli.options import Jobs, Json, Out, Quiet, write_json
from flashatlas.cli.strict import App
from flashatlas.drawing import tables
from flashatlas.files import must_be_writable, write_whole
from flashatlas.progress import Bars
from flashatlas.reproduce.protocol import HERE, Experiment, ExperimentOption, Kept, Planned
from flashatlas.reproduce.served import ByClients
from flashatlas.reproduce.table import Listing
from flashatlas.results import steadiness
from flashatlas.results.runs import save_all
from flashatlas.running import mechanisms
from flashatlas.statistics import theory_hot_cold as hot
from flashatlas.statistics.theory import MODELS
from flashatlas.sweep.study import STORE

Traces = Annotated[
    Path | None,
    typer.Option(
        "--traces",
        metavar="DIR",
        help="Folder of recorded traces; by default the environment variable FLASHATLAS_TRACES "
        "names it.",
    ),
]
Ablate = Annotated[
    bool,
    typer.Option(
        "--ablate", help="For each mechanism that a setting can turn off, repeat a run without it."
    ),
]
KeptIn = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="DIR",
        help="Save the runs in this store of results, which worker processes share; by default "
        f"this process saves them in {STORE}. Runs that are in the store are not run again.",
    ),
]
NoStore = Annotated[
    bool,
    typer.Option(
        "--no-store", help="Save no runs. If the command is interrupted, all its runs are lost."
    ),
]
Cluster = Annotated[
    str,
    typer.Option(
        "--cluster", metavar="local|slurm|ADDRESS", help="With --store: see `flashatlas sweep -h`."
    ),
]
Clients = Annotated[
    bool,
    typer.Option(
        "--served",
        help="In place of the experiment's runs, serve the drive to a real fio, with replies after "
        "the simulated latencies, and simulate the same jobs to compare (nvm-map, hard, hpb).",
    ),
]
StandIns = Annotated[bool, typer.Option("--stand-ins", help="Use generated workloads only.")]

app = App(no_args_is_help=True, help="Compute published results again, and show the deviations.")


@app.command("theory")
def reproduce_theory(
    blocks: Annotated[
        int, typer.Option("--blocks", min=16, help="Number of blocks of the simulated drives.")
    ] = 2000,
    drive_writes: Annotated[
        int | None,
        typer.Option(
            "--drive-writes",
            min=2,
            help="Number of times that the whole drive is written; the second half is measured. By "
            "default 20, or 60 with hot pages, because cold pages must be written often enough, "
            "too.",
        ),
    ] = None,
    rho: Annotated[
        list[float], typer.Option("--rho", help="Utilisation, between 0 and 1; may be repeated.")
    ] = [0.7, 0.8, 0.9],  # noqa: B006
    b: Annotated[
        list[int],
        typer.Option(
            "--b",
            help="Number of pages in a block; may be repeated. By default 32, 64 and 128, or 32 "
            "with hot pages.",
        ),
    ] = [],  # noqa: B006
    policy: Annotated[
        list[str],
        typer.Option(
            "--policy",
            help=f"Policy; may be repeated: {', '.join(MODELS)}; with hot pages "
            f"{', '.join(hot.MODELS)} (apart: hot and cold pages in two streams). By default all "
            "policies.",
        ),
    ] = [],  # noqa: B006
    hot_space: Annotated[
        float | None,
        typer.Option("--hot-space", help="Share of the pages that are hot; needs --hot-share."),
    ] = None,
    hot_share: Annotated[
        float | None,
        typer.Option("--hot-share", help="Share of the writes that go to hot pages."),
    ] = None,
    trim: Annotated[
        list[float],
        typer.Option("--trim", help="Share of the requests that are trims; may be repeated."),
    ] = [0.0],  # noqa: B006
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Compute write amplification under uniform random writes.

    The table shows the prediction of a model, the simulated value, and its error.
    """
    skew = _skew(hot_space, hot_share)
    models = list(hot.MODELS if skew else MODELS)
    chosen = policy or models
    for name in chosen:
        if name not in models:
            raise InputError(f"policy `{name}` has no model (allowed: {', '.join(models)})")
    if any(not 0 < r < 1 for r in rho):
        raise InputError("--rho: a utilisation lies between 0 and 1")
    if any(not 0 <= t < 1 for t in trim):
        raise InputError("--trim: a share of the requests is at least 0 and below 1")
    if skew and any(trim):
        raise InputError("--trim: no model has both hot pages and trims")
    sizes = b or ([32] if skew else [32, 64, 128])
    labels = [
        f"{p} ρ={r} b={n} trim={t}" for p, r, n, t in itertools.product(chosen, rho, sizes, trim)
    ]
    with Bars(labels, enabled=not quiet) as bars:
        shared: dict[str, Any] = {"blocks": blocks, "jobs": jobs, "progress": bars.update}
        if skew:
            writes = drive_writes or 60
            points = reproduce.hot_cold(skew, rho, sizes, chosen, drive_writes=writes, **shared)
        else:
            writes = drive_writes or 20
            points = reproduce.theory(rho, sizes, chosen, trims=trim, drive_writes=writes, **shared)
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


def _skew(space: float | None, share: float | None) -> hot.Skew | None:
    """Return the shares of hot pages and of writes to them; ``None`` if they are not given."""
    if space is None and share is None:
        return None
    if space is None or share is None:
        raise InputError("--hot-space and --hot-share: give both, for example 0.1 and 0.9")
    for flag, value in (("--hot-space", space), ("--hot-share", share)):
        if not 0 < value < 1:
            raise InputError(f"{flag} {value:g}: a share lies between 0 and 1")
    return hot.Skew(space, share)


def run_experiment(
    experiment: Experiment,
    traces: Traces = None,
    stand_ins: StandIns = False,
    jobs: Jobs = None,
    store: KeptIn = None,
    no_store: NoStore = False,
    cluster: Cluster = "local",
    json_: Json = None,
    out_: Out = None,
    quiet: Quiet = False,
    ablate: Ablate = False,
    served: Clients = False,
    **own: Any,
) -> None:
    """Carry out an experiment, and write and print its results as the options say."""
    if cluster != "local" and store is None:
        raise InputError("--cluster needs --store: the workers save their runs there")
    if no_store and store is not None:
        raise InputError("--no-store and --store: give one of the two")
    if served:
        experiment = ByClients(**vars(experiment))
    planned = experiment.plan(traces=traces, stand_ins=stand_ins, **own)
    if not stand_ins:
        _say_missing(planned)
    kept = None
    if store is not None:
        kept = experiment.kept(store, cluster)
    elif not (no_store or served):
        kept = _by_default(experiment)
    with keeping(lambda: _left(kept)), Bars(planned.labels, enabled=not quiet) as bars:
        made = planned.carry_out(jobs=jobs, progress=bars.update, kept=kept)
    fired = mechanisms.fired(made.results)
    tried = mechanisms.ablations(made.results, jobs=jobs) if ablate else []
    coverage = mechanisms.rows(fired, tried)
    listings = experiment.listings(made)
    found = {
        **made.to_json(),
        "listings": [
            {"title": each.title, "aside": each.aside, "head": each.head, "rows": each.rows}
            for each in listings
        ],
        "mechanisms": [dict(zip(mechanisms.HEAD, row, strict=True)) for row in coverage],
        "unsteady": [result.name for result, _ in steadiness.unsteady(made.results)],
    }
    text = json.dumps(found, indent=2)
    if out_:
        replaced(out_, save_all(made.results, out_))
        write_whole(out_ / "report.html", experiment.page(made, command_line()))
        write_whole(out_ / f"{experiment.name}.json", text + "\n")
    write_json(json_, text)
    if json_ != "-":
        _show(listings)
        if coverage:
            say("\n[bold]Mechanisms[/]")
            out.print(tables.listing(list(mechanisms.HEAD), coverage))
        notes(made.results)
        if out_:
            say(f"Report: {out_ / 'report.html'}")
    finish(made.results)


def _by_default(experiment: Experiment) -> Kept | None:
    """Return the store in the current folder; if it cannot be written, print why."""
    kept = experiment.kept(Path(STORE), HERE)
    try:
        must_be_writable(kept.root.absolute().parent)
        kept.opened()
    except InputError as error:
        said = f"{error}; the runs are not saved (--store DIR)"
        err.print(said, highlight=False, markup=False, soft_wrap=True)
        return None
    return kept


def _left(kept: Kept | None) -> str:
    """Return a message about the runs that a stopped experiment has saved."""
    if kept is None or not kept.keys:
        return NOTHING_KEPT
    done = kept.done()
    runs = "1 run is" if done == 1 else f"{done} runs are"
    return f"{runs} done and in {kept.root}; the same command continues"


def _say_missing(planned: Planned) -> None:
    """Report the recorded traces that were not found."""
    names = [w.name for w in planned.workloads if w.published and not w.recorded]
    if names:
        where = "Traces not found (--traces, FLASHATLAS_TRACES)"
        err.print(f"{where}: {', '.join(names)} generated instead", highlight=False)


def _show(listings: list[Listing]) -> None:
    for table in listings:
        aside = f"  {escape(table.aside)}" if table.aside else ""
        say(f"\n[bold]{escape(table.title)}[/]{aside}")
        out.print(tables.listing(list(table.head), table.rows))
        if table.note:
            say(f"[dim]{escape(table.note)}[/]")


def _parameter(option: ExperimentOption) -> inspect.Parameter:
    """Return an option of an experiment as a parameter of its command."""
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
    """Add the command of an experiment, with the common options and its own."""
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
