//! The mount of the page-mapped FTL. It builds the tables of the FTL from the medium.
//!
//! 1. The spare area of each block's first page shows whether the block is erased, or stores data
//!    or map pages. (If this page is unreadable, the first readable page is used.) A block without
//!    a readable page is erased.
//! 2. The map store rebuilds the map from its surviving parts: map pages on flash, and segments in
//!    NVM.
//! 3. Roll forward: the mount reads the spare areas of data that was programmed after the oldest
//!    change that this map may lack. The last page of each block shows whether the block has such
//!    data. The mount takes the newest entry of a page from the spare areas. The program of this
//!    entry must have a larger number than every program that the map covers.
//! 4. Slots that entries point to become valid. An entry of the map store is lost if it points to a
//!    slot of another page and no newer entry supersedes it.
//! 5. The store writes the entries that do not fit into its memory.
//!
//! The drive continues to write to blocks that are neither erased nor full. If it was collecting
//! when the power failed, it may have no other room.

use super::copyback::Copyback;
use super::frontier::Frontier;
use super::history::History;
use super::lower_pages::Defence;
use super::settings::PageSettings;
use super::slc::{SlcCache, mode_found};
use super::steps::Steps;
use super::{Lane, PageMapped};
use crate::blocks::{Role, WEAR_DYNAMIC};
use crate::classifiers::CLASSIFIER;
use crate::maps::{MapContext, STORE};
use crate::pool::Pool;
use crate::schemes::SchemeConfig;
use crate::superseded::Superseded;
use crate::victims::{LaneShape, Moment, VICTIM};
use crate::{FtlContext, FtlReport, MountReport};
use flashatlas_nand::{Medium, OobRole};
use flashatlas_types::{
    BlockId, BlockMode, Cause, FtlError, LaneId, Lpn, OpId, Ppn, PpnTable, Rng, Seed, SeededBug,
    beat,
};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::sync::Arc;

impl PageMapped {
    /// Rebuilds the tables. If a page has several copies, the copy that was programmed last is
    /// valid.
    pub(super) fn mount(
        config: &SchemeConfig<'_>,
        cx: &mut FtlContext<'_>,
        seed: Seed,
    ) -> Result<PageMapped, FtlError> {
        let mut ftl = PageMapped::blank(config, cx.flash.medium, seed);
        let before = cx.flash.medium.counters;
        ftl.begin_refreshing(cx.flash.medium, ftl.settings.refresh);
        ftl.rebuild(cx)?;
        ftl.mount.finish(&before, cx.flash.medium);
        Ok(ftl)
    }

    /// Writes the whole map to flash, once and in order, if the map store writes a map. The medium
    /// is mounted afterwards.
    pub(super) fn write_map(
        config: &SchemeConfig<'_>,
        cx: &mut FtlContext<'_>,
        seed: Seed,
    ) -> Result<(), FtlError> {
        let mut ftl = PageMapped::blank(config, cx.flash.medium, seed);
        if !ftl.map.is_written() {
            return Ok(());
        }
        ftl.find_entries(cx, true)?;
        ftl.map.write_whole(&mut MapContext::new(cx, &mut ftl.pool))
    }

    /// Returns the FTL with empty tables.
    fn blank(config: &SchemeConfig<'_>, medium: &Medium, seed: Seed) -> PageMapped {
        let layout = medium.layout().clone();
        let SchemeConfig { params, parts } = *config;
        let settings = PageSettings::new(config, &layout);
        let streams = settings.streams;
        let classifier = parts.classifier(params.get(CLASSIFIER)).expect("resolved");
        let victim = parts.victim(params.get(VICTIM)).expect("resolved");
        let shape = LaneShape { blocks: layout.blocks_per_lane, slots: layout.slots_per_block };
        let mut frontiers = settings.per_frontier(Frontier::new(&layout, BlockMode::Native));
        if let Some(slc) = settings.slc_frontier() {
            frontiers[slc] = Frontier::new(&layout, BlockMode::Slc);
        }
        let lane = |id: LaneId| Lane {
            policy: (victim.build)(params, shape, Rng::stream(seed, &format!("ftl.victim.{id}"))),
            frontiers: frontiers.clone(),
            leaving: Vec::new(),
            sweep: None,
            owed_slots: 0,
            last_copy: OpId::NONE,
            shares: [OpId::NONE; 2],
        };
        PageMapped {
            map: (parts.store(params.get(STORE)).expect("resolved").build)(
                &config.store(),
                &layout,
            ),
            pool: Pool::new(&layout, medium, params.get(WEAR_DYNAMIC), settings.map_quota)
                .with_statics(settings.slc.map_or(0, |slc| slc.statics)),
            lanes: layout.lane_ids().map(lane).collect(),
            slc: settings.slc.map(|_| SlcCache::new(&layout)),
            defence: Defence::default(),
            copyback: Copyback::of(params),
            steps: Steps::new(&layout, &settings),
            classifier: (classifier.build)(params, layout.logical_units, streams.collection),
            history: classifier.history.then(|| History::new(&layout, streams)),
            host_units: 0,
            cursor: settings.per_host_frontier(LaneId::new(0)),
            gathering: settings.per_host_frontier(None),
            buffered: FxHashMap::default(),
            superseded: Superseded::new(&layout),
            at: Moment::default(),
            partial_frames: 0,
            refreshing: super::Refreshing::default(),
            report: FtlReport::default(),
            mount: MountReport::new(&layout),
            settings,
            layout,
        }
    }

