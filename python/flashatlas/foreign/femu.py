"""FEMU's black-box mode (Li and others, FAST 2018): the properties of its QEMU device.

FEMU collects lines, which are blocks of all dies together; our drive collects in each die by
itself. FEMU has no write cache, and writes one flash page at a time. The properties are taken from
MoatLab/FEMU at commit 99ce4fb (August 2026), ``hw/femu/femu.c``.
"""

from __future__ import annotations

from flashatlas._core import InputError
from flashatlas.foreign.description import DriveFile
from flashatlas.foreign.keys import Given, left_out, nothing, refused, table, used

DEFAULTS = {
    "devsz_mb": 1024,
    "secsz": 512,
    "secs_per_pg": 8,
    "pgs_per_blk": 256,
    "blks_per_pl": 256,
    "pls_per_lun": 1,
    "luns_per_ch": 8,
    "nchs": 8,
    "pg_rd_lat": 40_000,
    "pg_wr_lat": 200_000,
    "blk_er_lat": 2_000_000,
    "ch_xfer_lat": 0,
    "gc_thres_pcent_high": 95,
    "op_pcent": 0,
    "mapping_cache_mb": 0,
    "cell_pages": 0,
    "pgtype_lat": 0,
    "queues": 8,
    "entries": 0x7FF,
    "pcie_bandwidth_mbps": 0,
    "pcie_prop_delay_ns": 0,
}
"""FEMU's defaults of numbers."""

FROM_ZERO = {
    "pg_rd_lat",
    "pg_wr_lat",
    "blk_er_lat",
    "ch_xfer_lat",
    "op_pcent",
    "mapping_cache_mb",
    "cell_pages",
    "pgtype_lat",
    "pcie_bandwidth_mbps",
    "pcie_prop_delay_ns",
}
"""Numbers that may be 0."""

GEOMETRY = {
    "nchs": "drive.channels",
    "luns_per_ch": "drive.ways",
    "pls_per_lun": "drive.planes",
    "blks_per_pl": "drive.blocks",
    "pgs_per_blk": "drive.pages",
}

TIMES = {"pg_rd_lat": "timing.t_read", "blk_er_lat": "timing.t_erase"}

VICTIMS = {
    "greedy": "greedy",
    "random": "random",
    "cost-benefit": "cost-benefit",
    "fifo": "fifo",
    "d-choice": "d-choices",
}
"""Values of ``gc_policy`` (``ftl-line-gc.c``) and our policies. Any other is greedy in FEMU."""

D_CHOICES = 4
"""Number of lines that ``gc_policy=d-choice`` draws."""

DFTL_CACHE_MB = 4
"""The cache of ``mapping=dftl`` if its size is not given, in MB."""

ENTRY_BYTES = 8
"""Bytes of an entry of FEMU's map."""

LEVELS = {
    1: ("slc", {"": 1000}),
    2: ("mlc", {"": 600, "_middle": 1400}),
    3: ("tlc", {"": 600, "_middle": 1000, "_upper": 1400}),
    4: ("qlc", {"": 500, "_middle": 850, "_upper": 1150, "_top": 1500}),
}
"""The cell of each ``cell_pages``; page times in thousandths of pg_wr_lat (``ftl-media.c``)."""

KINDS = ("", "_middle", "_upper", "_top")
"""Endings of our times, for the pages of a word line in order."""

CELL_TYPES = {
    "1": ("slc", (40_000,), (800_000,), 2_000_000),
    "2": ("mlc", (48_000, 64_000), (850_000, 2_300_000), 3_000_000),
    "3": ("tlc", (56_500, 77_500, 106_000), (820_500, 2_225_000, 5_734_000), 3_000_000),
    "4": (
        "qlc",
        (59_325, 85_250, 127_200, 169_600),
        (861_525, 2_447_500, 6_880_800, 9_174_400),
        3_000_000,
    ),
}
"""The cell of each ``nand_cell_type``, and its times to read, program and erase (``nand.h``)."""

