//! Programs in several steps (`ftl.program_steps`). A frame is a word line, and every step
//! transfers all of it. Its first step is followed by the next step of the frames before it, from
//! the nearest to the farthest ([`flashatlas_types::ProgramStep`]). So a frontier has frames
//! *between their steps*: one with two steps, and two with three.
//!
//! A frame between its steps cannot be read. Its units stay in the controller, where reads find
//! them, and the write cache keeps their slots. Everything that follows from a program follows from
//! its last step: the map, the slots that it makes invalid, and the erase of the block that a copy
//! came from. The number of a program is the number of its first step, because the spare area is
//! transferred with each step. So of two versions, the one that was begun last is the newest. A
//! page is therefore not copied while a newer version of it is between its steps: that version is
//! finished first.
//!
//! Frames without data finish the frames before them, if nothing else does: for a FLUSH
//! (`ftl.flush = pad`), for a lane without room, and for a page that is about to be copied. The
//! last frame of a block needs no such frame. With `ftl.flush = plp`, a FLUSH waits for first steps
//! alone, and capacitors finish the others after a power failure. With `ftl.flush = slc`, it waits
//! for copies in SLC mode (`flush.rs`).

use super::PageMapped;
use super::frontier::Pending;
use super::settings::PageSettings;
use super::steps_settings::{AtFlush, StepsSettings};
use crate::notes::PROGRAM_STEPS;
use crate::{FtlContext, MemoryUse};
use flashatlas_types::{
    BlockId, BlockMode, Cause, FrameId, FrontierId, FtlError, LaneId, Layout, Lpn, MemoryKind,
    Note, OpId, Ppn, ProgramStep, SeededBug, TiVec, Violation,
};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A frame between the steps of its program.
#[derive(Debug)]
struct Between {
    frame: FrameId,
    /// The units of its first slots. A frame that only finishes others has none.
    units: Vec<Pending>,
    /// The slots whose page the host has written again or trimmed, bit by bit.
    stale: u64,
    cause: Cause,
    /// The number of the program.
    sequence: u64,
    /// The number of steps so far.
    done: u8,
    /// The operation of its latest step.
    op: OpId,
}

impl Between {
    fn has_host_units(&self) -> bool {
        self.units.iter().any(Pending::is_host)
    }

    /// Returns whether the unit in a slot is the newest version that the host wrote.
    fn is_newest(&self, slot: usize, p: &Pending) -> bool {
        p.is_host() && self.stale >> slot & 1 == 0
    }
}

/// The lane, the frontier and the frame of a unit between steps.
type Where = (LaneId, FrontierId, FrameId);

/// The frames between their steps.
pub(super) struct Steps {
    settings: StepsSettings,
    /// The frames of each frontier, oldest first.
    between: TiVec<LaneId, TiVec<FrontierId, VecDeque<Between>>>,
    /// The newest versions of pages between steps that the host wrote.
    newest: FxHashMap<Lpn, Where>,
    /// The operations that make data of the host durable, as far as they may be unfinished, if the
    /// controller does not know them: programs in SLC mode, and with capacitors first steps. With
    /// copies for a FLUSH they are the copies, and the last steps of data without a copy.
    awaited: Vec<OpId>,
    /// The number of frames that were begun, that were finished, and that have no data.
    counters: [u64; 3],
    /// The number of units that FLUSHes have copied to blocks in SLC mode.
    copies: u64,
}

impl Steps {
    pub fn new(layout: &Layout, settings: &PageSettings) -> Option<Box<Steps>> {
        let of_lane = |_| -> TiVec<FrontierId, VecDeque<Between>> {
            settings.per_frontier(()).iter().map(|()| VecDeque::new()).collect()
        };
        let steps = settings.steps?;
        Some(Box::new(Steps {
            settings: steps,
            between: layout.lane_ids().map(of_lane).collect(),
            newest: FxHashMap::default(),
            awaited: Vec::new(),
            counters: [0; 3],
            copies: 0,
        }))
    }

    fn of(&self, lane: LaneId, f: FrontierId) -> &VecDeque<Between> {
        &self.between[lane][f]
    }

    fn of_mut(&mut self, lane: LaneId, f: FrontierId) -> &mut VecDeque<Between> {
        &mut self.between[lane][f]
    }

    fn all(&self) -> impl Iterator<Item = &Between> {
        self.between.iter().flatten().flatten()
    }

