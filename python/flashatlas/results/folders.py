"""Layout of a folder of results.

A folder contains either one run (``run.json`` and files beside it) or a comparison
(``compare.json``, and its runs in folders ``01``, ``02`` and so on). Writing a run removes a
comparison in the folder, and writing a comparison removes a run.
"""

from __future__ import annotations

from pathlib import Path

from flashatlas._core import InputError
from flashatlas.untrusted import json_file

RECORD = "run.json"
COMPARISON = "compare.json"
COMPARISON_SCHEMA = "flashatlas.compare/1"
TABLES = ("series", "latency", "wear", "resources", "blocks")
"""The tables that a run may have; their columns are described in ``docs/FORMATS.md``."""

EXPECTED = "what `flashatlas compare` writes"

OF_A_RUN = frozenset({RECORD, "made.json", "jobs.json", *(f"{name}.parquet" for name in TABLES)})
"""The files that a run may write into its folder."""


def numbered(number: int) -> str:
    """Return the name of a run's folder inside a comparison; numbers begin at 1."""
    return f"{number:02d}"


def must_hold_no_results(folder: Path | None, force: bool) -> None:
    """Refuse a folder that contains results; with ``force``, accept it.

    Raises:
        InputError: The folder contains a run or a comparison, and ``force`` is false.

    """
    held = [name for name in (RECORD, COMPARISON) if folder and (folder / name).exists()]
    if held and not force:
        raise InputError(
            f"{folder}: the folder already holds results ({held[0]}): --force replaces them"
        )


def clear_run(folder: Path, keep: frozenset[str] = frozenset()) -> bool:
    """Remove the files of a run except the files of ``keep``; return ``True`` if a run existed.

    If the folder has no record, files with these names are not files of a run and stay.
    """
    if not (folder / RECORD).is_file():
        return False
    for file in OF_A_RUN - keep:
        (folder / file).unlink(missing_ok=True)
    return True


def clear_comparison(folder: Path, keep: int = 0) -> int:
    """Remove all but the first ``keep`` runs of a comparison; return the number of removed runs.

    Other folders whose names are numbers stay.
    """
    try:
        count = len(json_file(folder / COMPARISON, EXPECTED)["runs"])
    except (OSError, InputError, LookupError, TypeError):
        return 0
    removed = 0
    for number in range(keep + 1, count + 1):
        inner = folder / numbered(number)
        if clear_run(inner):
            removed += 1
            if not any(inner.iterdir()):
                inner.rmdir()
    if not keep:
        (folder / COMPARISON).unlink(missing_ok=True)
    return removed


def run_folders(path: Path) -> list[Path]:
    """Return the run folders of a path: the path itself, or the folders inside it.

    Raises:
        InputError: The folder contains no results, contains both a run and a comparison, or lacks a
            run of its comparison.

    """
    if path.suffix == ".zip" and path.is_file():
        raise InputError(
            f"{path}: this is a bundle, which only `flashatlas rerun` reads; "
            "unpack the bundle first"
        )
    if path.name == COMPARISON and path.is_file():
        path = path.parent
    if not path.is_dir():
        return [path]
    one, several = (path / RECORD).exists(), (path / COMPARISON).exists()
    if one and several:
        raise InputError(
            f"{path}: the folder holds both a run ({RECORD}) and a comparison "
            f"({COMPARISON}); remove the "
            "older of the two files"
        )
    if several:
        return _compared(path)
    inside = [path] if one else sorted(p.parent for p in path.glob(f"*/{RECORD}"))
    if not inside:
        raise InputError(
            f"{path}: the folder holds no results ({RECORD} or {COMPARISON}); give a folder "
            "that `run "
            "--out` or `compare --out` wrote"
        )
    return inside


def _compared(folder: Path) -> list[Path]:
    """Return the folders of all runs of a comparison."""
    file = folder / COMPARISON
    content = json_file(file, EXPECTED)
    runs = content.get("runs") if isinstance(content, dict) else None
    if not isinstance(runs, list) or not runs or not all(isinstance(run, dict) for run in runs):
        raise InputError(f"{file}: damaged: `runs` must be a list of runs")
    folders = [folder / numbered(number) for number in range(1, len(runs) + 1)]
    for one, run in zip(folders, runs, strict=True):
        if not (one / RECORD).is_file():
            label = run.get("label") or "without a label"
            raise InputError(f"{one}: run `{label}` of {file} is missing")
    return folders
