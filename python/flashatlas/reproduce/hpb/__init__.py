"""HPB against a drive that loads its map on demand (``papers/2-hpb``)."""

from __future__ import annotations

from flashatlas.reproduce.protocol import Experiment, ExperimentOption

HELP = """\
Tiobench and mixed work of the HPB slides.

The map cached in host memory, with the layer and without.

Beyond the slides: the time at the host that their range implies, phones' traces over host memory,
the cost of verification and updates, and both host layers together.

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
            "Make runs short: random requests of a stage, or of a trace.",
            least=256,
        ),
    ),
)
