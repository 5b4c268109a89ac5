"""Functions for notebooks: run a drive, compare drives, save a preconditioned drive."""

from __future__ import annotations

import inspect
import json
import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from flashatlas import _core
from flashatlas._core import InputError
from flashatlas.files import whole_file
from flashatlas.foreign import trace_name
from flashatlas.inputs.drive import Drive, Settings, drive_and_text, setting_list
from flashatlas.inputs.job import Job
from flashatlas.inputs.trace import Progress, Trace
from flashatlas.names import hint, in_case
from flashatlas.progress import shown_in_cell
from flashatlas.results.result import Result, result_of
from flashatlas.running import preconditions
from flashatlas.running.cost import certain_bytes, must_fit_together
from flashatlas.running.run_options import (
    RunOption,
    checked,
    documentation,
    of_wrong_type,
    run_options,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RunOptions(TypedDict, total=False):
    """The options of :func:`run` with their types, generated from the table in the core."""

    set: Settings
    # begin: made from crates/sim/src/options
    format: str | None
    device_map: str | None
    drop_duplicates: str | None
    time_gap_max: str | None
    assume_op: str | None
    skip_bad: int | str
    shift: int
    trace: str | os.PathLike[str] | Trace | None
    workload: str | None
    job: str | os.PathLike[str] | Job | None
    filesystem: str | None
    precondition: str
    base: Literal["computed", "dense"]
    fit: Literal["error", "wrap", "compact"]
    extent: Literal["auto", "1MiB", "256KiB", "64KiB", "16KiB", "4KiB"]
    limit: int | None
    seed: int
    mode: Literal["asap", "closed", "open", "untimed"] | None
    depth: int | None
    speed: float
    warmup: int
    until: Literal["end", "steady"]
    flush_every: int
    interval: str | None
    explain: str | None
    fingerprint: bool
    # end: made from crates/sim/src/options


class Shared(RunOptions, total=False):
    """Arguments that the runs of :func:`compare` may share."""

    drive: str | os.PathLike[str] | Drive


class Case(Shared, total=False):
    """One run of :func:`compare`."""

    label: str


def run(
    drive: str | os.PathLike[str] | Drive = "tiny",
    *,
    label: str = "",
    progress: Progress | None = None,
    **options: Unpack[RunOptions],
) -> Result:
    """Replay one workload on one drive, and check every read.

    Args:
        drive: Preset (see ``flashatlas drives``), path of a TOML file, or a :class:`Drive`.
        label: A name for tables and reports.
        progress: Called now and then with the phase, the number of requests and the share done.
            Without it, a notebook shows a bar.
        options: The workload, and how it is played on the drive; all options are listed below.
            ``set`` changes parameters of the drive. ``trace`` may be a :class:`Trace`, which
            includes the options of reading it, and ``job`` may be a :class:`Job`.

    Raises:
        InputError: An argument or an input file is bad.
        DriveError: The drive could not continue, for example because it ran out of space.
        InternalError: An invariant of FlashAtlas was broken.

    """
    spec = specification(drive, **options)
    every = None if progress is None else lambda _, *at: progress(*at)
    with shown_in_cell([label], every) as report:
        result = carried_out(spec, None if report is None else partial(report, 0), label)
    return replace(result, options={"drive": drive, **options})


def carried_out(
    spec: Mapping[str, Any],
    progress: Progress | None = None,
    label: str = "",
    within: str | os.PathLike[str] | None = None,
) -> Result:
    """Carry out a run from its specification (see :func:`specification`).

    If ``within`` names a folder, the run reads nothing outside it.
    """
    text, begin = json.dumps(spec), time.perf_counter()
    outcome = _core.run(text, progress, None if within is None else os.fspath(within))
    return result_of(outcome, label, time.perf_counter() - begin)


def carried_out_from(
    spec: Mapping[str, Any], checkpoint: str | None, progress: Progress | None = None
) -> Result:
    """Carry out a run; start from a shared checkpoint if there is one.

    The record is the same as without a checkpoint, except for a note that the drive was shared.
    """
    if checkpoint is None:
        return carried_out(spec, progress)
    begun = {**spec, "precondition": {"checkpoint": checkpoint}}
    return preconditions.as_given(carried_out(begun, progress), spec["precondition"])


def specification(
    drive: str | os.PathLike[str] | Drive = "tiny", **options: Unpack[RunOptions]
) -> dict[str, Any]:
    """Return the specification of a run for the core; :func:`run` has the same arguments.

    Raises:
        InputError: An option has a value of the wrong type, or a word that is not among its
            choices.

    """
    _known(options)
    name, toml, own = drive_and_text(drive)
    given: dict[str, Any] = dict(options)
    settings = given.pop("set", ())
    # without a mode, the depth decides
    if given.get("mode") is None:
        given["mode"] = "closed" if given.get("depth") is not None else "asap"
    values: dict[str, dict[str, Any]] = {"reading": {}, "workload": {}, "playing": {}}
    for option in run_options().values():
        values[option.group][option.name] = _value(option, given.get(option.name, option.default))
    trace = given.get("trace")
    if isinstance(trace, Trace):
        twice = [key for key, value in values["reading"].items() if value]
        if twice:
            raise _core.about(twice[0], "give this option to the Trace")
        values["reading"] = trace.options
    return {
        "drive": name,
        "drive_toml": toml,
        "set": own + setting_list(settings),
        "reading": values["reading"],
        **values["workload"],
        **values["playing"],
    }


def _value(option: RunOption, given: Any) -> Any:
    """Return the value of an option in the form that the core expects."""
    if option.kind == "file" and given is not None:
        return _file(option.name, given)
    return checked(option, given)


def _file(name: str, given: Any) -> str:
    """Return the path of a file, or the name of a table in memory."""
    if isinstance(given, Trace):
        return given.name
    if not isinstance(given, str | os.PathLike):
        raise of_wrong_type(name, given, "a path")
    path = os.fspath(given)
    if not isinstance(path, str):
        raise of_wrong_type(name, path, "a path of text")
    if not path:
        raise _core.about(name, "an empty path")
    return trace_name(path) if name == "trace" else path


_HEADINGS = {
    "workload": "The workload",
    "reading": "How a trace is read",
    "playing": "How it is played",
}
assert run.__doc__ is not None
run.__doc__ = inspect.cleandoc(run.__doc__) + documentation(_HEADINGS)


def save_checkpoint(
    path: str | os.PathLike[str],
    drive: str | os.PathLike[str] | Drive = "tiny",
    *,
    progress: Progress | None = None,
    **options: Unpack[RunOptions],
) -> Path:
    """Precondition a drive and save it in a file, for ``precondition="checkpoint:FILE"``.

    Args:
        path: The file to write; it appears complete, or not at all.
        drive: See :func:`run`.
        progress: See :func:`run`.
        options: See :func:`run`. ``precondition`` chooses how the drive is preconditioned. With
            ``fit="compact"``, the drive gets room for the addresses of the given workload.

    """
    spec = json.dumps(specification(drive, **options))
    with whole_file(Path(path)) as temporary:
        _core.save_checkpoint(spec, str(temporary), progress)
    return Path(path)


def compare(
    cases: Iterable[Case],
    *,
    jobs: int | None = None,
    progress: Callable[[int, str, int, float | None], None] | None = None,
    **common: Unpack[Shared],
) -> list[Result]:
    """Carry out several runs, side by side on the machine's cores.

    The results are in the order of the cases. If several cases begin with equal preconditioned
    drives, the drive is preconditioned once and shared as a checkpoint.

    Args:
        cases: For each run, its own arguments of :func:`run`; ``label`` names the run.
        jobs: Number of runs at the same time; by default one run for each core.
        progress: Called with the number of the case, the phase, the number of requests and the
            share done.
        common: Arguments of :func:`run` for all cases. A case's ``set`` is added to the common
            ``set``.

    """
    differences, labels = _taken_apart(cases)
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1):
        raise InputError(f"jobs: {jobs!r} is not a whole number of at least 1")
    shared: dict[str, Any] = dict(common)
    specs: list[dict[str, Any]] = []
    alone: set[int] = set()
    certain: list[int] = []
    for case in differences:
        # find a mistake in the last case before the first case runs
        with _named(labels[len(specs)], len(differences)):
            spec = specification(**together(shared, case))
            layout = layout_of(spec)
            for name in (spec["trace"], spec["job"]):
                if name is None or not _core.is_file(name):
                    continue
                for file in _core.trace_files(name):
                    if not Path(file).exists():
                        raise InputError(f"{file}: there is no such file")
        certain.append(certain_bytes(layout, spec))
        if not layout["keeps_checkpoints"]:
            alone.add(len(specs))
        specs.append(spec)
    with shown_in_cell(labels, progress) as report:
        numbers = range(len(specs))
        outcomes = side_by_side(specs, alone, numbers, certain, jobs=jobs, progress=report)
    return [
        replace(result, label=label, options={**shared, **case})
        for label, case, result in zip(labels, differences, outcomes, strict=True)
    ]


