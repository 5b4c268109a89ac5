"""The workloads of experiments: recorded traces and their stand-ins.

The runs, their workloads and the published results come from ``papers/*/experiment.toml``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashatlas._core import InputError, quantity
from flashatlas.fetch import with_package
from flashatlas.names import registries

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Application:
    """A workload of an experiment: a recorded trace, or its stand-in."""

    name: str
    options: dict[str, Any]
    """Arguments of :func:`flashatlas.run`."""
    recorded: bool
    """``True`` for a recorded trace, ``False`` for a generated workload."""
    published: bool = True
    """``True`` if it takes the place of a workload of the paper; otherwise it is additional."""
    variants: bool = True
    """``True`` if the possible readings of the paper's open points are also tried on it."""

    @property
    def source(self) -> str:
        """The source of its requests."""
        return (
            Path(self.options["trace"]).name
            if self.recorded
            else f"generated: {self.options['workload']}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the name, the source, and whether it is the trace."""
        return {"name": self.name, "source": self.source, "recorded": self.recorded}


def load(name: str) -> dict[str, Any]:
    """Return the experiment in folder ``papers/NAME``."""
    texts = {paper["name"]: paper["toml"] for paper in registries()["papers"]}
    return tomllib.loads(texts[name])


def refuse_traces(name: str, traces: str | os.PathLike[str] | None, plays: str) -> None:
    """Refuse a folder of traces for an experiment whose workloads are all generated.

    Args:
        name: The experiment.
        traces: The folder that the user gives.
        plays: The workloads that the experiment plays instead.

    Raises:
        InputError: A folder is given.

    """
    if traces is not None:
        raise InputError(f"--traces: `{name}` plays no recorded trace, only {plays}")


def traces_folder(given: str | os.PathLike[str] | None) -> Path | None:
    """Return the folder of recorded traces, from the argument or ``FLASHATLAS_TRACES``.

    Raises:
        InputError: The folder does not exist.

    """
    named = given or os.environ.get("FLASHATLAS_TRACES")
    if not named:
        return None
    if not Path(named).is_dir():
        raise InputError(
            f"{named}: there is no such folder of traces "
            f"({'--traces' if given else 'FLASHATLAS_TRACES'})"
        )
    return Path(named)


def applications(entries: Sequence[dict[str, Any]], folder: Path | None) -> list[Application]:
    """Return the workloads of an experiment.

    They are the traces in the folder or in the package (``recording``), and stand-ins for the
    others.
    """
    made = []
    for entry in entries:
        rest = dict(entry)
        name, trace, stand_in = rest.pop("name"), rest.pop("trace", None), rest.pop("stand_in", "")
        published, warmup = rest.pop("published", True), rest.pop("stand_in_warmup", 0)
        variants = rest.pop("variants", True)
        path = folder / trace if folder and trace else None
        if recording := rest.pop("recording", None):
            path = with_package(recording)
        if path is not None and path.is_file():
            made.append(Application(name, {"trace": path, **rest}, True, published, variants))
        else:
            own = {"workload": stand_in} | ({"warmup": warmup} if warmup else {})
            made.append(Application(name, own, False, published, variants))
    return made


def precondition(application: Application, wanted: str, folder: Path | None) -> str:
    """Return the precondition that brings the drive into the state for a recorded trace.

    For a generated workload, the drive is filled.

    Args:
        application: The workload.
        wanted: `fill`, or `trace:NAME` of a trace in the folder.
        folder: The folder of recorded traces.

    Raises:
        InputError: The trace that brings the drive into its state does not exist.

    """
    kind, _, name = wanted.partition(":")
    if not (application.recorded and name):
        return "fill"
    assert folder is not None
    path = folder / name
    if not path.is_file():
        raise InputError(
            f"{path}: there is no such trace; {application.name} needs this trace to bring "
            "the drive into its state"
        )
    return f"{kind}:{path}"


def flash_seconds(record: Mapping[str, Any]) -> float:
    """Return the sum of the durations of a run's flash operations for writing, in seconds.

    The operations are programs, erases, and all reads except those for the host's reads. Each has
    the time of a lower page.
    """
    params, nand = record["config"]["params"], record["nand"]
    reads = sum(n for cause, n in nand["reads"].items() if cause != "host")
    picoseconds = (
        reads * quantity(params["timing.t_read"])
        + sum(nand["programs"].values()) * quantity(params["timing.t_program"])
        + sum(nand["erases"].values()) * quantity(params["timing.t_erase"])
    )
    return picoseconds / 1e12
