"""A bundle that somebody else made: nothing outside it is read, and its size is bounded."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flashatlas
import pytest
from flashatlas import InputError, untrusted
from flashatlas.results.result import Result
from flashatlas.running import unpacking
from flashatlas.running.bundle import bundle
from flashatlas.running.unpacking import unpack

SECRET = "root:x:0:0:secret"
"""The first line of a file outside every bundle."""

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "outside.txt"
    path.write_text(SECRET + "\n")
    return path


def packed(tmp_path: Path, **workload: str) -> Path:
    """Run a trace or a job, and return the bundle of the run."""
    result = flashatlas.run("tiny", **workload)  # type: ignore[arg-type]
    return bundle([result], tmp_path / f"{next(iter(workload))}.zip")


@pytest.fixture
def traced(tmp_path: Path) -> Path:
    trace = tmp_path / "t.spc"
    trace.write_text("".join(f"0,{8 * (i * 7 % 40)},4096,w,{i / 1000}\n" for i in range(50)))
    return packed(tmp_path, trace=str(trace))


@pytest.fixture
def job(tmp_path: Path) -> Path:
    file = tmp_path / "j.fio"
    file.write_text("[a]\nrw=randwrite\nbs=4k\nsize=64k\n")
    return packed(tmp_path, job=str(file))


def edited(
    source: Path,
    change: Change | None = None,
    files: dict[str, bytes] | None = None,
    more: dict[zipfile.ZipInfo | str, bytes] | None = None,
) -> Path:
    """Return a bundle with a changed record, with changed files, or with more files."""
    target = source.with_name("edited.zip")
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = (files or {}).get(name, old.read(name))
            if name == "run.json" and change is not None:
                record = json.loads(content)
                change(record)
                content = json.dumps(record).encode()
            new.writestr(name, content)
        for entry, content in (more or {}).items():
            new.writestr(entry, content)
    return target


def test_a_trace_outside_is_not_read(cli: Any, traced: Path, secret: Path) -> None:
    def climbing(record: dict[str, Any]) -> None:
        record["trace"]["path"] = "../" * 20 + str(secret)[1:]

    def undigested(record: dict[str, Any]) -> None:
        record["trace"]["path"] = str(secret)
        del record["trace"]["digest"]

    def before(record: dict[str, Any]) -> None:
        record["config"]["precondition"] = {"trace": str(secret)}

    changes: list[Change] = [
        lambda record: record["trace"].update(path=str(secret)),
        climbing,
        before,
        lambda record: record["config"].update(precondition={"checkpoint": str(secret)}),
    ]
    for change in changes:
        said = cli("rerun", str(edited(traced, change)))
        assert said.returncode == 2 and SECRET not in said.stderr, said.stderr
        assert f"{secret}, which is not in the bundle" in said.stderr
    said = cli("rerun", str(edited(traced, undigested)))
    assert said.returncode == 2 and "no digest of this file (trace.digest)" in said.stderr


@pytest.mark.parametrize("between", [" ", "\t"])
def test_a_job_file_includes_nothing_from_outside(
    cli: Any, job: Path, secret: Path, between: str
) -> None:
    """The record has the digest of the changed job file, so that the file is read."""
    text = f"[a]\nrw=write\nsize=64k\ninclude{between}{secret}\n".encode()
    digest = "sha256:" + hashlib.sha256(text).hexdigest()
    changed = edited(job, lambda r: r["trace"].update(digest=digest), {"inputs/j.fio": text})
    said = cli("rerun", str(changed))
    assert said.returncode == 2 and SECRET not in said.stderr
    assert f"cannot include `{secret}`: the file is not in the bundle" in said.stderr
    secret.unlink()
    gone = cli("rerun", str(changed)).stderr
    assert gone == said.stderr, "the message is the same without the file"


def test_a_job_file_reads_no_log_and_no_variable_from_outside(
    cli: Any, job: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", SECRET)
    for line, why in (
        (f"read_iolog={secret}", "is not in the bundle"),
        ("description=${SECRET}", "environment variable `SECRET` is not set"),
    ):
        text = f"[a]\nrw=write\nsize=64k\n{line}\n".encode()
        digest = "sha256:" + hashlib.sha256(text).hexdigest()
        changed = edited(job, lambda r, d=digest: r["trace"].update(digest=d),
                         {"inputs/j.fio": text})  # fmt: skip
        said = cli("rerun", str(changed))
        assert said.returncode == 2 and why in said.stderr and SECRET not in said.stderr


def test_a_run_within_a_folder_reads_nothing_else(tmp_path: Path, traced: Path) -> None:
    """The core confines the run: its opener refuses every file outside the folder."""
    (folder,) = unpack(traced, tmp_path / "in")
    result = Result.load(folder)
    assert flashatlas.rerun(result, within=folder).waf == result.waf
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        InputError, match="is not in the bundle, and a run of a bundle reads no other"
    ):
        flashatlas.rerun(result, within=tmp_path / "empty")
    (tmp_path / "empty/link.spc").symlink_to(result.record["trace"]["path"])
    result.record["trace"]["path"] = str(tmp_path / "empty/link.spc")
    with pytest.raises(InputError, match="is not in the bundle"):
        flashatlas.rerun(result, within=tmp_path / "empty")


def test_another_file_is_refused_before_anything_is_said_of_it(
    cli: Any, tmp_path: Path, traced: Path, secret: Path
) -> None:
    """The same holds in a folder, although a folder is not confined."""
    (folder,) = unpack(traced, tmp_path / "in")
    record = json.loads((folder / "run.json").read_text())
    record["trace"]["path"] = str(secret)
    (folder / "run.json").write_text(json.dumps(record))
    said = cli("rerun", str(folder))
    assert said.returncode == 2 and "this is not the file that the run read" in said.stderr
    assert SECRET not in said.stderr
    record["trace"]["path"] = "/dev/zero"
    (folder / "run.json").write_text(json.dumps(record))
    assert "/dev/zero: this is not a file" in cli("rerun", str(folder)).stderr


def entry(name: str, mode: int = 0o100644) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.external_attr = mode << 16
    return made


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (entry("../climbs"), "`../climbs` leads out of the bundle"),
        (entry("inputs/../../climbs"), "leads out of the bundle"),
        (entry("/absolute"), "`/absolute` leads out of the bundle"),
        (entry("inputs\\..\\climbs"), "leads out of the bundle"),
        (entry("inputs/link", 0o120777), "`inputs/link` is a link or a device"),
        (entry("inputs/pipe", 0o010644), "is a link or a device"),
        (entry("run.json"), "File exists"),
    ],
)
def test_what_is_no_file_of_a_bundle_is_refused(
    cli: Any, tmp_path: Path, traced: Path, what: zipfile.ZipInfo, why: str
) -> None:
    with pytest.warns(UserWarning) if what.filename == "run.json" else _nothing():
        changed = edited(traced, more={what: b"/etc/passwd"})
    said = cli("rerun", str(changed))
    assert said.returncode == 2 and why in said.stderr, said.stderr
    assert not list(tmp_path.rglob("climbs"))


def _nothing() -> Any:
    from contextlib import nullcontext  # noqa: PLC0415

    return nullcontext()


def test_a_small_bundle_does_not_become_a_large_folder(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four MiB of zeros in a bundle of some KiB, where one MiB is allowed."""
    monkeypatch.setattr(untrusted, "UNPACKED_MAX", 1 << 20)
    small = tmp_path / "small.zip"
    with zipfile.ZipFile(small, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run.json", bytes(4 << 20))
    said = cli("rerun", str(small)).stderr
    assert f"{small.stat().st_size} bytes that unpack to {4 << 20}" in said
    with pytest.raises(InputError, match=f"may unpack to at most {1 << 20} bytes"):
        unpack(small, tmp_path / "out")
    assert not (tmp_path / "out").exists(), "nothing was unpacked"
    monkeypatch.setattr(unpacking, "FILES_MAX", 2)
    with zipfile.ZipFile(small, "w") as archive:
        for number in range(3):
            archive.writestr(str(number), b"")
    with pytest.raises(InputError, match="3 files, but a bundle has at most 2"):
        unpack(small, tmp_path / "out")


def test_a_file_that_declares_less_than_it_holds_ends_there(tmp_path: Path) -> None:
    """A file of 4 MiB declares 100 bytes: at most 100 bytes come out, and the checksum differs."""
    path = tmp_path / "lie.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run.json", bytes(4 << 20))
    content = bytearray(path.read_bytes())
    for at in (content.find(b"PK\x03\x04") + 22, content.find(b"PK\x01\x02") + 24):
        content[at : at + 4] = (100).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a bundle: Bad CRC-32"):
        unpack(path, tmp_path / "out")
    assert (tmp_path / "out/run.json").stat().st_size <= 100


