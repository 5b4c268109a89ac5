"""Arrow values made of buffers equal pyarrow's own values, and need no import of pandas."""

import subprocess
import sys

import pyarrow as pa
import pytest
from flashatlas.results import arrow


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1, -2, 2**63 - 1],
        [1, None, 3],
        [0.5, None, float("inf")],
        [1, 2.5],
        ["", "ä", None, "long " * 100],
        [True, None, False] * 7,
        [None] * 9,
        [b"bytes"],
    ],
)
def test_values_are_those_of_pyarrow(values: list) -> None:
    made, known = arrow.column(values), pa.array(values)
    assert made.type == known.type
    assert made.equals(known)
    assert made.null_count == known.null_count
    made.validate(full=True)


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.float64(), pa.uint16(), pa.uint8()])
def test_kinds_are_as_given(kind: pa.DataType) -> None:
    assert arrow.column([3, None, 4], kind).equals(pa.array([3, None, 4], kind))
    assert arrow.column(range(3), kind).equals(pa.array(range(3), kind))
    assert arrow.scalar(7, kind) == pa.scalar(7, kind)


@pytest.mark.parametrize("large", [2**53 + 1, -(2**60) - 1])
def test_whole_numbers_are_not_rounded(large: int) -> None:
    with pytest.raises(pa.ArrowInvalid, match="outside of the range"):
        arrow.column([large, 0.5])
    assert arrow.column([2**53, 0.5]).equals(pa.array([2**53, 0.5], pa.float64()))


def test_a_run_with_a_report_does_without_pandas(tmp_path) -> None:
    pytest.importorskip("pandas")
    words = ["run", "-d", "tiny", "-w", "uniform:requests=2000,size=2KiB", "--precondition", "fill"]
    code = f"""
import sys
from flashatlas.cli import main
sys.argv = ["flashatlas", *{words}, "--out", {str(tmp_path / "run")!r}]
try:
    main()
finally:
    print("pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
    assert (tmp_path / "run" / "report.html").exists()
