//! The controller of a drive. It splits commands into mapping units, merges partial ones, keeps the
//! write cache, and hands plans to the timing engine.

mod hpb;
mod inspect;
mod paths;
mod read;
mod state;
mod write;

pub(crate) use state::mount;

use crate::cache::WriteCache;
use crate::hpb::{Manager, Notice};
use crate::pieces::{Content, pieces};
use crate::{Cmd, Device, DeviceShape, Done, Reply, Submission, SubmitError};
use flashatlas_ftl::blocks::unit_by_stamp_at;
use flashatlas_ftl::{Copies, Ftl, FtlContext, FtlReport, Idle, Place, Programmed, Role};
use flashatlas_nand::{Flash, Medium, Unit};
use flashatlas_timing::{Engine, Finished, Statistics, Times, Trajectory};
use flashatlas_types::{
    BlockId, Class, Dur, FtlError, Layout, Lba, Lpn, OpId, OpKind, Plan, Ps, SeededBug, Tag,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// Counters of the controller itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Mapping units read that nobody wrote.
    pub unmapped_units: u64,
    /// Mapping units read from the write cache.
    pub cache_read_hits: u64,
    /// Writes to a unit that was in the cache already.
    pub cache_write_hits: u64,
    /// Units that left the cache for flash.
    pub cache_evictions: u64,
    /// Units whose missing sectors were fetched from flash.
    pub rmw_units: u64,
    /// Units at the ends of trims that were ignored because the trim did not cover them whole.
    pub trim_partial_units: u64,
    /// Units trimmed.
    pub trimmed_units: u64,
}

struct ControllerSettings {
    command_time: Dur,
    idle_after: Dur,
    keep_bytes: bool,
}

/// State of one command while its plan is made; empty or stale between commands.
#[derive(Default)]
struct CommandState {
    /// Number of the command.
    number: u64,
    /// First operation of the command: the controller's work on it.
    first: OpId,
    /// The number of the last program on the medium before the command's plan.
    programs_before: u64,
    /// Number of the command's mapping units after the current one.
    ahead: u32,
    /// Operations that the command waits for, because the host sent it after other commands.
    sent_after: SmallVec<[OpId; 4]>,
    /// Programs that took host data to flash.
    programmed: Vec<Programmed>,
    /// Pages whose map entry the FTL changed.
    remapped: Vec<Lpn>,
    /// Units on their way from the cache to the FTL, and the operations that bring them.
    run: Vec<Unit>,
    ready: Vec<OpId>,
    /// Units of `run`, each with the operations that bring its sectors.
    leaving: Vec<(Lpn, [OpId; 2])>,
    /// Notice in the command's response.
    notice: Option<Box<Notice>>,
}

/// Work that is under way in a drive.
struct InFlight {
    /// Commands that are not complete.
    outstanding: usize,
    /// Operation that completes each command, if a layer sends commands after others.
    awaited: Option<FxHashMap<Tag, OpId>>,
    /// Programs of host data that the next FLUSH waits for, and the length of this list above which
    /// complete ones are removed.
    unflushed: Vec<OpId>,
    unflushed_limit: usize,
    /// Commands that the engine completed; empty between calls.
    finished: Vec<Finished>,
}

impl InFlight {
    const fn new() -> InFlight {
        InFlight {
            outstanding: 0,
            awaited: None,
            unflushed: Vec::new(),
            unflushed_limit: 1024,
            finished: Vec::new(),
        }
    }
}

/// A drive.
pub struct Ssd {
    layout: Arc<Layout>,
    medium: Medium,
    ftl: Box<dyn Ftl>,
    engine: Engine,
    times: Times,
    plan: Plan,
    cache: Option<WriteCache>,
    settings: ControllerSettings,
    counters: DeviceCounters,
    command: CommandState,
    in_flight: InFlight,
    copies: Copies,
    /// `true` if commands take effect without any time passing.
    instant: bool,
    /// Manager that exports entries of the map, if a host caches them.
    hpb: Option<Box<Manager>>,
    /// Error that stopped the drive. Its tables in memory are not valid any more, and every command
    /// gets this error.
    failed: Option<FtlError>,
}

impl Ssd {
    /// Returns the layout of the drive.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the medium, for inspection.
    pub fn medium(&self) -> &Medium {
        &self.medium
    }

