//! A drive after a long time of uniform random writes.

use super::Held;
use crate::content::mix;
use crate::{BlockId, BlockPermutation, FrameId, Layout, Lpn, Permutation, Ppn, Rng, TiVec};
use std::sync::Arc;

/// The number in [`Steady::place`] of a block that is erased.
const ERASED: u32 = u32::MAX;

/// A drive whose full blocks hold given numbers of valid slots, at random places.
///
/// All pages are in one random order ([`Permutation`]), and each block has the next pages of this
/// order. Slot `i` of a block with `v` valid slots has number `r` in a random permutation of the
/// block ([`BlockPermutation`]). If `r` is below `v`, the slot has the valid version of the block's
/// page number `r`. Any other slot has an old version of a random page whose valid version is in a
/// later block, or padding in the last block with pages. So the version of a page that was
/// programmed last is the valid version.
#[derive(Clone, Debug)]
pub struct Steady {
    layout: Arc<Layout>,
    /// The full blocks, in the order in which they were programmed.
    order: Vec<BlockId>,
    /// The number of valid slots before each block of the order, then the number in all blocks.
    before: Vec<u32>,
    /// The place of each block in the order, or [`ERASED`].
    place: TiVec<BlockId, u32>,
    pages: Permutation,
    slots: BlockPermutation,
    /// The key of which the keys of blocks are made.
    key: u64,
    /// The place of the block that has the first page of each bucket. A bucket has `2^bucket_bits`
    /// consecutive pages of the order of pages.
    buckets: Vec<u32>,
    bucket_bits: u32,
}

impl Steady {
    /// Draws the content of a drive. `blocks` lists the full blocks in the order of their programs,
    /// with their numbers of valid slots.
    ///
    /// # Panics
    /// Panics if the drive has no page, a block has more valid slots than it has slots, or there
    /// are not as many valid slots as pages.
    pub fn new(layout: &Arc<Layout>, blocks: &[(BlockId, u32)], rng: &mut Rng) -> Steady {
        let pages = Permutation::new(layout.logical_units.into(), rng);
        Steady::of_keys(layout, blocks, pages, rng.below(u64::MAX))
    }

    /// Returns the content of a drive with this order of pages. `key` is the key of which the keys
    /// of blocks are made.
    pub(super) fn of_keys(
        layout: &Arc<Layout>,
        blocks: &[(BlockId, u32)],
        pages: Permutation,
        key: u64,
    ) -> Steady {
        let mut place = layout.per_block(ERASED);
        let mut before = Vec::with_capacity(blocks.len() + 1);
        let mut total = 0;
        for (number, &(block, valid)) in (0..).zip(blocks) {
            assert!(valid <= layout.slots_per_block, "block {block} has {valid} valid slots");
            place[block] = number;
            before.push(total as u32);
            total += u64::from(valid);
        }
        assert_eq!(total, u64::from(layout.logical_units), "each page has one valid slot");
        before.push(layout.logical_units);
        // on average, a bucket has at most as many pages as a block
        let bucket_bits = (layout.logical_units / blocks.len() as u32).max(1).ilog2();
        let mut owner = 0;
        let mut owner_of = |page| {
            while before[owner + 1] <= page {
                owner += 1;
            }
            owner as u32
        };
        let firsts = (0..layout.logical_units).step_by(1 << bucket_bits);
        let buckets = firsts.map(&mut owner_of).collect();
        Steady {
            order: blocks.iter().map(|&(block, _)| block).collect(),
            before,
            place,
            pages,
            slots: BlockPermutation::new(layout.slots_per_block),
            key,
            buckets,
            bucket_bits,
            layout: Arc::clone(layout),
        }
    }

    /// Returns the key of the blocks, then the keys of the order of pages.
    pub(super) fn keys(&self) -> impl Iterator<Item = u64> {
        [self.key].into_iter().chain(self.pages.keys())
    }

    /// Returns the full blocks, in the order of their programs.
    pub fn order(&self) -> &[BlockId] {
        &self.order
    }

    /// Returns the number of valid slots of a block.
    #[inline]
    pub fn valid(&self, block: BlockId) -> u32 {
        self.part(block).map_or(0, |part| part.end - part.first)
    }

