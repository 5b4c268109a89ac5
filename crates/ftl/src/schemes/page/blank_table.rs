//! A map of which nothing survived, rebuilt from the spare areas of data: of several versions of a
//! page the one that was programmed last counts.
//!
//! The spare areas are gone through in the order in which they lie in memory, and name pages all
//! over the table. Their entries are therefore dealt to windows of the table, some millions at a
//! time, and a window is filled while it is in the processor's caches. The cores share the table:
//! each goes through all spare areas and takes what belongs to its pages.

use super::versions::Versions;
use crate::blocks::Blocks;
use flashatlas_nand::Medium;
use flashatlas_types::{BlockId, Dealing, Lpn, Ppn, PpnShare, PpnTable, at_once, share};

/// How the work is divided.
#[derive(Clone, Copy)]
pub(super) struct Division {
    /// Pages that a thread takes.
    share: u32,
    /// Entries of a window of the table.
    window: usize,
    /// Slots whose entries are dealt to windows at a time.
    batch: u32,
}

impl Division {
    /// For a table of so many pages: a share for each core, windows of 512 KiB, and 256 MiB of
    /// entries at a time, on all cores together. More than eight cores would mostly go through the
    /// same spare areas, each with a bitmap of all slots.
    pub fn of(pages: u32) -> Division {
        const WORTH_A_THREAD: usize = 1 << 20;
        const MOST_THREADS: u32 = 8;
        let share = share(pages as usize, WORTH_A_THREAD) as u32;
        let share = share.max(pages.div_ceil(MOST_THREADS));
        Division { share, window: 1 << 17, batch: 1 << 25 }
    }
}

/// Take all entries from the spare areas of these blocks. What they lead to is `valid`. Returns how
/// many were taken, those included that were superseded afterwards.
pub(super) fn fill(
    medium: &Medium,
    blocks: &[BlockId],
    table: &mut PpnTable,
    valid: &mut Blocks,
    division: Division,
) -> u64 {
    let is_whole = table.len() <= division.share;
    let mut shares = table.shares(division.share);
    if is_whole {
        return shares
            .next()
            .map_or(0, |all| Share::new(medium, all, valid).fill(blocks, division));
    }
    let none_valid = &*valid;
    let found = at_once(shares, |share| {
        let mut valid = none_valid.none_valid();
        (Share::new(medium, share, &mut valid).fill(blocks, division), valid)
    });
    found.iter().for_each(|(_, theirs)| valid.add_valid(theirs));
    found.iter().map(|(taken, _)| taken).sum()
}

struct Share<'a> {
    medium: &'a Medium,
    entries: PpnShare<'a>,
    valid: &'a mut Blocks,
    versions: Versions<'a>,
    taken: u64,
}