    /// Returns the counters and the tables of the FTL.
    pub fn ftl_report(&self) -> FtlReport {
        self.ftl.report()
    }

    /// Calls `visit` with every block, its role in the FTL and the number of its valid slots.
    pub fn for_each_block(&self, visit: &mut dyn FnMut(BlockId, Role, u32)) {
        self.ftl.for_each_block(visit);
    }

    /// Returns the counters of the controller.
    pub fn counters(&self) -> DeviceCounters {
        self.counters
    }

    /// Returns the number of bytes of the write cache: 0 if there is none.
    pub fn cache_bytes(&self) -> u64 {
        self.cache
            .as_ref()
            .map_or(0, |c| u64::from(c.capacity()) * u64::from(self.layout.unit_bytes))
    }

    /// Returns the busy times of the resources.
    pub fn statistics(&mut self) -> Statistics {
        self.engine.statistics()
    }

    /// Returns a hash of all flash operations so far and the times of their ends.
    pub fn trajectory(&self) -> Trajectory {
        self.engine.trajectory()
    }

    /// Returns the operations of the last command, for tests of which operation waits for which.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns `true` if an operation that was issued is complete.
    pub fn is_complete(&self, op: OpId) -> bool {
        self.engine.is_complete(op)
    }

    /// Returns the number of units in the write cache that are not on flash.
    pub fn dirty_units(&self) -> u64 {
        self.cache.as_ref().map_or(0, |c| u64::from(c.len()))
    }

    /// Lets all work under way end, and returns the time of that end. No command may be in flight.
    pub fn drain(&mut self) -> Ps {
        let awaited = self.in_flight.awaited.as_ref().map_or(0, FxHashMap::len);
        assert!(
            self.in_flight.outstanding + awaited == 0,
            "{} commands are in flight, {awaited} awaited",
            self.in_flight.outstanding
        );
        while let Some(at) = self.engine.next_event() {
            self.engine.advance(at, &mut self.in_flight.finished);
        }
        self.engine.now()
    }

    /// Begins to keep the operation that completes each command in flight, for a layer above that
    /// sends commands after others.
    pub fn keep_awaited(&mut self) {
        self.in_flight.awaited = Some(FxHashMap::default());
    }

    /// Returns a list of the oldest unfinished operations, for messages.
    pub fn explain(&self) -> String {
        self.engine.explain()
    }

    /// Returns `true` if anything is under way in the drive.
    pub fn is_busy(&self) -> bool {
        self.engine.unfinished() > 0
    }

    /// Returns the unit that a page holds. The lookup causes no operation and takes no time. A unit
    /// on flash or in the cache comes without its bytes.
    ///
    /// Returns `Ok(None)` if nobody wrote the page.
    ///
    /// # Errors
    /// Returns an error if the map points to something that cannot be read, or to another page.
    pub fn peek(&self, lpn: Lpn) -> Result<Option<Unit>, FtlError> {
        if let Some(entry) = self.cached(lpn) {
            return Ok(Some(Unit { lpn, stamp: entry.stamp, bytes: None }));
        }
        self.peek_below_cache(lpn)
    }

    /// Returns the unit that a page holds below the write cache, as [`Ssd::peek`] does.
    fn peek_below_cache(&self, lpn: Lpn) -> Result<Option<Unit>, FtlError> {
        match self.ftl.peek(lpn) {
            Place::Nowhere => Ok(None),
            Place::Buffer(unit) => Ok(Some(unit)),
            Place::Flash(ppn) => unit_by_stamp_at(&self.medium, ppn, lpn).map(Some),
        }
    }

    /// Returns the place where the FTL has the newest version of a page. The lookup causes no
    /// operation, and ignores the write cache.
    pub fn place(&self, lpn: Lpn) -> Place {
        self.ftl.peek(lpn)
    }

