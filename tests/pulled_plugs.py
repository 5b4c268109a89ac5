"""The power fails under ext4 on every scheme, map store and layer: ``make pull-plug``.

Prints the table of docs/RELIABILITY.md, and ends with an error if anything is lost.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import flashatlas
from flashatlas import plug

TIMES = 10
PAGE = ["drive.blocks=24", "drive.logical_pages=65536"]
LOGS = ["drive.blocks=600", "drive.logical_pages=32000"]
UFS = ["drive.blocks=96", "drive.logical_pages=131072", "map.cache_bytes=128KiB"]
HARD = ["layers=hard", "hard.superpage=64KiB", "hard.page=4KiB", "hard.segment=64"]
STORES = {"dram": ["map.flush=pages"], "lpmt": [], "nvm-hybrid": []}
"""Settings of map stores; of the others the size of the cache."""


def cells() -> Iterator[tuple[str, str, list[str]]]:
    """Name, drive and settings of everything that is tried."""
    known = flashatlas.registries()
    stores = [entry["name"] for entry in known["maps"]]
    of_store = {s: [f"map.store={s}", *STORES.get(s, ["map.cache_bytes=64KiB"])] for s in stores}
    for store in stores:
        yield f"page, {store}", "tlc-small", PAGE + of_store[store]
    for store in ("dram", "demand"):
        yield f"hard over page, {store}", "tlc-small", [*PAGE, *of_store[store], *HARD]
    yield (
        "hpb-host over page, demand",
        "ufs-128gb",
        [*UFS, "layers=hpb-host", "hpb.host_bytes=9MiB"],
    )
    for scheme in [entry["name"] for entry in known["schemes"] if entry["name"] != "page"]:
        own = [] if scheme == "block" else ["ftl.log_blocks=40"]
        yield scheme, "mast-4gb", [f"ftl.scheme={scheme}", *LOGS, *own]


def pulled(cell: tuple[str, str, list[str]], client: str, **options) -> tuple[str, int]:
    """What a cell of the table says, and how much was wrong."""
    _, drive, settings = cell
    pulls, result = plug.pull(
        drive, set=settings, client=client, times=TIMES, within=1500, seed=7, **options
    )
    last = pulls[-1]
    wrong = last.lost + bool(last.check) + result.violations
    said = f"{last.acknowledged:,}" + (f", **{last.lost:,} lost**" if last.lost else "")
    return said + (f" ({last.check.splitlines()[0]})" if last.check else ""), wrong


def main() -> None:
    """Try every cell under every client, then one that ignores FLUSH."""
    if (why := plug.missing()) is not None:
        sys.exit(f"pull-plug: {why}")
    clients = []
    for client in plug.CLIENTS:
        if (why := client.missing()) is not None:
            print(f"without {client.name}: {why}", file=sys.stderr)
        else:
            clients.append(client.name)
    print(f"| Scheme, store, layer | {' | '.join(clients)} |")
    print("|---" * (1 + len(clients)) + "|", flush=True)
    lost = 0
    for cell in cells():
        found = [pulled(cell, client) for client in clients]
        lost += sum(wrong for _, wrong in found)
        print(f"| {cell[0]} | {' | '.join(said for said, _ in found)} |", flush=True)
    cell = next(cell for cell in cells() if cell[0] == "page, demand")
    found = [pulled(cell, client, ignore_flush=True) for client in clients]
    print(f"| {cell[0]}, FLUSH ignored | {' | '.join(said for said, _ in found)} |")
    if lost or not all(wrong for _, wrong in found):
        sys.exit("something was lost, or a control lost nothing")


if __name__ == "__main__":
    main()