    /// Notes an operation that makes data of the host durable, if the controller does not know it.
    fn wait_for(&mut self, cx: &FtlContext<'_>, op: OpId) {
        if self.settings.flush != AtFlush::Pad {
            self.awaited.retain(|&op| cx.may_be_unfinished(op));
            self.awaited.push(op);
        }
    }

    /// Returns the operations that make data of the host durable and may be unfinished, as far as
    /// the controller does not know them.
    pub fn unfinished(&self, cx: &FtlContext<'_>) -> Vec<OpId> {
        self.awaited.iter().copied().filter(|&op| cx.may_be_unfinished(op)).collect()
    }

    /// Returns whether a FLUSH finishes programs, leaves them to capacitors, or copies their data.
    pub fn at_flush(&self) -> AtFlush {
        self.settings.flush
    }

    /// Returns `true` if a FLUSH copies data to blocks in SLC mode.
    pub fn copies_for_flush(&self) -> bool {
        self.settings.flush == AtFlush::Slc
    }

    /// Notes that `op` copied units to a block in SLC mode for a FLUSH.
    pub fn copied(&mut self, cx: &FtlContext<'_>, op: OpId, units: u32) {
        self.copies += u64::from(units);
        self.wait_for(cx, op);
    }

    /// Returns the newest units between steps in a frontier that no FLUSH has copied, with the
    /// number of the frame among those between steps and the number of the slot.
    pub fn uncopied(
        &self,
        lane: LaneId,
        f: FrontierId,
    ) -> impl Iterator<Item = ((usize, usize), &Pending)> {
        self.of(lane, f).iter().enumerate().flat_map(|(frame, between)| {
            let units = between.units.iter().enumerate();
            let newest = units.filter(|&(slot, p)| between.is_newest(slot, p) && !p.copied);
            newest.map(move |(slot, p)| ((frame, slot), p))
        })
    }

    /// Returns a unit of a frame between steps.
    pub fn unit_mut(
        &mut self,
        (lane, f): (LaneId, FrontierId),
        frame: usize,
        slot: usize,
    ) -> &mut Pending {
        &mut self.of_mut(lane, f)[frame].units[slot]
    }

    /// Returns the step with this number.
    fn step(&self, number: u8) -> ProgramStep {
        ProgramStep { number, of: self.settings.steps }
    }

    /// Returns the pages whose newest version is between steps.
    pub fn pages(&self) -> impl Iterator<Item = Lpn> + '_ {
        self.newest.keys().copied()
    }

    /// Returns the newest version of a page between steps, or `None` if there is none.
    pub fn unit(&self, lpn: Lpn) -> Option<&Pending> {
        let &(lane, f, frame) = self.newest.get(&lpn)?;
        let between = self.of(lane, f).iter().find(|between| between.frame == frame);
        let mut units = between.expect("the page is listed").units.iter();
        Some(units.find(|p| p.is_host() && p.unit.lpn == lpn).expect("the page is in the frame"))
    }

    /// Returns the number of copies of a block's pages that are between steps.
    pub fn copies_of(&self, layout: &Layout, block: BlockId) -> usize {
        let is_of = |p: &&Pending| !p.is_host() && layout.block_of(p.from) == block;
        self.all().flat_map(|between| &between.units).filter(is_of).count()
    }

    /// Returns the counters with their names in the run record.
    pub fn details(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let [begun, finished, empty] = self.counters;
        let between = self.all().count() as u64;
        let all = [
            ("steps_begun", begun),
            ("steps_finished", finished),
            ("steps_empty", empty),
            ("steps_between", between),
        ];
        all.into_iter().chain(self.copies_for_flush().then_some(("flush_copies", self.copies)))
    }

    /// Sets the counters to zero. Frames that are between their steps count as begun.
    pub fn reset_counters(&mut self) {
        self.counters = [self.all().count() as u64, 0, 0];
        self.copies = 0;
    }

    /// Returns the note that announces programs in several steps.
    pub fn note(&self) -> Note {
        let StepsSettings { steps, flush } = self.settings;
        PROGRAM_STEPS.with([("steps", u32::from(steps).into()), ("flush", flush.name().into())])
    }

    /// Returns the memory for the units of frames between their steps.
    pub fn memory(&self, layout: &Layout) -> MemoryUse {
        // a frontier of the host and one of collection
        let frames = 2 * u64::from(layout.lanes) * u64::from(self.settings.between());
        MemoryUse {
            table: "frames between the steps of their program",
            memory: MemoryKind::Dram,
            bytes: frames * layout.frame_bytes(),
        }
    }

    /// Checks that frames are between their steps in the order of the steps, that the index is
    /// exact, and that every frame that was begun is finished or counted.
    pub fn check(&self) -> Result<(), Violation> {
        let of = self.settings.steps;
        for queue in self.between.iter().flatten() {
            let done: Vec<u8> = queue.iter().map(|between| between.done).collect();
            Violation::unless(
                done.iter().all(|&done| done > 0 && done < of) && done.is_sorted_by(|a, b| a > b),
                "a frame has had more steps than the frames after it",
                || format!("{done:?} of {of} steps"),
            )?;
        }
        let listed = self.all().map(|between| {
            let units = between.units.iter().enumerate();
            units.filter(|&(slot, p)| between.is_newest(slot, p)).count()
        });
        let listed: usize = listed.sum();
        Violation::unless(listed == self.newest.len(), "a page between steps is indexed", || {
            format!("{listed} pages are between steps, and {} are indexed", self.newest.len())
        })?;
        let ([begun, finished, _], now) = (self.counters, self.all().count() as u64);
        Violation::unless(begun == finished + now, "a frame that was begun is finished", || {
            format!("{begun} frames were begun, {finished} finished, and {now} are between steps")
        })
    }
}