def layout_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the layout of the drive in a run's specification."""
    found = _core.check_drive(spec["drive"], spec["drive_toml"], spec["set"])
    return json.loads(found)  # type: ignore[no-any-return]


def side_by_side(
    specs: Sequence[Mapping[str, Any]],
    alone: Collection[int],
    due: Sequence[int],
    certain: Sequence[int],
    *,
    jobs: int | None,
    progress: Callable[[int, str, int, float | None], None] | None,
    done: Callable[[int, Result], None] = lambda *_: None,
) -> list[Result]:
    """Carry out some runs on the machine's cores.

    The choice of shared drives depends on all runs, not only on the runs that are due. The record
    of a run is therefore the same, whichever other runs are due.

    Args:
        specs: Specifications of all runs.
        alone: Numbers of the runs that must not share a drive with other runs.
        due: Numbers of the runs to carry out.
        certain: The least memory that each of these runs takes, in bytes.
        jobs: Number of runs at the same time; by default one run for each core.
        progress: See :func:`compare`.
        done: Called in a thread when a run is done, with its number and its result.

    Returns:
        The results of the runs that were due.

    """
    at_once = jobs or os.cpu_count() or 1
    must_fit_together(certain, min(at_once, len(due)))

    def carry_out(number: int, checkpoint: str | None, report: Progress) -> Result:
        result = carried_out_from(specs[number], checkpoint, report)
        done(number, result)
        return result

    with tempfile.TemporaryDirectory(prefix="flashatlas-") as folder:
        workers = Workers(at_once, progress)
        begun: dict[int, str] = {}
        for group, (_, users) in enumerate(preconditions.shared(specs, alone)):
            wanted = [number for number in users if number in due]
            if not wanted:
                continue
            path = str(Path(folder) / f"{group}.ckpt")
            workers.add(
                wanted[0], partial(_core.save_checkpoint, json.dumps(specs[users[0]]), path)
            )
            begun |= dict.fromkeys(wanted, path)
        workers.wait()
        for number in due:
            workers.add(number, partial(carry_out, number, begun.get(number)))
        return workers.wait()


