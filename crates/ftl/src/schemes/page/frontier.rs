//! A frontier: the block that is being filled, and the units of the next frame.

use super::PageMapped;
use crate::FtlContext;
use flashatlas_nand::{OobRole, Unit};
use flashatlas_types::{
    BlockId, BlockMode, Cause, FrontierId, FtlError, LaneId, Layout, Lpn, OpId, Ppn,
};

/// A mapping unit on its way into a frame.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub unit: Unit,
    /// The slot from which collection read the unit; [`Ppn::NONE`] for host data.
    pub from: Ppn,
    /// The operation that the program must wait for, because it transfers the data.
    pub ready: OpId,
    pub cause: Cause,
    /// `true` if a FLUSH has copied the unit to a block in SLC mode (`flush.rs`).
    pub copied: bool,
}

impl Pending {
    /// Returns a unit that the host writes.
    #[inline]
    pub fn of_host(unit: &Unit, ready: OpId, cause: Cause) -> Pending {
        Pending { unit: unit.clone(), from: Ppn::NONE, ready, cause, copied: false }
    }

    pub fn is_host(&self) -> bool {
        self.from == Ppn::NONE
    }
}

/// One of a lane's write streams.
#[derive(Clone, Debug, Default)]
pub(super) struct Frontier {
    pub block: Option<BlockId>,
    /// The number of units that fill a frame, and of frames that fill a block, in its mode.
    pub slots: u32,
    pub frames: u32,
    pub next: u32,
    /// The number of frames in this block on which the drive relies (`lower_pages.rs`).
    pub relied: u32,
    pub buffer: Vec<Pending>,
}

impl Frontier {
    /// Returns a frontier without a block, whose blocks are in a mode.
    pub fn new(layout: &Layout, mode: BlockMode) -> Frontier {
        let (slots, frames) = (layout.slots_in(mode), layout.frames_in(mode));
        Frontier { slots, frames, ..Frontier::default() }
    }
}

/// A block whose valid data is being moved. It is erased when every copy is programmed.
#[derive(Clone, Debug)]
pub(super) struct Leaving {
    pub block: BlockId,
    pub cause: Cause,
    /// The number of slots that were valid when the block was picked.
    pub valid: u32,
    /// The number of units that were read and now wait in a buffer.
    pub buffered: u32,
    /// `true` if every valid unit has been read.
    pub read: bool,
    /// The copies that the erase waits for. (The rules of the medium make the erase wait for reads
    /// of the block.)
    pub after: Vec<OpId>,
}

impl PageMapped {
    /// Returns the next lane, in allocation order, whose host frontier `f` has room for a frame.
    pub(super) fn choose_lane(
        &mut self,
        cx: &mut FtlContext<'_>,
        f: FrontierId,
    ) -> Result<LaneId, FtlError> {
        let mode = self.mode_of(f);
        for lane in self.layout.lanes_from(self.cursor[f]) {
            let has_room = match mode {
                BlockMode::Native => self.make_room(cx, lane, f)?,
                BlockMode::Slc => self.make_slc_room(cx, lane)?,
            };
            if has_room {
                self.cursor[f] = self.layout.lane_after(lane);
                return Ok(lane);
            }
        }
        Err(self.pool.no_space())
    }

    /// Opens a free block for a frontier that has no block.
    pub(super) fn open(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        f: FrontierId,
    ) -> Result<(), FtlError> {
        let Some(block) = self.pool.take(lane) else { return Err(self.pool.no_space()) };
        self.begin_frontier(cx, lane, f, block);
        Ok(())
    }

    pub(super) fn begin_frontier(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        f: FrontierId,
        block: BlockId,
    ) {
        // a block that was opened for map pages before a power failure may still have their mark
        cx.flash.open_in(block, OobRole::default(), self.mode_of(f));
        let frontier = &mut self.lanes[lane].frontiers[f];
        (frontier.block, frontier.next, frontier.relied) = (Some(block), 0, 0);
        if let Some(history) = &mut self.history {
            history.opened(block, f, self.host_units);
        }
    }

