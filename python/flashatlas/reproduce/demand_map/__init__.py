"""Demand-paged maps over the size of their memory (``papers/2-demand-map``)."""

from __future__ import annotations

from flashatlas.reproduce.protocol import Experiment, ExperimentOption

HELP = """\
Compare every demand-paged map over the size of its memory.

The tables have hit ratio, map reads and writes, latency and RAM.

For example: `flashatlas reproduce demand-map --out out/demand-map`
"""

EXPERIMENT = Experiment(
    name="demand-map",
    paper="2-demand-map",
    help=HELP,
    options=(
        ExperimentOption(
            "cache_bytes",
            list[int],
            [],
            "Number of bytes of memory for the map; may be repeated.",
            least=1,
        ),
        ExperimentOption(
            "limit", int | None, None, "Number of requests after which each run ends.", least=1
        ),
    ),
)
