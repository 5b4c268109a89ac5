"""Guessed formats: the units are printed, and the user names them if two are plausible."""

import flashatlas
import pytest
from flashatlas import Trace


@pytest.fixture
def msr(tmp_path):
    """Write forty reads in MSR's format, which names no units; they are 1 ms apart."""
    lines = [f"{128166372003061629 + n * 10_000},hm,0,Read,{n * 4096},4096,1\n" for n in range(40)]
    (tmp_path / "m.csv").write_text("".join(lines))
    return tmp_path / "m.csv"


def test_the_units_are_said_before_the_numbers(cli, msr):
    said = cli("trace", "info", str(msr)).stdout
    assert said.index("times are units of 100 ns, addresses and sizes bytes") < said.index("reads")
    said = " ".join(cli("run", "-d", "tiny", "-t", str(msr)).stdout.split())
    assert said.index("was read as msr, because its content looks like") < said.index("erases")


def test_a_run_has_a_note_unless_the_format_is_named(msr):
    def notes(**options: str) -> list[dict]:
        record = flashatlas.run("tiny", trace=msr, **options).record
        return [note for note in record["approximations"] if note["code"] == "format-guessed"]

    (note,) = notes()
    assert note["values"]["format"] == "msr" and note["values"]["path"] == str(msr)
    assert notes(format="msr") == []
    # the named format is for the replayed trace; the format of the preconditioning is guessed
    (before,) = notes(format="msr", precondition=f"trace:{msr}")
    assert before["values"]["path"] == str(msr)
    (guess,) = Trace(msr).info()["guesses"]
    assert guess["code"] == "format-guessed"
    assert Trace(msr, format="msr").info()["guesses"] == []


def test_it_asks_which_of_two_plausible_readings_is_meant(cli, tmp_path):
    """The size 65,536 may be in bytes or in sectors (32 MiB): one command may transfer either."""
    (tmp_path / "ms_bytes.trace").write_text("0.000 0 8192 4096 0\n0.400 0 1048576 65536 1\n")
    for command in (("trace", "info"), ("run", "-d", "tiny", "--trace")):
        done = cli(*command, str(tmp_path / "ms_bytes.trace"))
        assert done.returncode == 2
        for unit in ("time=0:s", "time=0:ms", "offset=2:bytes", "offset=2:sectors", "--format"):
            assert unit in " ".join(done.stderr.split()), unit
