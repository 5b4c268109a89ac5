//! The interface between a scheme and the medium. Each call takes effect immediately and adds an
//! operation to the plan.

use crate::gang::gang;
use crate::{Change, Medium, Nvm, OobRole, Unit, parts};
use flashatlas_types::{
    BlockId, BlockMode, Cause, Class, DieBlock, FrameId, Layout, MediumError, MemoryKind, Op, OpId,
    OpKind, Plan, Ppn,
};

/// The part of the slots that a read transfers.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadPart {
    /// Whole slots.
    Whole,
    /// Some sectors of the only slot that is read. Pages of a superpage that hold none of these
    /// sectors are not sensed.
    Sectors {
        /// First sector, counted from the start of the unit.
        first: u32,
        /// Number of sectors.
        count: u32,
    },
}

impl ReadPart {
    /// Returns the first sector and the number of sectors, if only some sectors are read.
    #[inline]
    pub(crate) fn sectors(self) -> Option<(u32, u32)> {
        match self {
            ReadPart::Whole => None,
            ReadPart::Sectors { first, count } => Some((first, count)),
        }
    }
}

/// The medium and the plan of the current request.
pub struct Flash<'a> {
    /// The medium.
    pub medium: &'a mut Medium,
    /// The plan to which operations are added.
    pub plan: &'a mut Plan,
}

const _: () = assert!(size_of::<Op>() <= 48, "operations are copied on the hot path");

