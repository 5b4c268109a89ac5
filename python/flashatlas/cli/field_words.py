"""Words of the field that FlashAtlas names differently, or whose features it does not model.

``explain`` looks a word up here before it searches for names with a similar spelling.
"""

from __future__ import annotations

CALLED = {
    "waf": ("number", "waf"),
    "write_amplification": ("number", "waf"),
    "iops": ("number", "iops"),
    "throughput": ("number", "bandwidth_bytes_per_s"),
    "bandwidth": ("number", "bandwidth_bytes_per_s"),
    "latency": ("number", "latency_ns"),
    "p50": ("number", "latency_ns.read.p50"),
    "p99": ("number", "latency_ns.read.p99"),
    "p999": ("number", "latency_ns.read.p99_9"),
    "p99.9": ("number", "latency_ns.read.p99_9"),
    "tail_latency": ("number", "latency_ns.read.p99_9"),
    "gc_threshold": ("key", "ftl.low_water"),
    "gc_watermark": ("key", "ftl.low_water"),
    "watermark": ("key", "ftl.low_water"),
    "gc_policy": ("key", "ftl.victim"),
    "victim_selection": ("key", "ftl.victim"),
    "garbage_collection": ("key", "ftl.gc_mode"),
    "gc": ("key", "ftl.gc_mode"),
    "op": ("key", "drive.over_provisioning"),
    "overprovisioning": ("key", "drive.over_provisioning"),
    "over_provisioning": ("key", "drive.over_provisioning"),
    "spare_area": ("key", "drive.over_provisioning"),
    "ftl": ("key", "ftl.scheme"),
    "mapping": ("key", "ftl.scheme"),
    "cmt": ("key", "map.cache_bytes"),
    "cmt_size": ("key", "map.cache_bytes"),
    "mapping_cache": ("key", "map.cache_bytes"),
    "l2p": ("key", "map.store"),
    "write_buffer": ("key", "cache.bytes"),
    "write_cache": ("key", "cache.bytes"),
    "page_size": ("key", "drive.page_bytes"),
    "trd": ("key", "timing.t_read"),
    "tr": ("key", "timing.t_read"),
    "tprog": ("key", "timing.t_program"),
    "tbers": ("key", "timing.t_erase"),
    "pe_cycles": ("key", "nand.endurance"),
    "smart_log": ("number", "smart"),
    "data_units_written": ("number", "smart"),
    "percentage_used": ("number", "smart.percentage_used"),
    "percent_used": ("number", "smart.percentage_used"),
    "avail_spare": ("number", "smart.available_spare"),
    "total_lbas_written": ("number", "host.write_bytes"),
    "total_lbas_read": ("number", "host.read_bytes"),
    "wear_leveling_count": ("number", "wear.mean"),
    "reallocated_sector_ct": ("number", "wear.retired_blocks"),
    "wear_leveling": ("key", "ftl.wear_static"),
    "wear_levelling": ("key", "ftl.wear_static"),
    "suspend": ("key", "timing.suspend"),
    "dram_bandwidth": ("key", "memory.dram_shared_rate"),
    "memory_bandwidth": ("key", "memory.dram_shared_rate"),
    "queue_depth": ("key", "host.queue_depth"),
    "iodepth": ("key", "host.queue_depth"),
    "slc": ("key", "drive.cell"),
    "qlc": ("key", "drive.cell"),
    "slc_cache": ("key", "ftl.slc"),
    "pseudo_slc": ("key", "ftl.slc"),
    "turbowrite": ("key", "ftl.slc"),
    "slc_buffer": ("key", "ftl.slc"),
    "one_shot": ("key", "drive.program_unit"),
    "copyback": ("key", "ftl.copyback"),
    "copy_back": ("key", "ftl.copyback"),
    "internal_data_move": ("key", "ftl.copyback"),
    "foggy_fine": ("key", "ftl.program_steps"),
    "multi_step_program": ("key", "ftl.program_steps"),
    "paired_pages": ("key", "drive.page_order"),
    "shared_pages": ("key", "drive.page_order"),
    "shadow_program": ("key", "drive.page_order"),
    "lower_page_backup": ("key", "ftl.lower_pages"),
    "plp": ("key", "nand.plp_bytes"),
    "power_loss_protection": ("key", "nand.plp_bytes"),
    "capacitors": ("key", "nand.plp_bytes"),
    "independent_plane_reads": ("key", "timing.plane_reads"),
    "word_line": ("key", "drive.program_unit"),
    "errors": ("key", "errors.model"),
    "bit_errors": ("key", "errors.model"),
    "rber": ("key", "errors.model"),
    "retention": ("key", "errors.model"),
    "read_disturb": ("key", "errors.model"),
    "ecc": ("key", "ecc.code"),
    "read_retry": ("key", "ecc.retry_steps"),
    "raid": ("key", "ecc.parity"),
    "rain": ("key", "ecc.parity"),
    "parity": ("key", "ecc.parity"),
    "refresh": ("key", "ftl.refresh"),
    "throttle": ("key", "ftl.throttle_from"),
    "throttling": ("key", "ftl.throttle_from"),
    "write_throttling": ("key", "ftl.throttle_from"),
    "idle_prediction": ("key", "host.idle"),
    "idle_detection": ("key", "host.idle"),
    "background_gc": ("key", "host.idle"),
    "preemptible_gc": ("key", "timing.priority"),
    "semi_preemptive_gc": ("key", "timing.priority"),
    "multi_stream": ("key", "ftl.streams"),
    "multistream": ("key", "ftl.streams"),
    "stripe": ("term", "lane"),
    "superpage": ("term", "frame"),
    "discard": ("term", "TRIM"),
    "steady_state": ("term", "numbers are steady"),
    "not_steady": ("term", "numbers are steady"),
    "unsteady": ("term", "numbers are steady"),
    "hollow": ("term", "numbers are steady"),
}
"""FlashAtlas's name for a word: a number of a record, a key, or a term of the glossary."""

