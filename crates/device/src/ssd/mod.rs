//! The controller of a drive. It splits commands into mapping units, merges partial units, manages
//! the write cache, and hands plans to the timing engine.

mod counters;
mod errors;
mod firmware;
mod hpb;
mod idle;
mod inspect;
mod paths;
mod read;
mod state;
mod throttle;
mod worn_out;
mod write;

pub use counters::DeviceCounters;
pub(crate) use state::{mount, write_map};

use crate::cache::WriteCache;
use crate::hpb::Manager;
use crate::pieces::{Content, pieces};
use crate::power::{EnergyRates, PowerStates};
use crate::{Cmd, Device, DeviceShape, Done, Reply, Submission, SubmitError};
use firmware::Firmware;
use flashatlas_ftl::units::unit_by_stamp_at;
use flashatlas_ftl::{Command, Copies, Ftl, FtlContext, FtlReport, Outcome, Place, Role};
use flashatlas_nand::{Flash, Medium, Unit};
use flashatlas_timing::{Engine, Finished, Statistics, Times, Trajectory};
use flashatlas_types::{
    BlockId, Class, Dur, FtlError, Layout, Lba, Lpn, OpId, OpKind, Plan, Ps, SeededBug, Tag,
};
use idle::Predictor;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;
use throttle::Throttle;
use worn_out::WornOut;
use write::{HostWrite, Leaving, free_slots};

struct ControllerSettings {
    firmware: Firmware,
    idle_after: Dur,
    keep_bytes: bool,
    /// `true` if programs have several steps.
    stepped: bool,
    /// `true` if a FLUSH waits for no program that the controller knows, because capacitors finish
    /// it or copies answer for it. The scheme says what the FLUSH waits for.
    scheme_waits: bool,
}

/// A command with a new plan. [`Ssd::begin`] fills it, and the steps of the command read it.
struct Begun {
    /// The part of the command that the FTL reads. Its first operation changes when the drive
    /// checks a map entry that came with a read: later lookups then wait for the check.
    command: Command,
    /// The number of the last program on the medium before this plan began.
    programs_before: u64,
    /// Operation after which the drive accepts the data of a write.
    accepts: OpId,
}

/// Work that is under way in a drive.
struct InFlight {
    /// Commands that are not complete.
    outstanding: usize,
    /// Operation that completes each command, if a layer sends commands that wait for other
    /// commands.
    awaited: Option<FxHashMap<Tag, OpId>>,
    /// Programs of host data that the next FLUSH waits for, and the length above which complete
    /// programs are removed from this list.
    unflushed: Vec<OpId>,
    unflushed_limit: usize,
    /// Commands that the engine has completed. The list is empty between calls.
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
    /// Number of commands so far. Idle work uses the number of the last command.
    commands: u64,
    /// Units on their way from the cache to the FTL.
    leaving: Leaving,
    /// Reports of the FTL that the controller has not processed yet.
    outcome: Outcome,
    in_flight: InFlight,
    copies: Copies,
    /// `true` if commands take effect without any time passing.
    instant: bool,
    /// `true` if a read of unreadable data completes in its time, after its error was returned.
    completes_unreadable: bool,
    /// Manager that exports entries of the map, if a host caches them.
    hpb: Option<Box<Manager>>,
    throttle: Option<Box<Throttle>>,
    predictor: Option<Box<Predictor>>,
    power: Option<Box<PowerStates>>,
    energy: Option<EnergyRates>,
    /// Error that stopped the drive. The tables in memory are no longer valid, and every command
    /// returns this error.
    failed: Option<FtlError>,
    /// Configuration and seed of a drive that becomes read-only when it is worn out, and its
    /// counters at that moment.
    worn_out: Option<Box<WornOut>>,
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

    /// Returns the counters and the tables of the FTL. They no longer change once the drive is
    /// read-only.
    pub fn ftl_report(&self) -> FtlReport {
        let worn_out = self.worn_out.as_ref().and_then(|worn| worn.report.clone());
        worn_out.unwrap_or_else(|| self.ftl.report())
    }

