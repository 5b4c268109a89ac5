"""The tables of the HARD experiment."""

from __future__ import annotations

import itertools
from typing import Any

from flashatlas.reproduce import table
from flashatlas.reproduce.hard.studies import HARD, STAGES, HardStudies
from flashatlas.reproduce.layered import NONE
from flashatlas.reproduce.table import BEYOND, REPRODUCED, Listing, Table
from flashatlas.results.result import Result
from flashatlas.results.units import size, speed


def tables(hard: HardStudies) -> list[Table]:
    """Return every table, in the order of the paper, then the tables beyond it."""
    return [
        claims(hard),
        figure_4(hard),
        *figure_5(hard),
        promises(hard),
        breakdown(hard),
        full(hard),
        flushes(hard),
        traces(hard),
    ]


def _times(ratio: float) -> str:
    return f"{ratio:.2f}x"


def claims(hard: HardStudies) -> Table:
    """Return the paper's claims beside our numbers."""
    published = hard.experiment["published"]
    records = hard.experiment["figure_5"]["records"]
    depths = hard.experiment["figure_5"]["depths"]["write"]
    plateau = max(hard.random_write(s, NONE) for s in hard.experiment["figure_4"]["sizes"])
    first = next(
        s
        for s in hard.experiment["figure_4"]["sizes"]
        if hard.random_write(s, NONE) >= 0.9 * plateau
    )
    rows = [("superpage, from Fig. 14.4", size(published["superpage"]), size(first))]
    for depth in depths:
        gains = {r: hard.gain(r, depth, "RW") for r in records}
        best = max(gains, key=lambda r: gains[r])
        said = f"up to {published['random_write_gain_max']:g}x"
        how = "one at a time" if depth == 1 else f"{depth} in flight"
        rows.append((f"random write, {how}", said, f"up to {_times(gains[best])}, of {size(best)}"))
    for stage in STAGES[1:3] + STAGES[4:]:
        losses = [1 - hard.gain(r, depths[0], stage) for r in records]
        said = f"-{published['read_loss']:.0%}" if "after" not in stage else "not shown"
        rows.append((stage, said, f"{-max(losses):+.1%} to {-min(losses):+.1%}"))
    note = (
        "Before the random writes, the file is stored in order with and without the layer, so the "
        "layer only adds lookups. After the random writes, sequential data is scattered under the "
        "layer, so reads are split. The random writes use `hard.complete = buffered` over "
        "`cache.mode = write-through`. The paper does not name these two settings; the table "
        "'What a write promises' has all four combinations."
    )
    return Table("What the paper says", REPRODUCED, note, ("", "published", "ours"), rows)


def figure_4(hard: HardStudies) -> Table:
    """Return Fig. 14.4: random writes against their size."""
    rows = []
    for n in hard.experiment["figure_4"]["sizes"]:
        without, with_layer = hard.random_write(n, NONE), hard.random_write(n, HARD)
        rows.append((size(n), speed(without), speed(with_layer), _times(with_layer / without)))
    note = "The paper shows the drive alone; the layer is beside it. 32 writes in flight, aligned."
    return Table(
        "Figure 14.4: random writes against their size",
        REPRODUCED,
        note,
        ("writes of", NONE, HARD, "gain"),
        rows,
    )


def figure_5(hard: HardStudies) -> list[Table]:
    """Return Fig. 14.5: IOzone."""
    made = []
    for depth in hard.experiment["figure_5"]["depths"]["write"]:
        rows = []
        for record in hard.experiment["figure_5"]["records"]:
            for stage in STAGES:
                without, with_layer = (
                    hard.iozone(record, depth, stack, stage) for stack in (NONE, HARD)
                )
                rows.append(
                    (
                        size(record),
                        stage,
                        speed(without),
                        speed(with_layer),
                        _times(with_layer / without),
                    )
                )
        how = "one write at a time" if depth == 1 else f"{depth} writes in flight"
        note = (
            "The stages follow each other on one drive, each once over the file, and reads are "
            "sent one at a time. Sequential requests are merged to "
            f"{size(hard.experiment['figure_5']['merged'])}, as read-ahead and write-back send "
            "them."
        )
        head = ("record", "stage", NONE, HARD, "gain")
        made.append(Table(f"Figure 14.5: IOzone, {how}", REPRODUCED, note, head, rows))
    return made


