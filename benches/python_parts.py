"""`make bench`: decisions a second of policies in Python, and steps a second of environments.

In brackets after each number is the goal for one core. This is not a test: the reader judges the
numbers.
"""

from __future__ import annotations

import time

import flashatlas
import flashatlas.gym as learning
import numpy as np
from flashatlas import parts

LOAD = {
    "drive": "tiny",
    "precondition": "fill",
    "mode": "untimed",
    "set": {"drive.blocks": 2048, "drive.logical_pages": 15_000},
}
WRITES = "uniform:requests=400000,size=2KiB"


class Single(parts.Victim):
    """The emptiest closed block."""

    name = "bench-single"
    asked = 0

    def pick(self, lane: parts.Lane) -> int | None:
        """Return one block."""
        Single.asked += 1
        blocks = lane.candidates()
        return int(blocks[lane.valid[blocks].argmin()]) if len(blocks) else None


class Batched(parts.Victim):
    """The emptiest closed blocks, sixty-four at a time."""

    name = "bench-batched"
    named = 0

    def pick(self, lane: parts.Lane) -> list[int] | None:
        """Return many blocks."""
        blocks = lane.candidates()
        best = blocks[np.argpartition(lane.valid[blocks], min(64, len(blocks) - 1))[:64]]
        Batched.named += len(best)
        return list(best)


class Placer(parts.Classifier):
    """A classifier that separates pages that were written again soon."""

    name = "bench-placer"
    streams = (2, 2)
    history = True
    batch = 4096
    sorted = 0

    def learn(self, lpns, ages, clock) -> None:
        """Choose the streams of thousands of pages at a time."""
        Placer.sorted += len(lpns)
        self.host[lpns] = ages < np.uint64(self.pages // 4)
        self.collection[lpns] = self.host[lpns]


def took(**run: object) -> float:
    """Return the seconds of a run."""
    began = time.perf_counter()
    flashatlas.run(**{**LOAD, "workload": WRITES, **run})
    return time.perf_counter() - began


def beside(own: dict[str, str], plain: dict[str, str]) -> float:
    """Return the seconds that a policy takes longer than a built-in policy, least of three runs."""
    of = {key: {**LOAD["set"], **value} for key, value in (("own", own), ("plain", plain))}
    pairs = [(took(set=of["own"]), took(set=of["plain"])) for _ in range(3)]
    return min(a for a, _ in pairs) - min(b for _, b in pairs)


def steps() -> float:
    """Return steps a second of an episode."""
    env = learning.Collection(workload="uniform:requests=60000,size=2KiB")
    env.reset(seed=1)
    began, count, done = time.perf_counter(), 0, False
    while not done:
        _, _, done, _, _ = env.step(0)
        count += 1
    return count / (time.perf_counter() - began)


def rate(count: float, seconds: float, what: str) -> str:
    """Return a count a second as text; or a remark if the cost is smaller than the noise."""
    return f"{count / seconds:,.0f} {what}/s" if seconds > 0.001 else "below the noise of runs"


def main() -> None:
    """Print every rate."""
    for cls in (Single, Batched, Placer):
        parts.add(cls)
    greedy = {"ftl.victim": "greedy"}
    cost = beside({"ftl.victim": "bench-single"}, greedy)
    print(f"Python victim policy, one by one: {rate(Single.asked / 3, cost, 'decisions')} (30,000)")
    cost = beside({"ftl.victim": "bench-batched"}, greedy)
    print(
        f"Python victim policy, in batches: {rate(Batched.named / 3, cost, 'decisions')} (100,000)"
    )
    cost = beside({"ftl.classifier": "bench-placer"}, {"ftl.classifier": "sepbit"})
    print(f"Python classifier, in batches: {rate(Placer.sorted / 3, cost, 'pages')} (100,000)")
    print(f"Gymnasium, Collection: {max(steps() for _ in range(3)):,.0f} steps/s (20,000)")


if __name__ == "__main__":
    main()