impl Flash<'_> {
    /// Reads slots of one frame (bit `i` of `slots` is slot `i`). Adds one operation for each die
    /// that holds a part of these slots.
    ///
    /// # Errors
    /// Returns [`MediumError::Unreadable`] if the frame is erased or torn.
    #[inline]
    pub fn read(
        &mut self,
        frame: FrameId,
        slots: u64,
        part: ReadPart,
        cause: Cause,
        after: &[OpId],
    ) -> Result<OpId, MediumError> {
        self.read_as_it_was(frame, slots, part, cause, after, None)
    }

    /// Reads a frame as it was when operation `seen` of this or an earlier plan was planned.
    ///
    /// Unfinished operations that were planned for the frame since then come after the read (see
    /// [`OpKind::Read::back`]). The medium has already carried them out, so this function does not
    /// check that the frame can be read. Without `seen`, this function does the same as
    /// [`Flash::read`].
    ///
    /// # Errors
    /// Returns the errors of [`Flash::read`] if `seen` is `None`.
    #[inline]
    pub fn read_as_it_was(
        &mut self,
        frame: FrameId,
        slots: u64,
        part: ReadPart,
        cause: Cause,
        after: &[OpId],
        seen: Option<OpId>,
    ) -> Result<OpId, MediumError> {
        if seen.is_none() {
            self.medium.must_be_readable(frame)?;
        }
        if self.medium.is_plain {
            Ok(self.read_pages((frame, slots, part), BlockMode::Native, cause, after, seen))
        } else {
            self.read_otherwise(frame, slots, part, cause, after, seen)
        }
    }

    /// Reads slots of a frame with one page on each plane. A caller that knows the mode leaves its
    /// cases out of the code.
    #[inline(always)]
    pub(crate) fn read_pages(
        &mut self,
        (frame, slots, part): (FrameId, u64, ReadPart),
        mode: BlockMode,
        cause: Cause,
        after: &[OpId],
        seen: Option<OpId>,
    ) -> OpId {
        let layout = &*self.medium.layout;
        let block = layout.block_of_frame(frame);
        let back = |plan: &Plan| seen.map_or(0, |seen| (plan.next_id().0 - seen.0) as u32);
        if layout.pages_per_frame == 1 {
            self.medium.counters.read(cause, mode, 1);
            let bytes = slots.count_ones() * layout.unit_bytes;
            let kind = read_kind(layout, mode, (block, frame), 0, bytes, back(self.plan));
            return self.plan.push_flash(kind, cause, after);
        }
        let mut ids = [OpId::NONE; 64];
        let mut dies = 0;
        for die in 0..layout.dies_per_frame {
            let (pages, bytes) = touched(layout, die, 0, slots, part);
            if pages > 0 {
                self.medium.counters.read(cause, mode, pages);
                let kind = read_kind(layout, mode, (block, frame), die, bytes, back(self.plan));
                ids[dies] = self.plan.push_flash(kind, cause, after);
                dies += 1;
            }
        }
        self.plan.join(cause.class(true), &ids[..dies])
    }

    /// Opens an erased block for a role, before its first page is programmed. The spare area of
    /// each page will contain the role. Opening is not a flash operation.
    ///
    /// # Panics
    /// Panics if the block is not erased.
    pub fn open(&mut self, block: BlockId, role: OobRole) {
        self.open_in(block, role, BlockMode::Native);
    }

    /// Opens an erased block as [`Flash::open`] does, in a mode that it keeps until it is erased.
    ///
    /// # Panics
    /// Panics if the block is not erased.
    pub fn open_in(&mut self, block: BlockId, role: OobRole, mode: BlockMode) {
        self.medium.open(block, role, mode);
    }

    /// Programs `frame` with `units`, with one operation on each die of the frame. Slots without a
    /// unit are padding. Returns the first slot, and the operation that completes the program.
    ///
    /// # Errors
    /// Returns [`MediumError::ProgramFailed`] if programs of the block fail and no spare block is
    /// left to replace it ([`crate::spares`]). Returns [`MediumError::PowerLost`] if the power
    /// fails.
    ///
    /// # Panics
    /// Panics if the frame is not erased, its block is bad, or the program is out of order.
    #[inline]
    pub fn program<'u>(
        &mut self,
        frame: FrameId,
        units: impl ExactSizeIterator<Item = &'u Unit> + Clone,
        cause: Cause,
        after: &[OpId],
    ) -> Result<(Ppn, OpId), MediumError> {
        match self.medium.program(frame, units.clone()) {
            Ok(first) => Ok((first, self.push_program(frame, cause, after))),
            Err(MediumError::ProgramFailed(_)) => {
                let replaced = self.copy_to_spare(frame, after)?;
                self.program(frame, units, cause, &[replaced])
            }
            Err(error) => Err(error),
        }
    }

    /// Adds the operations of a program. Returns the operation that joins them.
    #[inline]
    pub(crate) fn push_program(&mut self, frame: FrameId, cause: Cause, after: &[OpId]) -> OpId {
        if self.medium.is_plain {
            self.push_program_in(BlockMode::Native, frame, cause, after)
        } else {
            self.push_program_otherwise(frame, cause, after)
        }
    }

    /// Adds the operations of a program of a block in this mode. A caller that knows the mode
    /// leaves its cases out of the code.
    #[inline(always)]
    pub(crate) fn push_program_in(
        &mut self,
        mode: BlockMode,
        frame: FrameId,
        cause: Cause,
        after: &[OpId],
    ) -> OpId {
        let class = cause.class(false);
        let layout = &*self.medium.layout;
        let of_frame = layout.block_of_frame(frame);
        self.medium.counters.program(cause, mode, layout.pages_in(mode));
        if !self.plan.is_recording() {
            return OpId::NONE;
        }
        let bytes = layout.span.planes * layout.geometry.page_bytes * layout.pages_at_once(mode);
        gang(layout, self.plan, class, after, |die, plan, after| {
            let DiePlace { die, block, page, level } =
                DiePlace::of(layout, mode, (of_frame, frame), die);
            plan.push_flash(OpKind::Program { die, block, page, level, bytes }, cause, after)
        })
    }

    /// Erases a block on each of its dies.
    ///
    /// # Errors
    /// Returns [`MediumError::EraseFailed`] if the erase fails and no spare block is left. The
    /// block is bad from then on. Returns [`MediumError::PowerLost`] if the power fails.
    pub fn erase(
        &mut self,
        block: BlockId,
        cause: Cause,
        after: &[OpId],
    ) -> Result<OpId, MediumError> {
        let mode = self.medium.mode(block);
        self.medium.erase(block)?;
        let class = cause.class(false);
        let layout = &*self.medium.layout;
        self.medium.counters.erase(cause, mode, layout.planes_per_frame);
        let frame = layout.frame_in(block, 0);
        Ok(gang(layout, self.plan, class, after, |die, plan, after| {
            let place = DiePlace::of(layout, mode, (block, frame), die);
            plan.push_flash(OpKind::Erase { die: place.die, block: place.block }, cause, after)
        }))
    }
}

