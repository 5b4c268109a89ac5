"""The command ``sweep``: carry out a study."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from flashatlas import InputError, parts
from flashatlas.cli.console import (
    EXIT_DIFFERS,
    EXIT_VIOLATION,
    command_line,
    err,
    keeping,
    notes_of_study,
    out,
    say,
)
from flashatlas.cli.options import Jobs, Quiet
from flashatlas.drawing import charts, tables
from flashatlas.files import must_be_writable
from flashatlas.results import units
from flashatlas.results.frame import Frame
from flashatlas.results.units import unit_of
from flashatlas.statistics.intervals import LEAST, PERCENTILE, summary
from flashatlas.sweep import clusters, estimate, execution, results, search, shards
from flashatlas.sweep.archive import archive
from flashatlas.sweep.display import Display, first_line
from flashatlas.sweep.numbers import asked_of
from flashatlas.sweep.page import write_page
from flashatlas.sweep.plan import Plan, planned
from flashatlas.sweep.store import KEEP, Store
from flashatlas.sweep.study import Study, load

GROUPS_MAX = 40
"""Number of groups of runs that the terminal shows."""

WORKER_BYTES = 512 << 20
"""Memory of a worker process without its run, in bytes."""

INFEASIBLE_MAX = 5
"""Largest number of impossible combinations whose reasons the terminal shows."""

PLANNED_MAX = 20
"""Number of runs that ``--dry-run`` lists."""


BUSY = 0.5
"""The least load by other processes that ``--dry-run`` mentions."""


def sweep(
    study: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="File of the study.")],
    store: Annotated[
        Path | None,
        typer.Option(
            "--store",
            metavar="DIR",
            help="Store of results; by default the store that the study names.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show the runs with their time and memory, and carry out none."
        ),
    ] = False,
    jobs: Jobs = None,
    cluster: Annotated[
        str,
        typer.Option(
            "--cluster",
            metavar="local|slurm|ADDRESS",
            help="Place of the runs. 'local': this machine. 'slurm': jobs that dask-jobqueue "
            "submits to Slurm. ADDRESS: the Dask cluster whose scheduler has this address.",
        ),
    ] = "local",
    cluster_option: Annotated[
        list[str],
        typer.Option(
            "--cluster-option",
            metavar="KEY=VALUE",
            help="With --cluster slurm: arguments of SLURMCluster ('cores', 'memory', 'queue', "
            "'walltime' …); may be repeated.",
        ),
    ] = [],  # noqa: B006
    shard: Annotated[
        str | None,
        typer.Option("--shard", metavar="I/N", help="Carry out every N-th run, from the I-th on."),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Carry out again the runs that failed before.")
    ] = False,
    keep: Annotated[
        str,
        typer.Option(
            "--keep",
            metavar="|".join(KEEP),
            help="Content to save for each run. 'tables': its record and its tables. 'record': "
            "only its record.",
        ),
    ] = KEEP[0],
    page: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Write a page about the study, with diagrams and tables, to this HTML file at "
            "the end.",
        ),
    ] = None,
    packed: Annotated[
        Path | None,
        typer.Option(
            "--archive",
            metavar="FILE.zip",
            help="Pack everything into this file at the end: study, inputs, results, versions, a "
            "container recipe, and a script that repeats the study and compares the results.",
        ),
    ] = None,
    with_: Annotated[
        list[Path],
        typer.Option(
            "--with",
            metavar="FILE",
            help="With --archive: pack this file, too, such as a figure or the wheel to install; "
            "may be repeated.",
        ),
    ] = [],  # noqa: B006
    traces: Annotated[
        bool,
        typer.Option("--traces/--no-traces", help="With --archive: include or leave out traces."),
    ] = True,
    emit: Annotated[
        str | None,
        typer.Option(
            "--emit",
            metavar="slurm",
            help="Print the script of a Slurm job array that carries out the study, with --shards "
            "tasks of --jobs cores each.",
        ),
    ] = None,
    shards_: Annotated[
        int,
        typer.Option(
            "--shards", min=1, metavar="N", help="Number of tasks in the array of --emit."
        ),
    ] = 16,
    container: Annotated[
        str | None,
        typer.Option(
            "--container",
            metavar="IMAGE",
            help="With --emit: the image that Apptainer runs on the nodes.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Carry out the runs of a study, and save their results in a store.

    A run whose result is in the store is not run again. An interrupted study therefore continues
    where it was stopped, and studies share runs. A run that fails becomes a row with its error.

    For example: `flashatlas sweep victims.toml --dry-run`

    or: `flashatlas sweep victims.toml --jobs 8`

    or: `flashatlas sweep victims.toml --emit slurm --shards 64 --jobs 4 > victims.sbatch`
    """
    if keep not in KEEP:
        raise InputError(f"--keep `{keep}` is not known (allowed: {', '.join(KEEP)})")
    definition = load(study)
    if store is not None:
        definition = replace(definition, store=store)
    if page is not None:
        must_be_writable(page.absolute().parent)
        charts.must_be_there()
    _archive_can_be(packed, with_, traces=traces, parts_only=shard or emit)
    if definition.search is not None:
        _no_parts_of_a_search(shard, emit)
        if packed is not None:
            raise InputError(
                "--archive: a search chooses its runs by the results of earlier runs; write the "
                "front as a study, and pack that study"
            )
        _search(definition, dry_run=dry_run, page=page, keep=keep, retry_failed=retry_failed,
                where=execution.Where(cluster, jobs, _options(cluster, cluster_option)),
                quiet=quiet)  # fmt: skip
        return
    plan = planned(definition)
    if emit is not None:
        _emit(emit, plan, study, shards_, jobs or 1, container)
        return
    part = plan if shard is None else shards.shard(plan, *shards.shard_of(shard))
    where = execution.Where(cluster, jobs, _options(cluster, cluster_option))
    if dry_run:
        _dry_run(part, definition.store, where)
        return
    kept = Store.open(definition.store, create=True)
    noted = results.note(plan, kept)
    due, done = execution.due(part.runs, kept, retry_failed=retry_failed)
    with keeping(lambda: _kept(part, kept)):
        with Display(len(due), done.there, enabled=not quiet) as display:
            execution.carry_out(due, kept, done, where=where, keep=keep, watcher=display)
        _said(plan, done)
        if done.there or done.carried_out:
            runs = results.frame_of(kept, noted)
            show_groups(runs)
            notes_of_study(results.notes_in(kept, runs))
            _finish(runs, noted, kept, page)
        if done.failed:
            raise typer.Exit(EXIT_DIFFERS)
        if packed is not None:
            archive(plan, kept, packed, command_line(), traces=traces, more=with_)
            say(escape(f"Archive: {packed}"))