def broken(path: Path, local: int, central: int, value: int) -> Path:
    """Return a zip file in which two bytes of both headers of its first file are changed."""
    content = bytearray(path.read_bytes())
    for magic, at in ((b"PK\x03\x04", local), (b"PK\x01\x02", central)):
        begin = content.find(magic) + at
        content[begin : begin + 2] = value.to_bytes(2, "little")
    target = path.with_name("broken.zip")
    target.write_bytes(content)
    return target


def test_a_damaged_bundle_is_bad_input(cli: Any, tmp_path: Path, traced: Path) -> None:
    """Fields of the zip format (APPNOTE 4.4): flags at 6 and 8, the method at 8 and 10."""
    for local, central, value, why in (
        (6, 8, 1, "is encrypted; a bundle has only files without a password"),
        (8, 10, 99, "has compression method 99; it must be 0 (stored) or 8 (deflate)"),
        (8, 10, 12, "has compression method 12"),
    ):
        said = cli("rerun", str(broken(traced, local, central, value)))
        assert said.returncode == 2 and why in said.stderr, said.stderr
    content = bytearray(traced.read_bytes())
    content[80:120] = bytes(40)
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(content)
    said = cli("rerun", str(damaged))
    assert said.returncode == 2 and "not a bundle: " in said.stderr
    with pytest.raises(zlib.error), zipfile.ZipFile(damaged) as archive:
        archive.read(archive.namelist()[0])
    damaged.write_bytes(content[: len(content) // 2])
    assert "not a bundle: File is not a zip file" in cli("rerun", str(damaged)).stderr
