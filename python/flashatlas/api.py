"""What a notebook uses: run a drive, compare several, look at a trace."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from flashatlas import _core
from flashatlas.result import Result, tables_of

Progress = Callable[[str, int, float | None], None]
"""Called with the phase, the requests so far, and the share done (0 to 1) where it is known."""

Settings = Mapping[str, Any] | Sequence[str]
"""Parameters: ``{"ftl.victim": "fifo"}`` or ``["ftl.victim=fifo"]``."""


def run(
    drive: str | os.PathLike[str] = "tiny",
    *,
    trace: str | os.PathLike[str] | None = None,
    workload: str | None = None,
    set: Settings = (),
    format: str | None = None,
    mode: str | None = None,
    depth: int | None = None,
    speed: float = 1.0,
    precondition: str = "none",
    fit: str = "error",
    warmup: int = 0,
    limit: int | None = None,
    skip_bad: int = 0,
    shift: int = 0,
    seed: int = 1,
    label: str = "",
    progress: Progress | None = None,
) -> Result:
    """Replay one workload on one drive, and check every read.

    Args:
        drive: Preset (see ``flashatlas drives``) or path of a TOML file.
        trace: Path of a trace file, plain or compressed.
        workload: A generator instead of a trace: ``"uniform:requests=100000,size=4KiB"``.
        set: Parameters that differ from the drive's.
        format: Trace format, when its content does not tell.
        mode: ``asap`` (default), ``closed`` (needs ``depth``), ``open`` (times of the trace) or ``untimed``.
        depth: Commands in flight in closed mode; giving it selects closed mode.
        speed: Factor by which the times of the trace are divided in open mode.
        precondition: ``none``, ``fill`` or ``trace:PATH``.
        fit: ``error``, ``wrap`` or ``compact``, for addresses beyond the drive.
        warmup: Requests at the start that are not measured.
        limit: Requests after which the run ends.
        skip_bad: Bad records to skip before one is an error.
        shift: Sectors added to every address of the trace.
        seed: Seed of everything random.
        label: A name for tables and reports.
        progress: Called now and then with phase, requests and share done.

    Raises:
        InputError: Bad input of any kind; nothing was run.
        DriveError: The drive could not go on, for example for lack of space.
        InternalError: A broken invariant.

    """
    name, toml = _drive(drive)
    spec = {
        "drive": name,
        "drive_toml": toml,
        "set": _settings(set),
        "trace": None if trace is None else os.fspath(trace),
        "format": format,
        "workload": workload,
        "mode": mode or ("closed" if depth is not None else "asap"),
        "depth": depth,
        "speed": speed,
        "precondition": _precondition(precondition),
        "fit": _one_of("fit", fit, ("error", "wrap", "compact")),
        "warmup": warmup,
        "limit": limit,
        "skip_bad": skip_bad,
        "shift": shift,
        "seed": seed,
    }
    _one_of("mode", spec["mode"], ("asap", "closed", "open", "untimed"))
    record, tables = _core.run(json.dumps(spec), progress)
    return Result(json.loads(record), label, tables_of(tables))


def compare(
    cases: Iterable[Mapping[str, Any]],
    *,
    jobs: int | None = None,
    progress: Callable[[int, str, int, float | None], None] | None = None,
    **common: Any,
) -> list[Result]:
    """Carry out several runs, side by side on the machine's cores; results come in the order of the cases.

    Args:
        cases: For each run, the arguments of :func:`run` in which it differs (``label`` names it).
        jobs: Runs at once; one for each core by default.
        progress: Called with the number of the case, phase, requests and share done.
        common: Arguments of :func:`run` that all share. A case's ``set`` is added to the common one.

    """
    cases = list(cases)
    for case in cases:  # a mistake in the last case should not cost the time of the first
        name, toml = _drive(case.get("drive", common.get("drive", "tiny")))
        _core.check_drive(name, toml, _settings(common.get("set", ())) + _settings(case.get("set", ())))
    stop = False

    def one(number: int, case: Mapping[str, Any]) -> Result:
        def report(phase: str, requests: int, share: float | None) -> None:
            if stop:
                raise KeyboardInterrupt
            if progress:
                progress(number, phase, requests, share)

        arguments = {**common, **case}
        arguments["set"] = _settings(common.get("set", ())) + _settings(case.get("set", ()))
        return run(**arguments, progress=report)

    with ThreadPoolExecutor(max_workers=jobs or os.cpu_count() or 1) as pool:
        futures = [pool.submit(one, number, case) for number, case in enumerate(cases)]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            return [future.result() for future in futures]
        except BaseException:
            stop = True
            for future in futures:
                future.cancel()
            raise


def trace_info(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    skip_bad: int = 0,
    shift: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Read a whole trace and sum it up: requests, bytes, footprint, overwrites, sequentiality, duration."""
    return json.loads(_core.trace_info(os.fspath(path), format, skip_bad, shift, progress))


def registries() -> dict[str, Any]:
    """Everything that has a name (drives, schemes, victims, formats …), with summaries and parameters."""
    return json.loads(_core.registries())


def _drive(drive: str | os.PathLike[str]) -> tuple[str, str | None]:
    """Name of a preset, or path and text of a drive file."""
    name = os.fspath(drive)
    if not name.endswith(".toml"):
        return name, None
    try:
        return name, Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _core.InputError(f"{name}: {getattr(error, 'strerror', None) or error}") from error


def _settings(settings: Settings) -> list[str]:
    if isinstance(settings, str):
        return [settings]
    if isinstance(settings, Mapping):
        return [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in settings.items()]
    return list(settings)


def _one_of(what: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise _core.InputError(f"{what} `{value}` is not known (allowed: {', '.join(allowed)})")
    return value


def _precondition(text: str) -> str | dict[str, str]:
    if text.startswith("trace:"):
        return {"trace": text.removeprefix("trace:")}
    if text not in ("none", "fill"):
        raise _core.InputError(f"precondition `{text}` is not known (allowed: none, fill, trace:FILE)")
    return text
