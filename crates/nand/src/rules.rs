//! The rules of one kind of flash.

use crate::ErrorRules;
use crate::params::{DATA, ENDURANCE, NVM_BYTES, PLP_BYTES, PROGRAM_ORDER, SLC_WEAR, SPARE_BLOCKS};
use flashatlas_types::Params;

/// The order in which the pages of a block may be programmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProgramOrder {
    /// Ascending order. Pages that are skipped stay unused until the block is erased.
    Strict,
    /// Any erased page.
    Any,
}

/// The rules of one kind of flash.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Order of programs in a block.
    pub order: ProgramOrder,
    /// Erases that a block survives.
    pub endurance: u32,
    /// Thousandths of a native cycle that a cycle in SLC mode counts as.
    pub slc_wear: u32,
    /// `true` if the medium stores bytes.
    pub keep_bytes: bool,
    /// Bytes of byte-addressable memory.
    pub nvm_bytes: u64,
    /// Number of spare blocks of each lane.
    pub spare_blocks: u32,
    /// Errors, or `None` if nothing ever fails by itself.
    pub errors: Option<ErrorRules>,
    /// `true` if capacitors finish the programs in flight after the power has failed.
    pub finishes_programs: bool,
}

impl Rules {
    /// Strict order, no wear-out, stamps without bytes.
    pub const PLAIN: Rules = Rules {
        order: ProgramOrder::Strict,
        endurance: u32::MAX,
        slc_wear: 1000,
        keep_bytes: false,
        nvm_bytes: 0,
        spare_blocks: 0,
        errors: None,
        finishes_programs: false,
    };

    /// Returns the rules that `params` describe.
    pub fn from_params(params: &Params) -> Rules {
        Rules {
            order: if params.get(PROGRAM_ORDER) == "any" {
                ProgramOrder::Any
            } else {
                ProgramOrder::Strict
            },
            endurance: params.get(ENDURANCE),
            slc_wear: (params.get(SLC_WEAR) * 1000.0).round() as u32,
            keep_bytes: params.get(DATA) == "ram",
            nvm_bytes: params.get(NVM_BYTES),
            spare_blocks: params.get(SPARE_BLOCKS),
            errors: ErrorRules::from_params(params),
            finishes_programs: params.get(PLP_BYTES) > 0,
        }
    }
}