OTHER_MODES = "belongs to another mode than black-box"
IDENTIFY = "the controller announces it to the guest; here the workload decides what is sent"

KEYS = table(
    refused("femu_mode", "1", "black-box mode, the only mode with an FTL"),
    used("secsz", "`drive.page_bytes`, `map.unit`: secsz x secs_per_pg"),
    used("secs_per_pg", "`drive.page_bytes`, `map.unit`: secsz x secs_per_pg"),
    *[used(name, f"`{ours}`") for name, ours in GEOMETRY.items()],
    *[used(name, f"`{ours}`, in nanoseconds") for name, ours in TIMES.items()],
    used("pg_wr_lat", "`timing.t_program`, in nanoseconds"),
    used("ch_xfer_lat", "`timing.channel_rate`: a page in this time (FEMU itself charges none)"),
    used("devsz_mb", "`drive.logical_pages`; ignored with `op_pcent`, as in FEMU"),
    used("op_pcent", "`drive.logical_pages`: flash / (1 + op_pcent / 100); 0: `devsz_mb` decides"),
    used("gc_thres_pcent_high", "`ftl.low_water`: (1 - gc_thres_pcent_high / 100) x blks_per_pl"),
    left_out(
        "gc_thres_pcent",
        "above this share FEMU also collects after each request; our drive does so in idle time "
        "(`ftl.idle_free`)",
    ),
    used("gc_policy", "`ftl.victim`: " + ", ".join(VICTIMS) + " (`ftl.d` = 4)"),
    used("mapping", "`map.store`: page sets `dram`, dftl sets `demand` (it caches map pages)"),
    used("mapping_cache_mb", "`map.cache_bytes`; an error without `mapping=dftl`"),
    used("pgtype_lat", "`timing.t_program*`: a time for each kind of page of `cell_pages`"),
    used("cell_pages", "`drive.cell` and `timing.t_program*`, if `pgtype_lat` is on: 1 to 4"),
    used("queues", "`host.queue_depth`: queues x entries, if one is given; otherwise ours"),
    used("entries", "`host.queue_depth`: queues x entries, if one is given; otherwise ours"),
    used("pcie_bandwidth_mbps", "`host.link_rate`"),
    used("pcie_prop_delay_ns", "`host.command_time`"),
    refused("read_cache_mb", "0", "our drive has no read cache"),
    *nothing("cache_evict", "belongs to the read cache, which is refused"),
    used(
        "nand_cell_type",
        "`drive.cell`, `timing.t_read`, `timing.t_program`, `timing.t_erase`: the times of FEMU's "
        "table; 1 to 4, and a note about the order of pages",
    ),
    refused(
        "trim_lat_ns",
        "0",
        "a trim has no time of its own; `host.command_time` holds for all commands",
    ),
    refused(
        "fw_cpu_ns", "0", "a CPU that all commands share is not modelled; set `host.command_time`"
    ),
    refused(
        "err_read_unc_ppm",
        "0",
        "there, a read fails and the next one does not; set `errors.unreadable`, which makes a "
        "page unreadable for good",
    ),
    refused(
        "err_write_fail_ppm",
        "0",
        "there, the host gets an error; set `errors.program_failures`, which takes the block out "
        "of use, and the host gets none",
    ),
    refused("namespaces", "1", "a drive has one namespace"),
    refused("namespace_sizes", "", "a drive has one namespace; give `devsz_mb`"),
    refused("namespace_modes", "", "a drive has one namespace"),
    refused("subsys", "", "flexible data placement is not modelled"),
    *nothing(
        "gc_strategy fdp_trim_erase_all", "belongs to flexible data placement, which is refused"
    ),
    *nothing(
        "ecc_step_ns cmd_addr_lat pg_xfer_lat status_lat tplpbsy tplrbsy tplebsy trcbsy",
        "FEMU's black-box drive waits only for its LUN, and charges no time for these",
    ),
    *nothing("nand_bad_blocks", "FEMU reports it in SMART; it changes the place of no page"),
    *nothing("debug_ftl", "FEMU checks itself"),
    *nothing("multipoller_enabled poller_ratio hiops_inline", "threads of the emulator"),
    *nothing(
        "serial vid did mdts vwc oncs oacs max_cqes max_sqes stride aerl acl elpe cqr intc "
        "intc_thresh intc_time ms ms_max dlfeat mpsmin mpsmax nlbaf lba_index extended dpc dps mc "
        "meta cmbsz cmbloc sgl",
        IDENTIFY,
    ),
    *nothing(
        "flash_type lver lsec_size lsecs_per_pg lpgs_per_blk lmax_sec_per_rq lnum_ch lnum_lun "
        "lnum_pln lmetasize fdm_size nr_cu nr_thread time_slice context_switch_time "
        "csf_runtime_scale zns_num_ch zns_num_lun zns_num_plane zns_num_blk zns_flash_type "
        "zns_max_active zns_max_open zns_zd_ext_size zns_num_conv_zones zns_zone_cap "
        "zns_chnls_per_zone zns_zrwa_size zns_zrwafg_size zns_zrwa_num zns_cross_zone_read "
        "zns_zasl_bs",
        OTHER_MODES,
    ),
    *nothing("id bus addr", "the device's place in QEMU"),
)
"""Every property of FEMU's device."""


