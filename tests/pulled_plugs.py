"""The power fails under ext4 on every scheme, map store and layer: ``make pull-plug``.

The program prints a table of docs/RELIABILITY.md, and ends with an error if anything is lost. It
keeps a line of JSON for each cell that it tried, and does not try the cell again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import flashatlas
from flashatlas import plug
from flashatlas.plug.guest.init import CLIENTS as IN_GUEST

PAGE = ["drive.blocks=24", "drive.logical_pages=65536"]
LOGS = ["drive.blocks=600", "drive.logical_pages=32000"]
UFS = ["drive.blocks=96", "drive.logical_pages=131072"]
HPB = ["layers=hpb-host", "hpb.host_bytes=9MiB"]
HARD = ["layers=hard", "hard.superpage=64KiB", "hard.page=4KiB", "hard.segment=64"]
STORES = {"dram": ["map.flush=pages"], "lpmt": [], "nvm-hybrid": []}
"""Settings of map stores; the other stores have a setting for the size of their cache."""

IN_MEMORY = ("dram", "nvm-hybrid", "lpmt", "leaftl")
"""Map stores that HPB refuses, because it would save nothing with them."""


def cells() -> Iterator[tuple[str, str, list[str]]]:
    """Yield the name, the drive and the settings of each row of the table."""
    known = flashatlas.registries()
    stores = [entry["name"] for entry in known["maps"]]
    of_store = {s: [f"map.store={s}", *STORES.get(s, ["map.cache_bytes=64KiB"])] for s in stores}
    for store in stores:
        yield f"page, {store}", "tlc-small", PAGE + of_store[store]
    for store in stores:
        yield f"hard over page, {store}", "tlc-small", [*PAGE, *of_store[store], *HARD]
    for store in filter(lambda store: store not in IN_MEMORY, stores):
        yield f"hpb-host over page, {store}", "ufs-128gb", [*UFS, *of_store[store], *HPB]
    schemes = [entry["name"] for entry in known["schemes"] if entry["name"] != "page"]
    for layer, more in (("", []), ("hard over ", HARD)):
        for scheme in schemes:
            own = [] if scheme == "block" else ["ftl.log_blocks=40"]
            yield f"{layer}{scheme}", "mast-4gb", [f"ftl.scheme={scheme}", *LOGS, *own, *more]


WITHIN, WITHIN_OF_SLOW = 1500, 15_000
"""The largest numbers of flash operations before the power fails. The second number is for a guest,
and for rows in which a record takes hundreds of operations: block mapping, and log blocks under a
layer that writes superpages."""


def within(kernel: str, row: str) -> int:
    """Return the largest number of operations before the power fails in a cell."""
    slow = row == "block" or (row.startswith("hard over ") and "page," not in row)
    return WITHIN_OF_SLOW if slow and kernel != "running" else WITHIN


CONTROLS = {"running": "FLUSH", "guest": "FLUSH", "guest-nbd": "FUA", "guest-nvme": "FUA"}
"""The command that the drive ignores in a control, by kernel. A control must lose something."""


def work(asked: argparse.Namespace) -> Iterator[tuple[str, str, str, list[str], dict[str, Any]]]:
    """Yield row, client, drive, settings and options of each cell, controls last."""
    clients = [client for client in plug.CLIENTS if not asked.client or client.name in asked.client]
    able = []
    for client in clients:
        why = client.missing()
        if asked.kernel != "running" and client.name not in IN_GUEST:
            why = "it does not run in a guest"
        if why is not None:
            print(f"without {client.name}: {why}", file=sys.stderr)
        else:
            able.append(client.name)
    for name, drive, settings in cells():
        for client in able:
            yield name, client, drive, settings, {}
    name, drive, settings = next(cell for cell in cells() if cell[0] == "page, demand")
    ignored = CONTROLS[asked.kernel]
    # FUA alone makes only the end of a file durable: the client `records` shows its loss, but not
    # every database does
    for client in able if ignored == "FLUSH" else able[:1]:
        options = {f"ignore_{ignored.lower()}": True}
        yield f"{name}, {ignored} ignored", client, drive, settings, options


def pulled(
    asked: argparse.Namespace,
    row: str,
    client: str,
    drive: str,
    settings: list[str],
    options: dict[str, Any],
) -> dict[str, Any]:
    """Return the pulls of a cell, the text of its entry in the table, and the number of faults."""
    pulls, result = plug.pull(
        drive,
        set=settings,
        client=client,
        kernel=asked.kernel,
        times=asked.times,
        within=within(asked.kernel, row),
        seed=7,
        **options,
    )
    last = pulls[-1]
    said = f"{last.acknowledged:,}" + (f", **{last.lost:,} lost**" if last.lost else "")
    return {
        "pulls": len(pulls),
        "said": said + (f" ({last.check.splitlines()[0]})" if last.check else ""),
        "wrong": last.lost + bool(last.check) + result.violations,
    }


def table(found: dict[tuple[str, str], dict[str, Any]]) -> Iterator[str]:
    """Yield the table in Markdown: rows are schemes, stores and layers, columns are clients."""
    clients = list(dict.fromkeys(client for _, client in found))
    yield f"| Scheme, store, layer | {' | '.join(clients)} |"
    yield "|---" * (1 + len(clients)) + "|"
    for row in dict.fromkeys(row for row, _ in found):
        said = [found[row, client]["said"] if (row, client) in found else "" for client in clients]
        yield f"| {row} | {' | '.join(said)} |"


def main() -> None:
    """Try every cell under every client, then the controls, which must lose something."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", choices=list(plug.KERNELS), default="running")
    parser.add_argument("--client", action="append", choices=[each.name for each in plug.CLIENTS])
    parser.add_argument("--times", type=int, default=10, help="power failures in each cell (10)")
    parser.add_argument(
        "--shard", default="1/1", metavar="I/N", help="try every Nth cell, from the Ith on"
    )
    parser.add_argument("--keep", type=Path, help="file that keeps tried cells")
    asked = parser.parse_args()
    keep = asked.keep or Path("out") / f"pulled-plugs-{asked.kernel}-{asked.times}.jsonl"
    keep.parent.mkdir(parents=True, exist_ok=True)
    kept = [json.loads(line) for line in keep.read_text().splitlines()] if keep.is_file() else []
    found = {(each["row"], each["client"]): each for each in kept}
    shard, of = map(int, asked.shard.split("/"))
    mine = list(work(asked))[shard - 1 :: of]
    for number, (row, client, drive, settings, options) in enumerate(mine):
        if (row, client) not in found:
            print(f"{number + 1} of {len(mine)}: {row} under {client}", file=sys.stderr)
            each = {"row": row, "client": client}
            each |= pulled(asked, row, client, drive, settings, options)
            with keep.open("a", encoding="utf-8") as file:
                file.write(json.dumps(each) + "\n")
            found[row, client] = each
    order = [(row, client) for row, client, *_ in mine]
    print(*table({key: found[key] for key in order}), sep="\n")
    # something is lost if and only if the drive ignores a command
    amiss = [key for key in order if bool(found[key]["wrong"]) != ("ignored" in key[0])]
    if amiss:
        sys.exit(f"something was lost, or a control lost nothing: {amiss} (kept in {keep})")


if __name__ == "__main__":
    main()
