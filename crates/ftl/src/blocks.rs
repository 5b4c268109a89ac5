//! The state that every scheme tracks: the valid slots, the role of each block, and the free
//! blocks.

use crate::bits::BitSet;
use flashatlas_nand::Medium;
use flashatlas_prefetch as prefetch;
use flashatlas_types::{
    Base, BlockId, ConfigError, Divisor, LaneId, Layout, LocalBlock, MediumError, Param, Ppn,
    SeededBug, TiSlice, TiVec, Violation, ti_vec,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// The parameter `ftl.wear_dynamic`, which [`FreeBlocks::new`] takes.
pub const WEAR_DYNAMIC: Param<bool> = Param::flag(
    "ftl.wear_dynamic",
    "true: use the free block with the fewest erases; false: the block that has been free longest",
)
.or("true");

/// Checks that the mapping unit is a whole frame, because schemes that map blocks require this.
///
/// `who` is the subject of the message, followed by "keep" or "keeps".
///
/// # Errors
/// Returns an error if the mapping unit is not a whole frame.
pub fn fits_whole_frames(layout: &Layout, who: &str) -> Result<(), ConfigError> {
    if layout.slots_per_frame == 1 {
        return Ok(());
    }
    let (frame, unit) = (layout.frame_bytes(), layout.unit_bytes);
    let why = format!(
        "{who} each page at its offset in a block: the unit must be the whole frame ({frame} \
         bytes), not {unit} bytes"
    );
    Err(ConfigError::new("map.unit", why))
}

/// The use of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// An erased block, in a free list.
    Free,
    /// A block that is being filled.
    Open,
    /// A full block, or a block that was closed before it was full. It is a candidate for
    /// collection.
    Closed,
    /// A block whose valid data is being moved away.
    Leaving,
    /// A block out of use.
    Bad,
    /// A block that stores one logical block, with each page at its offset.
    Data,
    /// A block that receives updates until they are merged.
    Log,
    /// A block that stores pages of the map.
    Map,
    /// A full block in SLC mode, which waits to be folded.
    Slc,
}

impl Role {
    /// Every role, in the order of their numbers.
    pub const ALL: [Role; 9] = [
        Role::Free,
        Role::Open,
        Role::Closed,
        Role::Leaving,
        Role::Bad,
        Role::Data,
        Role::Log,
        Role::Map,
        Role::Slc,
    ];

    /// Returns the name of the role in tables and reports.
    pub const fn name(self) -> &'static str {
        ["free", "open", "closed", "leaving", "bad", "data", "log", "map", "slc"][self as usize]
    }
}

/// Valid slots and roles of all blocks.
#[derive(Clone, Debug)]
pub struct Blocks {
    by_slots: Divisor,
    /// The valid slots. In a block of the base, the slots that the base holds as valid, and that
    /// are not valid any more.
    bits: BitSet<Ppn>,
    base: Option<Arc<Base>>,
    /// `true` for the blocks of the base that were neither collected nor erased since.
    of_base: TiVec<BlockId, bool>,
    valid: TiVec<BlockId, u32>,
    role: TiVec<BlockId, Role>,
    total: u64,
}

impl Blocks {
    /// Builds the tables for `layout`. No slot is valid, and all blocks are free except the bad
    /// blocks of the medium.
    pub fn new(layout: &Layout, medium: &Medium) -> Blocks {
        Blocks {
            by_slots: Divisor::new(layout.slots_per_block),
            bits: BitSet::new(layout.slots()),
            base: None,
            of_base: TiVec::new(),
            valid: layout.per_block(0),
            role: layout
                .block_ids()
                .map(|block| if medium.is_bad(block) { Role::Bad } else { Role::Free })
                .collect(),
            total: 0,
        }
    }

    /// Returns a table with the same blocks and roles, in which no slot is valid.
    pub fn none_valid(&self) -> Blocks {
        Blocks {
            by_slots: self.by_slots,
            bits: self.bits.cleared(),
            base: None,
            of_base: TiVec::new(),
            valid: ti_vec![0; self.valid.len()],
            role: self.role.clone(),
            total: 0,
        }
    }

    /// Makes every slot valid that is valid in `other`. Both tables have the same blocks.
    ///
    /// # Panics
    /// Panics if a slot is valid in both tables.
    pub fn add_valid(&mut self, other: &Blocks) {
        assert!(self.bits.add(&other.bits), "a slot becomes valid twice");
        self.valid.iter_mut().zip(&other.valid).for_each(|(valid, &more)| *valid += more);
        self.total += other.total;
    }

