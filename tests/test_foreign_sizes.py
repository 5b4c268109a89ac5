"""Normal sizes of the requests of an MQSim flow."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import NormalDist

import flashatlas
import pytest
from flashatlas import InputError
from flashatlas.foreign import job_file
from test_foreign import scenario

SECTOR = 512


def job(folder: Path, average: int, deviation: int, **other: str) -> str:
    """Return the job of a flow with normal sizes."""
    sizes = {
        "Request_Size_Distribution": "NORMAL",
        "Average_Request_Size": str(average),
        "Variance_Request_Size": str(deviation),
        "Generated_Aligned_Addresses": "false",
    }
    made = job_file(scenario(folder / "workload.xml", {**sizes, **other}))
    assert made is not None
    return made.text


def shares(text: str) -> dict[int, int]:
    """Return the sectors of ``bssplit`` with their percents."""
    (line,) = [line for line in text.splitlines() if line.startswith("bssplit=")]
    pairs = (one.split("/") for one in line.removeprefix("bssplit=").split(":"))
    return {int(size) // SECTOR: int(share) for size, share in pairs}


def test_shares_follow_the_normal_distribution_rounded_up(tmp_path):
    found = shares(job(tmp_path, 8, 2))
    assert sum(found.values()) == 100
    normal = NormalDist(8, 2)
    for size, share in found.items():
        exact = 100 * (normal.cdf(size) - normal.cdf(size - 1))
        assert abs(share - exact) <= 1, size
    # rounding up adds half a sector to the mean
    mean = sum(size * share for size, share in found.items()) / 100
    assert mean == pytest.approx(8.5, abs=0.05)


def test_a_request_has_at_least_a_sector(tmp_path):
    found = shares(job(tmp_path, 2, 4))
    assert min(found) == 1
    # all draws of one and less
    assert found[1] == pytest.approx(100 * NormalDist(2, 4).cdf(1), abs=1)


def test_a_flow_of_normal_sizes_plays_its_requests(tmp_path):
    text = job(tmp_path, 8, 2, Read_Percentage="0", Total_Requests_To_Generate="2000")
    (tmp_path / "flow.fio").write_text(text)
    done = flashatlas.run("tlc-small", job=tmp_path / "flow.fio", precondition="fill")
    (one,) = done.jobs["jobs"]
    # as many requests as bytes allow: the sum of 2,000 sizes varies by 90 sectors, 11 requests
    assert one["write"]["ios"] == pytest.approx(2000, abs=40)
    mean = one["write"]["bytes"] / one["write"]["ios"] / SECTOR
    assert mean == pytest.approx(8.5, abs=0.2)


def test_sizes_without_deviation_are_fixed(tmp_path):
    text = job(tmp_path, 8, 0)
    assert "bs=4096" in text and "bssplit" not in text
    assert f"io_size={4000 * 8 * SECTOR}" in text
    spread = job(tmp_path, 8, 2)
    exact = sum(size * share for size, share in shares(spread).items()) * 4000 // 100 * SECTOR
    assert math.isclose(int(spread.partition("io_size=")[2].split()[0]), exact, rel_tol=1e-4)


def test_sizes_that_mqsim_cannot_have_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"below 2\^32 sectors"):
        job(tmp_path, 8, 10**400)
