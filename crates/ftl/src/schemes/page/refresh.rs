//! Refresh and read reclaim: data is written again before its bits can no longer be corrected.
//!
//! Hard decoding corrects a number of wrong bits. New data has some of them already, and time and
//! reads add others. A block is due for refresh when those that time and reads are expected to have
//! added to its worst page exceed a share (`ftl.refresh`) of the room that new data leaves. So a
//! refresh never makes a block due, however worn it is. If new data leaves no room, a refresh would
//! not help, and the block is never due. The expected numbers follow from cycles and time as well
//! as from reads, so a drive that is never read refreshes its data, too. A block is due for reclaim
//! after a number of reads (`ftl.read_reclaim`). The scheme looks for due blocks once in
//! `ftl.refresh_check` of simulated time, or once an hour in idle time. In idle time it refreshes
//! every due block. While the drive works, each look refreshes at most one block of each lane.
//!
//! A block with a page that was rebuilt from parity (`ecc.parity`) is due for reclaim immediately,
//! so that a second loss does not meet it. With collection into the host's blocks or a map on
//! flash, nothing is refreshed, and each read rebuilds the page again.
//!
//! A due block of an SLC cache is folded, so its data moves to native blocks. The block counts as a
//! fold of the cache and as a refreshed or reclaimed block.

use super::settings::GcMode;
use super::{PageMapped, PageSettings};
use crate::FtlContext;
use crate::blocks::Role;
use crate::pool::MapQuota;
use flashatlas_nand::errors::params::PARITY;
use flashatlas_nand::{ErrorRules, Medium};
use flashatlas_types::{
    BlockId, BlockMode, Cause, ConfigError, Dur, FrontierId, FtlError, LaneId, Param, ParamDef,
    Params, Ps,
};

/// The parameter `ftl.refresh`.
pub const REFRESH: Param<f64> = Param::ratio(
    "ftl.refresh",
    0.0,
    1.0,
    "a block is written again when time and reads are expected to have added more wrong bits to \
     its worst page than this share of the bits that hard decoding corrects beyond the wrong bits \
     of new data; 0: never",
)
.or("0");

/// The parameter `ftl.refresh_check`.
pub(super) const REFRESH_CHECK: Param<Dur> = Param::time(
    "ftl.refresh_check",
    "time between two looks at the age of all blocks while the drive works; a look refreshes one \
     block of each lane; idle time looks once an hour, and refreshes every block that is due",
)
.or("1min");

/// The parameter `ftl.read_reclaim`.
pub(super) const READ_RECLAIM: Param<u32> = Param::int(
    "ftl.read_reclaim",
    0,
    u32::MAX as u64,
    "a block is written again after this number of reads of its pages; 0: never",
)
.or("0");

pub(super) const PARAMS: [ParamDef; 3] = [REFRESH.def, REFRESH_CHECK.def, READ_RECLAIM.def];

/// Time between two looks in idle time.
const IDLE_CHECK: Dur = Dur(3_600_000_000_000_000);

/// The settings of refresh and read reclaim.
#[derive(Clone, Copy, Default)]
pub(super) struct RefreshSettings {
    share: f64,
    check: Dur,
    reclaim: u64,
    /// `true` if blocks with a rebuilt page are due.
    rebuilt: bool,
}

impl RefreshSettings {
    pub fn new(params: &Params, quota: MapQuota) -> RefreshSettings {
        RefreshSettings {
            rebuilt: params.get(PARITY) != "none" && refusal(params, quota).is_none(),
            share: params.get(REFRESH),
            check: params.get(REFRESH_CHECK),
            reclaim: params.get(READ_RECLAIM).into(),
        }
    }

    /// Returns `true` if any block may become due.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.share > 0.0 || self.reclaim > 0 || self.rebuilt
    }
}

/// Checks that a drive with refresh has an error model, and has no map pages on flash.
pub(super) fn check(params: &Params, quota: MapQuota) -> Result<(), ConfigError> {
    let key = if params.get(REFRESH) > 0.0 {
        REFRESH.key()
    } else if params.get(READ_RECLAIM) > 0 {
        READ_RECLAIM.key()
    } else {
        return Ok(());
    };
    if ErrorRules::from_params(params).is_none_or(|errors| errors.bits.is_none()) {
        let why = "nothing ages without bit errors: needs errors.model (errors.model = none here)";
        return Err(ConfigError::new(key, why));
    }
    match refusal(params, quota) {
        Some(why) => Err(ConfigError::new(key, why)),
        None => Ok(()),
    }
}

/// Returns the reason why a drive refreshes nothing, if there is one.
fn refusal(params: &Params, quota: MapQuota) -> Option<&'static str> {
    if params.get(super::settings::GC_MODE) == "single" {
        return Some(
            "not with ftl.gc_mode = single, which keeps no room for copies beside collection",
        );
    }
    (quota.blocks > 0).then_some(
        "not with a map on flash (map.store, map.flush): only data is refreshed, and the pages of \
         the map would age",
    )
}

/// The times of the looks, and the counts of refreshed blocks.
#[derive(Clone, Copy, Default)]
pub(super) struct Refreshing {
    next: Ps,
    next_idle: Ps,
    /// Blocks that were refreshed because of their age, and because of their reads.
    pub blocks: [u64; 2],
}

impl PageMapped {
    /// Begins to note the reads and the rebuilt pages of blocks, if they are reclaimed after them.
    pub(super) fn begin_refreshing(&self, medium: &mut Medium, settings: RefreshSettings) {
        if settings.reclaim > 0 {
            medium.note_reads(settings.reclaim);
        }
        if settings.rebuilt {
            medium.note_rebuilt();
        }
    }