PROMISES = {
    ("", "write-through"): "on flash",
    ("", "write-back"): "in the drive's cache: a FLUSH makes it durable",
    ("buffered", "write-through"): "in host memory: a FLUSH makes it durable",
    ("written", "write-through"): "on flash, where the log finds it again",
    ("buffered", "write-back"): "in host memory: a FLUSH makes it durable",
    ("written", "write-back"): "in the drive's cache: a FLUSH makes it durable",
}
"""The place of a completed write, by ``hard.complete`` and ``cache.mode``."""


def promises(hard: HardStudies) -> Table:
    """Return the promises of a completed write, and their cost."""
    of = hard.experiment["promises"]
    rows = []
    for cache, complete in itertools.product(of["cache"], ("", *of["complete"])):
        cells = []
        for state, depth in itertools.product(("fresh", "steady"), of["depths"]):
            stack = HARD if complete else NONE
            got = hard.of("promise", (state, cache, depth, complete), stack)
            alone = hard.of("promise", (state, cache, depth, ""), NONE)
            rate = got.record["bandwidth_bytes_per_s"]
            gain = f" ({_times(rate / alone.record['bandwidth_bytes_per_s'])})" if complete else ""
            cells.append(f"{rate / 1e6:.2f}{gain}")
        layer = f"hard, {complete}" if complete else NONE
        rows.append((layer, cache, PROMISES[complete, cache], *cells))
    note = (
        "Random writes of 4 KB in MB/s, with one write and 32 writes in flight. A comparison is "
        "fair if both sides promise the same: compare `written` over a write-through drive with "
        "this drive, and `buffered` with a write-back drive. Fresh: a filled drive that has not "
        "begun to collect, as in Fig. 14.5. Steady: a full drive that collects as fast as it is "
        "written."
    )
    head = ("layer", "drive's cache", "a completed write is")
    columns = [f"{state}, {d}" for state in ("fresh", "steady") for d in of["depths"]]
    return Table("What a write promises", BEYOND, note, (*head, *columns), rows)


def _layer(result: Result) -> dict[str, Any]:
    return result.record["layers"]["hard"]


def breakdown(hard: HardStudies) -> Table:
    """Return the sources of the gain of random writes."""
    rows = []
    for n in hard.experiment["figure_4"]["sizes"][:4]:
        without, with_layer = (hard.of("figure 14.4", n, stack).record for stack in (NONE, HARD))
        layer = _layer(hard.of("figure 14.4", n, HARD))
        requests = with_layer["host"]["writes"]
        rows.append(
            (
                size(n),
                f"{without['controller'].get('rmw_units', 0) / requests:.2f}",
                f"{with_layer['controller'].get('rmw_units', 0) / requests:.2f}",
                f"{requests / max(layer['lower_writes'], 1):.2f}",
                f"{layer['lookups'] / requests:.2f}",
                f"{layer['reclaimed_pages'] / requests:.2f}",
                f"{without['waf']:.2f}",
                f"{with_layer['waf']:.2f}",
            )
        )
    note = (
        "The numbers are for each request: superpages that the drive reads and merges, without "
        "the layer and with it; requests that the layer merges into one write to the drive; map "
        "entries that are looked up or changed; and reclaimed pages. The last number is the "
        "product of the write amplifications."
    )
    head = (
        "writes of",
        "RMW, none",
        "RMW, hard",
        "merged",
        "lookups",
        "reclaimed",
        "WAF, none",
        "WAF, hard",
    )
    return Table("What the layer saves, and what it does for it", BEYOND, note, head, rows)


def _fine(bytes_per_s: float) -> str:
    """Return a speed with two digits, for drives that collect and are slow."""
    return f"{bytes_per_s / 1e6:.2f} MB/s"


