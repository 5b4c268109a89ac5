"""What a notebook uses: run a drive, compare several, keep a preconditioned one."""

from __future__ import annotations

import difflib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from flashatlas import _core
from flashatlas.drive import Drive, Settings, drive_and_text, setting_list
from flashatlas.files import whole_file
from flashatlas.job import Job
from flashatlas.result import Result, result_of
from flashatlas.trace import Progress, Trace

if TYPE_CHECKING:
    from typing_extensions import Unpack

MODES = ("asap", "closed", "open", "untimed")
FITS = ("error", "wrap", "compact")
PRECONDITIONS = ("none", "fill", "steady", "trace:FILE", "checkpoint:FILE")

PLAYING = ("set", "filesystem", "mode", "depth", "speed", "flush_every", "interval", "warmup")
"""Parts of a specification that play no part in preconditioning."""

BETWEEN = ("timing.", "host.")
"""Prefixes of parameters that only change when things happen: preconditioning ignores them.
"""


class RunOptions(TypedDict, total=False):
    """The options of :func:`run`, described at :func:`specification`."""

    trace: str | os.PathLike[str] | Trace | None
    workload: str | None
    job: str | os.PathLike[str] | Job | None
    filesystem: str | None
    set: Settings
    format: str | None
    device_map: str | None
    drop_duplicates: str | None
    time_gap_max: str | None
    assume_op: str | None
    skip_bad: int
    shift: int
    mode: str | None
    depth: int | None
    speed: float
    precondition: str
    fit: str
    warmup: int
    limit: int | None
    flush_every: int
    interval: str | None
    seed: int


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
        progress: Called now and then with phase, requests and share done.
        options: As :func:`specification` takes them: the workload, and how it meets the drive.

    Raises:
        InputError: Bad input of any kind; nothing was run.
        DriveError: The drive could not go on, for example for lack of space.
        InternalError: A broken invariant.

    """
    _known(options)
    return result_of(_core.run(json.dumps(specification(drive, **options)), progress), label)


def specification(
    drive: str | os.PathLike[str] | Drive = "tiny",
    *,
    trace: str | os.PathLike[str] | Trace | None = None,
    workload: str | None = None,
    job: str | os.PathLike[str] | Job | None = None,
    filesystem: str | None = None,
    set: Settings = (),
    format: str | None = None,
    device_map: str | None = None,
    drop_duplicates: str | None = None,
    time_gap_max: str | None = None,
    assume_op: str | None = None,
    skip_bad: int = 0,
    shift: int = 0,
    mode: str | None = None,
    depth: int | None = None,
    speed: float = 1.0,
    precondition: str = "none",
    fit: str = "error",
    warmup: int = 0,
    limit: int | None = None,
    flush_every: int = 0,
    interval: str | None = None,
    seed: int = 1,
) -> dict[str, Any]:
    """What the core is asked to run, as it takes it.

    Args:
        drive: Preset, path of a TOML file, or a :class:`Drive`.
        trace: Path of a trace file, plain or compressed, or a :class:`Trace` with how to read it.
        workload: A generator instead of a trace: ``"uniform:requests=100000,size=4KiB"``.
        job: Path of a fio job file instead, or a :class:`Job`.
        filesystem: A file system between the jobs and the drive: ``"ext4"``, or
            ``"ext4:fua=true,hz=1000"``.
        set: Parameters that differ from the drive's.
        format: Trace format, when its content does not tell.
        device_map: Address spaces of the trace: ``separate``, ``collapse`` or ``select:N``.
        drop_duplicates: Drop a record that repeats the one before within this time, such as
            ``"5ms"``.
        time_gap_max: Cut pauses of the trace to this time, such as ``"1s"``.
        assume_op: ``read`` or ``write``, for traces that do not say.
        skip_bad: Bad records of the trace to skip before one is an error.
        shift: Sectors added to every address of the trace.
        mode: ``asap`` (default), ``closed`` (needs ``depth``), ``open`` (times of the trace) or
            ``untimed``.
        depth: Commands in flight in closed mode; giving it selects closed mode.
        speed: Factor by which the times of the trace are divided in open mode.
        precondition: ``none``, ``fill``, ``steady``, ``trace:FILE`` or ``checkpoint:FILE``.
        fit: ``error``, ``wrap`` or ``compact``, for addresses beyond the drive.
        warmup: Requests at the start that are not measured.
        limit: Requests after which the run ends.
        flush_every: Add a FLUSH after so many writes; 0: none.
        interval: Simulated time in a row of the ``series`` table, such as ``"100ms"``; chosen if
            not given.
        seed: Seed of everything random.

    """
    name, toml, own = drive_and_text(drive)
    reading = {
        "format": format,
        "device_map": device_map,
        "drop_duplicates": drop_duplicates,
        "time_gap_max": time_gap_max,
        "assume_op": assume_op,
        "skip_bad": skip_bad,
        "shift": shift,
    }
    if isinstance(trace, Trace):
        given = [key for key, value in reading.items() if value]
        if given:
            raise _core.InputError(f"{given[0]}: belongs into the Trace that was given")
        reading, trace = trace.options, trace.path
    return {
        "drive": name,
        "drive_toml": toml,
        "set": own + setting_list(set),
        "trace": None if trace is None else os.fspath(trace),
        "workload": workload,
        "job": None if job is None else os.fspath(job),
        "filesystem": filesystem,
        "reading": reading,
        "mode": _one_of("mode", mode or ("closed" if depth is not None else "asap"), MODES),
        "depth": depth,
        "speed": speed,
        "precondition": _precondition(precondition),
        "fit": _one_of("fit", fit, FITS),
        "warmup": warmup,
        "limit": limit,
        "flush_every": flush_every,
        "interval": interval,
        "seed": seed,
    }


def save_checkpoint(
    path: str | os.PathLike[str],
    drive: str | os.PathLike[str] | Drive = "tiny",
    *,
    progress: Progress | None = None,
    **options: Unpack[RunOptions],
) -> Path:
    """Precondition a drive and keep it in a file, for ``precondition="checkpoint:FILE"``.

    Args:
        path: The file; it appears whole or not at all.
        drive: As for :func:`run`.
        progress: As for :func:`run`.
        options: As for :func:`run`: ``precondition`` says how; with ``fit="compact"`` the workload
            that is to follow says which addresses must find room.

    """
    _known(options)
    spec = json.dumps(specification(drive, **options))
    with whole_file(Path(path)) as temporary:
        _core.save_checkpoint(spec, str(temporary), progress)
    return Path(path)


def compare(
    cases: Iterable[Mapping[str, Any]],
    *,
    jobs: int | None = None,
    progress: Callable[[int, str, int, float | None], None] | None = None,
    **common: Any,
) -> list[Result]:
    """Carry out several runs, side by side on the machine's cores.

    Results come in the order of the cases.

    Cases that begin with the same drive are given the same checkpoint: it is preconditioned once.

    Args:
        cases: For each run, the arguments of :func:`run` in which it differs (``label`` names it).
        jobs: Runs at once; one for each core by default.
        progress: Called with the number of the case, phase, requests and share done.
        common: Arguments of :func:`run` that all share. A case's ``set`` is added to the common
            one.

    """
    differences = [dict(case) for case in cases]
    labels = [case.pop("label", "") for case in differences]
    specs: list[dict[str, Any]] = []
    alone: set[int] = set()
    for case in differences:
        _known({key: value for key, value in {**common, **case}.items() if key != "drive"})
        settings = setting_list(common.get("set", ())) + setting_list(case.get("set", ()))
        spec = specification(**{**common, **case, "set": settings})
        # a mistake in the last case should not cost the time of the first
        layout = json.loads(_core.check_drive(spec["drive"], spec["drive_toml"], spec["set"]))
        if not layout["keeps_checkpoints"]:
            alone.add(len(specs))
        specs.append(spec)
    with tempfile.TemporaryDirectory(prefix="flashatlas-") as folder:
        workers = Workers(jobs or os.cpu_count() or 1, progress)
        for number, (first, users) in enumerate(_shared_preconditions(specs, alone)):
            path = str(Path(folder) / f"{number}.ckpt")
            workers.add(users[0], partial(_core.save_checkpoint, json.dumps(first), path))
            for user in users:
                specs[user] = {
                    **specs[user],
                    "precondition": {"checkpoint": path},
                    "_of": first["precondition"],
                }
        workers.wait()
        for number, spec in enumerate(specs):
            workers.add(number, partial(_carry_out, spec))
        outcomes = workers.wait()
    return [replace(result, label=label) for label, result in zip(labels, outcomes, strict=True)]


def _carry_out(spec: dict[str, Any], report: Progress) -> Result:
    """A run; one from a checkpoint made here speaks of its precondition as the user gave it."""
    spec = dict(spec)
    given = spec.pop("_of", None)
    result = result_of(_core.run(json.dumps(spec), report))
    record = result.record
    if given is not None:
        record["config"]["precondition"] = given
        record["config_hash"] = _core.config_hash(json.dumps(record["config"]))
        del record["checkpoint"]
        path = spec["precondition"]["checkpoint"]
        begun = f"the drive began as the checkpoint {path} holds it"
        shared = "the preconditioned drive was shared with other runs of the comparison"
        record["approximations"] = [
            shared if note == begun else note for note in record["approximations"]
        ]
    return result


def _shared_preconditions(
    specs: list[dict[str, Any]], alone: set[int]
) -> list[tuple[dict[str, Any], list[int]]]:
    """Groups of cases whose drives are the same when preconditioned, each with its first case.

    None of ``alone``.
    """
    groups: dict[str, list[int]] = {}
    for number, spec in enumerate(specs):
        kind = spec["precondition"]
        if (
            number in alone
            or kind == "none"
            or (isinstance(kind, dict) and "checkpoint" in kind)
            or spec.get("job")
        ):
            continue
        what = {key: value for key, value in spec.items() if key not in PLAYING}
        what["set"] = [
            setting for setting in spec["set"] if not setting.strip().startswith(BETWEEN)
        ]
        groups.setdefault(json.dumps(what, sort_keys=True), []).append(number)
    return [(specs[users[0]], users) for users in groups.values() if len(users) > 1]


class Workers:
    """Runs at once; the first failure stops the others."""

    def __init__(
        self, workers: int, progress: Callable[[int, str, int, float | None], None] | None
    ) -> None:
        self._workers = workers
        self._progress = progress
        self._stop = False
        self._tasks: list[tuple[int, Callable[[Progress], Any]]] = []

    def add(self, number: int, task: Callable[[Progress], Any]) -> None:
        """Carry out ``task`` at the next :meth:`wait`; its progress is that of ``number``."""
        self._tasks.append((number, task))

    def _report(self, number: int) -> Progress:
        def report(phase: str, requests: int, share: float | None) -> None:
            if self._stop:
                raise KeyboardInterrupt
            if self._progress:
                self._progress(number, phase, requests, share)

        return report

    def wait(self) -> list[Any]:
        """Carry out what was added; the answers in its order."""
        tasks, self._tasks = self._tasks, []
        with ThreadPoolExecutor(max_workers=self._workers) as pool:
            futures = [pool.submit(task, self._report(number)) for number, task in tasks]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
                # a failure first, not the interruption of the others that follows from it
                for future in futures:
                    failure = (
                        future.exception() if future.done() and not future.cancelled() else None
                    )
                    if failure is not None:
                        raise failure
                return [future.result() for future in futures]
            except BaseException:
                self._stop = True
                for future in futures:
                    future.cancel()
                raise


def registries() -> dict[str, Any]:
    """Drives, schemes, victims, formats and whatever else has a name.

    Each with its summary and parameters.
    """
    return json.loads(_core.registries())


def hint(name: str, names: Iterable[str]) -> str:
    """Which of the names that there are may have been meant; empty if none is near."""
    near = difflib.get_close_matches(name, list(names), 1)
    return f"; did you mean `{near[0]}`?" if near else ""


def _known(options: Mapping[str, Any]) -> None:
    """Refuse an option that does not exist, and name the nearest."""
    names = list(RunOptions.__annotations__)
    for name in options:
        if name not in names:
            raise TypeError(
                f"`{name}` is no option of a run{hint(name, names)} (options: {', '.join(names)})"
            )


def _one_of(what: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise _core.InputError(f"{what} `{value}` is not known (allowed: {', '.join(allowed)})")
    return value


def _precondition(text: str) -> str | dict[str, str]:
    kind, _, path = text.partition(":")
    if path and kind in ("trace", "checkpoint"):
        return {kind: path}
    if text in ("none", "fill", "steady"):
        return text
    raise _core.InputError(
        f"precondition `{text}` is not known (allowed: {', '.join(PRECONDITIONS)})"
    )
