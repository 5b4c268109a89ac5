"""Make ``python/flashatlas/data/demo.fatr``, the trace that comes with the package.

The trace is not a recording. It is generated from a model of ten minutes of a small machine, with a
fixed seed. Requests arrive in bursts at random times. 45 % of the requests are reads of 4 to 64
KiB, at addresses that were written recently or at any address. 40 % are writes of 4 KiB into a hot
area of 24 MiB, where the page is chosen by rank. 10 % append to a file in order, with requests of
64 KiB, and 5 % write 4 KiB anywhere in 192 MiB. A FLUSH follows every 200 writes, and every
thousandth request trims a megabyte.
"""

from __future__ import annotations

import random
from collections import deque
from pathlib import Path

import flashatlas
import pyarrow as pa

REQUESTS = 20_000
RANGE = 192 << 20
HOT = 24 << 20
TARGET = Path(__file__).resolve().parents[1] / "python/flashatlas/data/demo.fatr"
SPEC = "columns:time=time:ns,op=op,offset=offset:bytes,size=size:bytes,delimiter=tab,header=1"


def requests() -> pa.Table:
    """Return the requests, in the order of their times."""
    draw = random.Random(2026)
    rows: list[tuple[int, str, int, int]] = []
    lately: deque[int] = deque([0], maxlen=512)
    now, file, writes = 0, HOT, 0
    for number in range(REQUESTS):
        # a burst of some hundred requests, then a pause
        now += round(draw.expovariate(1 / 200_000 if number % 300 else 1 / 9_000_000_000))
        kind = draw.random()
        if number % 1000 == 999:
            rows.append((now, "trim", draw.randrange(HOT >> 20, RANGE >> 20) << 20, 1 << 20))
            continue
        if kind < 0.45:
            size = 4096 << draw.choice((0, 0, 0, 1, 2, 4))
            near = draw.choice(lately) if draw.random() < 0.6 else draw.randrange(RANGE >> 12) << 12
            rows.append((now, "read", min(near, RANGE - size), size))
            continue
        if kind < 0.85:
            rank = min(int(draw.paretovariate(0.8)) - 1, (HOT >> 12) - 1)
            where, size = (rank * 2654435761 % (HOT >> 12)) << 12, 4096
        elif kind < 0.95:
            where, size = file, 65536
            file = file + size if file + 2 * size <= RANGE else HOT
        else:
            where, size = draw.randrange(RANGE >> 12) << 12, 4096
        lately.append(where)
        rows.append((now, "write", where, size))
        writes += 1
        if writes % 200 == 0:
            rows.append((now, "flush", 0, 0))
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(("time", "op", "offset", "size"), map(list, columns), strict=True)))


if __name__ == "__main__":
    flashatlas.Trace(requests(), format=SPEC).convert(TARGET)
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes")
