//! Defences of lower pages. On flash with several bits a cell, a power failure in the program of a
//! page destroys the earlier pages of the same cells ([`Medium::paired_before`]). The host relies
//! on some of these pages: on flushed data, and on data whose only other copy was erased.
//!
//! The scheme *relies* on everything that is on flash when a FLUSH or a FUA write completes, when a
//! block is erased, and when the drive is mounted. From then on `ftl.lower_pages` decides:
//!
//! - `skip`: the scheme does not program pages that share cells with a page that it relies on. Each
//!   such moment costs an open block a few pages.
//! - `backup`: before such a page is programmed, the valid units of the earlier pages of its cells
//!   are copied to a backup block of the lane. The map never points to a backup. If a mount finds
//!   the page destroyed, it takes the backup, which was programmed after all other copies. Backups
//!   use only the lower pages of a backup block, so no backup endangers another backup.
//!
//! Programs of pages that share cells with earlier pages may be in flight at such a moment. The
//! FLUSH, the FUA write or the erase then waits for these programs.
//!
//! A block in SLC mode has one page on each word line, so nothing in it needs a defence.
//!
//! [`Medium::paired_before`]: flashatlas_nand::Medium::paired_before

use super::PageMapped;
use super::frontier::Frontier;
use super::settings::GC_MODE;
use crate::FtlContext;
use crate::pool::GC_PACE;
use crate::units::read_or_lose;
use flashatlas_nand::{OobRole, Unit};
use flashatlas_types::{
    BlockId, BlockMode, Cause, Class, ConfigError, FrameId, FrontierId, FtlError, LaneId, Layout,
    OpId, Param, Params, Ppn, SeededBug, Text,
};
use smallvec::SmallVec;

pub(super) const LOWER_PAGES: Param<Text> = Param::choice(
    "ftl.lower_pages",
    &["none", "skip", "backup"],
    "defence against a power failure of pages that were programmed earlier in the same cells: \
     `none`; `skip`: the drive does not program pages that would endanger flushed data; `backup`: \
     copies of that data are programmed first (nand.plp_bytes is a defence by capacitors)",
)
.or("none");

/// A defence of lower pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum LowerPages {
    /// None: a power failure may destroy flushed data.
    #[default]
    None,
    /// Pages that would endanger data are left out.
    Skip,
    /// Data is copied before it is endangered.
    Backup,
}

impl LowerPages {
    pub fn of(params: &Params) -> LowerPages {
        match params.get(LOWER_PAGES) {
            "skip" => LowerPages::Skip,
            "backup" => LowerPages::Backup,
            _ => LowerPages::None,
        }
    }

    /// Returns the number of blocks that a lane keeps open for the defence.
    pub fn open_blocks(self) -> u32 {
        u32::from(self == LowerPages::Backup)
    }

    /// Returns the number of free blocks of a lane that the defence may take before a collection
    /// frees a block. An open block may end early, and a backup block may be full.
    pub fn low_water(self) -> u32 {
        u32::from(self != LowerPages::None)
    }

    /// Returns the largest number of frames of a block that one victim's copies may leave out.
    pub fn lost_frames(self, layout: &Layout) -> u32 {
        if self != LowerPages::Skip {
            return 0;
        }
        // a frame is left out if its first pair is programmed when the scheme relies on all pages,
        // and the frame itself is not; the result is the largest number of such frames at any
        // moment
        let frames = layout.frames_per_block;
        let mut begins = vec![0i32; frames as usize + 1];
        for index in 0..frames {
            if let Some(first) = first_pair(layout, BlockId::new(0), index) {
                begins[first as usize + 1] += 1;
                begins[index as usize + 1] -= 1;
            }
        }
        let mut open = 0;
        let at_once = begins.iter().map(|change| {
            open += change;
            open
        });
        at_once.max().unwrap_or(0) as u32
    }
}

