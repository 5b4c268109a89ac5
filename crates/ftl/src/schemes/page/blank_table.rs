//! A map of which no part survived, rebuilt from the spare areas of data. If a page has several
//! versions, the version that was programmed last counts.
//!
//! The spare areas are read in memory order, but the pages that they name are spread over the
//! table. So their entries are first sorted into windows of the table, some millions at a time.
//! Each window is then filled while it is in the processor's caches. The cores share both steps.
//! Each core sorts the entries of some blocks, and then fills some windows with the entries that
//! all cores have sorted.

use super::versions::Versions;
use crate::blocks::Blocks;
use flashatlas_nand::Medium;
use flashatlas_types::{
    BLOCK_STEPS, BlockId, Dealing, Lpn, Ppn, PpnShare, PpnTable, at_once, beat, share,
};

/// The division of the work.
#[derive(Clone, Copy)]
pub(super) struct Division {
    /// The base-2 logarithm of the number of entries in a window of the table.
    window_bits: u32,
    /// The number of windows that a thread fills.
    share: usize,
    /// The number of slots whose entries are sorted into windows at a time.
    batch: u32,
}

impl Division {
    /// Returns the division for a table of `pages` pages: a share for each core, windows of 512
    /// KiB, and 256 MiB of entries at a time on all cores together. Each thread has its own bitmap
    /// of all slots.
    pub fn of(pages: u32) -> Division {
        const WORTH_A_THREAD: usize = 8;
        const MOST_THREADS: usize = 8;
        let one = Division { window_bits: 17, share: 1, batch: 1 << 25 };
        let windows = one.windows(pages);
        let share = share(windows, WORTH_A_THREAD).max(windows.div_ceil(MOST_THREADS));
        Division { share, ..one }
    }

    fn window(&self) -> usize {
        1 << self.window_bits
    }

    fn windows(&self, pages: u32) -> usize {
        (pages as usize).div_ceil(self.window())
    }
}

/// Reads all entries from the spare areas of these blocks and makes their slots `valid`. Returns
/// the number of entries that were put into the table, including entries that were superseded
/// later.
pub(super) fn fill(
    medium: &Medium,
    blocks: &[BlockId],
    table: &mut PpnTable,
    valid: &mut Blocks,
    division: Division,
) -> u64 {
    if blocks.is_empty() {
        return 0;
    }
    let mut versions = Versions::new(medium);
    blocks.iter().for_each(|&block| versions.read(block));
    let (pages, windows) = (table.len(), division.windows(table.len()));
    let mut shares: Vec<Share<'_>> = table
        .shares(u32::try_from(division.window() * division.share).unwrap_or(u32::MAX))
        .map(|entries| Share { entries, superseded: Vec::new(), taken: 0 })
        .collect();
    if let ([all], 1) = (&mut shares[..], windows) {
        for &block in blocks {
            for_each_entry(medium, block, pages, |lpn, slot| {
                valid.set_valid(slot);
                all.take(&versions, lpn, slot);
            });
        }
        all.superseded.iter().for_each(|&slot| _ = valid.invalidate(slot));
        return all.taken;
    }
    let mut dealt: Vec<Dealt> = shares.iter().map(|_| Dealt::new(valid.none_valid())).collect();
    let together = (division.batch / medium.layout().slots_per_block).max(1) as usize;
    for blocks in blocks.chunks(together) {
        let mut parts = blocks.chunks(blocks.len().div_ceil(shares.len()));
        let parts = dealt.iter_mut().map(|dealt| (dealt, parts.next().unwrap_or_default()));
        at_once(parts, |(dealt, blocks)| dealt.deal(medium, blocks, pages, division));
        let firsts = (0..).step_by(division.share);
        at_once(firsts.zip(&mut shares), |(first, share)| {
            share.fill(&versions, &dealt, first, division.window());
        });
        at_once(&mut dealt, |dealt| dealt.invalidate(&shares));
    }
    dealt.iter().for_each(|dealt| valid.add_valid(&dealt.valid));
    shares.iter().map(|share| share.taken).sum()
}

/// Entries of some blocks, sorted by window. Within a window, they keep the order of the blocks.
struct Dealt {
    /// Buffer for entries. Only the entries before the last window's end are used.
    entries: Vec<(Lpn, Ppn)>,
    /// The place at which the entries of each window end.
    ends: Vec<usize>,
    /// Slots of all blocks whose entries were sorted here. A slot is valid until a newer version of
    /// its page is found. Most pages have no other version.
    valid: Blocks,
}

impl Dealt {
    fn new(valid: Blocks) -> Dealt {
        Dealt { entries: Vec::new(), ends: Vec::new(), valid }
    }

    fn deal(&mut self, medium: &Medium, blocks: &[BlockId], pages: u32, division: Division) {
        let window_of = |lpn: Lpn| (lpn.0 >> division.window_bits) as usize;
        let mut dealing = Dealing::new(division.windows(pages));
        for &block in blocks {
            for_each_entry(medium, block, pages, |lpn, _| dealing.count(window_of(lpn)));
        }
        let count = dealing.counted();
        self.entries.resize(self.entries.len().max(count), (Lpn::NONE, Ppn::NONE));
        for &block in blocks {
            for_each_entry(medium, block, pages, |lpn, slot| {
                self.entries[dealing.place(window_of(lpn))] = (lpn, slot);
                self.valid.set_valid(slot);
            });
        }
        self.ends = dealing.ends();
    }

