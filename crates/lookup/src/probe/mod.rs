//! Places of the tables in the banks of a DRAM, and the order in which a set's banks are visited.

mod places;
mod policies;
mod recency;
mod scheduler;

pub(crate) use places::banks;
pub use places::{Linear, Places};
pub use policies::{Order, POLICIES, PolicyDef};
pub use recency::Recency;
pub use scheduler::Scheduler;

use flashatlas_types::{Param, ParamDef, Text};

pub(crate) const POLICY: Param<Text> = Param::name(
    "lookup.policy",
    || POLICIES.iter().map(|p| p.name).collect(),
    "places of sets in the banks, and the order in which a set's banks are visited",
)
.or("dynamic");

pub(crate) const BANKS: Param<u32> = Param::int(
    "lookup.banks",
    1,
    64,
    "number of banks that hold the LPMT; with the policy `single` it is always one",
)
.or("4");

pub(crate) const SPREAD: Param<u32> = Param::int(
    "lookup.spread",
    0,
    64,
    "banks over which `striped` and `dynamic` spread one set, a divisor of lookup.banks; 0: all \
     banks",
)
.or("0");

pub(crate) const SET_TO_BANK: Param<Text> = Param::choice(
    "lookup.set_to_bank",
    &["low", "high", "xor"],
    "bits of a set's number that choose its banks: the `low` bits (the next set is in other \
     banks), the `high` bits, or the exclusive or of all bits (`xor`)",
)
.or("low");

pub(crate) const PROBE: Param<Text> = Param::choice(
    "lookup.probe",
    &["aabb", "abcd"],
    "order of a set's bursts: all of one bank, then all of the next (`aabb`), or one of each bank \
     in turn (`abcd`)",
)
.or("aabb");

pub(crate) const SCAN: Param<Text> = Param::choice(
    "lookup.scan",
    &["full", "stop", "pipelined"],
    "where the reads of a set end: at the end of the set (`full`), at the wanted entry, as if its \
     place were known (`stop`), or with the last read that is issued before the data of the wanted \
     entry has arrived (`pipelined`)",
)
.or("full");

pub(crate) const CHAIN: Param<Text> = Param::choice(
    "lookup.chain",
    &["wait", "stream"],
    "time at which the next set of a chain is read: when NSid has arrived (`wait`), or directly \
     after the previous set, as if NSid were known (`stream`)",
)
.or("wait");

pub(crate) const SECONDARY: Param<Text> = Param::choice(
    "lookup.secondary",
    &["shared", "apart"],
    "banks of the secondary LPMT: the banks of the primary one (`shared`), or the same number of \
     other banks (`apart`)",
)
.or("shared");

pub(crate) const BLOCK_TABLES: Param<Text> = Param::choice(
    "lookup.block_tables",
    &["shared", "apart"],
    "banks of the block tables: the banks of the LPMT (`shared`), or one bank of their own \
     (`apart`)",
)
.or("shared");

/// Parameters of placement and probing.
pub const PARAMS: &[ParamDef] = &[
    POLICY.def,
    BANKS.def,
    SPREAD.def,
    SET_TO_BANK.def,
    PROBE.def,
    SCAN.def,
    CHAIN.def,
    SECONDARY.def,
    BLOCK_TABLES.def,
];