    /// Makes the slots valid that a base holds as valid. Before, slots were valid only in blocks in
    /// which the base has nothing. Those of blocks that are not full are written down.
    ///
    /// # Panics
    /// Panics if one was valid elsewhere.
    pub fn lay(&mut self, layout: &Layout, base: Arc<Base>) {
        let of_base = |&(block, _): &(BlockId, &mut u32)| base.programmed(block) > 0;
        for (block, valid) in self.valid.iter_mut_enumerated().filter(of_base) {
            assert!(*valid == 0, "a base is laid under no valid slot");
            *valid = base.valid(block);
            self.total += u64::from(*valid);
        }
        self.of_base = self.valid.keys().map(|block| base.programmed(block) > 0).collect();
        self.base = Some(Arc::clone(&base));
        let is_open = |&block: &BlockId| base.programmed(block) < layout.frames_per_block;
        layout.block_ids().filter(is_open).for_each(|block| self.take_from_base(layout, block));
    }

    /// Returns the base whose valid slots a block has, but for those that became invalid since.
    /// Returns `None` for any other block.
    #[inline]
    pub fn base_of(&self, block: BlockId) -> Option<&Base> {
        self.base.as_deref().filter(|_| self.of_base[block])
    }

    /// Returns the base under the table, if there is one.
    pub(crate) fn base(&self) -> Option<&Base> {
        self.base.as_deref()
    }

    /// Writes down the valid slots of a block of the base, before a reader needs all of them, or an
    /// erase forgets them.
    pub fn take_from_base(&mut self, layout: &Layout, block: BlockId) {
        let Some(base) = self.base.as_deref().filter(|_| self.of_base[block]) else { return };
        let first = layout.block_slot(block).0;
        for slot in (first..first + layout.slots_per_block).map(Ppn) {
            if base.is_valid(slot) && !self.bits.remove(slot) {
                self.bits.insert(slot);
            }
        }
        self.of_base[block] = false;
    }

    /// Removes a valid slot of a table over a base. Returns `true` if it was valid.
    #[inline(never)]
    fn remove_over_base(&mut self, block: BlockId, ppn: Ppn) -> bool {
        match self.base_of(block) {
            Some(base) => base.is_valid(ppn) && self.bits.insert(ppn),
            None => self.bits.remove(ppn),
        }
    }

    /// Returns the mask of valid slots, in a table over a base, that `bits` stand for.
    #[inline(never)]
    fn mask_over_base(&self, first: Ppn, count: u32, bits: u64) -> u64 {
        let Some(base) = self.base_of(self.block_of(first)) else { return bits };
        let held = |i: &u32| base.is_valid(Ppn(first.0 + i));
        bits ^ (0..count).filter(held).map(|i| 1 << i).sum::<u64>()
    }

    /// Checks that the table, and not the base, has the valid slots of a block.
    #[inline(never)]
    fn must_be_own(&self, block: BlockId) {
        assert!(self.base_of(block).is_none(), "a slot of block {block} of the base becomes valid");
    }

    /// Returns the slots of a block of the base that became invalid.
    pub(crate) fn gone(&self, layout: &Layout, block: BlockId) -> impl Iterator<Item = Ppn> {
        let first = layout.block_slot(block).0;
        self.bits.within(Ppn(first), layout.slots_per_block)
    }

    #[inline]
    fn block_of(&self, ppn: Ppn) -> BlockId {
        BlockId::new(self.by_slots.divide(ppn.0))
    }

    /// Returns the role of a block.
    #[inline]
    pub fn role(&self, block: BlockId) -> Role {
        self.role[block]
    }

    /// Gives a block a role.
    #[inline]
    pub fn set_role(&mut self, block: BlockId, role: Role) {
        self.role[block] = role;
    }

    /// Returns the number of blocks in a role.
    pub fn count(&self, role: Role) -> usize {
        self.role.iter().filter(|&&r| r == role).count()
    }

    /// Returns the number of valid slots of a block.
    #[inline]
    pub fn valid(&self, block: BlockId) -> u32 {
        self.valid[block]
    }

    /// Returns the number of valid slots of each block of a lane, in the order of the blocks.
    pub fn valid_of(&self, layout: &Layout, lane: LaneId) -> &TiSlice<LocalBlock, u32> {
        layout.part_of(lane, &self.valid)
    }

