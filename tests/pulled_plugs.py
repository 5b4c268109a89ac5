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


def main() -> None:
    """Try every cell, then one that ignores FLUSH."""
    if (why := plug.missing()) is not None:
        sys.exit(f"pull-plug: {why}")
    wrong = 0
    print("| Scheme, store, layer | Pulled | Acknowledged | Lost | e2fsck |\n|---|---|---|---|---|")
    for name, drive, settings in cells():
        pulls, result = plug.pull(drive, set=settings, times=TIMES, within=1500, seed=7)
        lost, found = sum(p.lost for p in pulls), [p.check for p in pulls if p.check]
        wrong += lost + len(found) + result.violations
        words = "clean" if not found else found[0].splitlines()[0]
        print(
            f"| {name} | {len(pulls)} | {pulls[-1].acknowledged:,} | {lost} | {words} |", flush=True
        )
    name, drive, settings = next(cell for cell in cells() if cell[0] == "page, demand")
    pulls, _ = plug.pull(drive, set=settings, times=TIMES, within=1500, seed=7, ignore_flush=True)
    last = pulls[-1]
    words = last.check.splitlines()[0] if last.check else "clean"
    print(
        f"| {name}, FLUSH ignored | {len(pulls)} | {last.acknowledged:,} | {last.lost} | {words} |"
    )
    if wrong or not (last.lost or last.check):
        sys.exit("something was lost, or the control lost nothing")


if __name__ == "__main__":
    main()