    /// Makes the slots invalid that these shares have found to be superseded, if their entries were
    /// sorted here.
    fn invalidate(&mut self, shares: &[Share<'_>]) {
        for &slot in shares.iter().flat_map(|share| &share.superseded) {
            if self.valid.is_valid(slot) {
                self.valid.invalidate(slot);
            }
        }
    }

    fn window(&self, number: usize) -> &[(Lpn, Ppn)] {
        let begin = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.entries[begin..self.ends[number]]
    }
}

/// Entries of the table that one thread fills.
struct Share<'a> {
    entries: PpnShare<'a>,
    /// Slots of older versions that were found since the last filling began.
    superseded: Vec<Ppn>,
    taken: u64,
}

impl Share<'_> {
    /// Fills the windows of this share with their sorted entries. Each window has `window` entries.
    /// `first` is the number of the first window.
    fn fill(&mut self, versions: &Versions<'_>, dealt: &[Dealt], first: usize, window: usize) {
        self.superseded.clear();
        for (number, begin) in (first..).zip((0..self.entries.len()).step_by(window)) {
            beat(BLOCK_STEPS);
            let count: usize = dealt.iter().map(|dealt| dealt.window(number).len()).sum();
            if count > window / 64 {
                self.entries.load(begin..begin + window);
            }
            for &(lpn, slot) in dealt.iter().flat_map(|dealt| dealt.window(number)) {
                self.take(versions, lpn, slot);
            }
        }
    }

    /// Processes a slot with a version of a page of this share.
    #[inline]
    fn take(&mut self, versions: &Versions<'_>, lpn: Lpn, slot: Ppn) {
        if let Some(known) = self.entries.get(lpn).mapped() {
            if !versions.is_newer(slot, known) {
                self.superseded.push(slot);
                return;
            }
            self.superseded.push(known);
        }
        self.entries.set(lpn, slot);
        self.taken += 1;
    }
}

/// Calls `visit` with each page below `pages` that the readable spare areas of a block name, and
/// with the slot of the page.
#[inline]
fn for_each_entry(medium: &Medium, block: BlockId, pages: u32, mut visit: impl FnMut(Lpn, Ppn)) {
    let layout = medium.layout();
    beat(BLOCK_STEPS);
    for frame in (0..medium.write_pointer(block)).map(|index| layout.frame_in(block, index)) {
        if let Ok(spare) = medium.spare(frame) {
            let entries = spare.lpns().zip((layout.first_slot(frame).0..).map(Ppn));
            entries.filter(|(lpn, _)| lpn.0 < pages).for_each(|(lpn, slot)| visit(lpn, slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_fixtures::layouts::lanes;
    use flashatlas_nand::{Flash, Rules, Unit};
    use flashatlas_types::{Cause, FrameId, Plan, Rng, Seed, Stamp};
    use std::sync::Arc;

    const PAGES: u32 = 90;

    /// Writes random pages to six blocks in turn. The blocks have eight frames of four units. Some
    /// pages are in a frame twice, some units are padding, and two frames are torn. Returns the
    /// medium, and the intact frames in the order of their programs.
    fn written() -> (Medium, Vec<FrameId>) {
        let layout = lanes(1, [6, 8, 4], PAGES);
        let mut medium = Medium::new(Arc::new(layout.clone()), Rules::PLAIN, 0, Seed(1)).unwrap();
        let (mut plan, mut rng) = (Plan::default(), Rng::stream(Seed(1), "test"));
        plan.set_recording(false);
        let mut frames = Vec::new();
        for turn in 0..40 {
            let block = BlockId::new(turn % 6);
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

    /// Compares the table with a reference that reads the programs in their order, so that the last
    /// version stays.
    #[test]
    fn shares_and_windows_of_any_size_find_the_newest_versions() {
        let (medium, frames) = written();
        let layout = medium.layout();
        let mut newest = PpnTable::new(PAGES);
        for &frame in &frames {
            let first = layout.first_slot(frame).0;
            for (slot, lpn) in (first..).map(Ppn).zip(medium.spare(frame).unwrap().lpns()) {
                if lpn != Lpn::NONE {
                    newest.replace(lpn, slot);
                }
            }
        }
        let entries: Vec<Ppn> = newest.range(0..PAGES).collect();
        let mapped = entries.iter().flat_map(|ppn| ppn.mapped()).count() as u64;
        assert!((20..PAGES.into()).contains(&mapped), "{mapped} of {PAGES} pages are mapped");
        let mut blocks: Vec<BlockId> = (0..6).map(BlockId::new).collect();
        for order in 0..2 {
            for (window_bits, share, batch) in
                [(0, 1, 1), (0, 90, 70), (2, 3, 1), (4, 1, 70), (4, 6, 200), (6, 1, 200), (7, 1, 1)]
            {
                let division = Division { window_bits, share, batch };
                let mut table = PpnTable::new(PAGES);
                let mut valid = Blocks::new(layout, &medium);
                let taken = fill(&medium, &blocks, &mut table, &mut valid, division);
                assert!(taken >= mapped);
                assert!(
                    table.range(0..PAGES).eq(entries.iter().copied()),
                    "{order}, {window_bits}, {share}"
                );
                for slot in (0..layout.slots()).map(Ppn) {
                    assert_eq!(valid.is_valid(slot), entries.contains(&slot), "{slot}");
                }
                assert_eq!(valid.total(), mapped);
                let of_blocks = blocks.iter().map(|&block| u64::from(valid.valid(block)));
                assert_eq!(of_blocks.sum::<u64>(), mapped);
            }
            blocks.reverse();
        }
    }
}
