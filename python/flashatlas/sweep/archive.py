"""A study as an archive: one file with everything that is needed to carry it out again.

::

    README.md                description of the archive
    repeat.sh                carries the study out again, and compares
    MANIFEST.json            digests of all files, inputs and results; build of FlashAtlas
    study.toml               the study; its paths lead into inputs/
    inputs/                  traces, job files and drive files
    plugins/                 files of added parts
    results/                 the store, with the runs of this study
    results.csv, .parquet    a row for each run
    page.html                the page of the study
    environment/             requirements.txt, build.json, Containerfile, Cargo.lock if there is one
    more/                    added files: figures, scripts, a wheel

The study in the archive is planned once more before it is packed. Its runs must have the keys of
the runs that were carried out; otherwise a path in the archive leads to another file.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import os
import platform
import re
import shlex
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from flashatlas import parts
from flashatlas._core import InputError, is_file, trace_files, trace_with_files, whole_trace
from flashatlas.files import digest_of_content, whole_file
from flashatlas.results.frame import as_file
from flashatlas.results.result import with_paths
from flashatlas.running.api import build
from flashatlas.running.bundle import add_file, logs_beside
from flashatlas.sweep import results, rows
from flashatlas.sweep.page import write_page
from flashatlas.sweep.plan import Plan, planned
from flashatlas.sweep.store import MARK, Store
from flashatlas.sweep.study import load

SCHEMA = "flashatlas.archive/1"
INPUTS, PLUGINS, MORE, ENVIRONMENT = "inputs", "plugins", "more", "environment"
EXTRAS = ("report", "study")
"""Extras of FlashAtlas that a study needs beside its core."""

REPEAT = """#!/bin/sh
# Carries the study out again, and compares: exit code 0 if no number moved.
#
#   ./repeat.sh [JOBS]                          in a new environment, made in .venv
#   FLASHATLAS=flashatlas ./repeat.sh [JOBS]    with the installed command
#   podman build -f {environment}/Containerfile -t artifact . && podman run --rm artifact
set -eu
cd "$(dirname "$0")"
if [ -z "${{FLASHATLAS:-}}" ]; then
  python3 -m venv .venv
  .venv/bin/python -m pip install --quiet -r {environment}/requirements.txt
  FLASHATLAS=.venv/bin/flashatlas
