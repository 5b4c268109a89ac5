//! Parameters on which drive and host agree.

use flashatlas_types::{Dur, Param, ParamDef, Text};

/// The parameter `hpb.region`.
pub const REGION: Param<u64> = Param::bytes(
    "hpb.region",
    512,
    1 << 40,
    "bytes of the drive that a region covers: the host drops regions (JEDEC: bHPBRegionSize)",
)
.or("16MiB");

/// The parameter `hpb.subregion`.
pub const SUBREGION: Param<u64> = Param::bytes(
    "hpb.subregion",
    512,
    1 << 40,
    "bytes that a subregion covers: what is fetched at once, and what one changed entry makes \
     stale (the paper's group; 16 MB: one of its map pages)",
)
.or("16MiB");

/// The parameter `hpb.control`.
pub const CONTROL: Param<Text> = Param::choice(
    "hpb.control",
    &["device", "host"],
    "who decides what the host caches: the drive recommends subregions, or the host counts its \
     reads",
)
.or("device");

/// The parameter `hpb.update`.
pub const UPDATE: Param<Text> = Param::choice(
    "hpb.update",
    &["fetch", "piggyback"],
    "how entries that have changed reach the host: it fetches the subregion, or they come with \
     responses (only with hpb.protect = plain)",
)
.or("fetch");

/// The parameter `hpb.protect`.
pub const PROTECT: Param<Text> = Param::choice(
    "hpb.protect",
    &["plain", "tagged", "encrypted"],
    "entries of 4 bytes that anyone may forge; of 8 with generation and tag; of 4, encrypted",
)
.or("tagged");

/// The parameter `hpb.dirty`.
pub const DIRTY: Param<Text> = Param::choice(
    "hpb.dirty",
    &["group", "page"],
    "what the drive knows to have changed: subregions, a bit each; or pages, a bit each (4 MB of \
     SRAM for 128 GB)",
)
.or("group");

/// The parameter `hpb.max_read`.
pub const MAX_READ: Param<u64> = Param::bytes(
    "hpb.max_read",
    512,
    1 << 40,
    "the longest read that brings entries along, one for each page of it (HPB 1.0: 4 KB, which has \
     room for one; longer ones need a header segment of UFS 3.0)",
)
.or("4KiB");

/// The parameter `hpb.activation_reads`.
pub const ACTIVATION_READS: Param<u32> = Param::int(
    "hpb.activation_reads",
    1,
    1 << 20,
    "reads of a subregion that the host does not cache after which it is fetched (Linux: 8)",
)
.or("8");

/// The parameter `hpb.refresh_reads`.
pub const REFRESH_READS: Param<u32> = Param::int(
    "hpb.refresh_reads",
    1,
    1 << 20,
    "reads of a subregion that has changed since it was fetched after which it is fetched again",
)
.or("4");

/// The parameter `hpb.active_regions`.
pub const ACTIVE_REGIONS: Param<u32> = Param::int(
    "hpb.active_regions",
    0,
    1 << 20,
    "regions that the drive has the host cache at once; 0: as many as there are",
)
.or("0");

/// The parameter `hpb.pairs`.
pub const PAIRS: Param<u32> = Param::int(
    "hpb.pairs",
    1,
    4096,
    "entries that one response takes along, with hpb.update = piggyback",
)
.or("8");

/// The parameter `hpb.changes`.
pub const CHANGES: Param<u32> = Param::int(
    "hpb.changes",
    1,
    1 << 24,
    "changed entries that wait in the drive for a response; a subregion with more must be fetched",
)
.or("4096");

/// The parameter `hpb.hash_time`.
pub const HASH_TIME: Param<Dur> = Param::time(
    "hpb.hash_time",
    "the drive's time for a SipHash-2-4 of an entry: 8 rounds, of a cycle each at 400 MHz \
     (assumed)",
)
.or("20ns");

/// The parameter `hpb.key`.
pub const KEY: Param<u64> = Param::int(
    "hpb.key",
    0,
    u64::MAX,
    "what the drive's keys are drawn from, so that runs can be repeated (a real drive takes noise)",
)
.or("1");

/// All of them.
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
