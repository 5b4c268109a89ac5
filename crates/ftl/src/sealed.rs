//! Data blocks that a mount makes. These blocks have their own role. A block is complete once its
//! last page is programmed, with padding if there is no data for this page. The source blocks of
//! its pages are erased only after that. The next mount erases an incomplete block. So repeated
//! power cuts during mounts use up no blocks.

use crate::trims::Trims;
use crate::{FtlContext, MountReport};
use flashatlas_nand::{Medium, OobRole};
use flashatlas_types::{BlockId, Cause, FtlError, SeededBug};

/// The role of a data block that a mount made.
pub(crate) const ROLE_MOUNT: OobRole = OobRole(6);

/// Returns whether the last page of a block is programmed.
fn is_sealed(medium: &Medium, block: BlockId) -> bool {
    let layout = medium.layout();
    medium.state(layout.frame_in(block, layout.frames_per_block - 1)).has_spare()
}

/// Returns the blocks that a mount erases before it reads anything else. They are blocks that an
/// earlier mount was making when the power failed, and blocks of outdated trim records. `trims`
/// adopts the newest record.
pub(crate) fn leftovers(
    medium: &Medium,
    trims: &mut Trims,
    mount: &mut MountReport,
) -> Vec<BlockId> {
    let good = || medium.layout().block_ids().filter(|&b| !medium.is_bad(b));
    let records: Vec<BlockId> = good().filter(|&b| medium.oob_role(b) == OobRole::MAP).collect();
    let mut leftovers: Vec<BlockId> = good().filter(|&b| is_cut_copy(medium, b)).collect();
    mount.map_page_reads +=
        records.iter().map(|&b| u64::from(medium.write_pointer(b))).sum::<u64>();
    leftovers.extend(trims.mount(medium, &records));
    leftovers
}

/// Returns `true` if a mount was making a block when the power failed.
fn is_cut_copy(medium: &Medium, block: BlockId) -> bool {
    let made_by_a_mount = medium.oob_role(block) == ROLE_MOUNT && medium.write_pointer(block) > 0;
    made_by_a_mount && !is_sealed(medium, block)
}

/// Marks a block of a mount as complete by programming its last page.
pub(crate) fn seal(cx: &mut FtlContext<'_>, block: BlockId, cause: Cause) -> Result<(), FtlError> {
    if !is_sealed(cx.flash.medium, block) && !SeededBug::WithoutSeal.is_active() {
        let layout = cx.flash.medium.layout();
        let last = layout.frame_in(block, layout.frames_per_block - 1);
        cx.flash.program(last, std::iter::empty(), cause, &[])?;
    }
    Ok(())
}
