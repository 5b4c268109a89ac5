"""The hardware lookup engine (``papers/3-lpmt``)."""

from __future__ import annotations

from pathlib import Path

from flashatlas.reproduce.protocol import Experiment, ExperimentOption

HELP = """\
Compute tables III to VI and figures 6 and 8 of the hardware lookup paper (LPMT).

Every table is marked as derived, reproduced, calibrated, or not reproducible without the
original trace. Beyond the paper it runs a sweep of banks, ways, hash functions and orders against a
flat map, and the engine in a drive.

For example: `flashatlas reproduce lpmt --out out/lpmt`; with the traces of the paper
`flashatlas reproduce lpmt --whole /data/spc --no-sweep`
"""

EXPERIMENT = Experiment(
    name="lpmt",
    paper="3-lpmt",
    help=HELP,
    options=(
        ExperimentOption(
            "sweep", bool, True, "Sweep banks, ways, hash functions and orders on every trace."
        ),
        ExperimentOption(
            "whole",
            Path | None,
            None,
            "Folder of whole traces of the paper (Financial1.spc, WebSearch1.spc.bz2, hm_0.csv.gz "
            "…), for tables III to VI and figure 8 of each.",
        ),
        ExperimentOption(
            "limit", int | None, None, "Number of requests after which each run ends.", least=1
        ),
    ),
)