impl<'a> Share<'a> {
    fn new(medium: &'a Medium, entries: PpnShare<'a>, valid: &'a mut Blocks) -> Share<'a> {
        Share { medium, entries, valid, versions: Versions::new(medium), taken: 0 }
    }

    fn fill(mut self, blocks: &[BlockId], division: Division) -> u64 {
        if self.entries.len() <= division.window {
            for &block in blocks {
                self.versions.read(block);
                for_each_slot(self.medium, block, |slot, lpn| {
                    if self.entries.index(lpn).is_some() {
                        self.valid.set_valid(slot);
                        self.take(lpn, slot);
                    }
                });
            }
            return self.taken;
        }
        let together = (division.batch / self.medium.layout().slots_per_block).max(1);
        let mut dealt = Vec::new();
        for blocks in blocks.chunks(together as usize) {
            let ends = self.deal(blocks, division.window, &mut dealt);
            let mut begin = 0;
            for (window, end) in (0..).step_by(division.window).zip(ends) {
                if end - begin > division.window / 64 {
                    self.entries.load(window..window + division.window);
                }
                dealt[begin..end].iter().for_each(|&(lpn, slot)| self.take(lpn, slot));
                begin = end;
            }
        }
        self.taken
    }

    /// Put the entries of some blocks into `dealt`, window by window, those of each window in the
    /// order of the blocks. Returns where each ends. Their slots are valid until another version is
    /// found to be newer: most have no other.
    fn deal(
        &mut self,
        blocks: &[BlockId],
        window: usize,
        dealt: &mut Vec<(Lpn, Ppn)>,
    ) -> Vec<usize> {
        let (medium, entries) = (self.medium, &self.entries);
        let window_of = |lpn| entries.index(lpn).map(|index| index / window);
        let mut dealing = Dealing::new(entries.len().div_ceil(window));
        for &block in blocks {
            for_each_slot(medium, block, |_, lpn| {
                window_of(lpn).into_iter().for_each(|window| dealing.count(window));
            });
        }
        let count = dealing.counted();
        dealt.resize(dealt.len().max(count), (Lpn::NONE, Ppn::NONE));
        for &block in blocks {
            self.versions.read(block);
            for_each_slot(medium, block, |slot, lpn| {
                if let Some(window) = window_of(lpn) {
                    dealt[dealing.place(window)] = (lpn, slot);
                    self.valid.set_valid(slot);
                }
            });
        }
        dealing.ends()
    }

    /// A valid slot holds a version of a page of this share.
    #[inline]
    fn take(&mut self, lpn: Lpn, slot: Ppn) {
        if let Some(known) = self.entries.get(lpn).mapped() {
            if !self.versions.is_newer(slot, known) {
                self.valid.invalidate(slot);
                return;
            }
            self.valid.invalidate(known);
        }
        self.entries.set(lpn, slot);
        self.taken += 1;
    }
}

/// Show what the readable spare areas of a block name for each slot.
#[inline]
fn for_each_slot(medium: &Medium, block: BlockId, mut visit: impl FnMut(Ppn, Lpn)) {
    let layout = medium.layout();
    for frame in (0..medium.write_pointer(block)).map(|index| layout.frame_in(block, index)) {
        if let Ok(lpns) = medium.lpns(frame) {
            let slots = (layout.first_slot(frame).0..).map(Ppn);
            slots.zip(lpns).for_each(|(slot, lpn)| visit(slot, lpn));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_nand::{Flash, Rules, Unit};
    use flashatlas_types::{
        AllocationOrder, Cause, Cell, FrameId, Geometry, Layout, Plan, Rng, Seed, Span, Stamp,
    };
    use std::sync::Arc;

    const PAGES: u32 = 90;

    /// Six blocks of eight frames of four units, written in turns with random pages, some of them
    /// twice in a frame, some units padding; two frames are torn. Returns the frames in the order
    /// of their programs, too.
    fn written() -> (Medium, Vec<FrameId>) {
        let geometry = Geometry {
            channels: 1,
            ways: 1,
            dies: 1,
            planes: 1,
            blocks: 6,
            pages: 8,
            page_bytes: 2048,
            spare_bytes: 128,
            cell: Cell::Slc,
        };
        let order = AllocationOrder::parse("CWDP").unwrap();
        let layout = Layout::new(geometry, Span::ONE, 512, order, PAGES).unwrap();
        let mut medium = Medium::new(Arc::new(layout.clone()), Rules::PLAIN, 0, Seed(1)).unwrap();
        let (mut plan, mut rng) = (Plan::default(), Rng::stream(Seed(1), "test"));
        plan.set_recording(false);
        let mut frames = Vec::new();
        for turn in 0..40 {
            let block = BlockId(turn % 6);
            let frame = layout.frame_in(block, medium.write_pointer(block));
            let mut units: Vec<Unit> = Vec::new();
            for _ in 0..4 - rng.below(2) {
                let again = units.last().filter(|_| rng.below(4) == 0).map(|unit: &Unit| unit.lpn);
                let lpn = again.unwrap_or_else(|| Lpn(rng.below(PAGES.into()) as u32));
                units.push(Unit { lpn, stamp: Stamp(1), bytes: None });
            }
            let mut flash = Flash { medium: &mut medium, plan: &mut plan };
            flash.program(frame, units.iter(), Cause::Host, &[]).unwrap();
            frames.push(frame);
        }
        for turn in [39, 17] {
            medium.tear(frames.remove(turn));
        }
        (medium, frames)
    }

    /// The reference goes through the programs in their order: the last version stays.
    #[test]
    fn shares_and_windows_of_any_size_find_the_newest_versions() {
        let (medium, frames) = written();
        let layout = medium.layout();
        let mut newest = PpnTable::new(PAGES);
        for &frame in &frames {
            let first = layout.first_slot(frame).0;
            for (slot, lpn) in (first..).map(Ppn).zip(medium.lpns(frame).unwrap()) {
                if lpn != Lpn::NONE {
                    newest.replace(lpn, slot);
                }
            }
        }
        let entries: Vec<Ppn> = newest.range(0..PAGES).collect();
        let mapped = entries.iter().flat_map(|ppn| ppn.mapped()).count();
        assert!((20..PAGES as usize).contains(&mapped), "{mapped}: old versions and no entries");
        let mut blocks: Vec<BlockId> = (0..6).map(BlockId).collect();
        for order in 0..2 {
            for (share, window, batch) in [
                (1, 1, 1),
                (7, 3, 1),
                (7, 7, 1),
                (PAGES - 1, 16, 70),
                (PAGES, 20, 200),
                (PAGES, 90, 1),
            ] {
                let division = Division { share, window, batch };
                let mut table = PpnTable::new(PAGES);
                let mut valid = Blocks::new(layout, &medium);
                let taken = fill(&medium, &blocks, &mut table, &mut valid, division);
                assert!(taken >= mapped as u64);
                assert!(
                    table.range(0..PAGES).eq(entries.iter().copied()),
                    "{order}, {share}, {window}"
                );
                for slot in (0..layout.slots()).map(Ppn) {
                    assert_eq!(valid.is_valid(slot), entries.contains(&slot), "{slot}");
                }
                assert_eq!(valid.total(), mapped as u64);
                let of_blocks = blocks.iter().map(|&block| u64::from(valid.valid(block)));
                assert_eq!(of_blocks.sum::<u64>(), mapped as u64);
            }
            blocks.reverse();
        }
    }
}
