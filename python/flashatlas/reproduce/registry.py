"""The experiments: one folder each, one line here."""

from __future__ import annotations

from flashatlas.reproduce import demand_map, drives, hard, hpb, lpmt, mast, nvm_map, today
from flashatlas.reproduce.protocol import Experiment

EXPERIMENTS: tuple[Experiment, ...] = (
    mast.EXPERIMENT,
    nvm_map.EXPERIMENT,
    demand_map.EXPERIMENT,
    lpmt.EXPERIMENT,
    hard.EXPERIMENT,
    hpb.EXPERIMENT,
    drives.EXPERIMENT,
    today.EXPERIMENT,
)