    /// Returns the number of valid slots of the drive.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns whether a slot holds the newest version of its page.
    #[inline]
    pub fn is_valid(&self, ppn: Ppn) -> bool {
        let bit = self.bits.contains(ppn);
        if self.base.is_none() { bit } else { self.is_valid_over_base(ppn, bit) }
    }

    #[inline(never)]
    fn is_valid_over_base(&self, ppn: Ppn, bit: bool) -> bool {
        match self.base_of(self.block_of(ppn)) {
            Some(base) => !bit && base.is_valid(ppn),
            None => bit,
        }
    }

    /// Marks a slot as valid after the newest version of a page was programmed there.
    ///
    /// # Panics
    /// Panics if the slot is valid already.
    #[inline]
    pub fn set_valid(&mut self, ppn: Ppn) {
        assert!(self.bits.insert(ppn), "slot {ppn} becomes valid twice");
        let block = self.block_of(ppn);
        if self.base.is_some() {
            self.must_be_own(block);
        }
        self.valid[block] += 1;
        self.total += 1;
    }

    /// Prefetches the state of a slot into the CPU cache, because the slot will soon become
    /// invalid. Returns the block of the slot.
    #[inline]
    pub fn prefetch(&self, ppn: Ppn) -> BlockId {
        let block = self.block_of(ppn);
        self.bits.prefetch(ppn);
        prefetch::item_at(&self.valid.raw, block.into());
        prefetch::item_at(&self.role.raw, block.into());
        block
    }

    /// Marks a slot as invalid, because its content is no longer needed. Returns the block of the
    /// slot and the number of valid slots left in that block.
    ///
    /// # Panics
    /// Panics if the slot was not valid.
    #[inline(always)] // the case without a base is short
    pub fn invalidate(&mut self, ppn: Ppn) -> (BlockId, u32) {
        let block = self.block_of(ppn);
        let was_valid = match self.base {
            None => self.bits.remove(ppn),
            Some(_) => self.remove_over_base(block, ppn),
        };
        assert!(was_valid, "slot {ppn} becomes invalid twice");
        self.valid[block] -= 1;
        self.total -= 1;
        (block, self.valid[block])
    }

    /// Compares two versions of a page while a mount reads the spare areas, and makes the newer
    /// version valid. Returns `true` if `slot` has the newer version.
    ///
    /// `slot` was programmed with number `sequence`. `known` is the newest version found so far, or
    /// `None`. The version that was programmed later becomes valid. If both slots are in one frame,
    /// the slot that the mount reads later becomes valid.
    ///
    /// # Errors
    /// Returns an error if `known` cannot be read.
    pub fn supersede(
        &mut self,
        medium: &Medium,
        known: Option<Ppn>,
        slot: Ppn,
        sequence: u64,
    ) -> Result<bool, MediumError> {
        if let Some(known) = known {
            if medium.frame_sequence(medium.layout().frame_of(known))? > sequence
                && !SeededBug::SkipSequence.is_active()
            {
                return Ok(false);
            }
            self.invalidate(known);
        }
        self.set_valid(slot);
        Ok(true)
    }

    /// Returns a mask of `count` slots, at most 64. Bit `i` is set if slot `first + i` is valid.
    #[inline]
    pub fn valid_mask(&self, first: Ppn, count: u32) -> u64 {
        let bits = self.bits.mask(first, count);
        if self.base.is_none() { bits } else { self.mask_over_base(first, count, bits) }
    }

    /// Returns the slots of a block in groups of 64. Each group has its first slot and the mask of
    /// its valid slots.
    fn masks(&self, layout: &Layout, block: BlockId) -> impl Iterator<Item = (Ppn, u64)> {
        let (first, count) = (layout.block_slot(block).0, layout.slots_per_block);
        (0..count).step_by(64).map(move |at| {
            let slot = Ppn(first + at);
            (slot, self.valid_mask(slot, (count - at).min(64)))
        })
    }

    /// Returns the first valid slot of a block of this layout, or `None` if no slot is valid.
    pub fn first_valid(&self, layout: &Layout, block: BlockId) -> Option<Ppn> {
        let mut masks = self.masks(layout, block);
        masks.find(|&(_, mask)| mask != 0).map(|(Ppn(at), mask)| Ppn(at + mask.trailing_zeros()))
    }

