"""The map in DRAM and NVM against maps in DRAM (``papers/0-hybrid-nvm``)."""

from __future__ import annotations

from flashatlas.reproduce.protocol import Experiment, ExperimentOption

HELP = """\
Compute figure 1 of the DRAM+NVM map paper.

The figure shows fsync and fdatasync on ext4 over the size of the NVM, against maps in DRAM.

The tables also have the cost of a FLUSH (data, map pages, directory, NVM), and work beyond the
paper: overwrites, random writes, and a database's trace with FLUSHes.

For example: `flashatlas reproduce nvm-map --out out/nvm-map`
"""

EXPERIMENT = Experiment(
    name="nvm-map",
    paper="0-hybrid-nvm",
    help=HELP,
    options=(
        ExperimentOption(
            "operations",
            int | None,
            None,
            "Number of calls of fsync or fdatasync in each run.",
            least=1,
        ),
    ),
)
