//! Fill of a blank medium in ascending order of pages. Afterwards the medium has the same content
//! as after single programs. The fill is faster, because no other operation comes between its
//! programs, and several cores can share the work.

use crate::medium::cell::{Cell, Header, PADDING};
use crate::medium::{Block, FrameState};
use crate::{Medium, Oob, OobRole};
use flashatlas_types::{BlockId, BlockMode, Cause, Layout, Lpn, Ppn, Stamp, at_once, share};
use std::ops::Range;
use std::sync::Arc;

/// The largest number of times that `go_on` is called. The number is smaller if fewer than
/// [`TOGETHER`] units would be programmed between two calls.
const TIMES: u32 = 64;

/// The least number of units that are programmed between two calls of `go_on`.
const TOGETHER: u32 = 1 << 18;

/// The number of units below which their work takes less time than the start of a thread.
const WORTH_A_THREAD: usize = 1 << 14;

/// The arrays of a lane, and its blocks in the order in which they are programmed.
struct Lane<'a> {
    number: u32,
    order: &'a [BlockId],
    blocks: &'a mut [Block],
    headers: &'a mut [[u32; 2]],
    cells: &'a mut [Cell],
}

impl Lane<'_> {
    /// Programs the frame of this lane in each of these rows.
    fn program(
        &mut self,
        layout: &Layout,
        rows: Range<u32>,
        stamp: &(dyn Fn(Lpn) -> Stamp + Sync),
    ) {
        let (units, slots) = (layout.logical_units, layout.slots_per_frame);
        for row in rows {
            let number = row * layout.lanes + self.number;
            let first = number * slots;
            if first >= units {
                return;
            }
            let block = self.order[(row / layout.frames_per_block) as usize];
            let block = usize::from(layout.in_lane(block).1);
            let index = row % layout.frames_per_block;
            self.blocks[block].next = index + 1;
            let frame = block * layout.frames_per_block as usize + index as usize;
            let (state, sequence) = (FrameState::Programmed as u8, u64::from(number) + 1);
            self.headers[frame] = Header { state, sequence, copied: 0 }.words();
            let cells = &mut self.cells[frame * slots as usize..][..slots as usize];
            for (lpn, cell) in (first..).zip(cells) {
                *cell = if lpn < units { [lpn, stamp(Lpn(lpn)).0] } else { PADDING };
            }
        }
    }
}

impl Medium {
    /// Returns `true` if the medium was never changed, no program failure or power cut is planned,
    /// and neither a journal nor bytes elsewhere are kept.
    pub fn is_untouched(&self) -> bool {
        let as_new = |b: &Block| b.next == 0 && !b.program_fails && b.role == OobRole::default();
        self.sequence == 0
            && self.operations_until_cut().is_none()
            && self.journal.is_none()
            && self.elsewhere.is_none()
            && self.failing_program == 0
            && self.blocks.iter().all(as_new)
    }

    /// Programs every logical unit of an untouched medium for the host, in ascending order. The
    /// lanes get one frame each in turn. Returns `false` if `go_on` stopped the work.
    ///
    /// `order` lists the blocks of each lane in the order in which they are programmed. The last
    /// frame is padded. `stamp` returns the content of each unit; where bytes are kept, all of them
    /// are zero. `go_on` is called from time to time with the number of programmed units, and stops
    /// the work by returning `false`. After that, the medium must not be used.
    ///
    /// # Panics
    /// Panics if the medium is not untouched, a block belongs to another lane, or `order` has too
    /// few blocks or too many lanes.
    pub fn program_in_order(
        &mut self,
        order: &[Vec<BlockId>],
        stamp: &(dyn Fn(Lpn) -> Stamp + Sync),
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> bool {
        assert!(self.is_untouched(), "only an untouched medium is filled in order");
        let layout = self.layout.clone();
        let (units, slots) = (layout.logical_units, layout.slots_per_frame);
        let frames = units.div_ceil(slots);
        let (mut row, rows) = (0, frames.div_ceil(layout.lanes));
        let together = (units / TIMES).max(TOGETHER).div_ceil(layout.lanes * slots);
        let units_of_lane = (rows.min(together) * slots) as usize;
        let lanes_of_core = share(order.len(), WORTH_A_THREAD.div_ceil(units_of_lane));
        let mut lanes = self.lanes(order);
        let mut go_on_at = |row: u32| {
            let programmed = u64::from(row) * u64::from(layout.lanes * slots);
            go_on(programmed.min(units.into()))
        };
        while row < rows {
            let these = row..rows.min(row + together);
            at_once(lanes.chunks_mut(lanes_of_core), |lanes| {
                lanes.iter_mut().for_each(|lane| lane.program(&layout, these.clone(), stamp));
            });
            row = these.end;
            if !go_on_at(row) {
                return false;
            }
        }
        self.sequence = frames.into();
        let native = BlockMode::Native;
        for (cause, pages) in [
            (Cause::Host, layout.data_pages_in(native)),
            (Cause::Parity, layout.parity_pages_in(native)),
        ] {
            self.counters.programs[cause as usize] += u64::from(frames) * u64::from(pages);
        }
        self.counters.padded_slots += u64::from(frames) * u64::from(slots) - u64::from(units);
        if self.rules.keep_bytes {
            self.keep_zeros(order);
        }
        true
    }

    /// Keeps bytes of zeros for all units in these blocks, and the spare areas of their frames.
    fn keep_zeros(&mut self, order: &[Vec<BlockId>]) {
        let layout = self.layout.clone();
        let zeros: Arc<[u8]> = vec![0; layout.unit_bytes as usize].into();
        let native = BlockMode::Native;
        for &block in order.iter().flatten() {
            for frame in (0..self.write_pointer(block)).map(|i| layout.frame_in(block, i)) {
                let spare = self.spare(frame).expect("the frame is programmed");
                let (sequence, lpns) = (spare.sequence, spare.lpns().collect::<Vec<_>>());
                for (slot, _) in
                    (layout.first_slot(frame).0..).zip(&lpns).filter(|slot| *slot.1 != Lpn::NONE)
                {
                    self.bytes.insert(Ppn(slot), zeros.clone());
                }
                let oob = Oob { role: OobRole::default(), mode: native, sequence, lpns };
                self.spare.insert(frame, oob.encode());
            }
        }
    }

    /// Returns the arrays of each lane.
    fn lanes<'a>(&'a mut self, order: &'a [Vec<BlockId>]) -> Vec<Lane<'a>> {
        let of_lane = self.layout.blocks_per_lane as usize;
        let mut blocks = self.blocks.raw.chunks_mut(of_lane);
        let (headers, cells) = self.cells.arrays();
        let frames = of_lane * self.layout.frames_per_block as usize;
        let mut headers = headers.chunks_mut(frames);
        let mut cells = cells.chunks_mut(frames * self.layout.frame_len());
        let mut lane = |(number, order): (u32, &'a Vec<BlockId>)| {
            let (headers, cells) = (headers.next()?, cells.next()?);
            Some(Lane { number, order, blocks: blocks.next()?, headers, cells })
        };
        (0..)
            .zip(order)
            .map(|of_lane| lane(of_lane).expect("there is a list for each lane"))
            .collect()
    }
}
