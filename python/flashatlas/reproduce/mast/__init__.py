"""MAST against FAST, LAST and others (``papers/1-mast``)."""

from __future__ import annotations

from flashatlas.reproduce.protocol import Experiment, ExperimentOption

HELP = """\
Compute figures 2, 3 and 4 of the MAST paper.

The tables have utilisation of the log, merges by class, and efficiency over FAST.

The schemes are FAST, LAST and MAST, and for reference BAST, FASTer, Superblock and page mapping,
each with 256 log blocks, or 256 spare blocks, on a 4 GB drive. Applications are recorded traces
if they are found, and generated workloads otherwise.

For example: `flashatlas reproduce mast --sensitivity --out out/mast`
"""

EXPERIMENT = Experiment(
    name="mast",
    paper="1-mast",
    help=HELP,
    options=(
        ExperimentOption(
            "sensitivity", bool, False, "Also run each possible reading of the paper's open points."
        ),
        ExperimentOption(
            "limit", int | None, None, "Number of requests after which each run ends.", least=1
        ),
    ),
)