/// The place of a frame's part on one of its dies, as a plan numbers dies, blocks and pages.
pub(crate) struct DiePlace {
    pub die: u32,
    pub block: DieBlock,
    pub page: u32,
    pub level: u8,
}

impl DiePlace {
    #[inline(always)] // with the mode and the die known, half of it is left
    pub fn of(
        layout: &Layout,
        mode: BlockMode,
        (block, frame): (BlockId, FrameId),
        index: u32,
    ) -> DiePlace {
        let page = layout.index_in(block, frame);
        DiePlace {
            die: layout.dies_of(layout.lane_of(block))[index as usize],
            block: layout.on_die(block, index),
            page,
            level: layout.level_in(mode, page),
        }
    }
}

#[inline]
pub(crate) fn read_kind(
    layout: &Layout,
    mode: BlockMode,
    at: (BlockId, FrameId),
    index: u32,
    bytes: u32,
    back: u32,
) -> OpKind {
    let DiePlace { die, block, page, level } = DiePlace::of(layout, mode, at, index);
    OpKind::Read { die, block, page, level, bytes, back }
}

/// Returns the number of pages of the frame's `die`-th die with data that hold parts of `slots`,
/// and the number of bytes to transfer. Whole units are transferred if a unit fits in a page, and
/// whole pages if a unit is larger.
///
/// In a frame that is a whole word line, only the pages with number `of_line` on it count. The
/// first pages of all planes come first in the frame.
pub(crate) fn touched(
    layout: &Layout,
    die: u32,
    of_line: u32,
    slots: u64,
    part: ReadPart,
) -> (u32, u32) {
    let (unit, page) = (u64::from(layout.unit_bytes), u64::from(layout.geometry.page_bytes));
    let (mut pages, mut bytes) = (0, 0);
    for plane in 0..layout.span.planes {
        let start = parts::page_start(layout, die, of_line, plane);
        let here: u64 =
            parts::of_page(layout, start, slots, part.sectors()).map(|(from, to)| to - from).sum();
        if here > 0 {
            pages += 1;
            bytes += if unit > page { page } else { here };
        }
    }
    (pages, bytes as u32)
}