def _amplified(name: str, result: Result) -> tuple[str, ...]:
    record = result.record
    waf = record.get("layers", {}).get(
        "write_amplification", {"layers": 1.0, "drive": record["waf"]}
    )
    reclaimed = (
        f"{_layer(result)['reclaimed_pages'] / record['host']['writes']:.2f}"
        if "layers" in record
        else "–"
    )
    bandwidth = _fine(record["bandwidth_bytes_per_s"])
    return (
        name,
        bandwidth,
        reclaimed,
        f"{waf['layers']:.2f}",
        f"{waf['drive']:.2f}",
        f"{record['waf']:.2f}",
    )


def full(hard: HardStudies) -> Table:
    """Return a full drive: reclamation over the reserve, and over victims on hot and cold data."""
    rows = [_amplified("random, none", hard.of("full", "random", NONE))]
    for reserve in hard.experiment["full"]["reserves"]:
        rows.append(
            _amplified(f"random, {reserve:.0%} not exported", hard.of("reserve", reserve, HARD))
        )
    rows.append(_amplified("hot and cold, none", hard.of("hot-cold", "greedy", NONE)))
    for victim in hard.experiment["full"]["victims"]:
        rows.append(_amplified(f"hot and cold, {victim}", hard.of("hot-cold", victim, HARD)))
    note = (
        "All runs are in the steady state. The write amplification of the layer multiplies that "
        "of the drive. A full layer moves pages as the drive does, so its gain depends on the "
        "share that is not exported. Hot and cold: nine of ten writes go to a tenth of the pages."
    )
    head = (
        "4 KB writes to a full drive",
        "speed",
        "reclaimed/write",
        "WAF, layer",
        "WAF, drive",
        "WAF",
    )
    return Table("A full drive", BEYOND, note, head, rows)


def flushes(hard: HardStudies) -> Table:
    """Return FLUSH-heavy work: the cost of durability."""
    rows = []
    for every in hard.experiment["full"]["flush_every"]:
        without, with_layer = (hard.of("flush", every, stack).record for stack in (NONE, HARD))
        layer = _layer(hard.of("flush", every, HARD))
        writes = with_layer["host"]["writes"]
        rows.append(
            (
                str(every),
                _fine(without["bandwidth_bytes_per_s"]),
                _fine(with_layer["bandwidth_bytes_per_s"]),
                _times(with_layer["bandwidth_bytes_per_s"] / without["bandwidth_bytes_per_s"]),
                f"{layer['padded_pages'] / writes:.2f}",
                f"{layer['filled_pages'] / writes:.2f}",
                f"{(layer['journals'] + layer['summaries']) / writes:.2f}",
                f"{with_layer['waf']:.2f}",
            )
        )
    note = (
        "All runs are in the steady state, with one write at a time and a FLUSH after every N "
        "writes. Each FLUSH sends a superpage that is not full, and a record of the log. The "
        "paper does not discuss durability; with durability, the layer may be slower than the "
        "drive alone."
    )
    head = (
        "writes to a FLUSH",
        NONE,
        HARD,
        "gain",
        "padded/write",
        "filled/write",
        "records/write",
        "WAF, hard",
    )
    return Table("FLUSHes", BEYOND, note, head, rows)


def traces(hard: HardStudies) -> Table:
    """Return the recorded workloads."""
    rows = []
    for application, stack in itertools.product(hard.applications, (NONE, HARD)):
        result = hard.of("trace", application.name, stack)
        latency = result.latency
        means = [
            f"{latency[op]['mean'] / 1e3:,.0f} µs" if op in latency else "–"
            for op in ("read", "write")
        ]
        moved = speed(result.record["bandwidth_bytes_per_s"])
        rows.append((application.name, stack, moved, *means, f"{result.waf:.2f}"))
    head = ("", "", "speed", "read mean", "write mean", "WAF")
    sources = "; ".join(f"{each.name}: {each.source}" for each in hard.applications)
    return Table("Traces", BEYOND, f"As fast as the drive takes them. {sources}.", head, rows)


def listings(hard: HardStudies) -> list[Listing]:
    """Return the tables for the terminal."""
    return table.listings(tables(hard))
