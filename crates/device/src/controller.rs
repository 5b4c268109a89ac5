//! The controller of a drive: splits commands into mapping units, merges partial ones, keeps the
//! write cache, and hands plans to the timing engine.

use crate::cache::WriteCache;
use crate::hpb::{Manager, Notice};
use crate::pieces::{Content, pieces};
use crate::{Cmd, Contents, Device, Done, DriveConfig, LayerReport, Reply, Shape, SubmitError};
use flashatlas_ftl::blocks::unit_at;
use flashatlas_ftl::{Cx, Ftl, FtlReport, Idle, Place, Programmed, Role};
use flashatlas_nand::{Flash, Medium, Unit};
use flashatlas_timing::{Engine, Finished, Statistics, Times, Trajectory};
use flashatlas_types::{
    BlockId, Class, Dur, FtlError, Layout, Lba, Lpn, OpId, OpKind, Plan, Ps, Seed, SeededBug,
    Stamp, Tag, Violation,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// What the controller itself counts.
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
    /// Units at the ends of trims that were not covered whole, and so ignored.
    pub trim_partial_units: u64,
    /// Units trimmed.
    pub trimmed_units: u64,
}

pub(crate) struct Settings {
    pub command_time: Dur,
    pub idle_after: Dur,
    pub keep_bytes: bool,
}

/// A drive.
pub struct Ssd {
    pub(crate) layout: Arc<Layout>,
    pub(crate) medium: Medium,
    pub(crate) ftl: Box<dyn Ftl>,
    pub(crate) engine: Engine,
    pub(crate) plan: Plan,
    pub(crate) cache: Option<WriteCache>,
    pub(crate) settings: Settings,
    pub(crate) counters: DeviceCounters,
    pub(crate) programmed: Vec<Programmed>,
    /// The first operation of the current command.
    pub(crate) command: OpId,
    /// Mapping units of it that follow the one at hand.
    pub(crate) ahead: u32,
    /// Units on their way from the cache to the FTL, and what brings them; empty between calls.
    pub(crate) run: Vec<Unit>,
    pub(crate) ready: Vec<OpId>,
    /// Programs of host data that the next FLUSH waits for.
    pub(crate) unflushed: Vec<OpId>,
    pub(crate) unflushed_limit: usize,
    pub(crate) finished: Vec<Finished>,
    pub(crate) instant: bool,
    /// Commands in flight.
    pub(crate) outstanding: usize,
    /// What completes each command in flight, where a layer sends commands after others.
    pub(crate) awaited: Option<FxHashMap<Tag, OpId>>,
    /// What the current command waits for.
    pub(crate) sent_after: SmallVec<[OpId; 4]>,
    /// What hands the map out, where a host caches it.
    pub(crate) hpb: Option<Box<Manager>>,
    /// Pages whose map entry the FTL changed; empty between calls.
    pub(crate) remapped: Vec<Lpn>,
    /// What the response to the current command says.
    pub(crate) notice: Option<Box<Notice>>,
    /// What stopped the drive: what it keeps in memory is of no account, and every command gets
    /// this error.
    pub(crate) failed: Option<FtlError>,
    pub(crate) times: Times,
}

impl Ssd {
    /// The shape of the drive.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The medium, to look at.
    pub fn medium(&self) -> &Medium {
        &self.medium
    }

    /// What the FTL counted, and its tables.
    pub fn ftl_report(&self) -> FtlReport {
        self.ftl.report()
    }

    /// Show every block: what the FTL uses it for, and how many of its slots are valid.
    pub fn survey(&self, visit: &mut dyn FnMut(BlockId, Role, u32)) {
        self.ftl.survey(visit);
    }

    /// What the controller counted.
    pub fn counters(&self) -> DeviceCounters {
        self.counters
    }

    /// Bytes of the write cache.
    pub fn cache_bytes(&self) -> u64 {
        self.cache
            .as_ref()
            .map_or(0, |c| u64::from(c.capacity()) * u64::from(self.layout.unit_bytes))
    }

    /// How busy the resources were.
    pub fn statistics(&mut self) -> Statistics {
        self.engine.statistics()
    }

    /// Every flash operation so far with the time of its end, in one number.
    pub fn trajectory(&self) -> Trajectory {
        self.engine.trajectory()
    }

    /// The operations of the last command, for tests of what waits for what.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether an operation that was issued is complete.
    pub fn is_complete(&self, op: OpId) -> bool {
        self.engine.is_complete(op)
    }