def described(what: str) -> DriveFile:
    """Return the drive of ``femu,devsz_mb=12288,…``: the text that QEMU's ``-device`` takes.

    Raises:
        InputError: The text is not FEMU's, is not in black-box mode, has an unknown or refused
            property, or has a value that makes no sense.

    """
    name, *properties = what.split(",")
    if name.strip() != "femu":
        raise InputError(
            f"femu:{what}: write the text of QEMU's -device: femu:femu,devsz_mb=12288,nchs=8"
        )
    found: dict[str, str] = {}
    for one in properties:
        key, equals, value = (part.strip() for part in one.partition("="))
        if not equals:
            raise InputError(f"femu: {one!r} has no `=`; write PROPERTY=VALUE")
        if key in found:
            raise InputError(f"femu: {key} is given twice")
        found[key] = value
    return _drive(Given("femu", KEYS, found))


def _drive(given: Given) -> DriveFile:
    values = {
        name: given.whole(name, int(name not in FROM_ZERO), str(default))
        for name, default in DEFAULTS.items()
    }
    drive = DriveFile("FEMU's black-box drive")
    for name, key in GEOMETRY.items():
        drive.set(key, values[name], name)
    drive.set("drive.dies", 1, "a LUN is a die")
    page = values["secsz"] * values["secs_per_pg"]
    drive.set("drive.page_bytes", page, "secsz x secs_per_pg")
    drive.set("drive.spare_bytes", max(page // 32, 16), "FEMU has no spare area: the usual size")
    drive.set("map.unit", page, "FEMU maps pages")
    _capacity(values, page, drive)
    for name, key in TIMES.items():
        drive.set(key, f"{values[name]}ns", name)
    _programs(values, drive)
    _cells(given, drive)
    if transfer := values["ch_xfer_lat"]:
        drive.set("timing.channel_rate", f"{page * 1000 / transfer}MB", "a page in ch_xfer_lat")
    else:
        drive.set("timing.channel_rate", "0", "ch_xfer_lat = 0: transfers take no time")
    drive.set("cache.mode", "write-through", "FEMU has no write cache")
    _host(given, values, drive)
    share = 1 - values["gc_thres_pcent_high"] / 100
    low = max(int(share * values["blks_per_pl"]), 2)
    drive.set("ftl.low_water", low, "free lines at gc_thres_pcent_high")
    policy = given.one_of("gc_policy", VICTIMS, "greedy")
    drive.set("ftl.victim", policy, "gc_policy: FEMU chooses lines, our drive blocks")
    if policy == "d-choices":
        drive.set("ftl.d", D_CHOICES, "the lines that d-choice draws")
    _map(given, values, page, drive)
    drive.leave(given.left)
    return drive


def _capacity(values: dict[str, int], page: int, drive: DriveFile) -> None:
    if op := values["op_pcent"]:
        flash = page
        for name in GEOMETRY:
            flash *= values[name]
        drive.set(
            "drive.logical_pages",
            flash * 100 // (100 + op) // page,
            f"flash / {1 + op / 100:g} (op_pcent); devsz_mb is ignored",
        )
    else:
        pages = values["devsz_mb"] * 2**20 // page
        drive.set("drive.logical_pages", pages, "devsz_mb, in pages")


def _programs(values: dict[str, int], drive: DriveFile) -> None:
    cell, thousandths = LEVELS[1]
    if values["pgtype_lat"]:
        bits = values["cell_pages"] or 3
        if bits not in LEVELS:
            raise InputError(
                f"femu: cell_pages = {bits} is out of range; give 1 to 4: cells are SLC to QLC"
            )
        cell, thousandths = LEVELS[bits]
    source = "cell_pages" if values["pgtype_lat"] else "all pages of FEMU take the same time"
    drive.set("drive.cell", cell, source)
    for kind, share in thousandths.items():
        time = values["pg_wr_lat"] * share // 1000
        drive.set(f"timing.t_program{kind}", f"{time}ns", "pg_wr_lat")


def _cells(given: Given, drive: DriveFile) -> None:
    """Set the times of a cell type. They take the place of all other times of the flash."""
    chosen = given.one_of("nand_cell_type", {"0": None, **CELL_TYPES}, "0")
    if chosen is None:
        return
    cell, reads, programs, erase = chosen
    source = "nand_cell_type"
    drive.set("drive.cell", cell, source)
    for kind, read, program in zip(KINDS, reads, programs, strict=False):
        drive.set(f"timing.t_read{kind}", f"{read}ns", source)
        drive.set(f"timing.t_program{kind}", f"{program}ns", source)
    drive.set("timing.t_erase", f"{erase}ns", source)
    if len(reads) > 1:
        drive.leave(["nand_cell_type's order of pages in a block"])


def _host(given: Given, values: dict[str, int], drive: DriveFile) -> None:
    if "queues" in given.found or "entries" in given.found:
        depth = min(values["queues"] * values["entries"], 65536)
        drive.set("host.queue_depth", depth, "queues x entries")
    if rate := values["pcie_bandwidth_mbps"]:
        drive.set("host.link_rate", f"{rate}MB", "pcie_bandwidth_mbps")
    if delay := values["pcie_prop_delay_ns"]:
        drive.set("host.command_time", f"{delay}ns", "pcie_prop_delay_ns")


def _map(given: Given, values: dict[str, int], page: int, drive: DriveFile) -> None:
    megabytes = values["mapping_cache_mb"]
    scheme = given.text("mapping", "page")
    if scheme in ("fast", "hybrid"):
        raise InputError(
            f"femu: mapping = {scheme!r}: leave it out and add `--set ftl.scheme=fast`, which has "
            "parameters of its own"
        )
    if given.one_of("mapping", {"page": False, "dftl": True}, "page"):
        drive.set("map.store", "demand", "mapping = dftl, whose cache holds map pages")
        size = (megabytes or DFTL_CACHE_MB) << 20
        drive.set("map.cache_bytes", size, "mapping_cache_mb")
        drive.set("map.page_bytes", page, "a flash page")
        drive.set("map.entry_bytes", ENTRY_BYTES, "FEMU's entries")
    elif megabytes:
        raise InputError(
            f"femu: mapping_cache_mb = {megabytes}: FEMU uses it with mapping=dftl only; add that"
        )
