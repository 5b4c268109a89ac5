"""Environments for reinforcement learning: collection, placement of pages, and caching of the map.

>>> import gymnasium
>>> import flashatlas.gym
>>> env = gymnasium.make("FlashAtlas/Collection-v0", workload="uniform:requests=2000,size=2KiB")
>>> observation, info = env.reset(seed=1)
>>> observation.shape, int(env.action_space.n)
((32,), 8)
>>> done = False
>>> while not done:
...     observation, reward, done, _, info = env.step(0)  # the emptiest block: greedy
>>> info["record"]["oracle"]["violations"]
0

An episode is one run, in which every read is checked as usual. When the run ends, the episode ends,
and the run record is in ``info``. The run has a thread of its own and does not hold the
interpreter's lock. The episodes of several environments can therefore run at the same time
(:class:`Several`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import gymnasium
import numpy
from gymnasium import spaces

from flashatlas import _core, parts
from flashatlas.running.api import specification

CANDIDATES, FEATURES, STREAMS = 8, 4, 4
"""Blocks in an observation, numbers for each block, and streams in which pages are placed."""

DEFAULTS = {
    "drive": "tiny",
    "workload": "uniform:requests=20000,size=2KiB",
    "precondition": "fill",
    "mode": "untimed",
}
"""The default run of an episode."""


class _Episodes(gymnasium.Env[numpy.ndarray, numpy.int64]):
    """An environment in which each step is one decision of a run."""

    kind: ClassVar[str]
    shape: ClassVar[tuple[int, ...]]
    low: ClassVar[float] = 0.0
    actions: ClassVar[int]

    def __init__(self, **run: Any) -> None:
        self.run = {**DEFAULTS, **run}
        specification(**self.run)  # refuses bad arguments before the first episode
        self.observation_space = spaces.Box(-1.0, 1.0, self.shape, numpy.float32)
        self.action_space = spaces.Discrete(self.actions)
        self._episode: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[numpy.ndarray, dict[str, Any]]:
        """Begin a run, with a seed drawn from the environment's random numbers."""
        super().reset(seed=seed)
        self.close()
        drawn = int(self.np_random.integers(0, 2**31))
        spec = specification(**{**self.run, "seed": drawn})
        self._episode = _core.Episode(self.kind, json.dumps(spec))
        observation, choices, _, record = self._episode.begin()
        if observation is None:
            return self._last(), {"record": json.loads(record or "{}"), "choices": 0}
        return numpy.array(observation, numpy.float32), self._info(choices)

    def step(
        self, action: numpy.int64 | int
    ) -> tuple[numpy.ndarray, float, bool, bool, dict[str, Any]]:
        """Take a step; an action of ``info["choices"]`` or more means the last available choice."""
        observation, choices, reward, record = self._episode.step(int(action))
        if record is not None:
            found = json.loads(record)
            info = {"record": found, "waf": found.get("waf"), "choices": 0}
            return self._last(), reward, True, False, info
        assert observation is not None
        info = self._info(choices)
        return numpy.array(observation, numpy.float32), reward, False, False, info

    def _info(self, choices: int) -> dict[str, Any]:
        mask = numpy.zeros(self.actions, numpy.int8)
        mask[:choices] = 1
        return {"choices": choices, "action_mask": mask}

    def _last(self) -> numpy.ndarray:
        return numpy.ones(self.shape, numpy.float32)

    def close(self) -> None:
        """End the run, even if it is not finished."""
        if self._episode is not None:
            self._episode.close()
            self._episode = None


class Collection(_Episodes):
    """Choice of the block of a lane that is collected next.

    The observation shows the :data:`CANDIDATES` closed blocks with the fewest valid pages, the
    emptiest first. A row has four numbers: the share of valid pages, the age since the block was
    filled, the age since it last lost a page, and its erases minus the mean of the lane, divided by
    16. An age is counted in pages programmed, on a logarithmic scale from 0 to 1 (sixteen
    doublings). Rows of blocks that do not exist are 1. The action is the
    row of the block. The reward is minus the share of the block's pages that had to be copied. For
    a given workload, the sum of the rewards of a run determines its write amplification.
    """

    kind = "collection"
    shape = (CANDIDATES * FEATURES,)
    actions = CANDIDATES


class Placement(_Episodes):
    """Choice of the stream, one of :data:`STREAMS`, into which a page of the host is written.

    The observation has four numbers: the age of the superseded version of the page, 1 if that age
    is known and 0 if not, the stream of that version (negative: a stream of collection), and the
    address of the page as a share of the drive. The age is counted in pages written, on a
    logarithmic scale from 0 to 1 (sixteen doublings). The action is the stream. The reward is minus
    the valid share of the blocks collected since the last step.
    """

    kind = "placement"
    shape = (4,)
    actions = STREAMS

    def __init__(self, **run: Any) -> None:
        roomy = {"drive.blocks": 96, "drive.logical_pages": 640}
        super().__init__(**{"set": roomy, **run})