    /// Units in the write cache that are not on flash.
    pub fn dirty_units(&self) -> u64 {
        self.cache.as_ref().map_or(0, |c| u64::from(c.len()))
    }

    /// Let everything that is under way come to its end; no command may be in flight. Returns when
    /// that was.
    pub fn settle_down(&mut self) -> Ps {
        let awaited = self.awaited.as_ref().map_or(0, FxHashMap::len);
        assert!(
            self.outstanding + awaited == 0,
            "{} commands are in flight, {awaited} awaited",
            self.outstanding
        );
        while let Some(at) = self.engine.next_event() {
            self.engine.advance(at, &mut self.finished);
        }
        self.engine.now()
    }

    /// Remember what completes each command in flight: a layer above sends commands after others.
    pub(crate) fn keep_awaited(&mut self) {
        self.awaited = Some(FxHashMap::default());
    }

    /// What the oldest unfinished operations wait for.
    pub fn explain(&self) -> String {
        self.engine.explain()
    }

    /// Whether anything is under way in the drive.
    pub fn is_busy(&self) -> bool {
        self.engine.unfinished() > 0
    }

    /// What a page holds, looked up behind the drive's back: no operation, no time.
    ///
    /// # Errors
    /// When the map points to something that cannot be read, or to another page.
    pub fn peek(&self, lpn: Lpn) -> Result<Option<Unit>, FtlError> {
        if let Some(entry) = self.cache.as_ref().and_then(|c| c.get(lpn)) {
            return Ok(Some(Unit { lpn, stamp: entry.stamp, bytes: None }));
        }
        match self.ftl.peek(lpn) {
            Place::Nowhere => Ok(None),
            Place::Buffer(unit) => Ok(Some(unit)),
            Place::Flash(ppn) => unit_at(&self.medium, ppn, lpn).map(Some),
        }
    }

    /// Where the FTL has the newest version of a page, looked up behind the drive's back; the write
    /// cache is not asked.
    pub fn place(&self, lpn: Lpn) -> Place {
        self.ftl.peek(lpn)
    }

