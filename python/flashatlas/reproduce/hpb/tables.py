"""The tables of the HPB experiment."""

from __future__ import annotations

from flashatlas.reproduce import table
from flashatlas.reproduce.hpb.studies import HPB, STAGES, HpbStudies, layer, read_mean_ns
from flashatlas.reproduce.layered import NONE
from flashatlas.reproduce.table import BEYOND, DERIVED, REPRODUCED, Listing, Table
from flashatlas.results.result import Result
from flashatlas.results.units import size, speed


def tables(hpb: HpbStudies) -> list[Table]:
    """Return every table, in the order of the slides, then the tables beyond them."""
    return [
        claims(hpb),
        implied(hpb),
        *tiobench(hpb),
        mixed(hpb),
        small_caches(hpb),
        phones(hpb),
        settings(hpb),
        together(hpb),
    ]


def _percent(gain: float) -> str:
    return f"{gain - 1:+.1%}"


def _micro(ns: float) -> str:
    return f"{ns / 1e3:,.1f} µs"


def _share(n: float, of: float) -> str:
    return f"{n / of:.1%}" if of else "–"


def claims(hpb: HpbStudies) -> Table:
    """Return the slides' claims beside our numbers."""
    low, high = hpb.experiment["published"]["random_read_gain"]
    rows = []
    for threads in hpb.experiment["tiobench"]["threads"]:
        for stage in STAGES[1:5]:
            said = f"+{low:.0%} to +{high:.0%}" if stage == "RR" else "little or no effect"
            rows.append((f"{stage}, {threads} in flight", said, _percent(hpb.gain(threads, stage))))
        if threads == 1:
            rows += [
                (
                    f"RR, 1 in flight, {host_us} µs at the host",
                    f"+{low:.0%} to +{high:.0%}",
                    _percent(hpb.gain_with_host_time(host_us, "RR")),
                )
                for host_us in hpb.experiment["host_time"]["us"]
            ]
    every = [
        hpb.mixed_gain(r, c)
        for r in hpb.experiment["mixed"]["reads"]
        for c in hpb.experiment["mixed"]["chunks"]
    ]
    rows.append(
        (
            "mixed, all ratios and chunks",
            "better",
            f"{_percent(min(every))} to {_percent(max(every))}",
        )
    )
    note = (
        "Our numbers are the gain of the drive alone: the host takes no time between two reads, "
        "unless a row says so. Nobody measured the time of the host; the next table derives this "
        "time."
    )
    return Table("What the slides say", REPRODUCED, note, ("", "published", "ours"), rows)


def implied(hpb: HpbStudies) -> Table:
    """Return the time at the host that the published range implies."""
    miss, hit = hpb.service_ns(NONE), hpb.service_ns(HPB)
    rows = [
        ("random read, map page loaded", _micro(miss), "measured, one at a time"),
        ("random read by an entry", _micro(hit), "measured, one at a time"),
        ("gain of the drive", _percent(miss / hit), "with no time at the host"),
    ]
    for gain in hpb.experiment["published"]["random_read_gain"]:
        # gain = (2 tR + c) / (tR + c) - 1, the slides' own account of both cases
        ratio = (1 - gain) / gain
        rows.append(
            (
                f"for +{gain:.0%}",
                f"{hpb.implied_overhead_ns(gain) / 1e3:,.0f} µs at the host",
                f"or overhead of {ratio:.2f} tR, if a map page costs a tR: {50 * ratio:.0f} µs "
                "with 50 µs",
            )
        )
    note = (
        "The times of the preset belong to single parts of the drive (devices/ufs-128gb.toml "
        "names a source for each) and were not fitted. Reading a map page takes longer than its "
        "tR: 16 KB need 41 µs on a channel of 400 MB/s. The time that tiobench spent in the file "
        "system and the driver for each read would explain the difference."
    )
    return Table("What the published range implies", DERIVED, note, ("", "time", "how"), rows)


