"""What a drive with real bytes is told, and what it says in the end.

Shared by the server (:mod:`flashatlas.serve`) and the drive in this process
(:mod:`flashatlas.device`).
"""

from __future__ import annotations

import json
import os
from typing import Any

import pyarrow as pa

from flashatlas import _core
from flashatlas._core import InputError
from flashatlas.drive import Drive, Settings, drive_and_text, setting_list
from flashatlas.result import Result, digest_of

CUT_MODES = ("prefix", "torn", "subset")
"""What a power failure leaves of what the flash was doing."""


def plan(
    drive: str | os.PathLike[str] | Drive,
    set: Settings,
    image: str | os.PathLike[str] | None,
    cut_mode: str,
    ignore_flush: bool,
    ignore_fua: bool,
    seed: int,
) -> dict[str, Any]:
    """What the drive is told (``Plan`` of the crate ``serve``), checked.

    Raises:
        InputError: It is no drive.

    """
    if cut_mode not in CUT_MODES:
        raise InputError(
            f"cut_mode: `{cut_mode}`, expected {', '.join(CUT_MODES[:-1])} or {CUT_MODES[-1]}"
        )
    name, toml, own = drive_and_text(drive)
    settings = own + setting_list(set)
    _core.check_drive(name, toml, [*settings, "nand.data=ram"])
    return {
        "drive": name,
        "drive_toml": toml,
        "set": settings,
        "image": None if image is None else os.path.abspath(image),
        "cut_mode": cut_mode,
        "ignore_flush": ignore_flush,
        "ignore_fua": ignore_fua,
        "build": json.loads(_core.build())["sources"],
        "seed": seed,
    }


def result(found: dict[str, Any], wall_s: float) -> Result:
    """Record and tables as a run has them."""
    kinds = {
        "int": pa.int64(),
        "float": pa.float64(),
        "words": pa.dictionary(pa.uint8(), pa.string()),
    }
    tables = {
        table["name"]: pa.table(
            {c["name"]: pa.array(c["values"], kinds[c["kind"]]) for c in table["columns"]}
        )
        for table in found["tables"]
    }
    record = found["record"]
    record["results_digest"] = digest_of(record, tables, None)
    return Result(record, "", tables, wall_s=wall_s)