def _kept(plan: Plan, store: Store) -> str:
    """Return a message about the runs that a stopped study has saved."""
    done = sum(store.has(run.key) for run in plan.runs)
    return (
        f"{done} of {len(plan.runs)} runs are done and in {store.root}; the same command continues"
    )


def _archive_can_be(
    packed: Path | None, more: Sequence[Path], *, traces: bool, parts_only: str | None
) -> None:
    """Refuse an archive that cannot be written, before the first run."""
    if packed is None:
        if more or not traces:
            raise InputError("--with and --no-traces need --archive")
        return
    if parts_only is not None:
        raise InputError("--archive: an archive contains all runs: leave out --shard and --emit")
    if packed.suffix != ".zip":
        raise InputError(
            f"--archive {packed}: an archive is a zip file, so its name must end in .zip"
        )
    must_be_writable(packed.absolute().parent)
    charts.must_be_there()
    for file in more:
        if not file.is_file():
            raise InputError(f"--with: there is no file {file}")


def _no_parts_of_a_search(*options: str | None) -> None:
    """Refuse options that carry out only a part of a study."""
    if any(given is not None for given in options):
        raise InputError(
            "--shard, --emit: a search chooses its runs by the results of earlier runs, so it "
            "is carried out as a whole (--cluster)"
        )


