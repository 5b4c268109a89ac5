"""Wrong bits of flash and read retries (ADR 0046), from the published formula and the binomial law.

Nothing here is drawn: the functions return expectations, and tests state how far a run may be from
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

DAY = 86_400
"""Seconds of a day."""
UNIT = 2048
"""Bytes of a unit of the drive `tiny`."""


def drive(blocks: int, lanes: int, pages: int, units: int) -> list[str]:
    """Return the settings of a drive whose data fill the blocks of each lane."""
    return [
        "drive.channels=1",
        f"drive.ways={lanes}",
        "drive.cell=tlc",
        f"drive.pages={pages}",
        f"drive.blocks={blocks + 8}",
        f"drive.logical_pages={blocks * lanes * pages * units}",
        f"drive.page_bytes={units * UNIT}",
        f"drive.spare_bytes={64 * units}",
        "cache.mode=write-through",
        "errors.model=tlc-72l",
        "errors.block_spread=0",
    ]


@dataclass(frozen=True)
class Formula:
    """The rate e + a c^k + b c^m t^n + g c^p r^q; the defaults are the numbers of 72-layer TLC."""

    e: float = 1.48e-3
    a: float = 3.90e-10
    k: float = 2.05
    b: float = 6.28e-5
    m: float = 0.14
    n: float = 0.54
    g: float = 3.73e-9
    p: float = 0.33
    q: float = 1.71

    def settings(self) -> list[str]:
        return [f"errors.{name}={value!r}" for name, value in vars(self).items()]

    def rate(
        self, cycles: int, days: float, reads: float, *, factor: float = 1, shift: float = 1
    ) -> float:
        """Return the rate of a page, which is at most a half.

        ``factor`` is of the page's place, and ``shift`` multiplies the part that time and reads
        cause.
        """
        drifted = self.b * cycles**self.m * days**self.n + self.g * cycles**self.p * reads**self.q
        return min(0.5, factor * (self.e + self.a * cycles**self.k + shift * drifted))


def spread(least: int, steps: int, place: int, largest: float) -> float:
    """Return the factor of a place on the line from 1 at ``least`` to ``largest`` at the end."""
    return 1 + (largest - 1) * (place - least) / (steps - 1) if steps > 1 else 1.0


def factors(pages: int, bits: int, of_kinds: float, of_lines: float) -> Iterator[float]:
    """Yield the factor of each page of a block whose pages are word line by word line."""
    for page in range(pages):
        line, kind = divmod(page, bits)
        yield spread(0, bits, kind, of_kinds) * spread(0, pages // bits, line, of_lines)


def chance_at_most(limit: int, bits: int, rate: float) -> float:
    """Return the chance that at most ``limit`` of the bits are wrong."""
    if rate <= 0:
        return 1.0
    if limit >= bits:
        return 1.0
    whole = math.lgamma(bits + 1)
    terms = (
        whole
        - math.lgamma(wrong + 1)
        - math.lgamma(bits - wrong + 1)
        + wrong * math.log(rate)
        + (bits - wrong) * math.log1p(-rate)
        for wrong in range(limit + 1)
    )
    return min(1.0, math.fsum(math.exp(term) for term in terms))


@dataclass(frozen=True)
class Code:
    """A code and its retries, named as the keys ``ecc.*``. Times are in nanoseconds."""

    codeword: int
    correctable: int
    retry_steps: int
    retry_gain: float
    decode: int
    soft_correctable: int = 0
    soft_reads: int = 0
    soft_decode: int = 0
    retry_overlap: bool = False

    def settings(self) -> list[str]:
        own = dict(vars(self))
        overlap = own.pop("retry_overlap")
        if not self.soft_correctable:
            own = {key: value for key, value in own.items() if not key.startswith("soft_")}
        for key in ("decode", "soft_decode"):
            if key in own:
                own[key] = f"{own[key]}ns"
        code = "ldpc-soft" if self.soft_correctable else "ldpc"
        words = [f"ecc.{key}={value}" for key, value in {"code": code, **own}.items()]
        return [*words, "ecc.retry_overlap=true", "timing.cache_read=true"] if overlap else words

    def endings(
        self, formula: Formula, factor: float, age: tuple[int, float, float], codewords: int
    ) -> list[float]:
        """Return the chance that a read ends at each step: 0 to all retries, soft, not at all.

        The places of a codeword in the distributions of all steps are the same, so it is corrected
        at a step exactly if its place is below the chance of that step. A later step never corrects
        less, so the chances of the steps are differences.
        """
        bits, limits = 8 * self.codeword, [self.correctable] * (self.retry_steps + 1)
        shifts = [self.retry_gain**step for step in range(self.retry_steps + 1)]
        if self.soft_correctable:
            limits.append(self.soft_correctable)
            shifts.append(shifts[-1])
        below: list[float] = [
            chance_at_most(limit, bits, formula.rate(*age, factor=factor, shift=shift)) ** codewords
            for limit, shift in zip(limits, shifts, strict=True)
        ]
        found = [
            max(0.0, after - before) for before, after in zip([0.0, *below], below, strict=False)
        ]
        if not self.soft_correctable:
            found.append(0.0)
        return [*found, 1 - below[-1]]

    def time(self, step: int, sense: int, send: int, command: int) -> int:
        """Return the nanoseconds of a read that ends at a step, in the order of `endings`.

        Each step occupies the bus for its command, the die for tR, and the bus for its data. The
        next step waits for the decoder. If retries overlap, it is sensed during the transfer of the
        step before. Soft decoding follows the last retry, and never overlaps.
        """
        retries = min(step, self.retry_steps)
        if self.retry_overlap:
            whole = sense + retries * max(sense, send) + send + self.decode
            whole += (retries + 1) * command
        else:
            whole = (retries + 1) * (command + sense + send + self.decode)
        if step > self.retry_steps and self.soft_correctable:
            whole += self.soft_reads * (command + sense + send) + self.soft_decode
        return whole
