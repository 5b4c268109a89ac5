"""What runs leave out is said once."""

from flashatlas.approximations import by_note
from flashatlas.result import Result


def _run(*notes: str) -> Result:
    record = {"config": {}, "trace": {}, "oracle": {}, "approximations": list(notes)}
    return Result(record)


def test_notes_that_differ_in_their_number_are_one():
    runs = [
        _run("ECC takes no time", "175 units were left"),
        _run("ECC takes no time", "60 units were left", "2 records repeated"),
        _run("189 units were left", "6279 records repeated within 5ms"),
    ]
    assert by_note(runs) == {
        "ECC takes no time": [0, 1],
        "60 to 189 units were left": [0, 1, 2],
        "2 records repeated": [1],
        "6279 records repeated within 5ms": [2],
    }


def test_what_matters_most_comes_first():
    notes = [
        "the spare area's transfer, ECC decoding and read retries take no time",
        "something that only this run leaves out",
        "closed loop: times of the trace are ignored",
        "12 of the units read had never been written: they cost no flash operation",
    ]
    found = list(by_note([_run(*notes)]))
    assert found == [notes[3], notes[2], notes[1], notes[0]]
