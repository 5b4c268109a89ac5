//! Shadow map: the place of each logical page's newest version, derived from the firmware's
//! programs.
//!
//! The answers of the firmware are compared with this map.

use flashatlas_ftl::blocks::Blocks;
use flashatlas_ftl::units::check_names;
use flashatlas_ftl::{Place, Role, Superseded};
use flashatlas_nand::Medium;
use flashatlas_types::{BlockId, FrameId, Layout, Lpn, OpId, Ppn, TiVec, Violation};

/// FlashAtlas' own map of a drive with a firmware.
pub(super) struct Shadow {
    pub layout: Layout,
    pub newest: TiVec<Lpn, Ppn>,
    pub blocks: Blocks,
    pub superseded: Superseded,
    /// The last erase of each block, for which the block's programs wait.
    pub erased: TiVec<BlockId, OpId>,
}

impl Shadow {
    /// Returns the shadow map of a drive before its mount, in which no page has a place.
    pub fn new(medium: &Medium) -> Shadow {
        let layout = medium.layout().clone();
        let mut shadow = Shadow {
            newest: layout.per_page(Ppn::NONE),
            blocks: Blocks::new(&layout, medium),
            superseded: Superseded::new(&layout),
            erased: layout.per_block(OpId::NONE),
            layout,
        };
        for block in shadow.layout.block_ids() {
            shadow.programmed(medium, block);
        }
        shadow
    }

    /// Sets the role of a block from its number of programmed pages, unless the block is bad.
    pub fn programmed(&mut self, medium: &Medium, block: BlockId) {
        if self.blocks.role(block) != Role::Bad {
            let role = match medium.write_pointer(block) {
                0 => Role::Free,
                written if written == self.layout.frames_per_block => Role::Closed,
                _ => Role::Open,
            };
            self.blocks.set_role(block, role);
        }
    }

    /// Notes that `frame` holds the newest version of a page from now on.
    pub fn moved(&mut self, lpn: Lpn, frame: FrameId, program: OpId, oldest_unfinished: OpId) {
        self.forget(lpn, program, oldest_unfinished);
        let slot = self.layout.first_slot(frame);
        self.newest[lpn] = slot;
        self.blocks.set_valid(slot);
    }

    /// Notes that a page has no place from now on. If `program` is not `NONE`, it superseded the
    /// page.
    pub fn forget(&mut self, lpn: Lpn, program: OpId, oldest_unfinished: OpId) {
        let newest = &mut self.newest[lpn];
        let Some(old) = newest.mapped() else { return };
        *newest = Ppn::NONE;
        let (block, _) = self.blocks.invalidate(old);
        self.superseded.add(block, program, oldest_unfinished);
    }

    /// Returns a page whose newest version is in a block.
    pub fn resident(&self, medium: &Medium, block: BlockId) -> Option<(Lpn, Ppn)> {
        let slot = self.blocks.first_valid(&self.layout, block)?;
        Some((medium.lpn(slot).unwrap_or(Lpn::NONE), slot))
    }

    /// Returns the place of a page.
    pub fn place(&self, lpn: Lpn) -> Place {
        self.newest[lpn].mapped().map_or(Place::Nowhere, Place::Flash)
    }

    /// Checks the rules of the map and of the medium in O(n).
    pub fn check(&self, medium: &Medium) -> Result<(), Violation> {
        medium.check()?;
        self.blocks.check(&self.layout, medium)?;
        for (lpn, ppn) in (0..).map(Lpn).zip(&self.newest) {
            if let Some(ppn) = ppn.mapped() {
                check_names(medium, ppn, lpn)?;
            }
        }
        Ok(())
    }
}
