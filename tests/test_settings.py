"""Every setting changes a result, or the run refuses the setting by name."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import flashatlas
import mechanism_runs
from drawn import sample
from flashatlas import _core
from flashatlas.results.result import digest_of
from flashatlas.running import api

Run = dict[str, Any]

PARTS = ("schemes", "victims", "classifiers", "maps", "layers", "caching", "hashes", "policies")


@cache
def declared() -> dict[str, dict[str, Any]]:
    """Return every parameter of a drive and of its parts, by key."""
    registries = json.loads(_core.registries())
    found = {param["key"]: param for param in registries["params"]}
    for kind in PARTS:
        for part in registries[kind]:
            found |= {param["key"]: param for param in part["params"]}
    found |= {param["key"]: param for param in registries["lookup_params"]}
    return found


HOT, MIXED, RANDOM = mechanism_runs.HOT, mechanism_runs.MIXED, mechanism_runs.RANDOM
COMMITS, ROOMY = mechanism_runs.COMMITS, ["drive.blocks=128", "drive.logical_pages=2048"]


def bases() -> list[Run]:
    """Return the runs in which one setting at a time is changed."""
    found = mechanism_runs.runs()

    def add(label: str, workload: str, *settings: str, **options: Any) -> None:
        run = {"drive": "tiny", "precondition": "fill", "label": label, "workload": workload}
        timed = {} if options.get("mode") == "open" else {"depth": 4}
        found.append({**run, **timed, "set": list(settings), **options})

    for part in (_collection, _lookups, _shapes, _errors, _stores, _hosts, _controllers):
        part(add)
    return found


def _collection(add: mechanism_runs.Add) -> None:
    add("page", HOT)
    add("page mixed", MIXED)
    for victim in ("fifo", "random", "d-choices", "windowed", "cost-benefit", "cat"):
        add(victim, HOT, f"ftl.victim={victim}")
    for classifier in ("address", "dac", "two-lru"):
        add(classifier, HOT, f"ftl.classifier={classifier}", "ftl.streams=2", "drive.blocks=64")
    for classifier in ("sepbit", "midas"):
        add(classifier, HOT, f"ftl.classifier={classifier}", *ROOMY)
    add("worn", HOT, "nand.endurance=6", "nand.spare_blocks=8", "drive.blocks=64")
    add("single", HOT, "ftl.gc_mode=single")
    add("single mixed", MIXED, "ftl.gc_mode=single")
    add("wear", HOT, "ftl.wear_static=true", "ftl.wear_threshold=2")


def _lookups(add: mechanism_runs.Add) -> None:
    for name in ("shifting", "division", "folding", "radix", "mixer"):
        for ways in (4, 8):
            own = [
                "map.store=lpmt",
                f"lookup.hash={name}",
                "lookup.sets=256",
                f"lookup.ways={ways}",
            ]
            add(f"lpmt {name} {ways}", RANDOM, *own, "lookup.extent_pages=1")
    for policy in ("set-mod", "striped", "dynamic"):
        own = ["map.store=lpmt", f"lookup.policy={policy}", "lookup.ways=16", "lookup.banks=4"]
        spread = ["lookup.spread=2"] if policy != "set-mod" else []
        add(f"lpmt {policy}", RANDOM, *own, *spread, "lookup.extent_pages=1")


def _shapes(add: mechanism_runs.Add) -> None:
    shapes = {
        "units": ["map.unit=512", "drive.planes=2", "drive.frame_planes=2"],
        "wide": ["map.unit=8KiB", "drive.frame_channels=2", "drive.frame_ways=2"],
        "planes": ["drive.dies=2", "drive.planes=2"],
        "small units": ["map.unit=1KiB", "drive.page_bytes=4096"],
        "cached": ["cache.bytes=64KiB"],
        "through": ["cache.mode=write-through"],
        "linked": ["host.link_rate=100MB", "memory.dram_latency=1us"],
        "tlc": [
            "drive.cell=tlc",
            "drive.pages=9",
            "timing.suspend=both",
            "drive.logical_pages=400",
        ],
        "suspends": ["timing.suspend=both", "timing.t_suspend=10us", "timing.suspended_max=100us"],
        "paced": ["ftl.gc_pace=paced", "ftl.gc_step=1"],
        "short of map": ["map.store=learnedftl", "map.page_bytes=256", "map.cache_bytes=512"],
    }
    for label, own in shapes.items():
        add(label, MIXED, *own)
    times = ["timing.t_program_middle=400us", "timing.t_program_upper=1ms"]
    add("three bits", MIXED, "drive.cell=tlc", "drive.pages=9", "drive.logical_pages=400", *times)
    tops = ["timing.t_read_top=90us", "timing.t_program_top=900us"]
    add("four bits", MIXED, "drive.cell=qlc", *tops)
    line = ["drive.cell=tlc", "drive.pages=12", "drive.program_unit=word-line"]
    add("word lines", MIXED, *line, "drive.logical_pages=600")
    add("shadow", MIXED, *mechanism_runs.MLC, "drive.page_order=shadow", *times[:1])
    planes = ["drive.planes=2", "timing.plane_reads=independent"]
    add("own planes", RANDOM, *planes, "timing.plane_reads_max=2")
    three = ["drive.cell=tlc", "drive.pages=12", "drive.logical_pages=1200"]
    add("planes of a kind", RANDOM, *planes, *three, "timing.plane_reads_kinds=same")
    add("status", MIXED, "timing.t_status=1us")
    erases = ["timing.suspend=both", "timing.erase_suspends_max=1", "timing.t_resume_suspend=20us"]
    add("suspended erases", "hotcold:requests=6000,size=2KiB,read=0.5", *erases, depth=16)
    add("copied once", HOT, "ftl.copyback=same-plane", "ftl.copyback_max=1")
    three = ["ftl.program_steps=3", "timing.t_program_third=1ms"]
    add("three steps", f"{HOT},flush_every=20", *mechanism_runs.STEPS, *three)
    rests = ["ftl.flush=plp", "nand.plp_bytes=1MiB"]
    add("capacitors", f"{HOT},flush_every=20", *mechanism_runs.STEPS, *rests)
    add("copies for flushes", f"{HOT},flush_every=20", *mechanism_runs.COPIES)
    other = ["ftl.flush_blocks=0", "ftl.slc=static", "ftl.slc_static=3"]
    add("copies to a cache", f"{HOT},flush_every=20", *mechanism_runs.COPIES, *other)
    worn = ["nand.slc_wear=0", "nand.endurance=2", "nand.spare_blocks=40"]
    add("worn slc", HOT, *mechanism_runs.SLC, *worn)
    add("too fast", "uniform:requests=2000,size=2KiB,interval=1us", mode="open")
    add("cached idle", mechanism_runs.PAUSES, "cache.bytes=64KiB", mode="open")


def _errors(add: mechanism_runs.Add) -> None:
    cells = ["drive.cell=tlc", "drive.pages=12", "drive.logical_pages=600", "ecc.codeword=512"]
    erring = [*cells, "errors.model=tlc-72l", "errors.cycles=3000", "errors.rest_days=300"]
    add("erring at first", MIXED, *cells[:3], "errors.model=tlc-72l")
    add("erring", MIXED, *erring)
    slc = [*mechanism_runs.SLC, "errors.slc_factor=0.5", "ftl.read_reclaim=100"]
    add("erring slc", RANDOM, *erring[3:], *slc)
    add("erring, by reads", RANDOM, *erring, "ftl.read_reclaim=200", "timing.cache_read=true")
    formula = ["e=0.0015", "a=4e-10", "k=2.05", "b=6.3e-5", "m=0.14", "n=0.54"]
    formula += ["g=4e-7", "p=0.33", "q=1.7", "block_spread=0.3", "layer_spread=2", "page_spread=2"]
    own = [f"errors.{constant}" for constant in formula]
    add("erring by the hour", RANDOM, *erring, *own, "errors.time_unit=hour")
    hard = ["ecc.correctable=60", "ecc.decode=8us", "ecc.retry_gain=0.6", "ecc.retry_steps=4"]
    add("retries", RANDOM, *erring, *hard)
    overlap = ["ecc.retry_overlap=true", "timing.cache_read=true"]
    add("retries overlap", RANDOM, *erring, *hard, *overlap)
    soft = ["ecc.soft_correctable=120", "ecc.soft_decode=60us", "ecc.soft_reads=3"]
    add("soft", RANDOM, *erring, "ecc.correctable=40", "ecc.retry_steps=1", *soft)
    add("another code", RANDOM, *erring, "ecc.code=bch")
    failing = ["errors.program_failures=500", "errors.erase_failures=2000", "errors.unreadable=20"]
    add("failing", HOT, *failing, "nand.spare_blocks=8", "drive.blocks=64")
    parity = ["ecc.parity=die", "drive.frame_channels=2", "drive.frame_ways=2"]
    add("parity", MIXED, *parity, "errors.unreadable=2000", "drive.blocks=64")
    late = ["ecc.parity_time=5us", "errors.unreadable=10000", "drive.blocks=64"]
    add("parity, late", MIXED, *parity, *late)
    due = ["ftl.refresh=0.4", "ftl.refresh_check=10ms"]
    add("refreshed", mechanism_runs.PAUSES, *erring, *due, mode="open")
    add("refreshed at work", MIXED, *erring, *due)
    worn = ["nand.endurance=4", "nand.spare_blocks=2", "ftl.worn_out=read-only"]
    add("worn out", HOT, *worn, "drive.blocks=64")


def _stores(add: mechanism_runs.Add) -> None:
    paged = ["map.page_bytes=256", "drive.blocks=128", "drive.logical_pages=2048"]
    framed = ["drive.blocks=128", "drive.logical_pages=9000"]
    framed += ["map.unit=512", "drive.spare_bytes=128"]
    filled = "uniform:requests=3000,size=2KiB,flush_every=20"
    for store in ("demand", "dftl", "cdftl", "sftl", "tpftl", "leaftl", "learnedftl"):
        own = [f"map.store={store}", "map.cache_bytes=4KiB"]
        add(f"{store} commits", COMMITS, *paged, *own)
        shared = ["map.page_bytes=512", f"map.store={store}", "map.cache_bytes=4KiB"]
        add(f"{store} shares frames", filled, *framed, *shared)
        add(f"{store} single", HOT, *paged, *own, "ftl.gc_mode=single")
    add("dram commits", COMMITS, *paged, "map.flush=pages")
    add("dram shares frames", COMMITS, *framed, "map.flush=pages", "map.page_bytes=512")
    add("dram segments", COMMITS, *paged, "map.flush=segments", "map.segment_bytes=256")
    groups = ["map.store=learnedftl", "map.group_pages=1", "ftl.streams=2", "map.cache_bytes=512"]
    add("learnedftl groups", RANDOM, *paged, *groups)
    ahead = ["map.store=demand", "map.policy=readahead", "map.readahead_pages=2"]
    reads = "sequential:requests=4000,size=2KiB,read=1"
    add("demand reads far ahead", reads, *mechanism_runs.MAP, *ahead, "map.cache_bytes=4KiB")
    nvm = ["map.store=nvm-hybrid", "map.segment_bytes=512", "nvm.bytes=2KiB"]
    runs_of_512 = "sequential:requests=600,size=32KiB,flush_every=5"
    shares = ["map.dense_share=0.1", "map.full_share=0.4"]
    add("nvm nearly full", runs_of_512, *mechanism_runs.MAP[1:], *nvm, *shares)
    add("nvm shares frames", COMMITS, *framed, *nvm)


def _hosts(add: mechanism_runs.Add) -> None:
    hpb = ["layers=hpb-host", "hpb.region=64KiB", "hpb.subregion=64KiB", *mechanism_runs.MAP]
    hpb += ["map.store=demand", "map.cache_bytes=2KiB", "map.unit=2KiB"]
    often = ["hpb.activation_reads=1", "hpb.host_bytes=2KiB"]
    seldom = ["hpb.activation_reads=3", "hpb.host_bytes=2KiB", "hpb.max_read=2KiB"]
    both = "uniform:requests=6000,size=2KiB,read=0.5"
    host = ["hpb.control=host", "hpb.eviction_enter=2", "hpb.eviction_exit=5"]
    add("hpb replaces", "zipf:requests=6000,size=2KiB,read=0.95", *hpb, *seldom, *host)
    add("hpb forgets", both, *hpb, *often, "hpb.remark=true", "hpb.max_read=2KiB", depth=16)
    add("hpb long", "uniform:requests=3000,size=8KiB,read=0.8", *hpb, "hpb.max_read=8KiB")


def _controllers(add: mechanism_runs.Add) -> None:
    cores = ["firmware.cores=2", "firmware.unit_time=4us", "firmware.flash_time=6us"]
    add("cores", MIXED, *cores, depth=16)
    shared = ["memory.dram_shared_rate=100MB", "memory.dram_burst=64"]
    add("shared dram", MIXED, *shared, depth=16)
    rates = [f"energy.{part}_nj=7000" for part in ("read", "program", "erase")]
    rates += [f"power.{part}_mw=20" for part in ("channel", "link", "core", "work", "idle")]
    rates += ["host.link_rate=100MB", *cores]
    states = ["power.ps3_after=1ms", "power.ps3_entry=2ms", "power.ps3_exit=3ms", "power.ps3_mw=9"]
    states += ["power.ps4_after=140ms", "power.ps4_entry=9ms", "power.ps4_exit=8ms"]
    states += ["power.ps4_mw=4"]
    add("low power", mechanism_runs.PAUSES, *rates, *states, mode="open")
    gaps = ["host.idle=predicted", "ftl.idle_free=8", "ftl.idle_valid=1"]
    add("predicted gaps", mechanism_runs.PAUSES, *gaps, mode="open")
    slc = [f"energy.{part}_slc_nj=3000" for part in ("read", "program", "erase")]
    add("energy in SLC mode", mechanism_runs.PAUSES, *mechanism_runs.SLC, *slc, mode="open")


def mode_of(params: dict[str, Any], key: str) -> str:
    """Return the settings that decide whether a run may reach the code of a key."""
    scheme = str(params["ftl.scheme"])
    if not key.startswith(("ftl.", "map.")):
        return "any"
    if scheme != "page":
        return scheme
    return f"page {params['map.store' if key.startswith('map.') else 'ftl.gc_mode']}"


def options(base: Run, *more: str) -> dict[str, Any]:
    """Return the arguments of a run in which ``more`` is set, too."""
    arguments = {key: value for key, value in base.items() if key != "label"}
    return {**arguments, "set": [*base["set"], *more]}


def configured(base: Run) -> dict[str, Any]:
    """Return every setting of a run, by key."""
    plan = _core.planned(json.dumps(api.specification(**options(base))))
    params: dict[str, Any] = json.loads(plan)["config"]["params"]
    return params


def pairs() -> dict[tuple[str, str], list[tuple[Run, Any]]]:
    """Return the runs of every key and mode, each with the value of the key in it."""
    found: dict[tuple[str, str], list[tuple[Run, Any]]] = {}
    for base in bases():
        params = configured(base)
        for key, now in params.items():
            found.setdefault((key, mode_of(params, key)), []).append((base, now))
    return dict(sorted(found.items()))


def others(key: str, param: dict[str, Any], now: Any) -> list[str]:
    """Return values to try for a parameter whose value is `now`."""
    limits = param["range"]
    values: list[Any] = []
    if key in TEXTS:
        values = TEXTS[key]
    elif isinstance(now, bool):
        values = [str(not now).lower()]
    elif limits.startswith("a time"):
        values = ["3us", "1ms", "200us", "40ms", "0us"]
    elif "bytes a second" in limits:
        values = ["10MB", "400MB"]
    elif isinstance(now, float):
        values = [now * 2, now / 2, 0.1, 0.9, now + 1, 1, 3, 8]
    elif isinstance(now, int):
        values = [now * 2, now // 2, now + 1, now - 1, 1, 3, 8, 0, 64, 512, 4096, 1_000_000]
    elif ", " in limits:
        values = limits.split(", ")
    return [str(value) for value in dict.fromkeys(values) if value != now and str(value)[0] != "-"]


TEXTS: dict[str, list[str]] = {
    "drive.allocation": ["WCDP", "PDWC"],
    "timing.priority": ["gc,idle,map,host_write,host_read"],
    "dram.constraints": ["ras", "none"],
    "dram.ccd_s": ["5", "6"],
    "hpb.pressure": ["50ms=2KiB"],
    "layers": ["mirror"],
    "lookup.radix_to": ["13", "17"],
    "mirror.lose": ["0@5ms"],
    "lookup.divisor": ["7"],
}
"""Values to try for keys whose range alone does not give useful values."""


SPARE = "limits the use of the spare areas, which are not simulated otherwise: see `no-ecc-time`"
SUM = "with the other parts it makes `ftl.log_blocks`: any other number is refused"
DEVICE = "limits the place of the tables: tables that do not fit are refused"

NOTHING: dict[str, str] = {
    "dram.device_banks": DEVICE,
    "dram.rows": DEVICE,
    "drive.spare_bytes": SPARE,
    "drive.summary": "describes the drive",
    "ftl.cold_blocks": SUM,
    "ftl.idle_free page single": "only 0 is accepted, because single mode does the same",
    "hpb.key": "changes the bits of entries, but not which entries are right",
    "lookup.on_delete": "a drive refuses `leave`, which `flashatlas lookup` takes",
    "lookup.secondary_sets": "a secondary table that any hash may fill holds every address",
    "map.dram_bytes": "limits the map: a map that does not fit is refused",
    "mirror.resync": "copies after a power failure, and these runs have none",
    "nand.data": "keeps bytes beside the stamps that stand for them",
    "nand.plp_bytes": "limits what capacitors finish, and these runs have no power failure",
}
"""Keys that change no result, and the reason. `KEY MODE` holds in one mode only."""


@cache
def found(arguments: str) -> str:
    """Return the digest of a run's results, without its settings."""
    result = flashatlas.run(**json.loads(arguments))
    record = {key: value for key, value in result.record.items() if key != "config"}
    return digest_of({**record, "config": {}}, result.tables, None)


