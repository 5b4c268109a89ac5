"""The plan of a drive with real bytes, and its result.

Both the server (:mod:`flashatlas.serving.serve`) and the drive in this process
(:mod:`flashatlas.serving.device`) use this module.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from flashatlas import _core
from flashatlas._core import InputError
from flashatlas.inputs.drive import Drive, Settings, drive_and_text, setting_list
from flashatlas.inputs.trace import Progress
from flashatlas.results.result import Result, digest_of
from flashatlas.running.api import save_checkpoint
from flashatlas.running.run_options import checked, run_options

CUT_MODES = ("prefix", "torn", "subset")
"""The states in which a power failure can leave flash operations."""


def plan(
    drive: str | os.PathLike[str] | Drive,
    set: Settings,
    image: str | os.PathLike[str] | None,
    cut_mode: str,
    ignore_flush: bool,
    ignore_fua: bool,
    seed: int,
    precondition: str = "none",
) -> dict[str, Any]:
    """Check the options, and return the plan of the drive (``Plan`` of the crate ``serve``).

    Raises:
        InputError: The drive does not exist, or an option is bad.

    """
    if cut_mode not in CUT_MODES:
        raise InputError(
            f"cut_mode: `{cut_mode}` is not known: give {', '.join(CUT_MODES[:-1])} or "
            f"{CUT_MODES[-1]}"
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
        "precondition": _begins(precondition, image),
        "build": json.loads(_core.build())["sources"],
        "seed": seed,
    }


def _begins(precondition: str, image: str | os.PathLike[str] | None) -> str | dict[str, str]:
    """Return a precondition in the form that the core expects.

    Raises:
        InputError: The precondition is unknown, or the image already exists.

    """
    chosen = checked(run_options()["precondition"], precondition)
    if chosen != "none" and image is not None and _is_image(image):
        raise _core.about(
            "precondition",
            f"{os.fspath(image)} already holds a drive, whose state is kept: leave "
            "the option out, or name a new image (‹image=FILE›)",
        )
    return chosen  # type: ignore[no-any-return]


def _is_image(path: str | os.PathLike[str]) -> bool:
    try:
        _core.image_info(os.path.abspath(path))
    except InputError:  # the file does not exist, or the server will refuse it
        return False
    return True


def aged(
    told: dict[str, Any],
    drive: str | os.PathLike[str] | Drive,
    set: Settings,
    folder: Path,
    progress: Progress | None,
) -> dict[str, Any]:
    """Return a plan with the checkpoint of the initial drive; make it in ``folder`` if needed.

    Raises:
        InputError: The drive cannot be preconditioned in this way.

    """
    begins = told["precondition"]
    if begins == "none":
        return told
    if isinstance(begins, dict) and "checkpoint" in begins:
        return {**told, "checkpoint": os.path.abspath(begins["checkpoint"])}
    shown = {key: told[key] for key in ("drive", "drive_toml", "set", "seed")}
    shown["workload"] = "uniform:requests=1"
    if not json.loads(_core.planned(json.dumps(shown)))["layout"]["keeps_checkpoints"]:
        raise _core.about(
            "precondition",
            "a checkpoint cannot hold layers or the bytes of pages: serve the drive without them, "
            "or let a client age the drive",
        )
    asked = begins if isinstance(begins, str) else ":".join(next(iter(begins.items())))
    path = save_checkpoint(
        folder / "aged.ckpt", drive, set=set, precondition=asked, seed=told["seed"],
        progress=progress,
    )  # fmt: skip
    return {**told, "checkpoint": str(path.absolute())}


def result(found: dict[str, Any], wall_s: float) -> Result:
    """Return the output of a served drive as the result of a run."""
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
    if record["config"]["precondition"] == "steady":  # preconditioning has used this stream
        streams = {*record["random_streams"], "precondition.steady"}
        record["random_streams"] = sorted(streams)
    record["results_digest"] = digest_of(record, tables, None)
    return Result(record, "", tables, wall_s=wall_s)