    /// Writes due blocks again. Returns the number of these blocks.
    pub(super) fn refresh(&mut self, cx: &mut FtlContext<'_>, idle: bool) -> Result<u64, FtlError> {
        let RefreshSettings { share, check, reclaim, rebuilt } = self.settings.refresh;
        let mut done = 0;
        if (reclaim > 0 || rebuilt) && cx.flash.medium.has_blocks_to_reclaim() {
            for block in cx.flash.medium.take_blocks_to_reclaim() {
                if self.write_again(cx, block)? {
                    self.refreshing.blocks[1] += 1;
                    done += 1;
                }
            }
        }
        let next = if idle { self.refreshing.next_idle } else { self.refreshing.next };
        if share == 0.0 || cx.command.now < next {
            return Ok(done);
        }
        self.refreshing.next = cx.command.now.after(check);
        // new data is not due, so a look refreshes no more blocks than there are
        let most = if idle { self.layout.blocks_per_lane } else { 1 };
        for lane in self.layout.lane_ids() {
            self.close_due(cx, lane, share)?;
            for _ in 0..most {
                let Some(block) = self.oldest_due(cx.flash.medium, lane, share) else { break };
                if !self.write_again(cx, block)? {
                    break;
                }
                self.refreshing.blocks[0] += 1;
                done += 1;
            }
        }
        if idle {
            self.refreshing.next_idle = cx.command.now.after(IDLE_CHECK);
        }
        Ok(done)
    }

    /// Returns the time of the next look in idle time, if blocks may become due.
    pub(super) fn next_look(&self) -> Option<Ps> {
        (self.settings.refresh.share > 0.0).then_some(self.refreshing.next_idle)
    }

    /// Returns the block of a lane whose worst page is expected to have lost the largest share of
    /// its room for wrong bits to time and reads, if this block is due.
    fn oldest_due(&self, medium: &mut Medium, lane: LaneId, share: f64) -> Option<BlockId> {
        let is_filled = |block| {
            let mut frontiers = self.lanes[lane].frontiers.iter();
            match self.pool.blocks.role(block) {
                Role::Closed | Role::Slc => true,
                // other open blocks have backups, to which the map never points
                Role::Open => frontiers.any(|frontier| frontier.block == Some(block)),
                _ => false,
            }
        };
        let mut oldest: Option<(f64, BlockId)> = None;
        for block in self.layout.lane_blocks(lane) {
            if medium.write_pointer(block) == 0 || !is_filled(block) {
                continue;
            }
            let age = medium.room_used_up(block);
            if age > share && oldest.is_none_or(|(most, _)| age > most) {
                oldest = Some((age, block));
            }
        }
        oldest.map(|(_, block)| block)
    }

    /// Copies the valid pages of a block and erases it. A block in SLC mode is folded. If a
    /// frontier is filling the block, it takes another block. Returns `false` if the lane has no
    /// room for the copies.
    fn write_again(&mut self, cx: &mut FtlContext<'_>, block: BlockId) -> Result<bool, FtlError> {
        let (lane, _) = self.layout.in_lane(block);
        if self.pool.blocks.role(block) == Role::Open && !self.close_open(cx, lane, block)? {
            return Ok(false);
        }
        // the fold of a static block frees no native room
        let low = if self.pool.is_static(block) { self.settings.low_water } else { 0 };
        if !self.collection_has_room(lane) || self.pool.free(lane) <= low {
            self.make_room_for_copies(cx, lane)?;
        }
        let cause = match self.pool.blocks.role(block) {
            Role::Closed => Cause::Refresh,
            Role::Slc => Cause::Fold,
            // collection has taken it meanwhile
            _ => return Ok(true),
        };
        if !self.collection_has_room(lane) || self.pool.free(lane) <= low {
            return Ok(false);
        }
        self.correct_copies(true);
        let collected = self.collect(cx, lane, block, cause);
        self.correct_copies(false);
        collected?;
        self.pad_copies(cx, lane)?;
        Ok(true)
    }

    /// Closes the open blocks of a lane that are due, so that they take no more data.
    fn close_due(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        share: f64,
    ) -> Result<(), FtlError> {
        for f in self.lanes[lane].frontiers.keys() {
            if let Some(block) = self.lanes[lane].frontiers[f].block
                && cx.flash.medium.write_pointer(block) > 0
                && cx.flash.medium.room_used_up(block) > share
            {
                self.close_open(cx, lane, block)?;
            }
        }
        Ok(())
    }

    /// Sends the copies from now on through the controller, or no longer.
    fn correct_copies(&mut self, on: bool) {
        self.copyback.iter_mut().for_each(|copyback| copyback.correcting = on);
    }

    /// Closes an open block. Returns `false` if no frontier fills it.
    fn close_open(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        block: BlockId,
    ) -> Result<bool, FtlError> {
        let fills = |f: &FrontierId| self.lanes[lane].frontiers[*f].block == Some(block);
        let Some(f) = self.lanes[lane].frontiers.keys().find(fills) else { return Ok(false) };
        // units that wait for a frame in SLC mode may find no other block in SLC mode
        if self.mode_of(f) == BlockMode::Slc && !self.lanes[lane].frontiers[f].buffer.is_empty() {
            self.program(cx, lane, f, true)?;
        }
        if self.lanes[lane].frontiers[f].block.take().is_some() {
            self.close_for_map(cx, block)?;
        }
        Ok(true)
    }
}

impl PageSettings {
    /// Returns `true` if the drive has room for copies beside its host frontiers.
    pub(super) fn can_refresh(&self) -> bool {
        self.mode == GcMode::Dual && self.refresh.is_on()
    }
}
