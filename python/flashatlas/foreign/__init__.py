"""Drives that other simulators and emulators describe, turned into drive files of ours.

A description is named ``KIND:WHAT``: ``mqsim:ssdconfig.xml``, ``femu:femu,devsz_mb=12288``,
``simplessd:sample.cfg`` or ``nvmevirt:ssd_config.h,capacity=60GiB``. Each kind has a module here
and an entry in :data:`KINDS`. The drive's summary names the settings that have no counterpart here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from flashatlas.foreign import conzone, femu, mqsim, mqsim_flows, nvmevirt, simplessd
from flashatlas.foreign.description import DriveFile
from flashatlas.foreign.mqsim_flows import JobFile, TraceText

KINDS: dict[str, Callable[[str], DriveFile]] = {
    "mqsim": mqsim.described,
    "femu": femu.described,
    "nvmevirt": nvmevirt.described,
    "conzone": conzone.described,
    "simplessd": simplessd.described,
}
"""Readers of each kind of description."""


JOBS: dict[str, Callable[[str], JobFile]] = {"mqsim": mqsim_flows.job_file}
"""Functions that write the workloads of each kind as a job file."""


TRACES: dict[str, Callable[[str], TraceText]] = {"mqsim": mqsim_flows.trace_name}
"""Functions that name the trace that a workload of each kind plays."""


class NoCounterpart(UserWarning):
    """A setting of a description has no counterpart here."""


def drive_file(name: str) -> str | None:
    """Return the text of the drive file that a description stands for.

    ``None`` if ``name`` is not a description.

    Warns:
        NoCounterpart: A setting has no counterpart here.

    Raises:
        InputError: A file cannot be read, or a value makes no sense.

    """
    kind, colon, what = name.partition(":")
    if not colon or kind not in KINDS:
        return None
    drive = KINDS[kind](what)
    if drive.left:
        without = f"{name}: these have no counterpart: {', '.join(drive.left)}"
        warnings.warn(without, NoCounterpart, stacklevel=1)
    return drive.text()


def job_file(name: str) -> JobFile | None:
    """Return the fio job file that a workload stands for: ``mqsim:workload.xml,scenario=2``.

    ``None`` if ``name`` is not a workload.

    Raises:
        InputError: A file cannot be read, or the workload cannot be a job.

    """
    kind, colon, what = name.partition(":")
    return JOBS[kind](what) if colon and kind in JOBS else None


def trace_name(name: str) -> str:
    """Return the name of the trace that a workload plays: ``mqsim:workload.xml,scenario=2``.

    ``name`` itself if it is not a workload of another program.

    Warns:
        NoCounterpart: A setting has no counterpart here.

    Raises:
        InputError: A file cannot be read, or the workload plays no traces.

    """
    kind, colon, what = name.partition(":")
    if not colon or kind not in TRACES:
        return name
    trace = TRACES[kind](what)
    if trace.left:
        without = f"{name}: these have no counterpart: {', '.join(trace.left)}"
        warnings.warn(without, NoCounterpart, stacklevel=1)
    return trace.text
