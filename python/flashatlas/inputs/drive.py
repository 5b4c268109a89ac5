"""Drives: a preset or a drive file, and parameters that replace some of its values."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashatlas import _core
from flashatlas.foreign import drive_file
from flashatlas.names import registries

Settings = Mapping[str, Any] | Sequence[str]
"""Parameters: ``{"ftl.victim": "fifo"}`` or ``["ftl.victim=fifo"]``."""


@dataclass(frozen=True)
class Drive:
    """A drive, whose parameters are checked when the object is made.

    >>> Drive("tiny", {"drive.planes": 2}).dies
    4

    Args:
        base: Preset (see ``flashatlas drives``), path of a TOML file, or the file of another
            simulator: ``mqsim:FILE``, ``femu:…``, ``simplessd:FILE``, ``nvmevirt:FILE,…``,
            ``conzone:FILE,…`` (:mod:`flashatlas.foreign`).
        set: Parameters that differ from the base.

    Raises:
        InputError: A name, key or value is unknown, or two parameters contradict each other.

    """

    base: str | os.PathLike[str] = "tiny"
    set: Settings = ()

    def __post_init__(self) -> None:
        self.layout  # noqa: B018  (checks everything)

    def but(self, set: Settings) -> Drive:
        """Return a copy of the drive in which these parameters are changed as well."""
        return Drive(self.base, setting_list(self.set) + setting_list(set))

    @property
    def layout(self) -> dict[str, Any]:
        """Sizes of the drive and counts of its parts, by name.

        ``exported_bytes`` is the exported size and ``unit_bytes`` the size of a mapping unit.
        ``logical_units``, ``physical_units``, ``lanes``, ``blocks``, ``frames_per_block``,
        ``slots_per_frame``, ``pages_per_frame`` and ``dies`` are counts.

        ``memory_bytes`` estimates the memory that a run needs if it touches all units.
        ``fill_memory_bytes`` and ``steady_memory_bytes`` are the least memory that a run needs if
        its precondition is ``fill`` or ``steady`` and the drive is written to tables.
        ``fill_seconds`` and ``steady_seconds`` are the seconds of a core that this takes with the
        map in DRAM, the least and the most. ``why_tables`` is the reason for tables, or ``None`` if
        what the drive holds before a run is computed, unless the run asks for ``base="dense"``.
        ``keeps_checkpoints`` is ``True`` if the state of the drive can be saved in a checkpoint.
        """
        name, toml = _text(self.base)
        return json.loads(_core.check_drive(name, toml, setting_list(self.set)))

    @property
    def capacity_bytes(self) -> int:
        """Bytes that the host can address; layers above the drive are taken into account."""
        return self.layout["exported_bytes"]

    @property
    def over_provisioning(self) -> float:
        """Physical units beyond the logical units, as a share of the logical units."""
        layout = self.layout
        return layout["physical_units"] / layout["logical_units"] - 1

    @property
    def dies(self) -> int:
        """Number of dies."""
        return self.layout["dies"]


def drive_and_text(drive: str | os.PathLike[str] | Drive) -> tuple[str, str | None, list[str]]:
    """Return a preset's name or a drive file's path, the file's text, and the drive's settings.

    The text is ``None`` for a preset. The settings are the parameters that a :class:`Drive`
    changes.
    """
    if isinstance(drive, Drive):
        return *_text(drive.base), setting_list(drive.set)
    return *_text(drive), []


def _text(drive: str | os.PathLike[str]) -> tuple[str, str | None]:
    name = os.fspath(drive)
    if (foreign := drive_file(name)) is not None:
        return name, foreign
    if not name.endswith(".toml"):
        if Path(name).is_file():
            raise _core.InputError(
                f"{name}: the name of a drive file ends in .toml, and other names are names "
                "of presets"
            )
        return name, None
    try:
        return name, Path(name).read_text(encoding="utf-8")
    except OSError as error:
        preset = Path(name).stem
        presets = [drive["name"] for drive in registries()["drives"]]
        near = f"; `{preset}` is a preset" if preset in presets else ""
        raise _core.InputError(f"{name}: {error.strerror}{near}") from error
    except UnicodeDecodeError as error:
        raise _core.InputError(
            f"{name}: the file is not UTF-8 at byte {error.start}; drive files must be UTF-8 text"
        ) from error


def setting_list(settings: Settings) -> list[str]:
    """Return settings as ``key=value`` texts."""
    if isinstance(settings, str):
        return [settings]
    if isinstance(settings, Mapping):
        return [
            f"{key}={str(value).lower() if isinstance(value, bool) else value}"
            for key, value in settings.items()
        ]
    return list(settings)