impl PageMapped {
    pub(super) fn steps(&self) -> &Steps {
        self.steps.as_deref().expect("programs have several steps")
    }

    pub(super) fn steps_mut(&mut self) -> &mut Steps {
        self.steps.as_deref_mut().expect("programs have several steps")
    }

    /// Begins the program of a frame with the units of a buffer, and makes the steps that follow.
    /// `full` is `true` if the frame is the last one of its block.
    pub(super) fn begin_program(
        &mut self,
        cx: &mut FtlContext<'_>,
        (lane, f): (LaneId, FrontierId),
        (frame, full): (FrameId, bool),
        buffer: Vec<Pending>,
        (cause, after): (Cause, &[OpId]),
    ) -> Result<(), FtlError> {
        let step = self.steps().step(1);
        let units = buffer.iter().map(|p| &p.unit);
        let made = match cx.flash.program_step(frame, units, (step, None), cause, after) {
            Err(error) => {
                self.lanes[lane].frontiers[f].buffer = buffer;
                return Err(error.into());
            }
            Ok(made) => made,
        };
        self.at.clock += u64::from(self.layout.slots_per_frame);
        for p in buffer.iter().filter(|p| p.is_host()) {
            let lpn = p.unit.lpn;
            self.buffered.remove(&lpn);
            self.supersede_between(cx, lpn, made.op);
            self.steps_mut().newest.insert(lpn, (lane, f, frame));
        }
        let between = Between {
            frame,
            units: buffer,
            stale: 0,
            cause,
            sequence: made.sequence,
            done: 1,
            op: made.op,
        };
        if between.has_host_units()
            && let Some(lane) = self.gathering.get_mut(f)
        {
            *lane = None;
        }
        let steps = self.steps_mut();
        steps.counters[0] += 1;
        if between.has_host_units() && steps.settings.flush == AtFlush::Plp {
            steps.wait_for(cx, made.op);
        }
        steps.of_mut(lane, f).push_back(between);
        if SeededBug::ReleaseAtFirstStep.is_active() {
            self.release_early(cx, lane)?;
        }
        self.follow(cx, (lane, f), full)?;
        self.erase_left(cx, lane)
    }

    /// Makes the steps that follow the first step of a frontier's newest frame. If it is the last
    /// one of its block, all its frames are finished, and the block is closed.
    fn follow(
        &mut self,
        cx: &mut FtlContext<'_>,
        (lane, f): (LaneId, FrontierId),
        full: bool,
    ) -> Result<(), FtlError> {
        for at in (0..self.steps().of(lane, f).len() - 1).rev() {
            self.next_step(cx, (lane, f), at)?;
        }
        if !full {
            return Ok(());
        }
        // each round makes a step of each frame
        while !self.steps().of(lane, f).is_empty() {
            for at in (0..self.steps().of(lane, f).len()).rev() {
                self.next_step(cx, (lane, f), at)?;
            }
        }
        let block = self.lanes[lane].frontiers[f].block.take().expect("it was open");
        self.close_for_map(cx, block)
    }

