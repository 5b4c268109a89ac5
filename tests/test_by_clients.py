"""`reproduce --served`: the same load in a simulation, and from a real fio to a served drive."""

from __future__ import annotations

import json
import shutil

import pytest
from drawn import LEFT, drawn
from flashatlas import InputError, plug, reproduce
from flashatlas.reproduce.served import ByClients, Plan, Served

pytestmark = pytest.mark.skipif(
    shutil.which("nbdkit") is None or shutil.which("fio") is None,
    reason="nbdkit or fio is not installed (make system-tests)",
)
taken = pytest.mark.skipif("clients" not in drawn(), reason=LEFT)

SMALL = {
    "drive": "tiny",
    "served": {
        "set": ["cache.mode=write-through"],
        "slower": 20,
        "fio": "size=512k\n[fill]\nrw=write\nbs=64k\n[measured]\nstonewall\nrw=randread\n"
        "bs=2k\niodepth={depth}\nnumber_ios=200\n",
        "load": [{"name": "one", "depth": 1}, {"name": "eight", "depth": 8}],
        "stack": [{"name": "fast", "set": []}, {"name": "slow", "set": ["timing.t_read=250us"]}],
        "gain": [{"of": "fast", "over": "slow", "published": "by hand"}],
        "note": "A read of the slow drive takes ten times as long to sense.",
    },
}


def experiment(name: str) -> ByClients:
    return ByClients(**vars(next(e for e in reproduce.EXPERIMENTS if e.name == name)))


@taken
def test_reality_is_what_was_simulated():
    told = []
    made = Plan(SMALL).carry_out(progress=lambda *step: told.append(step))
    assert isinstance(made, Served) and len(made.results) == 8
    assert all(result.violations == 0 for result in made.results)
    for pair in made.pairs:
        # the drive is twenty times slower, so a late wake-up costs little (more on a busy machine).
        # With eight reads at a time, chance decides how many of the 200 reads wait for the same die
        most = 1.05 if pair.load == "one" else 1.25
        assert 0.2 < pair.served / pair.simulated < most, pair
        assert pair.late["p50"] < 20_000_000
        served = pair.results[1].record
        assert served["host"]["reads"] >= 200 and served["served"]["time"] == 20
    # a page of 2 KiB: 25 or 250 us, 51 us on the channel, one die at work
    one = made.of("one", "slow").simulated / made.of("one", "fast").simulated
    assert one == pytest.approx((25 + 51.2) / (250 + 51.2), rel=0.1)
    gains = {row[0]: row for row in made.tables()[1].rows}
    assert gains["one"][2] == "by hand" and float(gains["one"][3]) == pytest.approx(
        1 / one, abs=0.01
    )
    assert [step[1] for step in told] == ["simulated", "served"] * 4
    page = experiment("hard").page(made, "flashatlas reproduce hard --served")
    assert "Simulated and served" in page and SMALL["served"]["note"] in page
    assert json.loads(json.dumps(made.to_json()))["pairs"][0]["load"] == "one"


@taken
@pytest.mark.skipif(plug.missing() is not None, reason=str(plug.missing()))
def test_a_real_kernel_sends_two_flushes_for_each_fsync():
    planned = experiment("nvm-map").plan()
    said = planned.experiment["served"]
    said["load"] = [{**said["load"][0], "operations": 60}]
    said["stack"] = [said["stack"][0]]
    said["gain"] = []
    (pair,) = planned.carry_out().pairs
    simulated, served = (result.record["host"]["flushes"] for result in pair.results)
    assert simulated == 120
    # each call sends two FLUSHes; mkfs, mount and umount send more, and the kernel decides how many
    assert served >= 120
    assert 0 < pair.served < 1.05 * pair.simulated


def test_what_cannot_be_served_is_said(cli, tmp_path):
    done = cli("reproduce", "mast", "--served")
    assert done.returncode == 2 and "mast has nothing to serve" in done.stderr
    with pytest.raises(InputError, match="real clients do not repeat exactly"):
        experiment("hard").plan().carry_out(kept=experiment("hard").kept(tmp_path, "local"))
    broken = {**SMALL, "served": {**SMALL["served"], "fio": "[measured]\nrw=sideways\n"}}
    with pytest.raises(InputError):
        Plan(broken).carry_out()
