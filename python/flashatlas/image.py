"""A look at the flash of a served drive: what an image is of, and whether it is sound.

>>> import flashatlas
>>> flashatlas.image_info("drive.img")["drive"]   # doctest: +SKIP
'tlc-small'
>>> flashatlas.image_check("drive.img")["sound"]   # doctest: +SKIP
True
"""

from __future__ import annotations

import json
import os
from typing import Any

from flashatlas import _core
from flashatlas._core import PowerLost
from flashatlas.device import Device
from flashatlas.drive import Drive, Settings, drive_and_text, setting_list


def image_info(image: str | os.PathLike[str]) -> dict[str, Any]:
    """What the header of an image says.

    Args:
        image: The file, as ``flashatlas.serve`` made it.

    Returns:
        ``drive``, ``set`` (the settings with which it is served again), ``capacity_bytes``,
        ``bytes`` and ``allocated_bytes`` of the file, and its ``path``.

    Raises:
        InputError: It is no image, or somebody serves it.

    """
    said: dict[str, Any] = json.loads(_core.image_info(os.path.abspath(image)))
    return said


def image_check(
    image: str | os.PathLike[str],
    drive: str | os.PathLike[str] | Drive | None = None,
    set: Settings = (),
    seed: int = 1,
) -> dict[str, Any]:
    """Mount an image in memory, as a server would, and say what is there. It stays as it is.

    Args:
        image: The file, as ``flashatlas.serve`` made it.
        drive: The drive; by default the image's header says which. It must be given where a drive
            file of your own made it, or a layer over a drive whose capacity is a setting.
        set: Settings, after those of the header.
        seed: Seed of the mount.

    Returns:
        What :func:`image_info` does, and ``sound`` (nothing is damaged and nothing lost),
        ``blocks``, ``frames``, ``units``, ``damaged`` (frames and records of blocks that do not
        match their checksums, the first 1,000 by number), and ``mount``, what the scheme's recovery
        found.

    Raises:
        InputError: It is no image of this drive, or somebody serves it.
        DriveError: It cannot be mounted.

    """
    name, toml, own = ("", None, []) if drive is None else drive_and_text(drive)
    plan = {
        "drive": name,
        "drive_toml": toml,
        "set": own + setting_list(set),
        "image": os.path.abspath(image),
        "seed": seed,
    }
    said: dict[str, Any] = json.loads(_core.image_check(json.dumps(plan)))
    return said


def image_cut(
    image: str | os.PathLike[str],
    after: int,
    drive: str | os.PathLike[str] | Drive | None = None,
    set: Settings = (),
    cut_mode: str = "prefix",
    seed: int = 1,
) -> int | None:
    """Mount an image as a server would, and let the power fail in the mount.

    Args:
        image: The file; it is as the power failure left it then.
        after: Operations of the flash that the mount still carries out.
        drive: The drive, as in :func:`image_check`.
        set: Settings, after those of the header.
        cut_mode: What the operation after them leaves: nothing (``prefix``), or (``torn``) a page
            or a block that cannot be read; ``subset``, as :func:`flashatlas.serve` has it.
        seed: Seed of the mount.

    Returns:
        Nothing; if the power has not failed, the operations that the whole mount takes.

    Raises:
        InputError: It is no image of this drive, or somebody serves it.
        DriveError: It cannot be mounted.

    """
    said = image_info(image)
    given = said["set"] + setting_list(set) if drive is None else set
    try:
        with Device(
            said["drive"] if drive is None else drive,
            set=given,
            image=image,
            cut_after=after,
            cut_mode=cut_mode,
            seed=seed,
        ) as powered:
            return powered.operations
    except PowerLost:
        return None
