//! Copies of collection that stay inside their dies.
//!
//! With `ftl.copyback = same-plane`, collection and folds copy a frame by copyback if every slot of
//! it is valid. In a fold, a native frame may need several frames in SLC mode, which must follow
//! each other among the frames with valid slots. All blocks of a lane are on the same planes, so
//! every copy of collection could be one. These copies go over the channel, where the controller
//! corrects them:
//!
//! - frames with slots that are not valid, because their units move to a frame of other units,
//! - frames whose units go to different streams,
//! - frames that cannot be read, whose units are copied as lost,
//! - frames whose data was copied back `ftl.copyback_max` times in a row,
//! - refresh and read reclaim, whose purpose is the correction.
//!
//! A unit that waits in the buffer of the frontier stays there: its frame comes later.

use super::PageMapped;
use super::frontier::Pending;
use super::steps_settings::PROGRAM_STEPS;
use crate::FtlContext;
use crate::maps::STORE;
use flashatlas_nand::FrameState;
use flashatlas_nand::errors::params::PARITY;
use flashatlas_types::{
    BlockId, BlockMode, Cause, ConfigError, FrameId, FrontierId, FtlError, LaneId, OpId, Param,
    Params, Ppn, Text,
};
use smallvec::SmallVec;

/// The parameter `ftl.copyback`.
pub(super) const COPYBACK: Param<Text> = Param::choice(
    "ftl.copyback",
    &["none", "same-plane"],
    "copies of collection and of folds: `none`: all data goes over the channel and is corrected; \
     `same-plane`: a frame whose slots are all valid is copied inside its die, and its wrong bits \
     with it",
)
.or("none");

/// The parameter `ftl.copyback_max`.
pub(super) const COPYBACK_MAX: Param<u32> = Param::int(
    "ftl.copyback_max",
    1,
    255,
    "ftl.copyback = same-plane: largest number of copybacks of the same data in a row; the next \
     copy goes over the channel and is corrected",
)
.or("3");

/// The copies of collection that may stay inside their dies.
pub(super) struct Copyback {
    /// Largest number of copybacks of the same data in a row.
    most: u8,
    /// `true` if the present copies are to be corrected.
    pub correcting: bool,
    /// Units copied inside a die, and over the channel.
    units: [u64; 2],
    /// Frames whose data was copied back too often.
    limited: u64,
}

impl Copyback {
    /// Returns the copybacks that `params` describe, or `None` if there are none.
    pub fn of(params: &Params) -> Option<Box<Copyback>> {
        let most = params.get(COPYBACK_MAX) as u8;
        let on = params.get(COPYBACK) != "none";
        on.then(|| Box::new(Copyback { most, correcting: false, units: [0; 2], limited: 0 }))
    }

    pub fn reset_counters(&mut self) {
        (self.units, self.limited) = ([0; 2], 0);
    }