    /// Makes the next step of a frontier's frame number `at`, from the oldest.
    fn next_step(
        &mut self,
        cx: &mut FtlContext<'_>,
        (lane, f): (LaneId, FrontierId),
        at: usize,
    ) -> Result<(), FtlError> {
        let steps = self.steps_mut();
        let of = steps.settings.steps;
        let between = &mut steps.between[lane][f][at];
        let step = ProgramStep { number: between.done + 1, of };
        let program = (step, Some(between.sequence));
        let begin = cx.flash.plan.next_id();
        let units = between.units.iter().map(|p| &p.unit);
        let after = [between.op];
        let made = cx.flash.program_step(between.frame, units, program, between.cause, &after)?;
        (between.done, between.op) = (step.number, made.op);
        if !step.is_last() {
            return Ok(());
        }
        let finished = steps.of_mut(lane, f).remove(at).expect("it was there");
        steps.counters[1] += 1;
        self.finished(cx, lane, finished, (begin, made.first))
    }

    /// Enters the units of a frame into the tables, after its last step.
    fn finished(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        between: Between,
        (begin, first): (OpId, Ppn),
    ) -> Result<(), FtlError> {
        let uncopied = |(slot, p): (usize, &Pending)| between.is_newest(slot, p) && !p.copied;
        let is_awaited = between.units.iter().enumerate().any(uncopied);
        let Between { mut units, mut stale, op, .. } = between;
        let host_units = units.iter().filter(|p| p.is_host()).count() as u32;
        for (slot, p) in units.iter().enumerate() {
            if p.is_host() {
                if stale >> slot & 1 == 0 {
                    self.steps_mut().newest.remove(&p.unit.lpn);
                }
            } else if !self.pool.blocks.is_valid(p.from) {
                // the host has written or trimmed the page since it was copied
                stale |= 1 << slot;
                self.left(lane, self.layout.block_of(p.from), None);
            }
        }
        if host_units < units.len() as u32 {
            let from = units.iter().map(|p| (p.from, p.ready));
            cx.copies.note((begin, op), from, cx.command.oldest_unfinished);
        }
        self.pool.programmed(cx, op);
        let mapped = self.enter::<true>(cx, lane, &mut units, (first, op), stale)?;
        self.pool.settled = cx.flash.medium.sequence();
        if host_units > 0 {
            cx.took_host_data(mapped, host_units);
            let steps = self.steps_mut();
            if is_awaited && steps.copies_for_flush() {
                steps.wait_for(cx, mapped);
            }
            if let Some(slc) = &mut self.slc {
                slc.host_wrote(host_units, false);
            }
        }
        Ok(())
    }

    /// Notes that a version of a page between steps is no longer the newest, because `by` writes
    /// another one.
    pub(super) fn supersede_between(&mut self, cx: &FtlContext<'_>, lpn: Lpn, by: OpId) {
        let steps = self.steps_mut();
        let Some((lane, f, frame)) = steps.newest.remove(&lpn) else { return };
        let mut frames = steps.of_mut(lane, f).iter_mut();
        let between = frames.find(|between| between.frame == frame).expect("the page is listed");
        let is_it = |p: &Pending| p.is_host() && p.unit.lpn == lpn;
        let slot = between.units.iter().position(is_it).expect("the page is in the frame");
        between.stale |= 1 << slot;
        // the host may rely on it (ftl.flush = plp)
        let block = self.layout.block_of_frame(frame);
        self.superseded.add(block, by, cx.command.oldest_unfinished);
    }

    /// Notes the program of a frame of the host in SLC mode, which has one step.
    pub(super) fn programmed_at_once(&mut self, cx: &FtlContext<'_>, units: &[Pending], op: OpId) {
        units.iter().for_each(|p| self.supersede_between(cx, p.unit.lpn, op));
        self.steps_mut().wait_for(cx, op);
    }

    /// Programs frames without data until no frame of a frontier that holds data is between steps.
    pub(super) fn finish_frames(
        &mut self,
        cx: &mut FtlContext<'_>,
        (lane, f): (LaneId, FrontierId),
    ) -> Result<(), FtlError> {
        let holds_data = |between: &Between| !between.units.is_empty();
        // each frame without data makes a step of all others
        for _ in 0..self.steps().settings.steps {
            let mut between = self.steps().of(lane, f).iter();
            let Some(cause) = between.find(|b| holds_data(b)).map(|b| b.cause) else { break };
            // the frames of a full block are finished, so the frontier has a block
            let (_, frame, full) = self.take_frame(lane, f);
            self.steps_mut().counters[2] += 1;
            self.begin_program(cx, (lane, f), (frame, full), Vec::new(), (cause, &[]))?;
        }
        Ok(())
    }

