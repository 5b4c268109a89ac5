"""``flashatlas crash``: the table, the exit codes, and the repetition of a failure."""

from __future__ import annotations

import json

import pytest
from conftest import ONE_IN


def test_every_power_failure_of_a_scheme_in_a_table(cli, tmp_path):
    done = cli(
        "crash",
        "--scheme",
        "page,bast",
        "--store",
        "dftl,-",
        "--geometry",
        "mini",
        "--one-in",
        str(ONE_IN),
        "--json",
        "crash.json",
    )
    assert done.returncode == 0, done.stderr
    assert "violations" in done.stdout and "power failures in" in done.stdout
    report = json.loads((tmp_path / "crash.json").read_text())
    rows = {(r["scheme"], r["store"]): r for r in report["rows"]}
    assert set(rows) == {("page", "dftl"), ("bast", "-")}
    for row in rows.values():
        # 2,800 sequences of one to four operations for each variant, and six workloads
        assert row["workloads"] > 2 * 2800 / ONE_IN and row["violations"] == 0
        assert row["cuts"] > 20_000 / ONE_IN and row["torn"] > row["cuts"] / 2
        # a cut is mounted three times, except on drives that can no longer be written
        assert 2.9 * row["cuts"] < row["mounts"] <= 3 * row["cuts"] and row["failed_parts"] > 50
        assert row["dirty"] > row["cuts"] * 0.8 and row["longest_mount"] > 2
    assert report["found"] == [] and report["plan"]["depth"] == 1


def test_depth_two_cuts_the_mounts(cli):
    args = (
        "crash",
        "--scheme",
        "block",
        "--geometry",
        "mini",
        "--workload",
        "random",
        "--steps",
        "40",
        "--json",
        "-",
    )
    one, two = (json.loads(cli(*args, "--depth", depth).stdout)["rows"] for depth in ("1", "2"))
    for shallow, deep in zip(one, two, strict=True):
        assert shallow["deeper"] == 0 and deep["deeper"] > 100
        assert deep["cuts"] == shallow["cuts"] + deep["deeper"]


def test_faults_are_switches(cli):
    args = (
        "crash",
        "--scheme",
        "page",
        "--store",
        "nvm-hybrid",
        "--geometry",
        "mini",
        "--workload",
        "map-pages",
    )
    torn = {
        faults: json.loads(cli(*args, "--faults", faults, "--json", "-").stdout)["rows"][0]["torn"]
        for faults in ("none", "torn-erase", "nvm-lines", "all")
    }
    assert torn["none"] == 0 < torn["torn-erase"] and 0 < torn["nvm-lines"] < torn["all"]


@pytest.mark.long
def test_parts_fail_by_their_switches(cli):
    args = (
        "crash",
        "--scheme",
        "mast",
        "--geometry",
        "mini",
        "--workload",
        "random,collect",
        "--json",
        "-",
    )
    switches = (
        "none",
        "torn-garbage",
        "program-failure",
        "erase-failure",
        "grown-bad",
        "factory-bad",
        "unreadable",
    )
    failed = {
        faults: sum(
            row["failed_parts"] + row["not_reached"]
            for row in json.loads(cli(*args, "--faults", faults).stdout)["rows"]
        )
        for faults in switches
    }
    # one variant of MAST and two workloads, or one workload if the drive has no block to lose; four
    # failures of each kind
    assert failed == {
        "none": 0,
        "torn-garbage": 0,
        "program-failure": 2 * 2 * 2 * 4,
        "erase-failure": 2 * 2 * 4,
        "grown-bad": 2 * 4,
        "factory-bad": 2 * 2,
        "unreadable": 2 * 2 * 2 * 4,
    }


def test_one_failure_is_run_again_by_its_identity(cli):
    for identity in (
        "page:dftl:random@mini:1:20",
        "mast.2:-:trim*50@lanes:4:30",
        "page:dram:all@mini:2799:0",
        "page:dftl:random@mini:1:40fp.50g",
        "mast:-:collect@mini:1:7fx",
        "block:-:trim@square:1:30um",
    ):
        done = cli("crash", "--rerun", identity)
        assert done.returncode == 0 and "nothing fails" in done.stdout


def test_commands_go_through_an_nvme_controller(cli):
    report = json.loads(
        cli(
            "crash",
            *("--interface", "nvme", "--scheme", "bast", "--geometry", "mini"),
            *("--one-in", str(ONE_IN), "--json", "-"),
        ).stdout
    )
    (row,) = report["rows"]
    # four workloads on two variants of BAST; each state is mounted twice
    assert (row["workloads"], row["violations"]) == (8, 0) and row["cuts"] > 2000 / ONE_IN
    assert row["mounts"] == 2 * row["cuts"] and report["plan"]["interface"] == "nvme"
    done = cli("crash", "--rerun", "page:dram:nvme-switch@mini:1:0g")
    assert done.returncode == 0 and "nothing fails" in done.stdout


@pytest.mark.long
def test_bad_names_say_which_exist(cli):
    for args, text in (
        (("--scheme", "pgae"), "did you mean `page`?"),
        (("--store", "dtfl"), "did you mean `dftl`?"),
        (("--workload", "tirm"), "did you mean `trim`?"),
        (("--faults", "torn-ersae"), "did you mean `torn-erase`?"),
        (("--interface", "nvm"), "did you mean `nvme`?"),
        (("--interface", "nvme", "--workload", "all"), "nvme-zeroes"),
        (("--interface", "nvme", "--faults", "grown-bad"), "torn-erase"),
        (("--scheme", "bast", "--store", "dftl"), "no stack has scheme bast, store dftl"),
        (("--rerun", "page:dftl:random"), "write [layers/]scheme:store:workload[*steps]@"),
        (("--rerun", "page:dftl:random@mini:1:99999"), "no such failure or cut"),
        (("--rerun", "page:dftl:random@mini:1:99999fp"), "no such failure"),
        (("--rerun", "page:dftl:all@mini:2800:1"), "the 2800 sequences are numbered from 0"),
    ):
        done = cli("crash", *args)
        assert done.returncode == 2 and text in done.stderr.replace("\n", " "), (args, done.stderr)


def test_names_explain_themselves(cli):
    shown = cli("crash", "--names").stdout
    for name in ("device", "mini", "lanes", "map-pages", "nvme-switch", "torn-once", "nvm-lines"):
        assert name in shown