MEANING = {
    "waf": "WAF",
    "iops": "IOPS",
    "bandwidth_bytes_per_s": "throughput",
    "latency_ns": "latency",
    "latency_ns.read.p50": "percentile",
    "latency_ns.read.p99": "percentile",
    "latency_ns.read.p99_9": "percentile",
    "smart": "SMART log",
    "smart.percentage_used": "SMART log",
    "smart.available_spare": "SMART log",
    "host.write_bytes": "SMART log",
    "host.read_bytes": "SMART log",
    "wear.mean": "SMART log",
    "wear.retired_blocks": "SMART log",
}
"""The term of the glossary that explains a number."""

COMMANDS = {
    "simulate": "run",
    "sim": "run",
    "bench": "run",
    "benchmark": "run",
    "replay": "run",
    "plot": "figure",
    "graph": "figure",
    "export": "table",
    "precondition": "checkpoint",
    "help": "--help",
    "devices": "drives",
    "presets": "drives",
    "reproduction": "reproduce",
    "fuzz": "check",
    "nbd": "serve",
}
"""FlashAtlas's name for a command of other tools."""

FEMU, MQSIM = "FEMU", "MQSim"

NOT_MODELLED: dict[str, tuple[str, str]] = {
    "plc": ("cells of five bits; `drive.cell` has slc, mlc, tlc and qlc", ""),
    "temperature": ("heat, and throttling because of it", ""),
    "zns": ("zoned namespaces", FEMU),
    "fdp": ("flexible data placement", FEMU),
    "open_channel": ("a drive whose flash the host manages", FEMU),
    "kv": ("a key-value command set", FEMU),
    "namespaces": ("several namespaces of one drive", ""),
    "multi_queue": ("several submission queues of one host", MQSIM),
}
"""Features that FlashAtlas does not model: a description, and a simulator with the feature."""


def term(word: str) -> str | None:
    """Return the glossary's term for a word in singular or plural; ``None`` if there is none."""
    # import late: importing the package of reports takes longer than most commands
    from flashatlas.report.glossary import TERMS  # noqa: PLC0415

    known = {plain(one): one for one in TERMS}
    word = plain(word)
    return known.get(word) or known.get(word.removesuffix("s"))


def plain(word: str) -> str:
    """Return a word in the form of the tables: lower case, underscores, no leading dashes."""
    return word.strip().lstrip("-").lower().replace("-", "_").replace(" ", "_")