    /// Puts a unit into a frontier's buffer, and programs the frame when it is full.
    #[inline]
    pub(super) fn gather(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        f: FrontierId,
        pending: Pending,
    ) -> Result<(), FtlError> {
        let frontier = &mut self.lanes[lane].frontiers[f];
        frontier.buffer.push(pending);
        if frontier.buffer.len() != frontier.slots as usize {
            return Ok(());
        }
        self.program(cx, lane, f, false)
    }

    /// Returns a host unit that waits for its frame to fill, or that is between the steps of its
    /// program. Returns `None` if the page is neither.
    #[inline]
    pub(super) fn in_buffer(&self, lpn: Lpn) -> Option<&Pending> {
        let Some(&(lane, f)) = self.buffered.get(&lpn) else {
            return self.steps.as_ref().and_then(|steps| steps.unit(lpn));
        };
        let buffer = &self.lanes[lane].frontiers[f].buffer;
        Some(
            buffer
                .iter()
                .find(|p| p.is_host() && p.unit.lpn == lpn)
                .expect("indexed pages are buffered"),
        )
    }

    /// Writes a whole frame directly. The caller ensures that no host unit is in a buffer, so no
    /// buffered unit has to be replaced first.
    pub(super) fn write_frame(
        &mut self,
        cx: &mut FtlContext<'_>,
        f: FrontierId,
        units: &[Unit],
        cause: Cause,
        ready: OpId,
    ) -> Result<(), FtlError> {
        let lane = self.choose_lane(cx, f)?;
        let buffer = &self.lanes[lane].frontiers[f].buffer;
        if !buffer.is_empty() {
            // single mode: copies of collection wait in the buffer, so the frame is full earlier
            return units.iter().try_for_each(|unit| self.write_unit(cx, unit, cause, ready));
        }
        for unit in units {
            assert!(
                unit.lpn.0 < self.layout.logical_units,
                "logical page {} lies beyond the drive",
                unit.lpn
            );
            self.sort_host_write(unit.lpn);
            let pending = Pending::of_host(unit, ready, cause);
            self.lanes[lane].frontiers[f].buffer.push(pending);
        }
        self.program(cx, lane, f, false)
    }

    pub(super) fn write_unit(
        &mut self,
        cx: &mut FtlContext<'_>,
        unit: &Unit,
        cause: Cause,
        ready: OpId,
    ) -> Result<(), FtlError> {
        let lpn = unit.lpn;
        assert!(lpn.0 < self.layout.logical_units, "logical page {lpn} lies beyond the drive");
        let sorted = self.sort_host_write(lpn);
        let f = self.tier(sorted);
        let pending = Pending::of_host(unit, ready, cause);
        if self.layout.slots_per_frame == 1 {
            let lane = self.choose_lane(cx, f)?;
            return self.gather(cx, lane, f, pending);
        }
        if let Some(&(lane, f)) = self.buffered.get(&lpn) {
            // the old unit is not programmed yet, so the new version replaces it in the buffer
            let buffer = &mut self.lanes[lane].frontiers[f].buffer;
            *buffer.iter_mut().find(|p| p.is_host() && p.unit.lpn == lpn).expect("buffered") =
                pending;
            cx.took_host_data(OpId::NONE, 1);
            return Ok(());
        }
        let lane = match self.gathering[f] {
            Some(lane) => lane,
            None => self.choose_lane(cx, f)?,
        };
        self.gathering[f] = Some(lane);
        self.buffered.insert(lpn, (lane, f));
        self.gather(cx, lane, f, pending)
    }
}

/// Returns, for each unit, the number of units directly after it that continue its logical order.
pub(super) fn followers(units: &[Pending]) -> [u8; 64] {
    let mut ahead = [0; 64];
    for i in (1..units.len()).rev() {
        if units[i].is_host() && units[i].unit.lpn.0 == units[i - 1].unit.lpn.0.wrapping_add(1) {
            ahead[i - 1] = ahead[i] + 1;
        }
    }
    ahead
}
