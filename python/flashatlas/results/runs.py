"""Several results: as arguments, as a frame, and as a comparison in a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashatlas._core import InputError
from flashatlas.files import write_together
from flashatlas.results.folders import (
    COMPARISON,
    COMPARISON_SCHEMA,
    RECORD,
    clear_comparison,
    clear_run,
    numbered,
    run_folders,
)
from flashatlas.results.result import Result

if TYPE_CHECKING:
    from flashatlas.results.frame import Frame


def given_results(given: Any) -> list[Result]:
    """Return an argument as a list of results; a single result is accepted.

    Raises:
        InputError: The argument is something else, such as the path of a folder.

    """
    several = [given] if isinstance(given, Result) or not isinstance(given, Iterable) else given
    paths = isinstance(given, str | os.PathLike)
    for one in [given] if paths else (found := list(several)):
        if not isinstance(one, Result):
            hint = f"; Result.load({str(one)!r}) reads a folder" if paths else ""
            raise InputError(f"{one!r} is of type {type(one).__name__}, but must be a Result{hint}")
    if not found:
        raise InputError("there are no results: give at least one")
    return found


def load_all(paths: Sequence[Path]) -> list[Result]:
    """Return the runs of paths; see :func:`flashatlas.results.folders.run_folders`."""
    return [Result.load(folder) for path in paths for folder in run_folders(path)]


def frame(results: Iterable[Result] | Result) -> Frame:
    """Return runs as a table with a row for each run.

    The columns are ``label``, the options (``drive``, ``trace``, ``mode``, ``seed`` …), every
    parameter under its key (times in nanoseconds), every number of the record under its path
    (``nand.programs.gc``), and sums of some numbers (:data:`flashatlas.results.frame.SUMS`).
    Options and parameters in which the runs differ are *factors*. A value that a run does not have
    is null.

    >>> import flashatlas
    >>> runs = flashatlas.compare(
    ...     [{"set": {"ftl.victim": victim}} for victim in ("greedy", "fifo")],
    ...     workload="uniform:requests=2000,size=2KiB",
    ...     precondition="fill",
    ... )
    >>> flashatlas.frame(runs).factors
    ['ftl.victim']

    Raises:
        InputError: ``results`` is empty, or contains an object that is not a result.

    """
    from flashatlas.results.frame import frame_of  # noqa: PLC0415

    return frame_of([(result.label, result.record) for result in given_results(results)])


def save_all(results: Sequence[Result], folder: Path) -> int:
    """Save runs as a comparison in a folder in place of earlier results.

    The result is the number of earlier runs that were removed and not replaced.

    Raises:
        InputError: The runs cannot be written; the earlier results were not changed.

    """
    kept: dict[Path, set[str]] = {}

    def contents() -> Iterator[tuple[Path, bytes]]:
        yield folder / COMPARISON, comparison_json(results).encode()
        for number, result in enumerate(results, 1):
            inner = folder / numbered(number)
            files = result.files(inner)
            kept[inner] = files.keys() - {RECORD}
            yield from ((inner / name, content) for name, content in files.items())

    def clear() -> int:
        removed = int(clear_run(folder)) + clear_comparison(folder, keep=len(results))
        for inner, names in kept.items():
            clear_run(inner, keep=frozenset(names))
        return removed

    return write_together(contents(), clear)


def comparison_json(results: Sequence[Result]) -> str:
    """Return the records of a comparison as one JSON text."""
    runs = [{"label": result.label, **result.record} for result in results]
    return json.dumps({"schema": COMPARISON_SCHEMA, "runs": runs}, indent=2) + "\n"
