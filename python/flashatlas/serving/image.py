"""Inspection of images, the files in which served drives store their flash.

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
from flashatlas.inputs.drive import Drive, Settings, drive_and_text, setting_list
from flashatlas.serving.device import Device


def image_info(image: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of an image's header.

    Args:
        image: The file, made by ``flashatlas.serve``.

    Returns:
        ``drive``, ``set`` (the settings of the drive), ``capacity_bytes``, ``bytes`` and
        ``allocated_bytes`` of the file, and its ``path``.

    Raises:
        InputError: The file is not an image, or a server has it open.

    """
    said: dict[str, Any] = json.loads(_core.image_info(os.path.abspath(image)))
    return said


def image_check(
    image: str | os.PathLike[str],
    drive: str | os.PathLike[str] | Drive | None = None,
    set: Settings = (),
    seed: int = 1,
) -> dict[str, Any]:
    """Mount an image in memory, as a server would, and report its state; do not change the file.

    Args:
        image: The file, made by ``flashatlas.serve``.
        drive: The drive; by default the drive named in the image's header. It must be given if the
            image was made with your own drive file, or with a layer over a drive whose capacity is
            a setting.
        set: Settings to add to the settings in the header.
        seed: Seed of the mount.

    Returns:
        The keys of :func:`image_info`, and ``sound`` (``True`` if nothing is damaged or lost),
        ``blocks``, ``frames``, ``units``, ``damaged`` (the frames and block records that do not
        match their checksums; the first 1,000 of them are listed by number), and ``mount`` (the
        findings of the scheme's recovery).

    Raises:
        InputError: The file is not an image of this drive, or a server has it open.
        DriveError: The image cannot be mounted.

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


def image_age(
    image: str | os.PathLike[str],
    seconds: int,
    drive: str | os.PathLike[str] | Drive | None = None,
    set: Settings = (),
) -> int:
    """Let an image rest: its clock goes on, and the next mount finds aged bits.

    Args:
        image: The file, made by ``flashatlas.serve``. Only its clock is changed.
        seconds: Time for which the drive rests.
        drive: The drive, as in :func:`image_check`.
        set: Settings to add to the settings in the header.

    Returns:
        The clock of the image, in seconds.

    Raises:
        InputError: The file is not an image of this drive, or a server has it open.

    """
    name, toml, own = ("", None, []) if drive is None else drive_and_text(drive)
    plan = {
        "drive": name,
        "drive_toml": toml,
        "set": own + setting_list(set),
        "image": os.path.abspath(image),
        "seed": 1,
    }
    return int(json.loads(_core.image_age(json.dumps(plan), seconds)))


def image_cut(
    image: str | os.PathLike[str],
    after: int,
    drive: str | os.PathLike[str] | Drive | None = None,
    set: Settings = (),
    cut_mode: str = "prefix",
    seed: int = 1,
) -> int | None:
    """Mount an image as a server would, and let the power fail during the mount.

    Args:
        image: The file; the power failure changes it.
        after: Number of flash operations that the mount still carries out.
        drive: The drive, as in :func:`image_check`.
        set: Settings to add to the settings in the header.
        cut_mode: State that the power failure leaves. ``prefix``: the operation in which the power
            fails has no effect. ``torn``: it leaves an unreadable page or block. ``subset``: see
            :func:`flashatlas.serve`.
        seed: Seed of the mount.

    Returns:
        ``None`` if the power failed; otherwise the number of operations of the whole mount.

    Raises:
        InputError: The file is not an image of this drive, or a server has it open.
        DriveError: The image cannot be mounted.

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