/// Refuses settings that a defence does not combine with.
pub(super) fn fits(params: &Params, layout: &Layout, map_blocks: u32) -> Result<(), ConfigError> {
    let name = params.get(LOWER_PAGES);
    if name == "none" {
        return Ok(());
    }
    let refuse = |why: String| Err(ConfigError::new(LOWER_PAGES.key(), why));
    let frames = 0..layout.frames_per_block;
    if frames.into_iter().all(|index| first_pair(layout, BlockId::new(0), index).is_none()) {
        return refuse(format!(
            "`{name}` defends pages that share cells, and no two frames of this drive do; leave \
             the key out"
        ));
    }
    if params.get(GC_MODE) != "dual" {
        return refuse(format!("`{name}` needs ftl.gc_mode = dual"));
    }
    if params.get(GC_PACE) != "burst" {
        return refuse(format!("`{name}` needs ftl.gc_pace = burst"));
    }
    let most = usize::from(layout.geometry.cell.levels() - 1);
    let lower = lower_frames(layout, BlockId::new(0), 0).count();
    if lower < most {
        let why = format!(
            "a block has {lower} lower pages, but `{name}` of ftl.lower_pages may need {most} for \
             one program; give more pages"
        );
        return Err(ConfigError::new("drive.pages", why));
    }
    if map_blocks > 0 {
        return refuse(format!(
            "`{name}` defends data pages, and this map.store (with its map.flush) has map pages on \
             flash; use map.store = dram with map.flush = none, or nand.plp_bytes"
        ));
    }
    Ok(())
}

/// Returns the index of the first frame of a block that shares cells with frame `index` and comes
/// before it.
fn first_pair(layout: &Layout, block: BlockId, index: u32) -> Option<u32> {
    let first = layout.paired_before(layout.frame_in(block, index)).next()?;
    Some(layout.index_in(block, first))
}

/// Returns the frames of a block, from `index` on, that share cells with no earlier frame.
fn lower_frames(layout: &Layout, block: BlockId, index: u32) -> impl Iterator<Item = u32> + '_ {
    (index..layout.frames_per_block).filter(move |&i| first_pair(layout, block, i).is_none())
}

/// The blocks and operations of a defence.
#[derive(Debug, Default)]
pub(super) struct Defence {
    /// For each lane, the backup block, its next frame, and the programs that its backups serve.
    backups: Vec<Option<BackupBlock>>,
    /// Programs of pages that share cells with earlier pages. These programs may be unfinished.
    uppers: Vec<OpId>,
    /// The number of frames that were left out.
    pub skipped: u64,
    /// The number of backups that were programmed.
    pub backed_up: u64,
}

#[derive(Debug)]
struct BackupBlock {
    block: BlockId,
    next: u32,
    serves: Vec<OpId>,
}

impl Defence {
    /// Notes the program of a page that shares cells with earlier pages.
    fn note(&mut self, op: OpId, oldest_unfinished: OpId) {
        if op == OpId::NONE {
            return;
        }
        if self.uppers.len() == self.uppers.capacity() {
            self.uppers.retain(|&upper| upper >= oldest_unfinished);
        }
        self.uppers.push(op);
    }
}

impl PageMapped {
    /// Returns the counter of the defence for the run record.
    pub(super) fn lower_page_details(&self) -> Option<(&'static str, u64)> {
        match self.settings.lower_pages {
            LowerPages::None => None,
            LowerPages::Skip => Some(("lower_pages_skipped", self.defence.skipped)),
            LowerPages::Backup => Some(("lower_pages_backed_up", self.defence.backed_up)),
        }
    }

    /// Relies on everything that was programmed so far. Returns an operation that is complete once
    /// `flushed` is complete and no program in flight endangers the data that the scheme relies on.
    pub(super) fn rely_after(
        &mut self,
        cx: &mut FtlContext<'_>,
        flushed: OpId,
    ) -> Result<OpId, FtlError> {
        if self.steps.is_some() {
            return Ok(self.protected_after(cx, flushed));
        }
        let mut after = self.rely(cx)?;
        if after.is_empty() {
            return Ok(flushed);
        }
        after.push(flushed);
        Ok(cx.flash.plan.join(Class::Map, &after))
    }