def together(shared: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, Any]:
    """Return a case's arguments added to the shared ones; ``set`` has the settings of both."""
    settings = setting_list(shared.get("set", ())) + setting_list(case.get("set", ()))
    return {**shared, **case, "set": settings}


def _taken_apart(cases: Iterable[Case]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the arguments of each case without its label, and the labels."""
    if isinstance(cases, str | Mapping):
        raise InputError(f"cases: {cases!r} is not a list of cases such as [{EXAMPLE}]")
    given = list(cases)
    for case in given:
        if not isinstance(case, Mapping):
            raise InputError(f"cases: {case!r} is not a mapping such as {EXAMPLE}")
    if not given:
        raise InputError(f"cases: the list is empty; give at least one case, such as {EXAMPLE}")
    differences: list[dict[str, Any]] = [dict(case) for case in given]
    labels: list[str] = [case.pop("label", "") for case in differences]
    for label in filter(None, labels):
        if labels.count(label) > 1:
            raise InputError(
                f"cases: `{label}` is the label of two cases: give each case its own label"
            )
    return differences, labels


EXAMPLE = '{"label": "fifo", "set": {"ftl.victim": "fifo"}}'
"""An example of a case, for messages."""


@contextmanager
def _named(label: str, cases: int) -> Iterator[None]:
    """Name the case in an error that is raised inside."""
    try:
        yield
    except InputError as error:
        raise (in_case(error, label) if label and cases > 1 else error) from None


SIGNAL_EVERY = 0.2
"""Seconds between two moments at which the waiting main thread can handle signals."""


class Workers:
    """Runs at the same time; the first failure stops the others."""

    def __init__(
        self, workers: int, progress: Callable[[int, str, int, float | None], None] | None
    ) -> None:
        self._workers = workers
        self._progress = progress
        self._stop = False
        self._tasks: list[tuple[int, Callable[[Progress], Any]]] = []

    def add(self, number: int, task: Callable[[Progress], Any]) -> None:
        """Add ``task`` for the next :meth:`wait`; its progress is reported under ``number``."""
        self._tasks.append((number, task))

    def _report(self, number: int) -> Progress:
        def report(phase: str, requests: int, share: float | None) -> None:
            if self._stop:
                raise KeyboardInterrupt
            if self._progress:
                self._progress(number, phase, requests, share)

        return report

    def wait(self) -> list[Any]:
        """Carry out the tasks that were added, and return their results in the same order."""
        tasks, self._tasks = self._tasks, []
        with ThreadPoolExecutor(max_workers=self._workers) as pool:
            # A signal may interrupt the submissions. Tasks that have already begun must then stop.
            try:
                futures = [pool.submit(task, self._report(number)) for number, task in tasks]
                # A signal that arrives just before an endless wait would be handled only after it.
                # Wait in short steps instead.
                while wait(futures, SIGNAL_EVERY, FIRST_EXCEPTION).not_done:
                    if any(f.done() and (f.cancelled() or f.exception()) for f in futures):
                        break
                # raise the failure itself: it interrupts the other tasks, which then fail as well
                for future in futures:
                    failure = (
                        future.exception() if future.done() and not future.cancelled() else None
                    )
                    if failure is not None:
                        raise failure
                return [future.result() for future in futures]
            except BaseException:
                self._stop = True
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def build() -> dict[str, Any]:
    """Return the sources and the settings from which this FlashAtlas was built.

    The keys are ``version``, ``sources`` (a digest), ``commit`` (``None`` without a repository;
    ends in ``+`` if the sources differed from the commit), ``target`` and ``profile``.
    """
    return json.loads(_core.build())


BESIDE = ("drive", "label", "progress")
"""Arguments of :func:`run` that are not options of a run."""


def _known(options: Mapping[str, Any]) -> None:
    """Refuse an option that does not exist, and name the most similar one."""
    names = ["set", *run_options()]
    for name in options:
        if name in names:
            continue
        if name == "layers":
            raise TypeError("`layers` is a parameter of the drive: set={'layers': 'hard'}")
        near = hint(name, [*names, *BESIDE])
        raise TypeError(f"`{name}` is not an option of a run{near} (options: {', '.join(names)})")
