"""Fingerprints of examples: a hash of all flash operations with their times, and of the record.

``make fingerprints`` shows which examples moved since ``tests/fingerprints.csv`` was written, and
``make fingerprints WRITE=1`` writes it anew. A change of that file is a change of results: it is
reviewed line by line, and the commit says why.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import flashatlas
from flashatlas.results.result import results_of

FILE = Path(__file__).with_name("fingerprints.csv")
COLUMNS = ("example", "operations", "trajectory", "record")

BESIDE_RESULTS = ("config_hash", "random_streams")
"""Keys of a record that are compared here in addition to its results."""

LOG_DRIVE = ["drive.blocks=600", "drive.logical_pages=32000"]
LOG_BLOCKS = ["ftl.log_blocks=40"]
PAGE_DRIVE = ["drive.blocks=24", "drive.logical_pages=80000"]
UFS_DRIVE = ["drive.blocks=96", "drive.logical_pages=1048576", "map.cache_bytes=128KiB"]

MIXED = "mixed:requests=3000,read=0.3,sizes=2KiB/4KiB/16KiB,flush_every=50,trim=0.02"
HOT_COLD = "hotcold:requests=6000,size=4KiB,read=0.2,trim=0.02,flush_every=100,range=0.5"
WRITES = "uniform:requests=12000,size=4KiB"

LARGE = 200_000_000_000
"""Bytes of a drive that is run steady: at the end of a run, an empty drive is read unit by unit."""

OF_CLASSIFIERS = {
    "address": ["ftl.streams=2"],
    "dac": ["ftl.streams=3"],
    "two-lru": ["ftl.streams=2"],
    "sepbit": ["drive.logical_pages=30000"],
    "midas": ["drive.logical_pages=20000", "ftl.midas_epoch=1", "ftl.midas_sample=1"],
}
"""Settings that give a classifier something to choose between."""

OF_GENERATORS = {
    "desktop": {
        "workload": "desktop:requests=500,size=2KiB,hot_bytes=64KiB,file_size=16KiB,file_requests=4"
    },
    "ext4-sync": {"drive": "ufs-128gb", "workload": "ext4-sync:operations=60", "depth": 1},
    "mixed": {"workload": "mixed:requests=500,sizes=2KiB/4KiB"},
}
"""Arguments that a generator needs if a number and a size of requests do not suffice."""


def examples() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a name and the arguments of :func:`flashatlas.run` for each part of the registries."""
    known = flashatlas.registries()
    kinds = (
        "schemes",
        "maps",
        "caching",
        "victims",
        "classifiers",
        "layers",
        "generators",
        "drives",
    )
    names = {kind: [entry["name"] for entry in known[kind]] for kind in kinds}
    for scheme in names["schemes"]:
        own = [f"ftl.scheme={scheme}", *LOG_DRIVE]
        own += [] if scheme in ("page", "block") else LOG_BLOCKS
        for label, workload in (("mixed", MIXED), ("hot and cold", HOT_COLD)):
            run = {"drive": "mast-4gb", "set": own, "workload": workload, "precondition": "fill"}
            yield f"scheme {scheme}, {label}", run
    for store in names["maps"]:
        own = [f"map.store={store}", *PAGE_DRIVE]
        for label, workload in (("mixed", MIXED), ("hot and cold", HOT_COLD)):
            run = {"drive": "tlc-small", "set": own, "workload": workload, "precondition": "fill"}
            yield f"store {store}, {label}", run | {"depth": 8}
    for part, kind, workload in (
        ("victim", "victims", WRITES),
        ("classifier", "classifiers", HOT_COLD),
    ):
        for name in names[kind]:
            own = [f"ftl.{part}={name}", *PAGE_DRIVE, *OF_CLASSIFIERS.get(name, [])]
            run = {"drive": "tlc-small", "set": own, "workload": workload}
            yield f"{part} {name}", run | {"precondition": "fill", "depth": 8}
    for policy in names["caching"]:
        own = ["map.store=demand", "map.cache_bytes=128KiB", f"map.policy={policy}", *PAGE_DRIVE]
        reads = "mixed:requests=3000,read=0.8,sizes=4KiB/256KiB"
        run = {"drive": "tlc-small", "set": own, "workload": reads, "precondition": "fill"}
        yield f"caching {policy}", run | {"depth": 8}
    stacks = [[name] for name in names["layers"]]
    stacks += [["hard", "hpb-host"]]
    for stack in stacks:
        own = [f"layers={','.join(stack)}", *UFS_DRIVE]
        own += ["hpb.host_bytes=9MiB"] if "hpb-host" in stack else []
        workload = "uniform:requests=6000,size=4KiB,read=0.6,range=0.5,flush_every=64"
        run = {"drive": "ufs-128gb", "set": own, "workload": workload, "precondition": "fill"}
        yield f"layers {'+'.join(stack)}", run | {"depth": 4}
    for name in names["generators"]:
        run = {"drive": "tiny", "workload": f"{name}:requests=500,size=2KiB"}
        yield f"generator {name}", run | OF_GENERATORS.get(name, {})
    for drive in names["drives"]:
        run = {"drive": drive, "workload": "mixed:requests=1000,read=0.4,sizes=4KiB/8KiB"}
        if flashatlas.Drive(drive).layout["exported_bytes"] > LARGE:
            run["precondition"] = "steady"
        yield f"drive {drive}", run
    yield "steady state", {"drive": "tlc-small", "workload": HOT_COLD, "precondition": "steady"}


def of(result: flashatlas.Result) -> tuple[str, str, str]:
    """Return operations, trajectory and record of one result, in the form of the file."""
    found = result.record["fingerprint"]
    record = {
        key: value for key, value in results_of(result.record).items() if key != "fingerprint"
    }
    record |= {key: result.record[key] for key in BESIDE_RESULTS}
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]
    return str(found["operations"]), found["trajectory"], digest


def compute() -> dict[str, tuple[str, str, str]]:
    """Return the fingerprint of every example."""
    cases = dict(examples())
    results = flashatlas.compare(list(cases.values()), fingerprint=True)
    return dict(zip(cases, map(of, results), strict=True))


def expected() -> dict[str, tuple[str, str, str]]:
    """Return the fingerprints in the file, by example."""
    with FILE.open(newline="") as file:
        return {
            row["example"]: (row["operations"], row["trajectory"], row["record"])
            for row in csv.DictReader(file)
        }


def moved(was: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return a line for each example that moved, is new or is gone."""
    parts = COLUMNS[1:]
    lines = [f"{name}: new" for name in now if name not in was]
    lines += [f"{name}: gone" for name in was if name not in now]
    for name in now.keys() & was.keys():
        changed = [p for p, a, b in zip(parts, was[name], now[name], strict=True) if a != b]
        lines += [f"{name}: {', '.join(changed)}"] if changed else []
    return sorted(lines)


def main() -> None:
    """Print the examples that moved; with ``--write``, write the file anew."""
    now = compute()
    lines = moved(expected() if FILE.exists() else {}, now)
    if "--write" in sys.argv[1:]:
        with FILE.open("w", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(COLUMNS)
            rows.writerows((name, *values) for name, values in now.items())
    sys.stdout.write("".join(f"{line}\n" for line in lines or [f"{len(now)} examples: none moved"]))
    sys.exit(1 if lines and "--write" not in sys.argv[1:] else 0)


if __name__ == "__main__":
    main()