    /// Finds the entry of each page, and the valid slots. Returns the blocks of data. `to_write` is
    /// `true` if the whole map is written afterwards.
    fn find_entries(
        &mut self,
        cx: &mut FtlContext<'_>,
        to_write: bool,
    ) -> Result<Vec<BlockId>, FtlError> {
        let (data, map, unreadable) = self.sort_blocks(cx.flash.medium);
        for &block in &map {
            self.read_spare_areas(block, cx.flash.medium.write_pointer(block));
        }
        let replay =
            self.map.load(&mut MapContext::new(cx, &mut self.pool), &map, &mut self.mount)?;
        self.map.before_discard(&mut MapContext::new(cx, &mut self.pool))?;
        for block in unreadable {
            self.pool.erase(cx, block, Cause::Recovery, &[])?;
        }
        let was_blank = self.map.found_nothing(self.layout.logical_units);
        let blocks = self.read_data_blocks(cx.flash.medium, &data, replay.from);
        self.roll_forward(cx.flash.medium, &blocks, &replay, (was_blank, to_write));
        match self.map.whole_table().and_then(PpnTable::base) {
            _ if was_blank => {}
            Some(base) => self.pool.blocks.lay(&self.layout, Arc::clone(base)),
            None => self.follow_entries(cx.flash.medium),
        }
        Ok(data)
    }

    fn rebuild(&mut self, cx: &mut FtlContext<'_>) -> Result<(), FtlError> {
        let data = self.find_entries(cx, false)?;
        self.map.mounted(&mut MapContext::new(cx, &mut self.pool), &mut self.mount)?;
        if let Some(slc) = &mut self.slc {
            data.iter().for_each(|&block| slc.found(block, self.pool.blocks.valid(block)));
        }
        let full = self.adopt_frontiers(cx.flash.medium, data);
        let mut closed: Vec<(u64, BlockId)> = full
            .into_iter()
            .map(|b| {
                let last = self.layout.frame_in(b, cx.flash.medium.write_pointer(b) - 1);
                (cx.flash.medium.frame_sequence(last).unwrap_or(0), b)
            })
            .collect();
        closed.sort_unstable();
        for (_, block) in closed {
            self.close(block);
        }
        self.map.reset_counters();
        Ok(())
    }

    fn read_spare_areas(&mut self, block: BlockId, count: u32) {
        self.mount.read_spare_areas(&self.layout, block, count);
    }

