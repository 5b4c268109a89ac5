"""Made-up studies for the tests of pages; formulas compute the numbers of a run from its axes."""

from __future__ import annotations

import hashlib
import itertools
import random

from flashatlas.results.frame import Frame, table_of

VICTIMS = {"greedy": 0.0, "cost-benefit": 0.1, "fifo": 0.5, "random": 0.4, "d-choices": 0.2}
STORES = {"dram": 0.0, "dftl": 0.4, "tpftl": 0.2, "demand": 0.3}


def fake_study(seeds: int = 5, caches: int = 20) -> tuple[Frame, dict]:
    """Return a study of 5 x 4 x ``caches`` x ``seeds`` runs, and a store's note of the study."""
    drawn = random.Random(7)
    sizes = [8192 << (i % 20) for i in range(caches)]
    axes = list(itertools.product(VICTIMS, STORES, sizes, range(1, seeds + 1)))
    rows, keys, labels = [], [], []
    for victim, store, size, seed in axes:
        settings = {
            "ftl.victim": victim,
            "map.store": store,
            "map.cache_bytes": size,
            "seed": seed,
            "workload": "made up",
        }
        missed = STORES[store] * (1 - sizes.index(size) / len(sizes))
        waf = 1.5 + VICTIMS[victim] + missed + drawn.gauss(0, 0.02)
        numbers = {
            "waf": waf,
            "iops": 90_000 / waf,
            "memory_bytes.map": size + len(store) * 4096,
            "steady": True,
            "oracle.violations": 0,
            "oracle.units_checked": 1000,
            "oracle.units_swept": 5000,
        }
        for op, way in itertools.product(("read", "write"), ("p50", "p99", "p99_9")):
            numbers[f"latency_ns.{op}.{way}"] = round(80_000 * waf * drawn.lognormvariate(0, 0.1))
        numbers |= {f"nand.programs.cause{i}": round(1000 * waf + 10 * i) for i in range(25)}
        rows.append((settings, numbers))
        labels.append(f"{victim} {store} {size} {seed}")
        keys.append(hashlib.sha256(labels[-1].encode()).hexdigest())
    table = table_of(rows, [("label", labels, "name"), ("key", keys, "name")])
    noted = {
        "name": "made-up",
        "title": "Made up </script><img src=x onerror=window.hacked=1>",
        "runs": [{"key": key} for key in keys],
    }
    return Frame(table), noted


POLICY = """
from flashatlas import parts

class Mine(parts.Victim):
    "Takes the block with the fewest valid pages."
    name = "mine"

    def pick(self, lane):
        blocks = lane.candidates()
        return blocks[(lane.valid[blocks] * {factor}).argmin()] if len(blocks) else None
"""
"""A file with a victim policy, ``mine``: greedy if ``factor`` is 1, the worst one if it is -1."""