def tiobench(hpb: HpbStudies) -> list[Table]:
    """Return the slides' figure of tiobench."""
    made = []
    for threads in hpb.experiment["tiobench"]["threads"]:
        rows = [
            (stage, speed(without), speed(with_layer), _percent(with_layer / without))
            for stage in STAGES
            for without, with_layer in [
                [hpb.tiobench(threads, stack, stage) for stack in (NONE, HPB)]
            ]
        ]
        note = (
            "The stages follow each other on one drive and one file. The drive's own memory holds "
            "an eighth of the file's map. The host's cache is empty when the first stage begins. "
            "Before the last stage, the random writes have changed every subregion."
        )
        title = f"tiobench, {threads} in flight" if threads > 1 else "tiobench, one at a time"
        made.append(Table(title, REPRODUCED, note, ("stage", NONE, HPB, "gain"), rows))
    return made


def mixed(hpb: HpbStudies) -> Table:
    """Return the slides' figure of mixed work: gains."""
    chunks = hpb.experiment["mixed"]["chunks"]
    rows = []
    for reads in hpb.experiment["mixed"]["reads"]:
        gains = [_percent(hpb.mixed_gain(reads, chunk)) for chunk in chunks]
        found = layer(hpb.of("mixed", (reads, chunks[0]), HPB))
        valid = _share(found["valid_entries"], found["reads"])
        traffic = found["map_bytes"] / (
            hpb.of("mixed", (reads, chunks[0]), HPB).record["host"]["read_bytes"] or 1
        )
        rows.append((f"{reads // 10}:{10 - reads // 10}", *gains, valid, f"{traffic:.2f}"))
    note = (
        "Gain in bytes a second over the drive alone, with 4 KB records and 16 threads (8 threads "
        "in short runs of generated work, whose drive has 8 map pages in memory). The last two "
        "columns are for the smallest chunks: the share of reads that an entry served, and the "
        "bytes of map that the host fetched for each byte that it read. A write makes the 4,096 "
        "entries of its subregion stale."
    )
    head = ("R:W", *(f"chunks of {size(c)}" for c in chunks), "by an entry", "map/read")
    return Table("Mixed reads and writes", REPRODUCED, note, head, rows)


def small_caches(hpb: HpbStudies) -> Table:
    """Return the cost of faster reads if writers fill the drive's memory for its map."""
    chosen = hpb.experiment["cache"]
    rows = []
    for pages in chosen["pages"]:
        runs = [hpb.of("cache", pages, stack).record for stack in (NONE, HPB)]
        rates = [run["bandwidth_bytes_per_s"] for run in runs]
        written = [f"{run['map']['flash_writes']:,}" for run in runs]
        rows.append((str(pages), *map(speed, rates), _percent(rates[1] / rates[0]), *written))
    share = f"{chosen['reads']}:{100 - chosen['reads']}"
    note = (
        f"R:W of {share}, chunks of {size(chosen['chunk'])}, 16 threads, and a file of "
        f"{size(chosen['file'])} on a drive of 4 GiB. Without the layer, most threads wait for "
        "reads, and few write at the same time. With entries, reads are fast, so most threads "
        "write, each to its own map page. If the drive has fewer map pages in memory than there "
        "are writers, every write loads a map page and writes back another."
    )
    head = ("map pages in memory", NONE, HPB, "gain", f"map pages written, {NONE}", HPB)
    return Table("Few map pages in memory", BEYOND, note, head, rows)


def _of_reads(result: Result) -> tuple[str, str, str, str]:
    found, record = layer(result), result.record
    short = found["reads"] - found["miss_long"]
    return (
        _share(found["hits"], found["reads"]),
        _share(found["hits"], short),
        str(found["map_requests"]),
        f"{found['map_bytes'] / (record['host']['read_bytes'] or 1):.3f}",
    )


