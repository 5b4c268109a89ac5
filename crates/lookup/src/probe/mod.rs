//! Where the tables lie in the banks of a DRAM, and in which order a set's banks are visited.

mod places;
mod policies;
mod recency;
mod scheduler;

pub(crate) use places::banks;
pub use places::{Linear, Places};
pub use policies::{Order, POLICIES, PolicyDef};
pub use recency::Recency;
pub use scheduler::Scheduler;

use flashatlas_types::{ParamDef, ParamKind};

/// Parameters of placement and probing.
pub const PARAMS: &[ParamDef] = &[
    ParamDef {
        key: "lookup.policy",
        kind: ParamKind::Name(|| POLICIES.iter().map(|p| p.name).collect()),
        default: Some("dynamic"),
        doc: "how sets lie in the banks, and in which order a set's banks are visited",
    },
    ParamDef {
        key: "lookup.banks",
        kind: ParamKind::Int(1, 64),
        default: Some("4"),
        doc: "banks that hold the LPMT (`single` has one, whatever this says)",
    },
    ParamDef {
        key: "lookup.spread",
        kind: ParamKind::Int(0, 64),
        default: Some("0"),
        doc: "banks over which `striped` and `dynamic` spread one set, a divisor of lookup.banks; \
              0: all of them",
    },
    ParamDef {
        key: "lookup.set_to_bank",
        kind: ParamKind::Choice(&["low", "high", "xor"]),
        default: Some("low"),
        doc: "which bits of a set's number say which banks it is in: the `low` ones (the next set \
              is in other banks), the `high` ones, or the exclusive or of all of them (`xor`)",
    },
    ParamDef {
        key: "lookup.probe",
        kind: ParamKind::Choice(&["aabb", "abcd"]),
        default: Some("aabb"),
        doc: "order of a set's bursts: all of one bank, then all of the next (`aabb`), or one of \
              each bank in turn (`abcd`)",
    },
    ParamDef {
        key: "lookup.scan",
        kind: ParamKind::Choice(&["full", "stop", "pipelined"]),
        default: Some("full"),
        doc: "how far a set is read: to its end (`full`), up to the entry that is looked for \
              (`stop`, as if its place were known), or until that entry's data has come back, with \
              the reads that were issued by then (`pipelined`)",
    },
    ParamDef {
        key: "lookup.chain",
        kind: ParamKind::Choice(&["wait", "stream"]),
        default: Some("wait"),
        doc: "when the next set of a chain is read: once NSid has come back (`wait`), or right \
              behind the set before, as if NSid had been known (`stream`)",
    },
    ParamDef {
        key: "lookup.secondary",
        kind: ParamKind::Choice(&["shared", "apart"]),
        default: Some("shared"),
        doc: "whether the secondary LPMT lies in the same banks (`shared`), or in as many others \
              (`apart`)",
    },
    ParamDef {
        key: "lookup.block_tables",
        kind: ParamKind::Choice(&["shared", "apart"]),
        default: Some("shared"),
        doc: "whether the block tables lie in the banks of the LPMT (`shared`), or in one of their \
              own (`apart`)",
    },
];
