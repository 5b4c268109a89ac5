//! The flash medium: what the cells hold, which operations are legal, and what each leaves behind.
//!
//! [`Medium`] acts at once and keeps no time. [`Flash`] is how a scheme reaches it: every call
//! changes the medium and writes one operation into the [`flashatlas_types::Plan`] of the request.

pub mod counters;
pub mod faults;
pub mod flash;
pub mod image;
pub mod journal;
pub mod medium;
pub mod nvm;
pub mod oob;
mod power;
pub mod spares;

pub use counters::Counters;
pub use faults::Torn;
pub use flash::{Flash, ReadPart};
pub use image::Image;
pub use journal::Change;
pub use medium::{FrameState, Medium, ProgramOrder, Rules, Unit};
pub use nvm::{Nvm, NvmCounters};
pub use oob::{Oob, OobError, OobRole};

use flashatlas_types::{ParamDef, ParamKind};

/// Parameters of the medium.
pub const PARAMS: &[ParamDef] = &[
    ParamDef {
        key: "nand.program_order",
        kind: ParamKind::Choice(&["strict", "any"]),
        default: Some("strict"),
        doc: "`strict`: the pages of a block are programmed in ascending order (pages passed over \
              stay unused); `any`: in any order (early SLC parts)",
    },
    ParamDef {
        key: "nand.endurance",
        kind: ParamKind::Int(1, u32::MAX as u64),
        default: Some("4294967295"),
        doc: "erases that a block survives; the next one fails and the block is bad",
    },
    ParamDef {
        key: "nand.factory_bad",
        kind: ParamKind::Int(0, 500_000),
        default: Some("0"),
        doc: "factory-bad blocks in a million, drawn for each plane; an FTL block uses the n-th \
              good block of each of its planes",
    },
    ParamDef {
        key: "nand.spare_blocks",
        kind: ParamKind::Int(0, 1 << 16),
        default: Some("0"),
        doc: "blocks of each lane, beside those of the drive, that take the place of blocks in \
              which a program or an erase fails; 0: a block that cannot be erased is lost, and a \
              failed program is an error",
    },
    ParamDef {
        key: "nand.data",
        kind: ParamKind::Choice(&["none", "ram"]),
        default: Some("none"),
        doc: "`none`: a 32-bit content stamp stands for the bytes of a mapping unit; `ram`: the \
              bytes and the encoded spare area are kept",
    },
    ParamDef {
        key: "nvm.bytes",
        kind: ParamKind::Bytes(0, 1 << 32),
        default: Some("0"),
        doc: "byte-addressable non-volatile memory beside the flash; 0: none",
    },
];