    /// Calls `visit` with every block, its role in the FTL and the number of its valid slots.
    pub fn for_each_block(&self, visit: &mut dyn FnMut(BlockId, Role, u32)) {
        self.ftl.for_each_block(visit);
    }

    /// Returns the counters of the controller.
    pub fn counters(&self) -> DeviceCounters {
        self.counters
    }

    /// Returns the number of bytes of the write cache, or 0 if there is no cache.
    pub fn cache_bytes(&self) -> u64 {
        self.cache
            .as_ref()
            .map_or(0, |c| u64::from(c.capacity()) * u64::from(self.layout.unit_bytes))
    }

    /// Returns the busy times of the resources.
    pub fn statistics(&mut self) -> Statistics {
        self.engine.statistics()
    }

    /// Returns a hash of all flash operations so far, with their end times.
    pub fn trajectory(&self) -> Trajectory {
        self.engine.trajectory()
    }

    /// Returns the operations of the last command. Tests check their dependencies.
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

    /// Runs until all work is complete, and returns the time of the last event. No command may be
    /// in flight.
    pub fn drain(&mut self) -> Ps {
        let awaited = self.in_flight.awaited.as_ref().map_or(0, FxHashMap::len);
        assert!(
            self.in_flight.outstanding + awaited == 0,
            "{} commands are in flight, and {awaited} are awaited",
            self.in_flight.outstanding
        );
        while let Some(at) = self.engine.next_event() {
            self.engine.advance(at, &mut self.in_flight.finished);
        }
        self.engine.now()
    }

    /// Starts to record the operation that completes each command in flight. A layer above needs
    /// the record if it sends commands that wait for other commands.
    pub fn keep_awaited(&mut self) {
        self.in_flight.awaited = Some(FxHashMap::default());
    }

    /// Returns a list of the oldest unfinished operations, for messages.
    pub fn explain(&self) -> String {
        self.engine.explain()
    }

    /// Returns `true` if an operation of the drive is unfinished.
    pub fn is_busy(&self) -> bool {
        self.engine.unfinished() > 0
    }

    /// Returns the unit that a page holds. The lookup causes no operation and takes no time. The
    /// bytes of a unit on flash or in the cache are left out.
    ///
    /// Returns `Ok(None)` if the page was never written.
    ///
    /// # Errors
    /// Returns an error if the map points to an unreadable page, or to another page.
    pub fn peek(&self, lpn: Lpn) -> Result<Option<Unit>, FtlError> {
        if let Some(entry) = self.cached(lpn) {
            return Ok(Some(Unit { lpn, stamp: entry.stamp, bytes: None }));
        }
        self.peek_below_cache(lpn)
    }

    /// Returns the unit that a page has below the write cache, as [`Ssd::peek`] does.
    fn peek_below_cache(&self, lpn: Lpn) -> Result<Option<Unit>, FtlError> {
        match self.ftl.peek(lpn) {
            Place::Nowhere => Ok(None),
            Place::Buffer(unit) => Ok(Some(unit)),
            Place::Flash(ppn) => unit_by_stamp_at(&self.medium, ppn, lpn).map(Some),
        }
    }

    /// Returns the place of the newest version of a page in the FTL. The lookup causes no operation
    /// and ignores the write cache.
    pub fn place(&self, lpn: Lpn) -> Place {
        self.ftl.peek(lpn)
    }