    /// Returns the counters with their names in the run record.
    pub fn details(&self) -> [(&'static str, u64); 3] {
        let [inside, over] = self.units;
        [
            ("copied_in_die", inside),
            ("copied_over_channel", over),
            ("copyback_limited", self.limited),
        ]
    }

    /// Notes units that were copied over the channel.
    pub fn over_channel(&mut self, units: u32) {
        self.units[1] += u64::from(units);
    }
}

/// Refuses what copybacks do not combine with.
pub(super) fn fits(params: &Params) -> Result<(), ConfigError> {
    if params.get(COPYBACK) == "none" {
        return Ok(());
    }
    let refuse = |why: &str| Err(ConfigError::new(COPYBACK.key(), why));
    if params.get(PROGRAM_STEPS) > 1 {
        return refuse(
            "`same-plane` needs ftl.program_steps = 1, because every step of a program sends all \
             pages of the word line",
        );
    }
    if params.get(PARITY) != "none" {
        return refuse(
            "`same-plane` does not combine with ecc.parity, whose die goes round: the parity of a \
             copy is on another die than that of its source",
        );
    }
    if params.get(STORE) == "learnedftl" {
        return refuse(
            "`same-plane` does not combine with map.store = learnedftl, which sorts the units that \
             collection moves; use another store, or ftl.copyback = none",
        );
    }
    Ok(())
}

impl PageMapped {
    /// Copies a frame of a leaving block inside its die, with the frames after it if a frame of the
    /// frontier needs several. Returns the index after the last of them. Returns `None` if the
    /// units of this frame must go over the channel.
    #[cold]
    #[inline(never)]
    pub(super) fn copy_back(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        victim: BlockId,
        index: u32,
        cause: Cause,
    ) -> Result<Option<u32>, FtlError> {
        let Some((sources, next)) = self.whole_frames(cx, victim, index, cause) else {
            return Ok(None);
        };
        let mut units = self.units_in(cx, &sources, cause)?;
        let f = match self.frontiers_of(&units, cause)[..] {
            [f, ref others @ ..] if others.iter().all(|&other| other == f) => f,
            ref frontiers => {
                let (mut copies, at) = (Vec::new(), (victim, index));
                self.read_frame(cx, lane, at, cause, &mut copies)?;
                for (copy, &f) in copies.into_iter().zip(frontiers) {
                    self.gather(cx, lane, f, copy)?;
                }
                return Ok(Some(next));
            }
        };
        if cause == Cause::Wear {
            self.open_cold(cx, lane, victim)?;
        } else if self.lanes[lane].frontiers[f].block.is_none() {
            self.open(cx, lane, f)?;
        }
        let (block, frame, full) = self.take_frame(lane, f);
        let mut after: SmallVec<[OpId; 8]> = SmallVec::new();
        let has_backup = self.back_up(cx, (lane, f), frame, cause, &mut after)?;
        let begin = cx.flash.plan.next_id();
        let (first, op) = cx.flash.copyback(&sources, frame, cause, &after)?;
        self.endangers(cx, lane, frame, (op, has_backup));
        let from = units.iter().map(|unit| (unit.from, begin));
        cx.copies.note((begin, op), from, cx.command.oldest_unfinished);
        self.lanes[lane].last_copy = op;
        self.at.clock += u64::from(self.layout.slots_per_frame);
        self.pool.programmed(cx, op);
        let leaving = self.lanes[lane].leaving.iter_mut().find(|l| l.block == victim);
        leaving.expect("its pages are moved").buffered += units.len() as u32;
        if let Some(copyback) = &mut self.copyback {
            copyback.units[0] += units.len() as u64;
        }
        self.enter::<false>(cx, lane, &mut units, (first, op), 0)?;
        self.pool.settled = cx.flash.medium.sequence();
        if full {
            self.lanes[lane].frontiers[f].block = None;
            self.close_for_map(cx, block)?;
        }
        Ok(Some(next))
    }

    /// Returns the frames of a block, from `index` on, that fill a frame of a native block, and the
    /// index after the last of them. Returns `None` if the first of them cannot be copied back.
    fn whole_frames(
        &mut self,
        cx: &FtlContext<'_>,
        victim: BlockId,
        index: u32,
        cause: Cause,
    ) -> Option<(SmallVec<[FrameId; 4]>, u32)> {
        let copyback = self.copyback.as_mut().filter(|copyback| !copyback.correcting)?;
        if cause == Cause::Refresh {
            return None;
        }
        let (medium, layout) = (&*cx.flash.medium, &self.layout);
        let of_frame = layout.slots_in(medium.mode(victim));
        let needed = layout.slots_in(BlockMode::Native) / of_frame;
        let mut frames = SmallVec::new();
        for at in index..medium.write_pointer(victim) {
            let frame = layout.frame_in(victim, at);
            let first = layout.first_slot(frame);
            let valid = self.pool.blocks.valid_mask(first, layout.slots_per_frame);
            if valid == 0 && !frames.is_empty() {
                continue;
            }
            if valid.count_ones() != of_frame || medium.state(frame) != FrameState::Programmed {
                return None;
            }
            if medium.copybacks_of(frame) >= copyback.most {
                copyback.limited += 1;
                return None;
            }
            frames.push(frame);
            if frames.len() as u32 == needed {
                return Some((frames, at + 1));
            }
        }
        None
    }

    fn units_in(
        &self,
        cx: &FtlContext<'_>,
        frames: &[FrameId],
        cause: Cause,
    ) -> Result<Vec<Pending>, FtlError> {
        let medium = &*cx.flash.medium;
        let slots = frames.iter().flat_map(|&frame| {
            let first = self.layout.first_slot(frame).0;
            (first..first + medium.slots_mask(frame).count_ones()).map(Ppn)
        });
        let pending = |from| {
            let unit = medium.unit_or_lost(from)?;
            Ok(Pending { unit, from, ready: OpId::NONE, cause, copied: false })
        };
        slots.map(pending).collect()
    }

    /// Returns the frontier of each of these units. Only units of one frame, and of a drive without
    /// an SLC cache, may have different ones.
    fn frontiers_of(&mut self, units: &[Pending], cause: Cause) -> SmallVec<[FrontierId; 64]> {
        if cause == Cause::Wear {
            return SmallVec::from_elem(self.settings.cold_frontier(), units.len());
        }
        units.iter().map(|unit| self.frontier_of_copy(unit.unit.lpn)).collect()
    }
}
