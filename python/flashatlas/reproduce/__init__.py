"""Published results, computed again."""

from flashatlas.reproduce.amplification import Point, theory
from flashatlas.reproduce.mast import Mast, mast

__all__ = ["Mast", "Point", "mast", "theory"]
