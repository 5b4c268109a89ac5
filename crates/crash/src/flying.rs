//! Changes in flight: changes of flash that are not complete when the power fails.

use flashatlas_nand::{Change, Medium, OobRole};
use flashatlas_types::{BlockId, BlockMode, OpId};
use std::collections::BTreeMap;

/// Numbers of the incomplete changes that an operation waits for.
pub(crate) type Dependencies = Vec<u32>;

/// A change that is not complete.
pub(crate) struct InFlightChange {
    pub number: u32,
    pub change: Change,
    /// Role that the block was opened for, if this change is the first after the opening.
    pub opened: Option<(OobRole, BlockMode)>,
    /// Change that follows immediately, if the program is a copyback.
    pub copied: Option<Change>,
    pub block: Option<BlockId>,
    pub die: u32,
    pub last_op: OpId,
    pub needs: Dependencies,
}

/// Notes a change that is no operation: a block was opened, which its first program will show, or
/// the last program is a copyback.
pub(crate) fn note(
    opened: &mut BTreeMap<BlockId, (OobRole, BlockMode)>,
    flying: &mut [InFlightChange],
    change: &Change,
) {
    match *change {
        Change::Open(block, role, mode) => {
            opened.insert(block, (role, mode));
        }
        Change::Copied { .. } => {
            let program = flying.last_mut().expect("its program comes first");
            program.copied = Some(change.clone());
        }
        _ => {}
    }
}

/// Opens the block of a change in flight, if the change is its first.
pub(crate) fn open(medium: &mut Medium, flying: &InFlightChange) {
    if let (Some(block), Some((role, mode))) = (flying.block, flying.opened) {
        medium.redo(&Change::Open(block, role, mode));
    }
}

/// Carries out a change in flight.
pub(crate) fn apply(medium: &mut Medium, flying: &InFlightChange) {
    open(medium, flying);
    medium.redo(&flying.change);
    flying.copied.iter().for_each(|copied| medium.redo(copied));
}
