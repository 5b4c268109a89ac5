"""Published results, computed again."""

from flashatlas.reproduce.amplification import Point, theory
from flashatlas.reproduce.demand_map import DemandMap, demand_map
from flashatlas.reproduce.lpmt import Lpmt, lpmt
from flashatlas.reproduce.mast import Mast, mast
from flashatlas.reproduce.nvm_map import NvmMap, nvm_map

__all__ = [
    "DemandMap",
    "Lpmt",
    "Mast",
    "NvmMap",
    "Point",
    "demand_map",
    "lpmt",
    "mast",
    "nvm_map",
    "theory",
]
