"""The maps of the five papers on the drives of their time and of today (``papers/6-today``)."""

from __future__ import annotations

from flashatlas.reproduce.protocol import Experiment, ExperimentOption

HELP = """\
Compare the gain of each paper's map on a drive of its time with its gain on drives of today.

The figure has the gains then and now. Each table has the number that decides the gain.

For example: `flashatlas reproduce today --out out/today`
"""

EXPERIMENT = Experiment(
    name="today",
    paper="6-today",
    help=HELP,
    options=(
        ExperimentOption(
            "paper", list[int], [], "Number of a paper, in place of all five; may be repeated."
        ),
        ExperimentOption(
            "times", int, 1, "Measure N times as many requests; the gains should not move.", least=1
        ),
        ExperimentOption(
            "limit", int | None, None, "Largest number of requests of each run.", least=1
        ),
    ),
)