    /// Relies on everything that was programmed so far. Returns the operations that must complete
    /// first, because a power failure in them would destroy earlier pages.
    pub(super) fn rely(&mut self, cx: &mut FtlContext<'_>) -> Result<Vec<OpId>, FtlError> {
        if self.settings.lower_pages == LowerPages::None || SeededBug::RelyOnLowerPages.is_active()
        {
            return Ok(Vec::new());
        }
        for lane in self.layout.lane_ids() {
            for f in self.lanes[lane].frontiers.keys() {
                self.rely_on_frontier(cx, lane, f)?;
            }
        }
        let oldest = cx.command.oldest_unfinished;
        self.defence.uppers.retain(|&upper| upper >= oldest);
        Ok(self.defence.uppers.clone())
    }

    fn rely_on_frontier(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        f: FrontierId,
    ) -> Result<(), FtlError> {
        let frontier = &mut self.lanes[lane].frontiers[f];
        let Some(block) = frontier.block else { return Ok(()) };
        if frontier.next == frontier.relied {
            return Ok(());
        }
        frontier.relied = frontier.next;
        if self.settings.lower_pages != LowerPages::Skip {
            return Ok(());
        }
        let (next, relied) = (frontier.next, frontier.relied);
        let safe = self.next_safe(self.mode_of(f), block, next, relied);
        self.defence.skipped += u64::from(safe - next);
        let frontier = &mut self.lanes[lane].frontiers[f];
        frontier.next = safe;
        if safe == self.layout.frames_in(self.mode_of(f)) {
            self.lanes[lane].frontiers[f].block = None;
            self.close(block);
            let map = &mut crate::maps::MapContext::new(cx, &mut self.pool);
            self.map.closed(map, block)?;
        }
        Ok(())
    }

    /// Returns the first frame of a block, from `index` on, that shares cells with none of the
    /// first `relied` frames.
    pub(super) fn next_safe(
        &self,
        mode: BlockMode,
        block: BlockId,
        index: u32,
        relied: u32,
    ) -> u32 {
        if self.settings.lower_pages != LowerPages::Skip || mode != BlockMode::Native {
            return index;
        }
        let frames = self.layout.frames_per_block;
        let is_safe =
            |&index: &u32| first_pair(&self.layout, block, index).is_none_or(|p| p >= relied);
        (index..frames).find(is_safe).unwrap_or(frames)
    }

    /// Takes the next frame of a frontier, which has a block. Returns the block, the frame, and
    /// `true` if no frame of the block is left.
    #[inline]
    pub(super) fn take_frame(&mut self, lane: LaneId, f: FrontierId) -> (BlockId, FrameId, bool) {
        let frontier = &mut self.lanes[lane].frontiers[f];
        let frames = frontier.frames;
        let block = frontier.block.expect("the frontier has a block");
        let frame = self.layout.frame_in(block, frontier.next);
        frontier.next += 1;
        let next = match self.settings.lower_pages {
            LowerPages::Skip => self.skip_unsafe(lane, f, block),
            LowerPages::None | LowerPages::Backup => frontier.next,
        };
        (block, frame, next == frames)
    }

    /// Leaves out the next frames of a frontier as far as they would endanger data. Returns the
    /// next frame.
    #[cold]
    #[inline(never)]
    fn skip_unsafe(&mut self, lane: LaneId, f: FrontierId, block: BlockId) -> u32 {
        let Frontier { next, relied, .. } = self.lanes[lane].frontiers[f];
        let safe = self.next_safe(self.mode_of(f), block, next, relied);
        self.defence.skipped += u64::from(safe - next);
        self.lanes[lane].frontiers[f].next = safe;
        safe
    }

    /// Copies the data that the program of a frame would endanger to the lane's backup block.
    /// Appends the operations that the program must wait for. Returns `true` if there are copies.
    #[inline]
    pub(super) fn back_up(
        &mut self,
        cx: &mut FtlContext<'_>,
        at: (LaneId, FrontierId),
        frame: FrameId,
        cause: Cause,
        after: &mut impl Extend<OpId>,
    ) -> Result<bool, FtlError> {
        if self.settings.lower_pages == LowerPages::Backup {
            self.back_up_pairs(cx, at, frame, cause, after)
        } else {
            Ok(false)
        }
    }

