"""Presets under fio's standard tests, beside their data sheets (``papers/5-drives``)."""

from __future__ import annotations

from flashatlas.reproduce.protocol import Experiment, ExperimentOption

HELP = """\
Compare presets with the data sheets and reviews of the products that they are made after.

The tables have fio's standard tests, fresh and steady, and the write curves of consumer drives.

For example: `flashatlas reproduce drives --out out/drives`
"""

EXPERIMENT = Experiment(
    name="drives",
    paper="5-drives",
    help=HELP,
    options=(
        ExperimentOption(
            "preset", list[str], [], "Preset to test, in place of all; may be repeated."
        ),
        ExperimentOption(
            "limit", int | None, None, "Number of requests after which each run ends.", least=1
        ),
        ExperimentOption(
            "fill",
            bool,
            False,
            "Also write whole drives, those with a curve; 2 min and 4.3 GB each.",
        ),
    ),
)