    /// Runs `work` of the FTL against the medium and the plan.
    fn with_ftl<T>(
        &mut self,
        now: Ps,
        work: impl FnOnce(&mut dyn Ftl, &mut FtlContext<'_>) -> Result<T, FtlError>,
    ) -> Result<T, FtlError> {
        // operations of this very plan are not in the engine yet
        let oldest_unfinished = self.engine.oldest_unfinished().min(self.plan.first_id());
        let mut cx = FtlContext {
            flash: Flash { medium: &mut self.medium, plan: &mut self.plan },
            now,
            command: self.command.first,
            number: self.command.number,
            oldest_unfinished,
            ahead: self.command.ahead,
            copies: &mut self.copies,
            programmed: &mut self.command.programmed,
            remapped: self.hpb.is_some().then_some(&mut self.command.remapped),
        };
        let done = work(self.ftl.as_mut(), &mut cx);
        if let Some(hpb) = &mut self.hpb {
            self.command.remapped.drain(..).for_each(|lpn| hpb.remapped(lpn));
        }
        done
    }

    /// Notes an error that leaves tables half changed, so that the drive cannot go on. Returns the
    /// error.
    fn fail(&mut self, error: FtlError) -> FtlError {
        self.failed = Some(error.clone());
        self.take_back();
        error
    }

    /// Clears the last plan, which was issued.
    fn begin_plan(&mut self) {
        self.plan.clear();
        self.command.programs_before = self.medium.sequence();
    }

    /// Begins a command and returns its first operation, the controller's work on it. All other
    /// operations of the command wait for this operation.
    fn begin(&mut self) -> OpId {
        self.command.number += 1;
        self.command.first = match self.settings.command_time {
            Dur::ZERO => self.plan.join(Class::HostRead, &self.command.sent_after),
            time => self.plan.push(OpKind::Delay(time), Class::HostRead, &self.command.sent_after),
        };
        self.plan.set_first(self.command.first);
        self.command.first
    }

    fn complete(&mut self, tag: Tag, class: Class, after: &[OpId]) {
        let op = match self.say_what_changed(tag, class, after) {
            OpId::NONE => self.plan.push(OpKind::Complete(tag), class, after),
            said => self.plan.push(OpKind::Complete(tag), class, &[said]),
        };
        if let Some(awaited) = &mut self.in_flight.awaited
            && op != OpId::NONE
        {
            awaited.insert(tag, op);
        }
    }

    fn flush_all(&mut self, now: Ps) -> Result<(), FtlError> {
        let dirty = self.cache.as_ref().map_or(0, WriteCache::len);
        self.evict(now, dirty)?;
        self.with_ftl(now, |ftl, cx| ftl.flush(cx))
    }

    /// Hands the complete plan of a command to the timing engine.
    fn issue(&mut self, now: Ps, reply: &mut Reply) {
        reply.notice = self.command.notice.take();
        if self.instant {
            self.in_flight.unflushed.clear();
        } else {
            self.in_flight.outstanding += 1;
            self.engine.issue(now, &self.plan);
        }
    }

    fn flush(&mut self, now: Ps, tag: Tag) -> Result<(), FtlError> {
        let command = self.begin();
        if !SeededBug::FlushWithoutCache.is_active() {
            self.flush_all(now)?;
        }
        self.settle();
        let map = self.with_ftl(now, |ftl, cx| ftl.persist(cx, false))?;
        let mut after = self.pending_programs();
        after.extend([command, map]);
        self.complete(tag, Class::HostWrite, &after);
        Ok(())
    }

    fn trim(&mut self, now: Ps, tag: Tag, lba: Lba, sectors: u32) -> Result<(), FtlError> {
        let command = self.begin();
        let unit_sectors = self.layout.unit_sectors();
        for piece in pieces(lba, sectors, unit_sectors) {
            if !piece.is_whole(unit_sectors) {
                self.counters.trim_partial_units += 1;
                continue;
            }
            self.counters.trimmed_units += 1;
            if let Some(entry) = self.cache.as_mut().and_then(|c| c.remove(piece.lpn)) {
                self.free_slots(entry.ready, 1);
            }
            self.with_ftl(now, |ftl, cx| ftl.trim(cx, piece.lpn))?;
        }
        self.settle();
        self.complete(tag, Class::HostWrite, &[command]);
        Ok(())
    }

    /// Reports the commands that are complete.
    fn report(&mut self, out: &mut Vec<Done>) {
        if self.in_flight.finished.is_empty() {
            return;
        }
        self.in_flight.outstanding -= self.in_flight.finished.len();
        if let Some(hpb) = &mut self.hpb {
            self.in_flight.finished.iter().for_each(|f| hpb.reached(f.tag));
        }
        if let Some(awaited) = &mut self.in_flight.awaited {
            for f in &self.in_flight.finished {
                awaited.remove(&f.tag);
            }
        }
        out.extend(self.in_flight.finished.drain(..).map(|f| Done { tag: f.tag, at: f.at }));
    }
}

impl Device for Ssd {
    fn submit_after(
        &mut self,
        submission: Submission<'_>,
        reply: &mut Reply,
    ) -> Result<(), SubmitError> {
        let Submission { now, tag, cmd, after } = submission;
        reply.clear();
        self.shape().accepts(&cmd)?;
        self.exports_entries(&cmd)?;
        if let Some(error) = &self.failed {
            return Err(error.clone().into());
        }
        self.prune_unflushed();
        self.begin_plan();
        self.command.sent_after.clear();
        if !after.is_empty() {
            let awaited = self
                .in_flight
                .awaited
                .as_ref()
                .expect("a layer that sends commands after others has asked for it");
            self.command
                .sent_after
                .extend(after.iter().filter_map(|tag| awaited.get(tag).copied()));
        }
        let changed = match cmd {
            Cmd::Read { lba, sectors } => {
                self.read(now, tag, (lba, sectors), &[], reply)?;
                Ok(())
            }
            Cmd::HpbRead { lba, sectors, entries } => {
                self.read(now, tag, (lba, sectors), entries, reply)?;
                Ok(())
            }
            Cmd::ReadBuffer { subregion } => {
                self.read_buffer(now, tag, subregion, reply)?;
                Ok(())
            }
            Cmd::WriteBuffer { region } => {
                self.write_buffer(tag, region);
                Ok(())
            }
            Cmd::Write { lba, sectors, fua, content, data } => {
                self.write(now, tag, (lba, sectors), fua, Content::Named(content), data)
            }
            Cmd::WriteUnits { lba, fua, stamps, data } => {
                let sectors = stamps.len() as u32 * self.layout.unit_sectors();
                self.write(now, tag, (lba, sectors), fua, Content::Stamps(stamps), data)
            }
            Cmd::Trim { lba, sectors } => self.trim(now, tag, lba, sectors),
            Cmd::Flush => self.flush(now, tag),
        };
        changed.map_err(|error| self.fail(error))?;
        if cmd.promises() {
            self.medium.promise();
        }
        self.issue(now, reply);
        Ok(())
    }