    #[cold]
    #[inline(never)]
    fn back_up_pairs(
        &mut self,
        cx: &mut FtlContext<'_>,
        (lane, f): (LaneId, FrontierId),
        frame: FrameId,
        cause: Cause,
        after: &mut impl Extend<OpId>,
    ) -> Result<bool, FtlError> {
        let relied = self.lanes[lane].frontiers[f].relied;
        let block = self.layout.block_of_frame(frame);
        let is_relied = |pair: &FrameId| self.layout.index_in(block, *pair) < relied;
        let pairs: SmallVec<[FrameId; 4]> =
            cx.flash.medium.paired_before(frame).filter(is_relied).collect();
        if pairs.is_empty() {
            return Ok(false);
        }
        // all backups of a frame are in one block, because a full backup block is erased when the
        // next block takes its place
        self.make_backup_room(cx, lane, pairs.len())?;
        let mut has_backup = false;
        for pair in pairs {
            // an old version must survive until the program of the new version is complete
            let oldest = cx.command.oldest_unfinished;
            after.extend(self.superseded.unfinished(block, oldest));
            let first = self.layout.first_slot(pair);
            let mut valid = self.pool.blocks.valid_mask(first, self.layout.slots_per_frame);
            if valid == 0 {
                continue;
            }
            let sensed = read_or_lose(cx, pair, valid, cause)?;
            let mut units: Vec<Unit> = Vec::new();
            while valid != 0 {
                units.push(cx.flash.medium.unit_or_lost(Ppn(first.0 + valid.trailing_zeros()))?);
                valid &= valid - 1;
            }
            let place = self.next_backup(lane).expect("the backup block has room");
            let (_, op) = cx.flash.program(place, units.iter(), cause, &[sensed])?;
            self.at.clock += u64::from(self.layout.slots_per_frame);
            self.defence.backed_up += 1;
            has_backup = true;
            after.extend([op]);
        }
        Ok(has_backup)
    }

    /// Notes the program of a frame whose earlier pages may have backups.
    #[inline]
    pub(super) fn endangers(
        &mut self,
        cx: &FtlContext<'_>,
        lane: LaneId,
        frame: FrameId,
        program: (OpId, bool),
    ) {
        if self.settings.lower_pages != LowerPages::None {
            self.note_upper(cx, lane, frame, program);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_upper(
        &mut self,
        cx: &FtlContext<'_>,
        lane: LaneId,
        frame: FrameId,
        (op, has_backup): (OpId, bool),
    ) {
        if cx.flash.medium.paired_before(frame).next().is_some() {
            self.defence.note(op, cx.command.oldest_unfinished);
        }
        if has_backup
            && let Some(backups) = self.defence.backups.get_mut(usize::from(lane))
            && let Some(backup) = backups
        {
            backup.serves.push(op);
        }
    }

    /// Takes the next frame of a lane's backup block. Returns `None` if the backup block is full.
    fn next_backup(&mut self, lane: LaneId) -> Option<FrameId> {
        let backup = self.defence.backups.get_mut(usize::from(lane))?.as_mut()?;
        let block = backup.block;
        let mut rest = lower_frames(&self.layout, block, backup.next);
        let index = rest.next()?;
        backup.next = index + 1;
        Some(self.layout.frame_in(block, index))
    }

    /// Ensures that a lane's backup block has room for a number of frames. A full block is erased
    /// when the programs that its backups serve are complete, and another block takes its place.
    fn make_backup_room(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        frames: usize,
    ) -> Result<(), FtlError> {
        let at = usize::from(lane);
        self.defence.backups.resize_with(self.layout.lane_ids().count(), || None);
        if let Some(BackupBlock { block, next, .. }) = self.defence.backups[at]
            && lower_frames(&self.layout, block, next).take(frames).count() == frames
        {
            return Ok(());
        }
        let full = self.defence.backups[at].take();
        let mut taken = self.pool.take(lane);
        if let Some(full) = full {
            // the full block is erased after its successor was taken, so that the two blocks take
            // turns
            self.pool.erase(cx, full.block, Cause::Gc, &full.serves)?;
        }
        if taken.is_none() {
            taken = self.pool.take(lane);
        }
        let Some(block) = taken else { return Err(self.pool.no_space()) };
        cx.flash.open(block, OobRole::default());
        self.defence.backups[at] = Some(BackupBlock { block, next: 0, serves: Vec::new() });
        Ok(())
    }
}
