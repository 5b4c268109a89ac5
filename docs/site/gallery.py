"""The reports of the gallery: small runs of the trace that comes with the package."""

from __future__ import annotations

import itertools
from pathlib import Path

import flashatlas
from flashatlas.fetch import fetch
from flashatlas.report import write_report

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "out/gallery"
SMALL = {"drive.blocks": 28, "drive.logical_pages": 90_112}
AGED = {"precondition": "steady", "fit": "compact"}


def main() -> None:
    """Make every report."""
    GALLERY.mkdir(parents=True, exist_ok=True)
    trace = fetch("demo", ROOT / "out/traces")
    report(
        "victims",
        "Victim policies on a small TLC drive",
        [
            {"label": victim, "set": {"ftl.victim": victim}}
            for victim in ("greedy", "fifo", "d-choices")
        ],
        drive="tlc-small",
        set=SMALL,
        trace=trace,
        mode="open",
        **AGED,
    )
    report(
        "log-blocks",
        "Log blocks against page mapping",
        [
            {"label": scheme, "set": {"ftl.scheme": scheme}}
            for scheme in ("fast", "last", "mast", "page")
        ],
        drive="mast-4gb",
        trace=trace,
        mode="open",
        precondition="fill",
        fit="compact",
    )
    report(
        "fio",
        "Two fio jobs on an aged drive",
        [{"label": "greedy"}, {"label": "fifo", "set": {"ftl.victim": "fifo"}}],
        drive="tlc-small",
        job=ROOT / "examples/mixed.fio",
        precondition="steady",
    )
    axes = itertools.product(
        ("greedy", "fifo", "d-choices"), ("8KiB", "32KiB", "128KiB"), (1, 2), (1, 2, 3)
    )
    report(
        "study",
        "A study of 54 runs: victim policies, caches of the map, depths, seeds",
        [
            {
                "label": f"{victim} {cache} depth {depth} seed {seed}",
                "set": {"ftl.victim": victim, "map.cache_bytes": cache},
                "depth": 4**depth,
                "seed": seed,
            }
            for victim, cache, depth, seed in axes
        ],
        drive="tlc-small",
        set={**SMALL, "map.store": "dftl"},
        workload="zipf:requests=20000,size=4KiB,theta=0.9,read=0.3",
        precondition="steady",
    )


def report(name: str, title: str, cases: list, **common: object) -> None:
    """Carry out a comparison and write its report."""
    results = flashatlas.compare(cases, **common)
    write_report(GALLERY / f"{name}.html", title, results, "make docs")
    print(f"{name}.html: {(GALLERY / f'{name}.html').stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
