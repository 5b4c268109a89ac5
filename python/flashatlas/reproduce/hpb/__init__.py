"""HPB against a drive that loads its map on demand (``papers/2-hpb``)."""

from __future__ import annotations

from flashatlas.reproduce.protocol import Experiment, ExperimentOption

HELP = """\
Run Tiobench and the mixed work of the HPB slides.

The tables compare a map cached in host memory with the same drive without this layer.

Beyond the slides, the tables have the time at the host that the published range implies, phones'
traces over host memory, the cost of verification and updates, and both host layers together.

For example: `flashatlas reproduce hpb --out out/hpb`
"""

EXPERIMENT = Experiment(
    name="hpb",
    paper="2-hpb",
    help=HELP,
    options=(
        ExperimentOption(
            "limit",
            int | None,
            None,
            "Number of random requests in a stage, or of requests in a trace, to make runs short.",
            least=256,
        ),
    ),
)