fi
again=$(mktemp -d again-XXXXXX)
"$FLASHATLAS" sweep study.toml --store "$again" ${{1:+--jobs "$1"}}{plugins}
"$FLASHATLAS" diff results:{name} "$again":{name} --of '*'
"""

CONTAINERFILE = """# The artifact in a container, from Debian's packages: in its folder
#   podman build -f {environment}/Containerfile -t artifact . && podman run --rm artifact
FROM docker.io/library/debian:{debian}-slim
RUN apt-get update -q && apt-get install -qy --no-install-recommends \\
    python3 python3-venv ca-certificates && rm -rf /var/lib/apt/lists/*
COPY . /artifact
WORKDIR /artifact
RUN python3 -m venv .venv && .venv/bin/python -m pip install --no-cache-dir -q -r \\
    {environment}/requirements.txt
ENV FLASHATLAS=.venv/bin/flashatlas
CMD ["sh", "repeat.sh"]
"""

DEBIAN = "bookworm"


def archive(
    plan: Plan,
    store: Store,
    path: Path,
    command: str,
    *,
    traces: bool = True,
    more: Sequence[Path] = (),
) -> Path:
    """Pack a study that was carried out.

    Args:
        plan: The study with its runs.
        store: The store that has the runs.
        path: The file, ``.zip``; it appears whole or not at all.
        command: The command that carried the study out.
        traces: ``True`` if traces are packed; their digests always are.
        more: Further files, such as figures; ``repeat.sh`` installs a wheel among them.

    Raises:
        InputError: A run is missing, a file cannot be packed, or the study in the archive would
            differ.

    """
    missing = [run.label for run in plan.runs if not store.has(run.key)]
    if missing:
        raise InputError(
            f"--archive: {len(missing)} runs of {len(plan.runs)} are missing, such as "
            f"`{missing[0]}`: an archive needs every run"
        )
    with tempfile.TemporaryDirectory(prefix="flashatlas-") as folder:
        root = Path(folder)
        inputs = _pack_inputs(plan, root, traces)
        plugins = [_placed(file, root / PLUGINS) for file in parts.files()]
        added = [_placed(file, root / MORE) for file in more]
        own = _write_study(plan, inputs, root)
        kept, digests = _copy_store(own, store, root / "results", inputs)
        noted = results.noted(kept, own.study.name)
        runs = results.frame_of(kept, noted)
        for name in ("results.csv", "results.parquet"):
            (root / name).write_bytes(as_file(runs.table, name))
        write_page(root / "page.html", runs, noted, kept)
        _write_environment(root, added)
        _write_repeat(root, plan.study.name, plugins)
        (root / "README.md").write_text(_readme(plan, inputs), encoding="utf-8")
        _write_manifest(root, plan, digests, inputs, command)
        with whole_file(path) as temporary, zipfile.ZipFile(temporary, "w") as packed:
            for file in sorted(p for p in root.rglob("*") if p.is_file()):
                add_file(packed, file, file.relative_to(root).as_posix())
    return path


def _pack_inputs(plan: Plan, root: Path, traces: bool) -> dict[Path, dict[str, Any]]:
    """Link the runs' input files into the archive, and return the entry of each file by its path.

    Files are linked and not copied, because traces may be larger than this machine's memory.
    """
    found: dict[Path, dict[str, Any]] = {}
    for kind, file in _read_by(plan):
        if file in found:
            continue
        logs = logs_beside(file) if kind == "job" else []
        place = _placed(file, root / INPUTS)
        found[file] = _input(place, root, kind, packed=traces or kind != "trace")
        for log, name in logs:
            beside = place.parent / name
            if not beside.exists():
                beside.parent.mkdir(parents=True, exist_ok=True)
                beside.symlink_to(log.resolve())
            if beside.resolve() != log.resolve():
                raise InputError(f"{log}: another input of the archive has the name {name}")
            found[log.resolve()] = _input(beside, root, "log", packed=True)
    return found


def _input(place: Path, root: Path, kind: str, *, packed: bool) -> dict[str, Any]:
    """Return the entry of an input that is already in the archive."""
    return {
        "name": place.relative_to(root).as_posix(),
        "kind": kind,
        "bytes": place.stat().st_size,
        "digest": _digest(place),
        "packed": packed,
    }


def _placed(file: Path, folder: Path) -> Path:
    """Link a file into a folder under its own name, or into a numbered folder inside."""
    more = (folder / str(number) for number in itertools.count(2))
    folders = itertools.chain([folder], more)
    place = next(one / file.name for one in folders if not (one / file.name).exists())
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(file.resolve())
    return place


def _read_by(plan: Plan, *, resolved: bool = True) -> Iterator[tuple[str, Path]]:
    """Yield the files that the runs read, with their kinds; ``resolved`` follows links."""
    for run in plan.runs:
        spec = run.spec
        named = [("job", spec["job"])]
        trace = spec["trace"] or "-"
        named += [("trace", file) for file in _files_of(trace)] if is_file(trace) else []
        named += [("drive", spec["drive"])] if spec["drive_toml"] is not None else []
        begin = spec["precondition"]
        for kind, file in begin.items() if isinstance(begin, Mapping) else []:
            named += [(kind, one) for one in (_files_of(file) if kind == "trace" else [file])]
        for kind, file in named:
            if file is not None:
                path = Path(os.path.abspath(file))
                yield kind, path.resolve() if resolved else path


def _files_of(trace: str) -> list[str]:
    """Return the files of a trace, with the files of a recording that lie beside it."""
    return trace_files(whole_trace(trace))


def _write_study(plan: Plan, inputs: Mapping[Path, Mapping[str, Any]], root: Path) -> Plan:
    """Return the study with its paths in the archive, and the same runs as before."""
    study = plan.study
    if study.source is None:
        raise InputError("--archive: the study is not a file")
    base = study.source.resolve().parent

    def moved(found: re.Match[str]) -> str:
        quote, text = found[1], found[2]
        kind, colon, rest = text.partition(":")
        for before, literal in (("", text), (f"{kind}:" if colon else "", rest)):
            try:
                own = [inputs.get((base / one).resolve()) for one in trace_files(literal) if one]
            except InputError:
                continue
            if own and all(one is not None for one in own):
                names = [one["name"] for one in own if one is not None]
                return f"{quote}{before}{trace_with_files(literal, names)}{quote}"
        return found[0]

    text = re.sub(r"([\"'])((?:(?!\1)[^\n\\])*)\1", moved, study.text)
    if not re.search(r"^name\s*=", text, re.MULTILINE):
        text = f"name = {json.dumps(study.name)}\n{text}"
    file = root / "study.toml"
    file.write_text(text, encoding="utf-8")
    place = f"--archive: {study.source}, with its paths in the archive,"
    try:
        own = planned(load(file))
    except InputError as error:
        raise InputError(f"{place} is not a study: {error}") from error
    beyond = [path for _, path in _read_by(own, resolved=False) if not path.is_relative_to(root)]
    if beyond:
        raise InputError(f"{place} still reads {beyond[0]}: write its path without escapes")
    if {run.key for run in own.runs} != {run.key for run in plan.runs}:
        raise InputError(f"{place} has other runs than the store")
    # the note of the study must name no folder of this machine
    return replace(own, study=replace(own.study, source=None))


def _copy_store(
    plan: Plan, store: Store, folder: Path, inputs: Mapping[Path, Mapping[str, Any]]
) -> tuple[Store, dict[str, str]]:
    """Return the store of the archive, and the digest of each run's results by its key."""
    folder.mkdir()
    shutil.copyfile(store.root / MARK, folder / MARK)
    kept, digests = Store.open(folder), {}
    for run in plan.runs:
        result, entry = store.load(run.key), store.entry(run.key) or {}
        record = with_paths(result.record, lambda file: _moved(Path(file), inputs, folder.parent))
        kept.put(run.key, replace(result, record=record), entry["identity"])
        digests[run.key] = record.get("results_digest", "")
    results.note(plan, kept)
    rows.read(kept)
    shutil.rmtree(folder / "unfinished", ignore_errors=True)
    return kept, digests


def _moved(file: Path, inputs: Mapping[Path, Mapping[str, Any]], root: Path) -> str:
    """Return the place in the archive of a record's file; other files stay where they are."""
    place = inputs.get(file.resolve())
    return str(file) if place is None else str(root / place["name"])


def _write_environment(root: Path, added: Sequence[Path]) -> None:
    folder = root / ENVIRONMENT
    folder.mkdir()
    wheels = [file for file in added if file.suffix == ".whl"]
    own = [f"./{file.relative_to(root).as_posix()}" for file in wheels]
    if not any(file.name.startswith("flashatlas-") for file in wheels):
        own.append(f"flashatlas=={build()['version']}")
    lines = [*own, *_pinned()]
    (folder / "requirements.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    made = {**build(), "python": platform.python_version(), "platform": platform.platform()}
    (folder / "build.json").write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    recipe = CONTAINERFILE.format(environment=ENVIRONMENT, debian=DEBIAN)
    (folder / "Containerfile").write_text(recipe, encoding="utf-8")
    lock = Path(__file__).resolve().parents[3] / "Cargo.lock"
    if lock.is_file():
        shutil.copyfile(lock, folder / "Cargo.lock")


def _pinned() -> list[str]:
    """Return the versions of all packages that studies need, as pip writes them."""
    found: dict[str, str] = {}

    def follow(name: str, extras: tuple[str, ...]) -> None:
        for text in importlib.metadata.requires(name) or ():
            needed, _, marker = text.partition(";")
            wanted = re.findall(r"extra\s*==\s*[\"']([^\"']+)[\"']", marker)
            if wanted and not set(wanted) & set(extras):
                continue
            match = re.match(r"([\w.-]+)(?:\[([^\]]*)\])?", needed.strip())
            if match is None or match[1].lower().replace("_", "-") in found:
                continue
            try:
                found[match[1].lower().replace("_", "-")] = importlib.metadata.version(match[1])
            except importlib.metadata.PackageNotFoundError:
                continue  # the package is for another system
            follow(match[1], tuple((match[2] or "").split(",")))

    follow("flashatlas", EXTRAS)
    found.pop("flashatlas", None)
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def _write_repeat(root: Path, name: str, plugins: Sequence[Path]) -> None:
    named = (shlex.quote(file.relative_to(root).as_posix()) for file in plugins)
    given = "".join(f" --plugin {file}" for file in named)
    (root / ".containerignore").write_text("again-*\n.venv\n", encoding="utf-8")
    file = root / "repeat.sh"
    text = REPEAT.format(environment=ENVIRONMENT, name=shlex.quote(name), plugins=given)
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)


def _readme(plan: Plan, inputs: Mapping[Path, Mapping[str, Any]]) -> str:
    absent = [one for one in inputs.values() if not one["packed"]]
    wanted = "".join(f"- `{one['name']}`: {one['bytes']:,} bytes, {one['digest']}\n"
                     for one in absent)  # fmt: skip
    return (
        f"# {plan.study.title or plan.study.name}\n\n"
        f"{len(plan.runs)} runs of FlashAtlas {build()['version']} (sources "
        f"{build()['sources']}). `page.html` shows them; `results.csv` has a row for each run.\n\n"
        "`./repeat.sh` carries the study out again and compares; it ends with exit code 0 if no "
        "number moved. The same build gives the same bytes.\n"
        + (
            f"\nThese files are not packed; put them into these places first:\n\n{wanted}"
            if absent
            else ""
        )
    )


def _write_manifest(
    root: Path,
    plan: Plan,
    digests: Mapping[str, str],
    inputs: Mapping[Path, Mapping[str, Any]],
    command: str,
) -> None:
    runs = [
        {"key": run.key, "label": run.label, "axes": dict(run.axes),
         "results_digest": digests[run.key]}
        for run in plan.runs
    ]  # fmt: skip
    for one in inputs.values():
        if not one["packed"]:
            (root / one["name"]).unlink()
    known = {one["name"]: one["digest"] for one in inputs.values()}
    files = {
        (name := file.relative_to(root).as_posix()): known.get(name) or _digest(file)
        for file in sorted(p for p in root.rglob("*") if p.is_file())
    }
    content = {
        "schema": SCHEMA,
        "study": plan.study.name,
        "command": command,
        "build": build(),
        "inputs": list(inputs.values()),
        "runs": runs,
        "files": files,
    }
    (root / "MANIFEST.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as source:
            return digest_of_content(source)
    except OSError as error:
        raise InputError(f"{file}: cannot be packed: {error.strerror}") from error
