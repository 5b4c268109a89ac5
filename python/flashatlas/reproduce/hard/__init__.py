"""HARD against a superpage-mapped drive alone (``papers/4-hard``)."""

from __future__ import annotations

from flashatlas.reproduce.protocol import Experiment, ExperimentOption

HELP = """\
Figures 14.4 and 14.5 of the HARD paper.

Random writes over their size, and IOzone, with the layer and without.

Beyond the paper: the source of the gain, a full drive, hot and cold data, FLUSHes, and a
database's trace.

For example: `flashatlas reproduce hard --out out/hard`
"""

EXPERIMENT = Experiment(
    name="hard",
    paper="4-hard",
    help=HELP,
    options=(
        ExperimentOption(
            "limit",
            int | None,
            None,
            "Make runs short, on a drive of 2 GB: requests of studies, KiB of figures.",
            least=64,
        ),
    ),
)
