"""Messages before a run: its cost, and the effect of a setting on the spare area."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from flashatlas import InputError, _core
from flashatlas.cli.console import err
from flashatlas.inputs.drive import drive_and_text
from flashatlas.results.rows import FLASH
from flashatlas.results.units import percent, size
from flashatlas.running.api import specification
from flashatlas.running.cost import Cost, cost, free_memory

EXPORTED = ("drive.logical_pages", "drive.over_provisioning", "drive.capacity")
"""Settings that determine how much of the flash is exported."""


def _say(text: str) -> None:
    err.print(text, highlight=False, markup=False, soft_wrap=True)


def say_spare(drive: Any, settings: Sequence[str]) -> None:
    """Report the spare share if settings change the amount of flash but not the exported size."""
    given = dict(setting.partition("=")[::2] for setting in settings)
    keys = {key.strip() for key in given}
    share = given.get(EXPORTED[1], "").strip()
    if share.replace(".", "", 1).isdigit() and float(share) >= 1:
        _say(f"{EXPORTED[1]} = {share} is {float(share):.0%} spare: write {share}% for {share} %")
    changed = [key for key in FLASH if key in keys]
    if not changed or keys & set(EXPORTED):
        return
    name, toml, own = drive_and_text(drive)
    others = [s for s in settings if s.partition("=")[0].strip() not in changed]
    now = _spare(name, toml, [*own, *settings])
    try:
        before = _spare(name, toml, [*own, *others])
    except InputError:
        return  # the other settings need the changed flash, so there is nothing to compare with
    if abs(before - now) > 1e-9:
        _say(
            f"{', '.join(changed)}: {percent(now)} spare ({percent(before)} before): "
            f"the exported size did not change ({' or '.join(EXPORTED)} changes it)"
        )


def say_cost(
    runs: Iterable[tuple[Any, Sequence[str], str]], at_once: int, base: str = "computed"
) -> None:
    """Report the memory and time of runs if they are large.

    Args:
        runs: Drive, settings and precondition of each run.
        at_once: Number of runs at the same time.
        base: The option ``base`` of the runs.

    """
    found: set[tuple[str, Cost]] = set()
    for drive, settings, precondition in runs:
        try:
            # the workload does not matter: only the drive is examined
            spec = specification(drive, set=list(settings), workload="uniform")
            planned = json.loads(_core.planned(json.dumps(spec)))
        except InputError:
            return  # the run itself will raise the error, with the name of its case
        name, params = spec["drive"], planned["config"]["params"]
        one = cost(planned["layout"], precondition, params.get("map.store", ""), base)
        if one.is_worth_saying and (name, one) not in found:
            time = f", {one.time} of a core to precondition ({precondition})" if one.is_long else ""
            why = f": it is held in tables, because {one.why}" if one.why else ""
            _say(f"{name}: {one.units:,} units, about {size(one.bytes)} of memory{time}{why}")
        found.add((name, one))
    largest = max((one.bytes for _, one in found), default=0) * at_once
    free = free_memory()
    if free is not None and largest > free:
        together = f"{at_once} runs together take" if at_once > 1 else "that is"
        _say(f"{together} more than the {size(free)} of free memory (--jobs)")


def _spare(name: str, toml: str | None, settings: list[str]) -> float:
    """Return the flash beyond the exported size, as a share of the exported size."""
    layout = json.loads(_core.check_drive(name, toml, settings))
    return layout["physical_units"] / layout["logical_units"] - 1
