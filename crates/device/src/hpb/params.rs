//! Parameters on which drive and host agree.

use flashatlas_types::{Dur, Param, ParamDef, Text};

/// The parameter `hpb.region`.
pub const REGION: Param<u64> = Param::bytes(
    "hpb.region",
    512,
    1 << 40,
    "bytes of the drive that a region covers; the host drops whole regions (JEDEC: \
     bHPBRegionSize)",
)
.or("16MiB");

/// The parameter `hpb.subregion`.
pub const SUBREGION: Param<u64> = Param::bytes(
    "hpb.subregion",
    512,
    1 << 40,
    "bytes that a subregion covers; the host fetches whole subregions, and one changed entry makes \
     all entries of its subregion stale (the paper calls it a group; 16 MB: one map page of the \
     paper)",
)
.or("16MiB");

/// The parameter `hpb.control`.
pub const CONTROL: Param<Text> = Param::choice(
    "hpb.control",
    &["device", "host"],
    "who decides which subregions the host caches: the drive recommends them (`device`), or the \
     host counts its reads (`host`)",
)
.or("device");

/// The parameter `hpb.update`.
pub const UPDATE: Param<Text> = Param::choice(
    "hpb.update",
    &["fetch", "piggyback"],
    "how changed entries reach the host: the host fetches the subregion (`fetch`), or responses \
     carry the entries (`piggyback`, only with hpb.protect = plain)",
)
.or("fetch");

/// The parameter `hpb.protect`.
pub const PROTECT: Param<Text> = Param::choice(
    "hpb.protect",
    &["plain", "tagged", "encrypted"],
    "form of an entry: 4 bytes that anyone may forge (`plain`), 8 bytes with generation and tag \
     (`tagged`), or 4 bytes, encrypted (`encrypted`)",
)
.or("tagged");

/// The parameter `hpb.dirty`.
pub const DIRTY: Param<Text> = Param::choice(
    "hpb.dirty",
    &["group", "page"],
    "unit in which the drive tracks changes: a bit for each subregion (`group`), or a bit for \
     each page (`page`; 4 MB of SRAM for 128 GB)",
)
.or("group");

/// The parameter `hpb.max_read`.
pub const MAX_READ: Param<u64> = Param::bytes(
    "hpb.max_read",
    512,
    1 << 40,
    "the longest read that carries entries, one for each of its pages (HPB 1.0: 4 KB, with \
     room for one entry; longer reads need a header segment of UFS 3.0)",
)
.or("4KiB");

/// The parameter `hpb.activation_reads`.
pub const ACTIVATION_READS: Param<u32> = Param::int(
    "hpb.activation_reads",
    1,
    1 << 20,
    "number of reads after which a subregion that the host does not cache is fetched (Linux: 8)",
)
.or("8");

/// The parameter `hpb.refresh_reads`.
pub const REFRESH_READS: Param<u32> = Param::int(
    "hpb.refresh_reads",
    1,
    1 << 20,
    "number of reads after which a changed subregion is fetched again",
)
.or("4");

/// The parameter `hpb.active_regions`.
pub const ACTIVE_REGIONS: Param<u32> = Param::int(
    "hpb.active_regions",
    0,
    1 << 20,
    "greatest number of regions that the drive tells the host to cache at the same time; 0: all",
)
.or("0");

/// The parameter `hpb.pairs`.
pub const PAIRS: Param<u32> = Param::int(
    "hpb.pairs",
    1,
    4096,
    "entries that one response carries, with hpb.update = piggyback",
)
.or("8");

/// The parameter `hpb.changes`.
pub const CHANGES: Param<u32> = Param::int(
    "hpb.changes",
    1,
    1 << 24,
    "largest number of changed entries that wait in the drive for a response; if more entries \
     change, the host must fetch their subregion",
)
.or("4096");

/// The parameter `hpb.hash_time`.
pub const HASH_TIME: Param<Dur> = Param::time(
    "hpb.hash_time",
    "the drive's time for a SipHash-2-4 of an entry: 8 rounds of one cycle each at 400 MHz \
     (assumed)",
)
.or("20ns");

/// The parameter `hpb.key`.
pub const KEY: Param<u64> = Param::int(
    "hpb.key",
    0,
    u64::MAX,
    "seed that the drive's keys are drawn from, so that runs can be repeated (a real drive takes \
     noise)",
)
.or("1");

/// All parameters of HPB.
pub const PARAMS: &[ParamDef] = &[
    REGION.def,
    SUBREGION.def,
    CONTROL.def,
    UPDATE.def,
    PROTECT.def,
    DIRTY.def,
    MAX_READ.def,
    ACTIVATION_READS.def,
    REFRESH_READS.def,
    ACTIVE_REGIONS.def,
    PAIRS.def,
    CHANGES.def,
    HASH_TIME.def,
    KEY.def,
];
