"""A recording of blktrace in a file for each CPU."""

import gzip
import struct

import flashatlas
import pytest
from flashatlas import InputError, Trace
from flashatlas.results.result import Result
from flashatlas.running.bundle import bundle
from flashatlas.running.rerun import differences, rerun
from flashatlas.running.unpacking import unpack

MAGIC = 0x6561_7407
QUEUED, ISSUED = 1, 7
WRITE = 1 << 17


def event(ns: int, sector: int, size: int, action: int = ISSUED, minor: int = 0) -> bytes:
    """Return the event of a write (blktrace_api.h), with a payload of four bytes."""
    head = struct.pack("<IIQQ", MAGIC, 1, ns, sector)
    return (
        head
        + struct.pack("<IIIII", size, action | WRITE, 1, (8 << 20) | minor, 0)
        + b"\0\0\4\0pay."
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Write a file for each CPU: the requests at 1, 2, 3 and 4 us are on CPUs 0, 10, 2 and 0."""
    monkeypatch.chdir(tmp_path)
    first = event(1000, 8, 4096) + event(3500, 99, 512, QUEUED) + event(4000, 32, 4096)
    (tmp_path / "tr.blktrace.0").write_bytes(first)
    (tmp_path / "tr.blktrace.1").write_bytes(b"")  # a CPU without events
    (tmp_path / "tr.blktrace.2").write_bytes(event(3000, 24, 4096))
    (tmp_path / "tr.blktrace.10").write_bytes(event(2000, 16, 4096))
    (tmp_path / "other.blktrace.3").write_bytes(event(1, 0, 512))
    return tmp_path


CPUS = ["tr.blktrace.0", "tr.blktrace.1", "tr.blktrace.2", "tr.blktrace.10"]


def test_one_file_stands_for_all_of_its_recording(here):
    """The requests are in order of time, a microsecond apart; the queued event is no request.

    Their sectors are 8, 16, 24 and 32. The whole recording has one device.
    """
    for name in ("tr.blktrace.0", "tr.blktrace.10"):
        rows = Trace(name).to_arrow().to_pylist()
        assert [(row["time_ps"], row["offset"]) for row in rows] == [
            (n * 1_000_000, (n + 1) * 4096) for n in range(4)
        ]
    info = Trace("tr.blktrace.2").info()
    assert [part["path"] for part in info["parts"]] == CPUS
    assert (info["devices"], info["format"]) == (1, "blktrace")
    alone = Trace("cpus:tr.blktrace.2").info()
    assert (alone["requests"], alone["parts"]) == (1, [])
    assert Trace("other.blktrace.3").info()["requests"] == 1


def test_a_recording_in_a_merge_counts_as_one_part(here):
    rows = Trace("merge:tr.blktrace.0,times=2;other.blktrace.3").to_arrow().to_pylist()
    assert [row["offset"] for row in rows] == [
        4096, 1 << 20, 8192, 12288, 16384, 4096, 8192, 12288, 16384]  # fmt: skip


def test_a_run_says_and_packs_every_file(here, tmp_path_factory):
    for name in ("tr.blktrace.0", "merge:tr.blktrace.0;other.blktrace.3"):
        first = flashatlas.run("tiny", trace=name, mode="open")
        digests = [
            file["digest"]
            for part in first.record["trace"]["parts"]
            for file in part.get("files", [part])
        ]
        assert len(digests) == len(set(digests)) == 4 + name.startswith("merge:")
        made = bundle([first], here / "all.zip")
        (folder,) = unpack(made, tmp_path_factory.mktemp("elsewhere"))
        loaded = Result.load(folder)
        assert str(folder) in loaded.record["trace"]["path"]
        assert differences(loaded, rerun(loaded)) == []
    first = flashatlas.run("tiny", trace="tr.blktrace.0", mode="open")
    (here / "tr.blktrace.2").write_bytes(event(3000, 40, 4096))
    with pytest.raises(
        InputError, match=r"tr\.blktrace\.2: this is not the file that the " r"run read"
    ):
        rerun(first)


def test_a_fault_names_the_file_of_its_cpu(here):
    (here / "tr.blktrace.2").write_bytes(event(3000, 24, 4096)[:40])
    with pytest.raises(InputError, match=r"^tr\.blktrace\.2:byte 0: a truncated record"):
        Trace("tr.blktrace.0").info()
    assert Trace("tr.blktrace.0", skip_bad=1).info()["requests"] == 3
    (here / "tr.blktrace.2").write_bytes(b"no events, but something else")
    with pytest.raises(InputError, match=r"^tr\.blktrace\.2: byte 0: not a blktrace event:"):
        Trace("tr.blktrace.0").info()
    swapped = struct.pack(">I", MAGIC) + event(3000, 24, 4096)[4:]
    (here / "tr.blktrace.2").write_bytes(swapped)
    with pytest.raises(InputError, match="not the byte order of the first file"):
        Trace("tr.blktrace.0").info()
    with pytest.raises(InputError, match="does not use a file for each CPU"):
        Trace("cpus:tr.blktrace.0;tr.blktrace.10", format="msr").info()
    for cpu in CPUS:
        (here / cpu).write_bytes(b"")
    with pytest.raises(InputError, match="the trace holds no request"):
        Trace("tr.blktrace.0").info()


def test_compressed_files_stand_for_compressed_ones(here):
    for cpu in ("tr.blktrace.0", "tr.blktrace.10"):
        (here / f"{cpu}.gz").write_bytes(gzip.compress((here / cpu).read_bytes()))
    assert Trace("tr.blktrace.0.gz").info()["requests"] == 3