    /// Calls `visit` with each valid slot of a block of this layout.
    #[inline]
    pub fn for_each_valid(&self, layout: &Layout, block: BlockId, mut visit: impl FnMut(Ppn)) {
        for (Ppn(at), mut mask) in self.masks(layout, block) {
            while mask != 0 {
                visit(Ppn(at + mask.trailing_zeros()));
                mask &= mask - 1;
            }
        }
    }

    /// Calls `visit` with every block, its role and its number of valid slots.
    pub fn for_each_block(&self, visit: &mut dyn FnMut(BlockId, Role, u32)) {
        for (block, &role) in self.role.iter_enumerated() {
            visit(block, role, self.valid[block]);
        }
    }

    /// Checks that counts agree with bits, that free and bad blocks have no valid slot, and that
    /// free blocks are erased.
    ///
    /// # Errors
    /// Returns the first rule that does not hold.
    pub fn check(&self, layout: &Layout, medium: &Medium) -> Result<(), Violation> {
        for block in layout.block_ids() {
            let bits = match self.base_of(block) {
                Some(base) => {
                    let first = layout.block_slot(block);
                    base.valid(block) - self.bits.count(first, layout.slots_per_block)
                }
                None => self.masks(layout, block).map(|(_, mask)| mask.count_ones()).sum::<u32>(),
            };
            Violation::unless(
                bits == self.valid(block),
                "a block's count equals its valid bits",
                || {
                    format!(
                        "block {block} counts {} valid slots, but {bits} bits are set",
                        self.valid(block)
                    )
                },
            )?;
            let empty = matches!(self.role(block), Role::Free | Role::Bad);
            Violation::unless(
                !empty || bits == 0,
                "a free or bad block holds no valid slot",
                || format!("block {block} is {:?} with {bits} valid slots", self.role(block)),
            )?;
            let erased = medium.write_pointer(block) == 0;
            Violation::unless(
                self.role(block) != Role::Free || erased,
                "a free block is erased",
                || format!("block {block} has the write pointer {}", medium.write_pointer(block)),
            )?;
        }
        Ok(())
    }
}

/// The erased blocks of a lane.
#[derive(Clone, Debug)]
pub enum FreeBlocks {
    /// Least worn first: dynamic wear levelling.
    LeastWorn(BinaryHeap<Reverse<(u32, BlockId)>>),
    /// Longest free first.
    Oldest(VecDeque<BlockId>),
}

impl FreeBlocks {
    /// Returns an empty list. If `least_worn` is `true`, the least worn block leaves the list
    /// first, otherwise the block that has been free longest.
    pub fn new(least_worn: bool) -> FreeBlocks {
        if least_worn {
            FreeBlocks::LeastWorn(BinaryHeap::new())
        } else {
            FreeBlocks::Oldest(VecDeque::new())
        }
    }

    /// Adds an erased block.
    pub fn push(&mut self, block: BlockId, erases: u32) {
        match self {
            FreeBlocks::LeastWorn(heap) => heap.push(Reverse((erases, block))),
            FreeBlocks::Oldest(queue) => queue.push_back(block),
        }
    }

    /// Removes and returns the next block, or returns `None` if the list is empty.
    pub fn pop(&mut self) -> Option<BlockId> {
        match self {
            FreeBlocks::LeastWorn(heap) => heap.pop().map(|Reverse((_, block))| block),
            FreeBlocks::Oldest(queue) => queue.pop_front(),
        }
    }

    /// Removes `block` from the list.
    pub fn remove(&mut self, block: BlockId) {
        match self {
            FreeBlocks::LeastWorn(heap) => heap.retain(|&Reverse((_, listed))| listed != block),
            FreeBlocks::Oldest(queue) => queue.retain(|&listed| listed != block),
        }
    }

    /// Returns the number of blocks in the list.
    pub fn len(&self) -> u32 {
        match self {
            FreeBlocks::LeastWorn(heap) => heap.len() as u32,
            FreeBlocks::Oldest(queue) => queue.len() as u32,
        }
    }

    /// Returns whether the list has no blocks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the blocks, in no particular order.
    pub fn iter(&self) -> Box<dyn Iterator<Item = BlockId> + '_> {
        match self {
            FreeBlocks::LeastWorn(heap) => Box::new(heap.iter().map(|Reverse((_, block))| *block)),
            FreeBlocks::Oldest(queue) => Box::new(queue.iter().copied()),
        }
    }
}