def _search(
    definition: Study,
    *,
    dry_run: bool,
    page: Path | None,
    keep: str,
    retry_failed: bool,
    where: execution.Where,
    quiet: bool,
) -> None:
    """Search the space of a study, and show its Pareto front."""
    asked = definition.search
    assert asked is not None
    combinations = search.check(definition)
    size = "more than can be counted" if combinations is None else f"{combinations:,}"
    wanted = ", ".join(f"{'most' if o.higher else 'least'} {o.number}" for o in asked.objectives)
    say(f"{size} combinations; {asked.trials} are tried ({asked.sampler}, seed {asked.seed}): "
        f"{wanted}")  # fmt: skip
    if dry_run:
        say(f"at most {search.most(definition):,} runs")
        return
    kept = Store.open(definition.store, create=True)
    said = f"the runs that are done are in {kept.root}; the same command continues"
    with (
        keeping(lambda: said),
        Display(search.most(definition), 0, enabled=not quiet) as display,
    ):
        found = search.carry_out(
            definition, kept, where=where, keep=keep, watcher=display, retry_failed=retry_failed
        )
    pruned = sum(trial.pruned for trial in found.trials)
    _said(found.plan(), found.done)
    said = f"{len(found.trials)} configurations were tried"
    said += f", {pruned} of them stopped after a short run" if pruned else ""
    said += f"; {len(found.infeasible)} could not be carried out" if found.infeasible else ""
    say(said)
    for why in found.infeasible[:INFEASIBLE_MAX]:
        say(f"  [yellow]no run[/] {escape(why)}")
    _show_front(found, kept)
    noted = results.noted(kept, definition.name)
    _finish(results.frame_of(kept, noted), noted, kept, page)
    if found.done.failed:
        raise typer.Exit(EXIT_DIFFERS)


def _show_front(found: search.Found, kept: Store) -> None:
    """Print the Pareto front, and the command that repeats its first run."""
    front = found.front()
    if not front:
        say("No configuration has results.")
        return
    assert found.study.search is not None
    objectives = found.study.search.objectives
    names = list(dict.fromkeys(name for trial in front for name in trial.axes))
    rows = [
        (
            trial.runs[0].key[:12],
            *(str(trial.axes.get(name, "–")) for name in names),
            *(
                units.in_unit(value, unit_of(one.number))
                for one, value in zip(objectives, trial.values or (), strict=True)
            ),
        )
        for trial in front
    ]
    say("")
    say(
        f"The front: {len(front)} configurations; no other configuration is better in all "
        "objectives"
    )
    out.print(tables.listing(("run", *names, *(one.number for one in objectives)), rows))
    say(f"Again: flashatlas rerun {escape(str(kept.folder(front[0].runs[0].key)))} --check")