    /// Lists free blocks. Returns the other blocks: blocks of data, blocks of map pages, and blocks
    /// without a readable page. The last kind will be erased, because its role is unknown: an erase
    /// or the first program was interrupted.
    fn sort_blocks(&mut self, medium: &Medium) -> (Vec<BlockId>, Vec<BlockId>, Vec<BlockId>) {
        let (mut data, mut map, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
        for block in self.layout.block_ids() {
            if self.pool.blocks.role(block) == Role::Bad {
                continue;
            }
            self.read_spare_areas(block, 1);
            if medium.write_pointer(block) == 0 {
                self.pool.put(medium, block);
                continue;
            }
            self.read_spare_areas(block, 1); // its last page once more (SchemeDef::mount)
            if !medium.has_readable_spare(block) && !SeededBug::KeepUnreadable.is_active() {
                self.read_spare_areas(block, medium.write_pointer(block) - 1);
                self.mount.unreadable_blocks += 1;
                unreadable.push(block);
            } else if medium.oob_role(block) == OobRole::MAP {
                map.push(block);
            } else {
                self.pool.blocks.set_role(block, Role::Closed);
                if mode_found(medium, block) == BlockMode::Slc {
                    self.adopt_slc(block);
                }
                data.push(block);
            }
        }
        (data, map, unreadable)
    }

    /// Makes frontiers of the blocks that are not full, and returns the other blocks.
    ///
    /// Collection gets the blocks with the most room. If the power failed during a collection and
    /// no block is free, the victim must fit into the rest of the block that its pages were moving
    /// to. Cold data gets the fullest block.
    fn adopt_frontiers(&mut self, medium: &Medium, data: Vec<BlockId>) -> Vec<BlockId> {
        let (mut partial, mut full): (Vec<BlockId>, Vec<BlockId>) = data
            .into_iter()
            .partition(|&b| medium.write_pointer(b) < self.layout.frames_in(mode_found(medium, b)));
        partial.sort_unstable_by_key(|&b| (medium.write_pointer(b), b));
        for block in partial {
            if SeededBug::CloseOpenBlocks.is_active() {
                full.push(block);
                continue;
            }
            let written = medium.write_pointer(block);
            let next = self.next_safe(mode_found(medium, block), block, written, written);
            if next == self.layout.frames_per_block {
                full.push(block);
                continue;
            }
            let lane = &mut self.lanes[self.layout.lane_of(block)];
            let slc = self.settings.slc_frontier();
            if mode_found(medium, block) == BlockMode::Slc {
                let frontier = &mut lane.frontiers[slc.expect("the cache is on flash")];
                if frontier.block.is_none() {
                    (frontier.block, frontier.next) = (Some(block), next);
                    frontier.relied = written;
                    self.pool.blocks.set_role(block, Role::Open);
                } else {
                    full.push(block);
                }
                continue;
            }
            let (others, cold) = lane.frontiers.split_at_mut(self.settings.cold_frontier());
            let others = others.iter_mut_enumerated().filter(|(f, _)| Some(*f) != slc);
            let others = others.map(|(_, frontier)| frontier);
            match others.rev().chain(cold).find(|f| f.block.is_none()) {
                Some(frontier) => {
                    (frontier.block, frontier.next) = (Some(block), next);
                    frontier.relied = written;
                    self.pool.blocks.set_role(block, Role::Open);
                }
                None => full.push(block),
            }
        }
        full
    }

    /// Returns the data blocks that may have entries which the map lacks, newest first. Their spare
    /// areas are read.
    fn read_data_blocks(&mut self, medium: &Medium, data: &[BlockId], from: u64) -> Vec<BlockId> {
        let mut blocks = newest_first(medium, data);
        blocks.retain(|&block| {
            let programmed = medium.write_pointer(block);
            if from > 0 {
                self.read_spare_areas(block, 1);
                let last = medium.frame_sequence(self.layout.frame_in(block, programmed - 1));
                let is_full = programmed >= self.layout.frames_in(mode_found(medium, block));
                if from == u64::MAX || (is_full && last.is_ok_and(|sequence| sequence <= from)) {
                    return false;
                }
            }
            self.read_spare_areas(block, programmed - 1);
            self.mount.unreadable_frames += u64::from(medium.unreadable_frames(block));
            true
        });
        blocks
    }

    /// Returns whether a slot contains a version of a page. (Spare areas in map blocks name map
    /// pages.)
    pub(super) fn holds(&self, medium: &Medium, slot: Ppn, lpn: Lpn) -> bool {
        medium.lpn(slot) == Ok(lpn) && medium.oob_role(self.layout.block_of(slot)) != OobRole::MAP
    }

    /// Marks every slot that an entry points to as valid.
    fn follow_entries(&mut self, medium: &Medium) {
        for lpn in (0..self.layout.logical_units).map(Lpn) {
            beat(1);
            let Some(ppn) = self.map.peek(lpn).mapped() else { continue };
            if self.holds(medium, ppn, lpn) {
                self.pool.blocks.set_valid(ppn);
            } else {
                self.mount.lost += 1;
                self.map.restore(lpn, Ppn::NONE, self.pool.settled);
            }
        }
    }
}

/// Sorts blocks so that the block that was written last comes first. The mount then meets most
/// pages in their newest version first. It compares later versions with the newest version and
/// skips them. Only an entry that is taken changes the table.
fn newest_first(medium: &Medium, blocks: &[BlockId]) -> Vec<BlockId> {
    let last = |&block: &BlockId| {
        let sequence = medium.last_programmed(block).map(|frame| medium.frame_sequence(frame));
        (sequence.and_then(Result::ok).unwrap_or(0), block)
    };
    let mut sorted: Vec<(u64, BlockId)> = blocks.iter().map(last).collect();
    sorted.sort_unstable_by_key(|&(sequence, _)| Reverse(sequence));
    sorted.into_iter().map(|(_, block)| block).collect()
}