    /// Returns whether a slot holds the valid version of a page.
    #[inline]
    pub fn is_valid(&self, slot: Ppn) -> bool {
        let block = self.layout.block_of(slot);
        self.part(block).is_some_and(|part| {
            let index = slot.0 - self.layout.block_slot(block).0;
            self.slots.at(part.key, index) < part.end - part.first
        })
    }

    /// Returns the number of programmed frames of a block.
    pub fn programmed(&self, block: BlockId) -> u32 {
        if self.place[block] == ERASED { 0 } else { self.layout.frames_per_block }
    }

    /// Returns the number of programs that wrote the drive.
    pub fn programs(&self) -> u64 {
        self.order.len() as u64 * u64::from(self.layout.frames_per_block)
    }

    /// Returns the content of a slot, or `None` if the slot is erased.
    #[inline]
    pub fn page_at(&self, slot: Ppn) -> Option<Held> {
        let block = self.layout.block_of(slot);
        let part = self.part(block)?;
        Some(self.held(&part, slot.0 - self.layout.block_slot(block).0))
    }

    /// Adds the content of each slot of a full block to `held`. This is faster than a call of
    /// [`Steady::page_at`] for each slot. Adds nothing for an erased block.
    pub fn decode(&self, block: BlockId, held: &mut Vec<Held>) {
        if let Some(part) = self.part(block) {
            held.extend((0..self.layout.slots_per_block).map(|index| self.held(&part, index)));
        }
    }

    /// Returns the pages whose valid version is in a block, in the order of all pages.
    pub fn pages(&self, block: BlockId) -> impl Iterator<Item = Lpn> {
        let numbers = self.part(block).map_or(0..0, |part| part.first..part.end);
        numbers.map(|number| self.page(number))
    }

    /// Returns the slot with the valid version of a page.
    ///
    /// # Panics
    /// Panics beyond the last page.
    #[inline]
    pub fn slot_of(&self, page: Lpn) -> Ppn {
        let number = self.pages.find(page.0.into()).expect("a page of the drive") as u32;
        let mut place = self.buckets[(number >> self.bucket_bits) as usize] as usize;
        while self.before[place + 1] <= number {
            place += 1;
        }
        let block = self.order[place];
        let index = self.slots.find(self.key_of(block), number - self.before[place]);
        Ppn(self.layout.block_slot(block).0 + index)
    }

    /// Returns the number of the program that wrote a frame, or `None` if the frame is erased.
    #[inline]
    pub fn sequence(&self, frame: FrameId) -> Option<u64> {
        let block = self.layout.block_of_frame(frame);
        let place = Some(self.place[block]).filter(|&place| place != ERASED)?;
        let before = u64::from(place) * u64::from(self.layout.frames_per_block);
        Some(before + u64::from(self.layout.index_in(block, frame)) + 1)
    }

    /// Returns the part of the order of pages that is in a block, or `None` if the block is erased.
    #[inline]
    fn part(&self, block: BlockId) -> Option<Part> {
        let place = Some(self.place[block]).filter(|&place| place != ERASED)? as usize;
        let (first, end) = (self.before[place], self.before[place + 1]);
        Some(Part { key: self.key_of(block), first, end })
    }

    /// Returns the content of slot `index` of a block.
    #[inline]
    fn held(&self, part: &Part, index: u32) -> Held {
        let number = part.first + self.slots.at(part.key, index);
        if number < part.end {
            return Held::Valid(self.page(number));
        }
        let later = self.layout.logical_units - part.end;
        if later == 0 {
            return Held::Padding;
        }
        // not one of the numbers from which the permutation of the block is made
        let hash = mix(part.key ^ u64::MAX << 32 ^ u64::from(index));
        Held::Old(self.page(part.end + (((hash >> 32) * u64::from(later)) >> 32) as u32))
    }

    /// Returns a page by its number in the order of pages.
    #[inline]
    fn page(&self, number: u32) -> Lpn {
        Lpn(self.pages.at(number.into()).expect("a page of the drive") as u32)
    }

    #[inline]
    fn key_of(&self, block: BlockId) -> u64 {
        mix(self.key ^ u64::from(block.number()))
    }
}

/// The part of the order of pages that is in a block.
struct Part {
    /// The key of the block.
    key: u64,
    first: u32,
    /// The first number of the next block.
    end: u32,
}
