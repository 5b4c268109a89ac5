"""Bundles: zip files of runs and of the files that the runs read."""

from __future__ import annotations

import re
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from flashatlas._core import InputError, is_file
from flashatlas.files import whole_file
from flashatlas.inputs.as_read import digest_of_file, must_be_as_read
from flashatlas.results.result import Result, with_paths
from flashatlas.results.runs import given_results

INPUTS = "inputs"
"""The folder of a bundle in which the input files of its runs lie."""

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The date of every file of a bundle, so that bundles of equal content are equal files."""


def bundle(results: Sequence[Result], path: Path) -> Path:
    """Pack runs and their input files into a zip file for ``flashatlas rerun``.

    A single run lies at the root of the bundle; several runs lie in folders ``01``, ``02`` and so
    on. Traces, job files and checkpoints lie in ``inputs``, and no file is packed twice.

    Args:
        results: The runs (:meth:`Result.load`).
        path: The file to write; it appears complete, or not at all.

    Raises:
        InputError: A file that a run read is missing, has changed, or is a job file that includes
            other files.

    """
    if path.suffix != ".zip":
        raise InputError(f"{path}: a bundle is a zip file, so its name must end in .zip")
    results = given_results(results)
    inputs: dict[str, str] = {}
    for result in results:
        trace = result.record["trace"]
        _place_logs(trace, inputs)
        with_paths(result.record, lambda file: inputs.setdefault(file, _name(file, inputs)))
        if "digest" in trace and not is_file(trace["path"]):
            raise InputError("the trace was standard input or a table: there is no file to pack")
        must_be_as_read(trace)
    with tempfile.TemporaryDirectory(prefix="flashatlas-") as folder:
        root = Path(folder)
        for number, result in enumerate(results, 1):
            own = root if len(results) == 1 else root / f"{number:02d}"
            moved = with_paths(result.record, lambda file: str(root / INPUTS / inputs[file]))
            replace(result, record=moved).save(own)
        with whole_file(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
            for packed in sorted(p for p in root.rglob("*") if p.is_file()):
                add_file(archive, packed, packed.relative_to(root).as_posix())
            for source, name in sorted(inputs.items()):
                add_file(archive, Path(source), f"{INPUTS}/{name}")
    return path


def add_file(archive: zipfile.ZipFile, file: Path, name: str) -> None:
    """Put a file into an archive, without its date; mark a shell script as executable.

    Raises:
        InputError: The file cannot be read.

    """
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (0o755 if name.endswith(".sh") else 0o644) << 16
    try:
        with file.open("rb") as source, archive.open(entry, "w", force_zip64=True) as target:
            while block := source.read(1 << 20):
                target.write(block)
    except OSError as error:
        raise InputError(f"{file}: cannot be packed: {error.strerror}") from error


def _name(file: str, taken: dict[str, str]) -> str:
    """Return a file's name in the bundle: its own, with a number in front if it is taken."""
    path = Path(file)
    names = [path.name, *(f"{number}-{path.name}" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken.values())


def _place_logs(trace: Mapping[str, Any], inputs: dict[str, str]) -> None:
    """Add each log that a job file replays to ``inputs``, under its path relative to the job file.

    Raises:
            InputError: A log has changed since the run read it, or its name in the bundle is taken.

    """
    if trace["format"] != "fio":
        return
    for file, name in logs_beside(Path(trace["path"])):
        if inputs.setdefault(str(file), name) != name or _taken(inputs, file, name):
            raise InputError(f"{file}: another input of the bundle has the name {name}")
    for named in trace.get("named", ()):
        if digest_of_file(named["path"]) != named["digest"]:
            raise InputError(
                f"{named['path']}: this is not the file that the run read: its digest differs"
            )


def _taken(inputs: dict[str, str], file: Path, name: str) -> bool:
    """Return ``True`` if an input other than ``file`` has this name in the bundle."""
    return any(one != str(file) and taken == name for one, taken in inputs.items())


def logs_beside(job: Path) -> list[tuple[Path, str]]:
    """Return the logs that a job file replays, each with its path relative to the job file.

    Raises:
        InputError: The job file names an environment variable, a log that does not lie below its
            folder, or another file to include.

    """
    logs: list[tuple[Path, str]] = []
    try:
        lines = job.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{job}: cannot be packed: {error}") from error
    for number, line in enumerate(lines, 1):
        key, _, value = line.partition("=")
        if key.strip() == "read_iolog":
            logs += [_log(job, number, name) for name in re.split(r"[;#]", value)[0].split(":")]
        if re.match(r"include\s", line.strip()):
            raise InputError(
                f"{job}:{number}: `{line.strip()}` names another file, which a bundle does not "
                "contain; put the lines of that file into the job file, and run the job file"
            )
        if "${" in line:
            raise InputError(
                f"{job}:{number}: `{line.strip()}` names a variable of the environment, which a "
                "bundle does not contain; put its value there, and run the job file"
            )
    return logs


def _log(job: Path, number: int, name: str) -> tuple[Path, str]:
    """Return the path of a log, and its name relative to the job file.

    Raises:
        InputError: The log does not lie below the folder of the job file.

    """
    name = name.strip()
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or not (job.parent / path).is_file():
        raise InputError(
            f"{job}:{number}: `read_iolog={name}` does not lie beside the job file; put it "
            "there, write its path relative to the job file, and run the job file"
        )
    return job.parent / path, path.as_posix()


def summary(path: Path) -> str:
    """Return a line for the terminal with the numbers of runs and input files in a bundle."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    runs = sum(Path(name).name == "run.json" for name in names)
    inputs = sum(name.startswith(f"{INPUTS}/") for name in names)
    return f"{runs} run{'s' * (runs != 1)}, {inputs} input file{'s' * (inputs != 1)}"
