"""HARD against a superpage-mapped drive alone (``papers/4-hard``)."""

from __future__ import annotations

from flashatlas.reproduce.protocol import Experiment, ExperimentOption

HELP = """\
Compute figures 14.4 and 14.5 of the HARD paper.

They show random writes over their size, and IOzone, with the layer and without it.

Beyond the paper the tables have the source of the gain, a full drive, hot and cold data, FLUSHes,
and a database's trace.

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
            "Number of requests of the studies, and number of KiB of the figures. It makes runs "
            "short, on a drive of 2 GB.",
            least=64,
        ),
    ),
)