def phones(hpb: HpbStudies) -> Table:
    """Return phones' traces over host memory."""
    rows: list[tuple[str, ...]] = []
    for phone in hpb.phones:
        without = hpb.phone(phone.name, None)
        mean = read_mean_ns(without)
        rows.append((f"{phone.name}, without", _micro(mean), "", "", "", "", ""))
        for memory in hpb.experiment["phone"]["host_bytes"]:
            result = hpb.phone(phone.name, memory)
            faster = _percent(mean / read_mean_ns(result))
            rows.append(
                (
                    f"{phone.name}, {size(memory)}",
                    _micro(read_mean_ns(result)),
                    faster,
                    *_of_reads(result),
                )
            )
        longer = hpb.of("phone, long reads", phone.name, HPB)
        last = f"{phone.name}, all, reads to {hpb.experiment['phone']['long_reads']}"
        faster = _percent(mean / read_mean_ns(longer))
        rows.append((last, _micro(read_mean_ns(longer)), faster, *_of_reads(longer)))
    note = (
        "One request is sent at a time, to a drive that holds the phone's own data. Entries "
        "accompany reads of 4 KB. In the last row of each phone, longer reads carry an entry for "
        "each page, as the slides propose for further work. The 64 map pages in the drive's "
        "memory serve most reads of a phone, so the gain is smaller than with random reads."
    )
    head = (
        "trace, host memory",
        "read mean",
        "faster",
        "with entries",
        "of short reads",
        "map requests",
        "map/read",
    )
    return Table("Phones", BEYOND, note, head, rows)


def settings(hpb: HpbStudies) -> Table:
    """Return the cost of verification and updates."""
    chosen = hpb.experiment["settings"]

    def row(name: str, stack: str) -> tuple[str, ...]:
        reads, work = (
            hpb.of(study, name, stack) for study in ("settings, reads", "settings, mixed")
        )
        index = STAGES.index("RR")
        rate = hpb.stage("settings, reads", name, stack, index)
        bandwidth = work.record["bandwidth_bytes_per_s"]
        if stack == NONE:
            return (name, _micro(4096 / rate * 1e9), speed(bandwidth), "", "", "", "")
        found = layer(work)
        memory = sum(layer(reads)["memory_bytes"].values())
        refused = sum(n for key, n in found.items() if key.startswith("refused_"))
        return (
            name,
            _micro(4096 / rate * 1e9),
            speed(bandwidth),
            _share(found["valid_entries"], found["reads"]),
            _share(refused, found["reads"]),
            f"{found['map_bytes'] / 1e6:,.1f} MB",
            size(memory),
        )

    rows = [row(NONE, NONE), *(row(name, HPB) for name, _ in chosen["cases"])]
    note = (
        "Random reads one at a time, then 70 % reads of 4 KB with the same number of threads. A "
        "tag needs one hash for each entry (20 ns), and encryption needs eight hashes. A plain "
        "entry and an encrypted entry have 4 bytes, and a tagged entry has 8. If the drive tracks "
        "single pages (4 MB of SRAM for 128 GB) or sends changed entries along, a write makes one "
        "entry stale instead of 4,096."
    )
    head = ("", "random read", "mixed", "by an entry", "refused", "map fetched", "host memory")
    return Table("Verification, and how changes reach the host", BEYOND, note, head, rows)


def together(hpb: HpbStudies) -> Table:
    """Return both layers on one trace."""
    name = hpb.phones[0].name
    rows = []
    for stack in hpb.experiment["together"]["stacks"]:
        result = hpb.of("together", name, stack)
        means = [
            _micro(result.latency[op]["mean"]) if op in result.latency else "–"
            for op in ("read", "write")
        ]
        map_reads = result.record["map"]["flash_reads"]
        waf = f"{result.waf:.2f}" if result.waf is not None else "–"
        rows.append(
            (stack, speed(result.record["bandwidth_bytes_per_s"]), *means, f"{map_reads:,}", waf)
        )
    note = (
        "Requests are sent as fast as the drive completes them. The layers are named from the top "
        "down: `hard+hpb-host` gathers writes over a cached map."
    )
    head = ("layers", "speed", "read mean", "write mean", "map pages read", "WAF")
    return Table(f"Together: {name}, {hpb.phones[0].source}", BEYOND, note, head, rows)


def listings(hpb: HpbStudies) -> list[Listing]:
    """Return the tables for the terminal."""
    return table.listings(tables(hpb))