def fate(key: str, runs: list[tuple[Run, Any]]) -> str:
    """Return the effect of other values of a key: `changes`, `refused` or `nothing`."""
    taken = False
    for base, now in runs[::-1]:
        for value in others(key, declared()[key], now):
            changed = options(base, f"{key}={value}")
            try:
                _core.planned(json.dumps(api.specification(**changed)))
            except flashatlas.FlashAtlasError as error:
                assert "." in str(error), error
                continue
            try:
                differs = found(json.dumps(changed)) != found(json.dumps(options(base)))
            except flashatlas.FlashAtlasError:
                return "changes"
            if differs:
                return "changes"
            taken = True
    return "nothing" if taken else "refused"


def reason(key: str, mode: str) -> str | None:
    return NOTHING.get(key) or NOTHING.get(f"{key} {mode}")


def test_every_setting_changes_a_result_or_is_refused_where_it_cannot() -> None:
    modes: dict[str, dict[str, list[tuple[Run, Any]]]] = {}
    for (key, mode), runs in pairs().items():
        modes.setdefault(key, {})[mode] = runs
    wrong = []
    for key in sample(list(modes), 20):
        became = {}
        for mode, runs in modes[key].items():
            listed = reason(key, mode)
            became[mode] = fate(key, runs[-FEW:] if listed else runs)
            if (became[mode] == "nothing") > bool(listed) or (became[mode] == "changes" and listed):
                wrong.append(f"{key}, {mode}: {became[mode]}, {listed or 'no reason'}")
        if "changes" not in became.values() and key not in NOTHING:
            wrong.append(f"{key}: {became}")
    assert not wrong, "\n".join(wrong)


def test_every_key_of_a_drive_has_a_run() -> None:
    keys = {key for key, _ in pairs()}
    of_lookup = {param["key"] for param in json.loads(_core.registries())["lookup_params"]}
    # a drive holds drive.capacity as two other keys (crates/device/tests/suite/config.rs)
    assert declared().keys() - keys == (of_lookup - keys) | {"drive.capacity"}
    listed = {key.split()[0] for key in NOTHING}
    assert not listed - keys


FEW = 5
"""The number of runs in which a listed key is tried. All runs were tried once; none changed."""