    /// Finishes the frames of collection in a lane, so that the blocks which they empty are erased.
    pub(super) fn finish_copies(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
    ) -> Result<(), FtlError> {
        let first = self.settings.first_of_collection();
        for f in self.lanes[lane].frontiers.keys().filter(|&f| f >= first) {
            self.finish_frames(cx, (lane, f))?;
        }
        Ok(())
    }

    /// Finishes every frame with data of the host.
    pub(super) fn finish_host_frames(&mut self, cx: &mut FtlContext<'_>) -> Result<(), FtlError> {
        for lane in self.layout.lane_ids() {
            for f in self.gathering.keys() {
                if self.steps().of(lane, f).iter().any(Between::has_host_units) {
                    self.finish_frames(cx, (lane, f))?;
                }
            }
        }
        Ok(())
    }

    /// Finishes newer versions of the copies in a frontier's buffer, because no copy is begun after
    /// a newer version. The copies are then stale.
    pub(super) fn finish_newer_than_copies(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        f: FrontierId,
    ) -> Result<(), FtlError> {
        let newest = &self.steps().newest;
        let copies = self.lanes[lane].frontiers[f].buffer.iter().filter(|p| !p.is_host());
        let newer: Vec<Where> = copies.filter_map(|p| newest.get(&p.unit.lpn).copied()).collect();
        newer.into_iter().try_for_each(|(lane, f, _)| self.finish_frames(cx, (lane, f)))
    }

    /// Makes room again for the units of the host in a frontier's buffer, because frames without
    /// data may have filled the block that was open when they came.
    pub(super) fn make_room_again(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        f: FrontierId,
    ) -> Result<(), FtlError> {
        let is_native_host =
            self.gathering.get(f).is_some() && self.mode_of(f) == BlockMode::Native;
        if is_native_host && self.lanes[lane].frontiers[f].block.is_none() {
            // without room, the frame may take a block of collection's reserve
            self.make_room(cx, lane, f)?;
        }
        Ok(())
    }

    /// Finishes newer versions of the pages of a frame that is about to be copied. Their slots are
    /// then invalid.
    pub(super) fn finish_newer(
        &mut self,
        cx: &mut FtlContext<'_>,
        first: Ppn,
    ) -> Result<(), FtlError> {
        let mut valid = self.pool.blocks.valid_mask(first, self.layout.slots_per_frame);
        while valid != 0 {
            let lpn = cx.flash.medium.named(Ppn(first.0 + valid.trailing_zeros()))?;
            valid &= valid - 1;
            if let Some(&(lane, f, _)) = self.steps().newest.get(&lpn) {
                self.finish_frames(cx, (lane, f))?;
            }
        }
        Ok(())
    }

    /// Returns the newest versions between steps of pages that no buffer has a newer version of.
    pub(super) fn older_in_steps(&self) -> impl Iterator<Item = &Pending> {
        let steps = self.steps.as_deref().into_iter();
        let newest = steps.flat_map(|steps| steps.pages().filter_map(|lpn| steps.unit(lpn)));
        newest.filter(|p| !self.buffered.contains_key(&p.unit.lpn))
    }

    /// Erases the leaving blocks of a lane whose copies have all had their first step.
    fn release_early(&mut self, cx: &mut FtlContext<'_>, lane: LaneId) -> Result<(), FtlError> {
        let is_waiting = |block| {
            let buffers = self.lanes[lane].frontiers.iter().flat_map(|f| &f.buffer);
            let mut copies = buffers.filter(|p| !p.is_host());
            copies.any(|p| self.layout.block_of(p.from) == block)
        };
        let leaving = self.lanes[lane].leaving.iter().filter(|l| l.read && l.buffered > 0);
        let early: Vec<(BlockId, Cause)> =
            leaving.map(|l| (l.block, l.cause)).filter(|&(block, _)| !is_waiting(block)).collect();
        for (block, cause) in early {
            if cx.flash.medium.write_pointer(block) > 0 {
                cx.flash.erase(block, cause, &[])?;
            }
        }
        Ok(())
    }
}