class Admission(_Episodes):
    """Decision to keep a map page that a lookup has read; a kept page may evict another one.

    The drive has ``map.store = demand``. The observation has four numbers: the number of lookups
    and changes since the page was last missed, the number of lookups and changes since the page was
    last found in memory, the number of its misses, and its position in the map. The first three
    numbers are on a logarithmic scale from 0 to 1 (sixteen doublings). In the first two, 1 can also
    mean that the event has not happened yet.

    With action 1 the page stays. With action 0 the next command that needs the page reads it again.
    The reward is a sixteenth of the number of hits since the last step; a hit is a lookup or a
    change whose entry was in memory. The sum of the rewards of a run determines its hit ratio.
    """

    kind = "admission"
    shape = (4,)
    actions = 2

    def __init__(self, **run: Any) -> None:
        demand = {"map.store": "demand", "map.page_bytes": 64, "map.cache_bytes": 512}
        reads = "zipf:requests=20000,size=2KiB,read=0.9,theta=0.9"
        super().__init__(**{"set": demand, "workload": reads, **run})


class Several:
    """Environments that take their steps at the same time, each in its own thread."""

    def __init__(self, envs: Sequence[_Episodes]) -> None:
        self.envs = list(envs)
        self._pool = ThreadPoolExecutor(len(self.envs))

    def reset(self, seed: int | None = None) -> list[tuple[numpy.ndarray, dict[str, Any]]]:
        """Begin a run in each environment."""
        seeds = [None if seed is None else seed + i for i in range(len(self.envs))]
        return list(
            self._pool.map(
                lambda pair: pair[0].reset(seed=pair[1]), zip(self.envs, seeds, strict=True)
            )
        )

    def step(self, actions: Sequence[int]) -> list[tuple[numpy.ndarray, float, bool, bool, Any]]:
        """Take a step in each environment."""
        pairs = zip(self.envs, actions, strict=True)
        return list(self._pool.map(lambda pair: pair[0].step(pair[1]), pairs))

    def close(self) -> None:
        """End every run, and stop the threads."""
        for env in self.envs:
            env.close()
        self._pool.shutdown()


def as_victim(predict: Any, name: str) -> type[parts.Victim]:
    """Return a Python victim policy that uses a model trained in :class:`Collection`.

    Args:
        predict: Function from an observation to an action: ``lambda o: model.predict(o)[0]``.
        name: The value of ``ftl.victim`` that chooses the policy, after
            :func:`flashatlas.parts.add` has added it.

    """

    def pick(self: parts.Victim, lane: parts.Lane) -> int | None:
        blocks = lane.candidates()
        if not len(blocks):
            return None
        order = numpy.lexsort((blocks, lane.closed_at[blocks], lane.valid[blocks]))
        blocks = blocks[order][:CANDIDATES]
        observation = numpy.ones((CANDIDATES, FEATURES), numpy.float32)
        ages = [
            lane.clock - times[blocks].astype(float) for times in (lane.closed_at, lane.changed_at)
        ]
        mine = observation[: len(blocks)]
        mine[:, 0] = lane.valid[blocks] / lane.slots
        for column, age in enumerate(ages, 1):
            mine[:, column] = _doublings(age)
        beside = (lane.erases[blocks] - lane.erases.mean()) / 16
        mine[:, 3] = numpy.clip(beside, -1, 1)
        chosen = min(int(predict(observation.ravel())), len(blocks) - 1)
        return int(blocks[chosen])

    doc = f"Trained: {name}."
    return type(name, (parts.Victim,), {"name": name, "pick": pick, "__doc__": doc})


def as_cache_policy(predict: Any, name: str) -> type[parts.CachePolicy]:
    """Return a Python cache policy that uses a model trained in :class:`Admission`.

    Args:
        predict: Function from an observation to an action: ``lambda o: model.predict(o)[0]``.
        name: The value of ``map.policy`` that chooses the policy, after
            :func:`flashatlas.parts.add` has added it.

    """

    def setup(self: Any) -> None:
        self.missed_at, self.used_at = ([None] * self.pages for _ in range(2))
        self.times = [0] * self.pages

    def used(self: Any, page: int, clock: int, change: bool) -> None:
        self.used_at[page] = clock

    def admit(self: Any, page: int, clock: int, change: bool, room: bool) -> bool:
        def since(at: int | None) -> float:
            return 1.0 if at is None else _doublings(clock - at)

        before, times = self.missed_at[page], self.times[page]
        self.missed_at[page], self.times[page] = clock, times + 1
        if room or change:
            return True
        found = [since(before), since(self.used_at[page]), _doublings(times), page / self.pages]
        return bool(int(predict(numpy.array(found, numpy.float32))))

    doc = f"Trained: {name}."
    members = {"name": name, "hits": True, "setup": setup, "used": used, "admit": admit}
    return type(name, (parts.CachePolicy,), {**members, "__doc__": doc})


def _doublings(count: Any) -> Any:
    """Return a count on the logarithmic scale of observations: 1 after sixteen doublings."""
    return numpy.minimum(numpy.log2(count + 1), 16) / 16


for _class in (Collection, Placement, Admission):
    gymnasium.register(
        id=f"FlashAtlas/{_class.__name__}-v0", entry_point=f"{__name__}:{_class.__name__}"
    )