    fn prefetch(&self, units: &[Lpn]) {
        self.ftl.prefetch(units);
        for &unit in units {
            if let Place::Flash(ppn) = self.ftl.peek(unit) {
                self.medium.prefetch(ppn);
            }
        }
    }

    fn next_event(&self) -> Option<Ps> {
        self.engine.next_event()
    }

    fn advance(&mut self, until: Ps, out: &mut Vec<Done>) {
        self.engine.advance(until, &mut self.in_flight.finished);
        self.report(out);
    }

    fn advance_to_completion(&mut self, until: Ps, out: &mut Vec<Done>) -> Ps {
        let now = self.engine.advance_to_completion(until, &mut self.in_flight.finished);
        self.report(out);
        now
    }

    fn idle(&mut self, now: Ps, until: Ps) -> Result<(), SubmitError> {
        if let Some(error) = &self.failed {
            return Err(error.clone().into());
        }
        if self.in_flight.outstanding > 0 || until.since(now) <= self.settings.idle_after {
            return Ok(());
        }
        let mut at = now.after(self.settings.idle_after);
        // each round frees a slot or moves a part of the map, or waits before one that does
        for _ in 0..2 * self.layout.slots() {
            while let Some(event) = self.engine.next_event().filter(|&e| e <= until) {
                self.engine.advance(event, &mut self.in_flight.finished);
            }
            at = at.max(self.engine.now());
            if at >= until || self.engine.next_event().is_some() {
                break;
            }
            self.begin_plan();
            self.command.first = OpId::NONE;
            match self.with_ftl(at, |ftl, cx| ftl.idle(cx)).map_err(|error| self.fail(error))? {
                Idle::Nothing => break,
                Idle::Wait(due) => at = at.max(due),
                Idle::Worked => {
                    self.settle();
                    self.engine.issue(at, &self.plan);
                }
            }
        }
        Ok(())
    }

    fn shape(&self) -> DeviceShape {
        DeviceShape::of(&self.layout)
    }
}