    /// Calls `work` with the FTL and the context of `command`: the medium and the plan.
    fn with_ftl<T>(
        &mut self,
        command: &Command,
        work: impl FnOnce(&mut dyn Ftl, &mut FtlContext<'_>) -> Result<T, FtlError>,
    ) -> Result<T, FtlError> {
        let flash = Flash { medium: &mut self.medium, plan: &mut self.plan };
        let mut cx = FtlContext::new(flash, command, &mut self.copies, &mut self.outcome);
        let done = work(self.ftl.as_mut(), &mut cx);
        if let Some(hpb) = &mut self.hpb {
            self.outcome.drain_remapped().for_each(|lpn| hpb.remapped(lpn));
        }
        done
    }

    /// Returns the number below which every operation is complete. Operations of the current plan
    /// count as unfinished, although the engine does not have them yet.
    fn oldest_unfinished(&self) -> OpId {
        self.engine.oldest_unfinished().min(self.plan.first_id())
    }

    /// Returns the command data that the FTL reads for work outside of any command.
    fn between_commands(&self, now: Ps) -> Command {
        Command {
            now,
            number: self.commands,
            first: OpId::NONE,
            oldest_unfinished: self.oldest_unfinished(),
        }
    }

    /// Records an error that leaves tables half changed, so that the drive must stop. Returns the
    /// error.
    fn fail(&mut self, error: FtlError) -> FtlError {
        if !self.becomes_read_only(&error) {
            self.failed = Some(error.clone());
            self.take_back();
        }
        error
    }

    /// Begins a command and its plan, after the last plan was issued. The first operation is the
    /// controller's work on the command. It waits for `sent_after`, and all other operations of the
    /// command wait for it.
    fn begin(&mut self, now: Ps, cmd: &Cmd<'_>, sent_after: &[OpId]) -> Begun {
        self.end_gap(now);
        self.plan.clear();
        self.medium.set_now(now);
        self.commands += 1;
        let awake = self.wake_for_command(now, sent_after);
        let sent_after = awake.as_ref().map_or(sent_after, std::slice::from_ref);
        let first = match self.settings.firmware.work_on(cmd, &self.layout) {
            None => self.plan.join(Class::HostRead, sent_after),
            Some(work) => self.plan.push(work, Class::HostRead, sent_after),
        };
        self.plan.set_first(first);
        Begun {
            command: Command { first, ..self.between_commands(now) },
            programs_before: self.medium.sequence(),
            accepts: self.accepts_after(now, cmd, first),
        }
    }

    /// Ends the plan of a command, which is complete when `after` are complete. If there is a
    /// notice about the map, it is put into `reply`.
    fn complete(&mut self, tag: Tag, class: Class, after: &[OpId], reply: &mut Reply) {
        let op = match self.say_what_changed(tag, class, after, reply) {
            OpId::NONE => self.plan.push(OpKind::Complete(tag), class, after),
            said => self.plan.push(OpKind::Complete(tag), class, &[said]),
        };
        if let Some(awaited) = &mut self.in_flight.awaited
            && op != OpId::NONE
        {
            awaited.insert(tag, op);
        }
    }

    fn flush_all(&mut self, begun: &Begun) -> Result<(), FtlError> {
        let dirty = self.cache.as_ref().map_or(0, WriteCache::len);
        self.evict(begun, dirty)?;
        self.with_ftl(&begun.command, |ftl, cx| ftl.flush(cx))
    }

    /// Hands the complete plan of a command to the timing engine.
    fn issue(&mut self, now: Ps) {
        if self.instant {
            self.in_flight.unflushed.clear();
        } else {
            self.in_flight.outstanding += 1;
            self.issue_work(now);
        }
    }

    /// Hands the plan to the timing engine.
    fn issue_work(&mut self, now: Ps) {
        if let Some(throttle) = &mut self.throttle {
            throttle.note(&self.plan);
        }
        self.engine.issue(now, &self.plan);
    }

    fn flush(&mut self, begun: &Begun, tag: Tag, reply: &mut Reply) -> Result<(), FtlError> {
        if self.is_read_only() {
            // nothing waits to be written
            self.complete(tag, Class::HostWrite, &[begun.command.first], reply);
            return Ok(());
        }
        if !SeededBug::FlushWithoutCache.is_active() {
            self.flush_all(begun)?;
        }
        self.settle();
        let map = self.with_ftl(&begun.command, |ftl, cx| ftl.persist(cx, false))?;
        let mut after = self.pending_programs();
        after.extend([begun.command.first, map]);
        self.complete(tag, Class::HostWrite, &after, reply);
        Ok(())
    }

    fn trim(
        &mut self,
        begun: &Begun,
        tag: Tag,
        (lba, sectors): (Lba, u32),
        reply: &mut Reply,
    ) -> Result<(), FtlError> {
        let unit_sectors = self.layout.unit_sectors();
        for piece in pieces(lba, sectors, unit_sectors) {
            if !piece.is_whole(unit_sectors) {
                self.counters.trim_partial_units += 1;
                continue;
            }
            self.counters.trimmed_units += 1;
            if let Some(entry) = self.cache.as_mut().and_then(|c| c.remove(piece.lpn)) {
                free_slots(&mut self.cache, &mut self.plan, entry.ready, 1);
            }
            self.with_ftl(&begun.command, |ftl, cx| ftl.trim(cx, piece.lpn))?;
        }
        self.settle();
        self.complete(tag, Class::HostWrite, &[begun.command.first], reply);
        Ok(())
    }

    /// Returns the operations that complete the commands `after`. Commands that are already
    /// complete have no such operation.
    fn completions_of(&self, after: &[Tag]) -> SmallVec<[OpId; 4]> {
        if after.is_empty() {
            return SmallVec::new();
        }
        let awaited = self.in_flight.awaited.as_ref().expect("the layer has called `keep_awaited`");
        after.iter().filter_map(|tag| awaited.get(tag).copied()).collect()
    }

    /// Reports the commands that are complete.
    fn report(&mut self, out: &mut Vec<Done>) {
        if self.in_flight.finished.is_empty() {
            return;
        }
        self.in_flight.outstanding -= self.in_flight.finished.len();
        if let (Some(predictor), Some(last), 0) =
            (&mut self.predictor, self.in_flight.finished.last(), self.in_flight.outstanding)
        {
            predictor.gap_begins(last.at);
        }
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
        if self.refuses_changes(&cmd) {
            return Err(SubmitError::ReadOnly);
        }
        self.prune_unflushed();
        let sent_after = self.completions_of(after);
        let mut begun = self.begin(now, &cmd, &sent_after);
        let changed = match cmd {
            Cmd::Read { lba, sectors } => {
                let read = self.read(&mut begun, tag, (lba, sectors), &[], reply);
                read.map_err(|error| self.unread(now, tag, error))?;
                Ok(())
            }
            Cmd::HpbRead { lba, sectors, entries } => {
                self.read(&mut begun, tag, (lba, sectors), entries, reply)?;
                Ok(())
            }
            Cmd::ReadBuffer { subregion } => {
                self.read_buffer(&begun, tag, subregion, reply)?;
                Ok(())
            }
            Cmd::WriteBuffer { region } => {
                self.write_buffer(&begun, tag, region, reply);
                Ok(())
            }
            Cmd::Write { lba, sectors, fua, content, data } => {
                let range = (lba, sectors);
                let write = HostWrite { range, fua, content: Content::Named(content), data };
                self.write(&begun, tag, write, reply)
            }
            Cmd::WriteUnits { lba, fua, stamps, data } => {
                let range = (lba, stamps.len() as u32 * self.layout.unit_sectors());
                let write = HostWrite { range, fua, content: Content::Stamps(stamps), data };
                self.write(&begun, tag, write, reply)
            }
            Cmd::Trim { lba, sectors } => self.trim(&begun, tag, (lba, sectors), reply),
            Cmd::Flush => self.flush(&begun, tag, reply),
        };
        changed.map_err(|error| self.fail(error))?;
        if cmd.promises() {
            self.medium.promise();
        }
        if self.medium.has_errors() && !self.is_read_only() {
            self.keep_up(&begun)?;
        }
        self.issue(now);
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
        if self.is_read_only() || self.in_flight.outstanding > 0 {
            return Ok(());
        }
        self.work_in_idle_time(now, until)
    }

    fn shape(&self) -> DeviceShape {
        DeviceShape::of(&self.layout)
    }
}