impl Flash<'_> {
    /// Writes to the drive's NVM. The bytes are durable after the next [`Flash::nvm_fence`].
    ///
    /// # Errors
    /// Returns [`MediumError::PowerLost`] if the power fails.
    ///
    /// # Panics
    /// Panics if the bytes reach beyond the end of the memory.
    pub fn nvm_store(
        &mut self,
        address: u64,
        bytes: &[u8],
        after: &[OpId],
    ) -> Result<OpId, MediumError> {
        self.medium.nvm_operation(|nvm| nvm.store(address, bytes))?;
        self.medium.nvm.counters.stored += bytes.len() as u64;
        self.medium.note(|| Change::Store { address, bytes: bytes.to_vec() });
        let kind = OpKind::Memory {
            kind: MemoryKind::Nvm,
            accesses: 1,
            bytes: bytes.len() as u32,
            write: true,
        };
        Ok(self.plan.push(kind, Class::Map, after))
    }

    /// Makes all stored bytes durable. The write-back of the last lines takes the latency of one
    /// store.
    ///
    /// # Errors
    /// Returns [`MediumError::PowerLost`] if the power fails.
    pub fn nvm_fence(&mut self, after: &[OpId]) -> Result<OpId, MediumError> {
        self.medium.nvm_operation(Nvm::fence)?;
        self.medium.nvm.counters.fences += 1;
        self.medium.note(|| Change::Fence);
        let kind = OpKind::Memory { kind: MemoryKind::Nvm, accesses: 1, bytes: 0, write: true };
        Ok(self.plan.push(kind, Class::Map, after))
    }

    /// Loads from the drive's NVM. [`Nvm::bytes`] returns the bytes.
    pub fn nvm_load(&mut self, bytes: u32, after: &[OpId]) -> OpId {
        self.medium.nvm.counters.loaded += u64::from(bytes);
        let kind = OpKind::Memory { kind: MemoryKind::Nvm, accesses: 1, bytes, write: false };
        self.plan.push(kind, Class::Map, after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rules;
    use flashatlas_types::{AllocationOrder, Cell, Geometry, Lpn, Seed, Span, Stamp};
    use std::sync::Arc;

    fn medium(span: Span, unit: u32, endurance: u32) -> Medium {
        let geometry = Geometry {
            channels: 2,
            ways: 1,
            dies: 1,
            planes: 2,
            blocks: 4,
            pages: 3,
            page_bytes: 4096,
            spare_bytes: 128,
            cell: Cell::Slc,
        };
        let order = AllocationOrder::parse("CWDP").unwrap();
        let layout = Arc::new(Layout::new(geometry, span, unit, order, 8).unwrap());
        Medium::new(layout, Rules { endurance, ..Rules::PLAIN }, 0, Seed(1)).unwrap()
    }

    fn unit(lpn: u32) -> Unit {
        Unit { lpn: Lpn(lpn), stamp: Stamp(lpn + 100), bytes: None }
    }

    fn program(m: &mut Medium, plan: &mut Plan, frame: u32, units: &[Unit]) -> Ppn {
        Flash { medium: m, plan }.program(FrameId(frame), units.iter(), Cause::Host, &[]).unwrap().0
    }

    #[test]
    fn a_frame_of_small_units_is_read_by_slot_and_padded() {
        let mut m = medium(Span::ONE, 1024, 9);
        let mut plan = Plan::default();
        let first = program(&mut m, &mut plan, 0, &[unit(5), unit(6)]);
        assert_eq!(m.unit(Ppn(first.0 + 1)).unwrap(), unit(6));
        assert_eq!(m.lpn(Ppn(first.0 + 2)), Ok(Lpn::NONE));
        assert_eq!(m.counters.padded_slots, 2);
        plan.clear();
        Flash { medium: &mut m, plan: &mut plan }
            .read(FrameId(0), 0b11, ReadPart::Whole, Cause::Host, &[])
            .unwrap();
        let (_, op, _) = plan.iter().next().unwrap();
        assert_eq!(
            op.kind,
            OpKind::Read {
                die: 0,
                block: DieBlock::new(0),
                page: 0,
                level: 0,
                bytes: 2048,
                back: 0
            }
        );
    }

    #[test]
    fn a_superpage_is_read_only_where_it_is_wanted() {
        // pages of 4 KiB on two channels x two planes hold one unit of 16 KiB
        let mut m = medium(Span { channels: 2, planes: 2, ..Span::ONE }, 16384, 9);
        let mut plan = Plan::default();
        program(&mut m, &mut plan, 0, &[unit(0)]);
        assert_eq!(plan.iter().count(), 3, "a program on each die and a join");
        assert_eq!(m.counters.programs[Cause::Host as usize], 4);
        plan.clear();
        // sector 15 is the last sector of page 1 (die 0, plane 1), and sector 16 is the first
        // sector of page 2 (die 1, plane 0)
        let part = ReadPart::Sectors { first: 15, count: 2 };
        Flash { medium: &mut m, plan: &mut plan }
            .read(FrameId(0), 1, part, Cause::Rmw, &[])
            .unwrap();
        let kinds: Vec<OpKind> = plan.iter().map(|(_, op, _)| op.kind).collect();
        assert_eq!(
            kinds,
            [
                OpKind::Read {
                    die: 0,
                    block: DieBlock::new(0),
                    page: 0,
                    level: 0,
                    bytes: 4096,
                    back: 0
                },
                OpKind::Read {
                    die: 1,
                    block: DieBlock::new(1),
                    page: 0,
                    level: 0,
                    bytes: 4096,
                    back: 0
                },
                OpKind::Join
            ]
        );
        assert_eq!(m.counters.reads[Cause::Rmw as usize], 2);
    }

    #[test]
    fn endurance_ends_in_a_fault_and_a_bad_block() {
        let mut m = medium(Span::ONE, 4096, 2);
        let mut plan = Plan::default();
        let mut erase = |m: &mut Medium| {
            Flash { medium: m, plan: &mut plan }.erase(BlockId::new(1), Cause::Gc, &[]).map(|_| ())
        };
        assert_eq!((erase(&mut m), erase(&mut m)), (Ok(()), Ok(())));
        assert_eq!(erase(&mut m), Err(MediumError::EraseFailed(BlockId::new(1))));
        assert!(m.is_bad(BlockId::new(1)));
        assert_eq!(m.erases(BlockId::new(1)), 2);
    }

    #[test]
    fn an_erased_or_torn_page_cannot_be_read() {
        let mut m = medium(Span::ONE, 4096, 9);
        let mut plan = Plan::default();
        let mut read = |m: &mut Medium| {
            Flash { medium: m, plan: &mut plan }.read(
                FrameId(0),
                1,
                ReadPart::Whole,
                Cause::Host,
                &[],
            )
        };
        assert_eq!(read(&mut m), Err(MediumError::Unreadable(FrameId(0))));
        m.tear(FrameId(0));
        assert_eq!(read(&mut m), Err(MediumError::Unreadable(FrameId(0))));
        m.check().unwrap();
    }

    #[test]
    #[should_panic(expected = "not erased")]
    fn a_page_is_programmed_once() {
        let mut m = medium(Span::ONE, 4096, 9);
        program(&mut m, &mut Plan::default(), 0, &[unit(1)]);
        program(&mut m, &mut Plan::default(), 0, &[unit(2)]);
    }

    #[test]
    #[should_panic(expected = "not erased")]
    fn a_torn_page_takes_no_program() {
        let mut m = medium(Span::ONE, 4096, 9);
        m.tear(FrameId(0));
        program(&mut m, &mut Plan::default(), 0, &[unit(1)]);
    }

    #[test]
    #[should_panic(expected = "out of order")]
    fn strict_order_is_enforced() {
        let mut m = medium(Span::ONE, 4096, 9);
        program(&mut m, &mut Plan::default(), 1, &[unit(1)]);
        m.check().unwrap();
        program(&mut m, &mut Plan::default(), 0, &[unit(1)]);
    }

    #[test]
    #[should_panic(expected = "bad block")]
    fn a_bad_block_takes_no_program() {
        let mut m = medium(Span::ONE, 4096, 1);
        let mut plan = Plan::default();
        let mut flash = Flash { medium: &mut m, plan: &mut plan };
        flash.erase(BlockId::new(0), Cause::Gc, &[]).unwrap();
        flash.erase(BlockId::new(0), Cause::Gc, &[]).unwrap_err();
        program(&mut m, &mut plan, 0, &[unit(1)]);
    }

    #[test]
    fn factory_bad_blocks_are_drawn_once_and_sit_at_the_end_of_their_lane() {
        let m = medium(Span::ONE, 4096, 9);
        let layout = Arc::new(m.layout().clone());
        let bad = |seed| {
            let m = Medium::new(layout.clone(), Rules::PLAIN, 300_000, Seed(seed)).unwrap();
            (0..16).map(|b| m.is_bad(BlockId::new(b))).collect::<Vec<_>>()
        };
        assert_eq!(bad(3), bad(3));
        assert!(bad(3).iter().any(|&b| b));
        assert!(bad(3).chunks(4).all(|lane| lane.is_sorted()), "good blocks first");
    }
}