def _options(cluster: str, given: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of the cluster from ``--cluster-option``."""
    if given and cluster != "slurm":
        raise InputError("--cluster-option: only `--cluster slurm` has options")
    found: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--cluster-option: `{text}` has no `=`; write KEY=VALUE")
        found[key.strip()] = int(value) if value.strip().isdigit() else value.strip()
    return found


def _emit(
    kind: str, plan: Plan, study: Path, count: int, cores: int, container: str | None
) -> None:
    """Print the script of a job array."""
    if kind != "slurm":
        raise InputError(f"--emit `{kind}` is not known (allowed: slurm)")
    largest = max(run.cost.bytes for run in plan.runs)
    script = shards.slurm_script(
        study,
        plan.study.name,
        min(count, len(plan.runs)),
        cores=cores,
        memory_bytes=cores * (largest + WORKER_BYTES),
        store=plan.study.store,
        more=[arg for path in parts.files() for arg in ("--plugin", str(path.resolve()))],
        container=container,
    )
    out.file.write(script)


def _dry_run(plan: Plan, store: Path, where: execution.Where) -> None:
    """Show the runs that would be carried out."""
    kept = Store.open(store) if (store / "runs").is_dir() else None
    local = where.cluster == clusters.LOCAL
    jobs = where.jobs or (os.cpu_count() or 1 if local else None)
    load = os.getloadavg()[0] if local else 0.0
    times, found = estimate.estimated(plan.runs, kept, jobs, load)
    there = {run.key for run in plan.runs if kept is not None and kept.has(run.key)}
    names = list(dict.fromkeys(name for run in plan.runs for name in run.axes))
    rows = []
    for run in plan.runs[:PLANNED_MAX]:
        state = "there" if run.key in there else str(times.get(run.key, "–"))
        own = [str(run.axes.get(name, "–")) for name in names]
        rows.append((run.key[:8], *own, units.size(run.cost.bytes), state))
    out.print(tables.listing(("run", *names, "memory", "time of a core"), rows))
    if len(plan.runs) > PLANNED_MAX:
        say(f"and {len(plan.runs) - PLANNED_MAX} more")
    due = [run for run in plan.runs if run.key not in there]
    what = f"{len(plan.runs)} runs"
    what += f"{_left_out(plan)}; {len(there)} are there, {len(due)} to be carried out"
    say(what)
    if due:
        largest = max(run.cost.bytes for run in due)
        say(f"{_in_words(found, jobs)}; the largest takes about {units.size(largest)} of memory")
        say(f"[dim]  {_ground(found)}[/]")
        if load >= BUSY:
            say(f"[dim]  this machine has other work now (load {load:.1f}), which is included[/]")


def _in_words(found: estimate.Estimate, jobs: int | None) -> str:
    """Return the estimated time of the runs, in words."""
    more = f"{found.unknown} whose workload or precondition has no count of requests"
    if found.core is None:
        return f"time unknown: {more}"
    said = f"{found.core} of one core"
    if found.elapsed is not None:
        said = f"{found.elapsed} on this machine with --jobs {jobs} ({said})"
    return f"{said}, without {more}" if found.unknown else said


def _ground(found: estimate.Estimate) -> str:
    """Return the basis of an estimate, and the way to improve it."""
    if found.measured:
        return (
            f"from the times of {found.measured} of its runs in the store; other kinds of "
            "runs may take longer"
        )
    better = "carry some out (--shard 0/10) and ask again: then their times are the basis"
    if found.core is None:
        return better
    return f"from counts of requests and units, not measured: drives and maps differ; {better}"


def _left_out(plan: Plan) -> str:
    """Return a message about combinations of axes that were excluded or equal another one."""
    said = f", {plan.excluded} excluded" if plan.excluded else ""
    return said + (f", {plan.same} the same as another" if plan.same else "")


def _said(plan: Plan, done: execution.Done) -> None:
    """Print the numbers of runs that were carried out, were in the store before, or failed."""
    said = f"{done.carried_out} runs carried out"
    said += f" in {done.seconds:.1f} s" if done.carried_out else ""
    said += f", {done.there} there before" if done.there else ""
    said += f", [red]{len(done.failed)} failed[/]" if done.failed else ""
    say(said + _left_out(plan))
    labels = {run.key: run.label for run in plan.runs}
    for key, failure in list(done.failed.items())[:GROUPS_MAX]:
        text = f"{labels.get(key, key)}: {first_line(failure)}"
        say(f"  [red]failed[/] {escape(text)}")
    if done.failed:
        say("[dim]  --retry-failed tries them again[/]")


def show_groups(runs: Frame, of: Sequence[str] | None = None) -> None:
    """Print a row for each combination of factors, with means over seeds and their spread."""
    wanted = asked_of(runs.numbers, of or ())
    groups = summary(runs, wanted)
    if not groups:
        return
    factors = list(groups[0].factors)
    heads = [*factors, "runs", *wanted]
    rows = [
        (
            *(units.word(group.factors[name], runs.unit(name)) for name in factors),
            group.count,
            *(group.said(name, runs.unit(name), count=False) for name in wanted),
        )
        for group in groups[:GROUPS_MAX]
    ]
    out.print(tables.whole(heads, rows), soft_wrap=True)
    if len(groups) > GROUPS_MAX:
        say(f"and {len(groups) - GROUPS_MAX} more (flashatlas results export)")
    found = [e for group in groups for e in group.estimates.values()]
    if any(e.half is None and e.least < e.most for e in found):
        say(f"[dim](from–to): the range; an interval needs {LEAST} seeds.[/]")
    if any(e.half is not None for e in found):
        how = "Student's t" + (
            "; bootstrap for percentiles" if any(map(PERCENTILE.search, wanted)) else ""
        )
        say(f"[dim]± is half of the interval of 95 % of the mean over seeds ({how}).[/]")
    if any(group.unsteady for group in groups):
        say("[yellow]unsteady[/]: runs that were too short: longer runs would have other numbers")
    if any(group.worn_out for group in groups):
        say("[yellow]worn out[/]: runs whose drive wore out: their numbers end there")


def _finish(runs: Frame, noted: Mapping[str, Any], kept: Store, page: Path | None) -> None:
    """Write the page if it is asked for; end with an error if a run had wrong data."""
    if page is not None:
        write_page(page, runs, noted, kept)
        say(escape(f"Report: {page}"))
    if "oracle.violations" in runs.table.column_names and any(runs.column("oracle.violations")):
        err.print("[bold red]wrong data[/]: see the column oracle.violations", highlight=False)
        raise typer.Exit(EXIT_VIOLATION)
