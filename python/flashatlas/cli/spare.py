"""What a setting did to the spare area of a drive, where a user may not have meant it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from flashatlas import _core
from flashatlas.cli.console import err
from flashatlas.drive import FLASH, drive_and_text
from flashatlas.tables import percent

EXPORTED = ("drive.logical_pages", "drive.over_provisioning")
"""Settings that say how much of it is exported."""


def say_spare(drive: Any, settings: Sequence[str]) -> None:
    """Say the spare share if flash was changed, and what is exported stayed that of the preset."""
    keys = {setting.partition("=")[0].strip() for setting in settings}
    changed = [key for key in FLASH if key in keys]
    if not changed or keys & set(EXPORTED):
        return
    name, toml, own = drive_and_text(drive)
    others = [s for s in settings if s.partition("=")[0].strip() not in changed]
    before, now = (_spare(name, toml, [*own, *given]) for given in (others, settings))
    if abs(before - now) > 1e-9:
        err.print(
            f"{', '.join(changed)}: {percent(now)} spare ({percent(before)} before): "
            f"what the drive exports stayed as it was ({' or '.join(EXPORTED)} changes it)",
            highlight=False,
            soft_wrap=True,
        )


def _spare(name: str, toml: str | None, settings: list[str]) -> float:
    """Flash beyond what is exported, as a share of what is exported."""
    layout = json.loads(_core.check_drive(name, toml, settings))
    return layout["physical_units"] / layout["logical_units"] - 1