    /// Run `work` of the FTL against the medium and the plan.
    pub(crate) fn with_ftl<T>(
        &mut self,
        now: Ps,
        work: impl FnOnce(&mut dyn Ftl, &mut Cx<'_>) -> Result<T, FtlError>,
    ) -> Result<T, FtlError> {
        // operations of this very plan are not in the engine yet
        let oldest_unfinished = self.engine.oldest_unfinished().min(self.plan.first_id());
        let mut cx = Cx {
            flash: Flash { medium: &mut self.medium, plan: &mut self.plan },
            now,
            command: self.command,
            oldest_unfinished,
            ahead: self.ahead,
            programmed: &mut self.programmed,
            remapped: self.hpb.is_some().then_some(&mut self.remapped),
        };
        let done = work(self.ftl.as_mut(), &mut cx);
        if let Some(hpb) = &mut self.hpb {
            self.remapped.drain(..).for_each(|lpn| hpb.remapped(lpn));
        }
        done
    }

    /// An error that leaves tables and cache half changed: the drive cannot go on.
    pub(crate) fn fail(&mut self, error: FtlError) -> FtlError {
        self.failed = Some(error.clone());
        error
    }

    /// The first operation of a command: the controller's work on it.
    pub(crate) fn begin(&mut self) -> OpId {
        self.command = match self.settings.command_time {
            Dur::ZERO => self.plan.join(Class::HostRead, &self.sent_after),
            time => self.plan.push(OpKind::Delay(time), Class::HostRead, &self.sent_after),
        };
        self.command
    }

    pub(crate) fn complete(&mut self, tag: Tag, class: Class, after: &[OpId]) {
        let op = match self.say_what_changed(tag, class, after) {
            OpId::NONE => self.plan.push(OpKind::Complete(tag), class, after),
            said => self.plan.push(OpKind::Complete(tag), class, &[said]),
        };
        if let Some(awaited) = &mut self.awaited
            && op != OpId::NONE
        {
            awaited.insert(tag, op);
        }
    }

    pub(crate) fn flush_all(&mut self, now: Ps) -> Result<(), FtlError> {
        let dirty = self.cache.as_ref().map_or(0, WriteCache::len);
        self.evict(now, dirty)?;
        self.with_ftl(now, |ftl, cx| ftl.flush(cx))
    }

    /// The plan of a command is decided: let it happen.
    fn issue(&mut self, now: Ps, reply: &mut Reply) {
        reply.notice = self.notice.take();
        if self.instant {
            self.unflushed.clear();
        } else {
            self.outstanding += 1;
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
            if let Some(cache) = &mut self.cache
                && let Some(entry) = cache.remove(piece.lpn)
            {
                cache.release(entry.ready, 1);
            }
            self.with_ftl(now, |ftl, cx| ftl.trim(cx, piece.lpn))?;
        }
        self.settle();
        self.complete(tag, Class::HostWrite, &[command]);
        Ok(())
    }
}

impl Device for Ssd {
    fn submit_after(
        &mut self,
        now: Ps,
        tag: Tag,
        cmd: Cmd<'_>,
        after: &[Tag],
        reply: &mut Reply,
    ) -> Result<(), SubmitError> {
        reply.clear();
        self.shape().accepts(&cmd)?;
        self.hands_out(&cmd)?;
        if let Some(error) = &self.failed {
            return Err(error.clone().into());
        }
        self.prune_unflushed();
        self.plan.clear();
        self.sent_after.clear();
        if !after.is_empty() {
            let awaited = self
                .awaited
                .as_ref()
                .expect("a layer that sends commands after others has asked for it");
            self.sent_after.extend(after.iter().filter_map(|tag| awaited.get(tag).copied()));
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
        self.issue(now, reply);
        Ok(())
    }

    fn next_event(&self) -> Option<Ps> {
        self.engine.next_event()
    }

    fn advance(&mut self, until: Ps, out: &mut Vec<Done>) {
        self.engine.advance(until, &mut self.finished);
        if self.finished.is_empty() {
            return; // as after most events
        }
        self.outstanding -= self.finished.len();
        if let Some(hpb) = &mut self.hpb {
            self.finished.iter().for_each(|f| hpb.reached(f.tag));
        }
        if let Some(awaited) = &mut self.awaited {
            for f in &self.finished {
                awaited.remove(&f.tag);
            }
        }
        out.extend(self.finished.drain(..).map(|f| Done { tag: f.tag, at: f.at }));
    }

    fn idle(&mut self, now: Ps, until: Ps) -> Result<(), SubmitError> {
        if let Some(error) = &self.failed {
            return Err(error.clone().into());
        }
        if self.outstanding > 0 || until.since(now) <= self.settings.idle_after {
            return Ok(());
        }
        let mut at = now.after(self.settings.idle_after);
        // each round frees a slot or moves a part of the map, or waits before one that does
        for _ in 0..2 * self.layout.slots() {
            while let Some(event) = self.engine.next_event().filter(|&e| e <= until) {
                self.engine.advance(event, &mut self.finished);
            }
            at = at.max(self.engine.now());
            if at >= until || self.engine.next_event().is_some() {
                break;
            }
            self.plan.clear();
            self.command = OpId::NONE;
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

    fn shape(&self) -> Shape {
        Shape::of(&self.layout)
    }

    fn held(&self, unit: Lpn) -> Result<Stamp, SubmitError> {
        Ok(self.peek(unit)?.map_or(Stamp::ZERO, |u| u.stamp))
    }

    fn forgets_trims(&self) -> bool {
        self.ftl.report().forgets_trims
    }

    fn check(&self) -> Result<(), Violation> {
        self.ftl.check(&self.medium)
    }

    fn set_instant(&mut self, on: bool) {
        assert!(!self.is_busy(), "the drive is busy");
        self.instant = on;
        self.plan.set_recording(!on);
    }

    fn switch_on(&mut self, config: &DriveConfig, seed: Seed) -> Result<(), SubmitError> {
        self.mount_again(config, seed)
    }

    fn failure(&self) -> Option<SubmitError> {
        self.failed.clone().map(SubmitError::from)
    }

    fn reset_counters(&mut self) {
        self.medium.counters = Default::default();
        self.medium.nvm.counters = Default::default();
        self.counters = DeviceCounters::default();
        if let Some(hpb) = &mut self.hpb {
            hpb.counters = Default::default();
        }
        self.ftl.reset_counters();
        self.engine.reset_statistics();
    }

    fn reports(&self) -> Vec<LayerReport> {
        Vec::new()
    }

    fn contents(&mut self) -> Option<&mut Contents> {
        None
    }

    fn ssd(&self) -> &Ssd {
        self
    }

    fn ssd_mut(&mut self) -> &mut Ssd {
        self
    }

    fn into_ssd(self: Box<Self>) -> Ssd {
        *self
    }
}
