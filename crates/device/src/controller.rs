//! The controller of a drive: splits commands into mapping units, merges partial ones, keeps the write cache, and hands
//! plans to the timing engine.

use crate::cache::WriteCache;
use crate::pieces::pieces;
use crate::{Cmd, Device, Done, DriveConfig, Reply, SubmitError};
use flashatlas_ftl::{Cx, Ftl, FtlReport, Place, Programmed, Role, scheme_by_name};
use flashatlas_nand::{Flash, Medium, Rules, Unit};
use flashatlas_timing::{Engine, Finished, Statistics, Times};
use flashatlas_types::{
    BlockId, Cause, Class, ConfigError, Dur, FtlError, Layout, Lba, Lpn, OpId, OpKind, Plan, Ppn, Ps, Seed, Stamp, Tag,
    Violation,
};
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
    command: OpId,
    /// Units on their way from the cache to the FTL, and what brings them; empty between calls.
    pub(crate) run: Vec<Unit>,
    pub(crate) ready: Vec<OpId>,
    /// Programs of host data that the next FLUSH waits for.
    pub(crate) unflushed: Vec<OpId>,
    pub(crate) unflushed_limit: usize,
    finished: Vec<Finished>,
    instant: bool,
    /// Commands in flight.
    outstanding: usize,
}

/// The FTL of a drive, its tables built from what stands on the medium.
fn mount(
    config: &DriveConfig,
    seed: Seed,
    medium: &mut Medium,
    plan: &mut Plan,
    programmed: &mut Vec<Programmed>,
) -> Result<Box<dyn Ftl>, FtlError> {
    let scheme = scheme_by_name(config.params.text("ftl.scheme")).expect("the configuration is checked");
    let flash = Flash { medium, plan };
    let oldest_unfinished = OpId(u64::MAX);
    let mut cx = Cx { flash, now: Ps::ZERO, command: OpId::NONE, oldest_unfinished, programmed };
    (scheme.mount)(&config.params, &mut cx, seed)
}

/// The write cache of a drive, empty; none where writes go straight through.
fn write_cache(config: &DriveConfig, layout: &Layout) -> Option<WriteCache> {
    let p = &config.params;
    (p.text("cache.mode") == "write-back").then(|| {
        let capacity = (p.int("cache.bytes") / u64::from(layout.unit_bytes)).min(1 << 30) as u32;
        let share = |key| (p.ratio(key) * f64::from(capacity)) as u32;
        WriteCache::new(capacity, share("cache.high"), share("cache.low"))
    })
}

/// The logical pages must fit what the factory-bad blocks leave, taken as spread evenly over the lanes.
fn fits_good_blocks(config: &DriveConfig, layout: &Layout, medium: &Medium) -> Result<(), ConfigError> {
    let good = (0..layout.blocks()).filter(|&b| !medium.is_bad(BlockId(b))).count() as u32;
    if good == layout.blocks() {
        return Ok(());
    }
    let mut left = layout.clone();
    left.blocks_per_lane = good / layout.lanes;
    (scheme_by_name(config.params.text("ftl.scheme"))?.fits)(&config.params, &left).map_err(|e| ConfigError {
        why: format!("{} of {} blocks are factory-bad: {}", layout.blocks() - good, layout.blocks(), e.why),
        ..e
    })
}

impl Ssd {
    pub(crate) fn new(config: &DriveConfig, seed: Seed) -> Result<Ssd, ConfigError> {
        let layout = Arc::new(config.layout()?);
        let rules = Rules::from_params(&config.params);
        let medium = Medium::new(layout, rules, config.params.u32("nand.factory_bad"), seed)?;
        Ssd::on(medium, config, seed)
    }

    /// A drive that mounts what stands on `medium`, whose layout is that of `config`.
    pub(crate) fn on(mut medium: Medium, config: &DriveConfig, seed: Seed) -> Result<Ssd, ConfigError> {
        let p = &config.params;
        let (layout, rules) = (medium.shared_layout(), medium.rules());
        fits_good_blocks(config, &layout, &medium)?;
        let engine = Engine::new(&layout, Times::from_params(p)?);
        let mut plan = Plan::default();
        plan.set_recording(false);
        let mut programmed = Vec::new();
        let ftl = mount(config, seed, &mut medium, &mut plan, &mut programmed)
            .map_err(|e| ConfigError::new("ftl.scheme", format!("cannot mount: {e}")))?;
        plan.set_recording(true);
        Ok(Ssd {
            medium,
            ftl,
            engine,
            plan,
            cache: write_cache(config, &layout),
            settings: Settings {
                command_time: p.time("host.command_time"),
                idle_after: p.time("host.idle_after"),
                keep_bytes: rules.keep_bytes,
            },
            counters: DeviceCounters::default(),
            programmed,
            command: OpId::NONE,
            run: Vec::new(),
            ready: Vec::new(),
            unflushed: Vec::new(),
            unflushed_limit: 1024,
            finished: Vec::new(),
            instant: false,
            outstanding: 0,
            layout,
        })
    }

    /// Power off and on again: the write cache and every table in the controller's memory are lost, and the FTL mounts
    /// what is on the medium. `config` is that of the drive.
    ///
    /// # Errors
    /// When the FTL cannot mount.
    ///
    /// # Panics
    /// When the drive is busy.
    pub fn power_cycle(&mut self, config: &DriveConfig, seed: Seed) -> Result<(), SubmitError> {
        assert!(!self.is_busy() && self.outstanding == 0, "the drive is busy");
        self.set_instant(true);
        self.ftl = mount(config, seed, &mut self.medium, &mut self.plan, &mut self.programmed)?;
        self.cache = write_cache(config, &self.layout);
        self.unflushed.clear();
        self.set_instant(false);
        Ok(())
    }

    /// Fault: the power fails in the program or erase after the next `operations`. What the drive does then is of no account:
    /// mount what [`Ssd::into_medium`] gives.
    pub fn cut_power_after(&mut self, operations: u64) {
        self.medium.cut_power_after(operations);
    }

    /// Power off for good: what is left is the medium.
    pub fn into_medium(self) -> Medium {
        self.medium
    }

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
        self.cache.as_ref().map_or(0, |c| u64::from(c.capacity()) * u64::from(self.layout.unit_bytes))
    }

    /// How busy the resources were.
    pub fn statistics(&mut self) -> Statistics {
        self.engine.statistics()
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

    /// Let everything that is under way come to its end; no command may be in flight. Returns when that was.
    pub fn settle_down(&mut self) -> Ps {
        assert!(self.outstanding == 0, "{} commands are in flight", self.outstanding);
        while let Some(at) = self.engine.next_event() {
            self.engine.advance(at, &mut self.finished);
        }
        self.engine.now()
    }

    /// What the oldest unfinished operations wait for.
    pub fn explain(&self) -> String {
        self.engine.explain()
    }

    /// Whether anything is under way in the drive.
    pub fn is_busy(&self) -> bool {
        self.engine.unfinished() > 0
    }

    /// Commands take effect without any time passing and without completions: how a drive is brought into a state.
    pub fn set_instant(&mut self, on: bool) {
        assert!(!self.is_busy(), "the drive is busy");
        self.instant = on;
        self.plan.set_recording(!on);
    }

    /// Set every counter and busy time to zero; what the drive holds stays.
    pub fn reset_counters(&mut self) {
        self.medium.counters = Default::default();
        self.counters = DeviceCounters::default();
        self.ftl.reset_counters();
        self.engine.reset_statistics();
    }

    /// Write every logical page once, in ascending order, in no time. `stamp` gives what each page holds.
    ///
    /// # Errors
    /// When the drive cannot hold them.
    pub fn fill(&mut self, stamp: impl Fn(Lpn) -> Stamp) -> Result<(), SubmitError> {
        self.fill_while(stamp, &mut |_| true).map(|_| ())
    }

    /// As [`Ssd::fill`]; `go_on` hears now and then how many pages were written, and stops it by answering `false`. Returns
    /// whether all were written.
    ///
    /// # Errors
    /// As [`Ssd::fill`].
    pub fn fill_while(
        &mut self,
        stamp: impl Fn(Lpn) -> Stamp,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, SubmitError> {
        let units = self.layout.logical_units;
        let zeros: Option<Arc<[u8]>> =
            self.settings.keep_bytes.then(|| vec![0; self.layout.unit_bytes as usize].into());
        self.set_instant(true);
        let mut run = Vec::with_capacity(64);
        for start in (0..units).step_by(64) {
            run.clear();
            let unit = |lpn| Unit { lpn: Lpn(lpn), stamp: stamp(Lpn(lpn)), bytes: zeros.clone() };
            run.extend((start..units.min(start + 64)).map(unit));
            self.with_ftl(Ps::ZERO, |ftl, cx| ftl.write(cx, &run, Cause::Host, &[]))?;
            self.programmed.clear();
            if start % (1 << 16) == 0 && !go_on(start.into()) {
                self.set_instant(false);
                return Ok(false);
            }
        }
        self.with_ftl(Ps::ZERO, |ftl, cx| ftl.flush(cx))?;
        self.programmed.clear();
        self.set_instant(false);
        Ok(true)
    }

    /// Bring a blank drive into the steady state that uniform random writes of single units lead to. `stamp` gives what
    /// each page holds; `go_on` hears how many were placed, and stops it by answering `false` (the answer then is `false`,
    /// too). The drive must be power cycled afterwards.
    ///
    /// # Errors
    /// When the scheme or its victim policy has no model of that state.
    ///
    /// # Panics
    /// When the drive is not blank.
    pub fn make_steady(
        &mut self,
        config: &DriveConfig,
        seed: Seed,
        stamp: &dyn Fn(Lpn) -> Stamp,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, ConfigError> {
        assert!(self.medium.sequence() == 0, "the drive is not blank");
        let scheme = scheme_by_name(config.params.text("ftl.scheme"))?;
        let make = scheme.steady.ok_or_else(|| {
            let why =
                format!("the steady state of `{}` has no model: use --precondition fill or trace:FILE", scheme.name);
            ConfigError::new("ftl.scheme", why)
        })?;
        self.set_instant(true);
        let mut cx = Cx {
            flash: Flash { medium: &mut self.medium, plan: &mut self.plan },
            now: Ps::ZERO,
            command: OpId::NONE,
            oldest_unfinished: OpId(u64::MAX),
            programmed: &mut self.programmed,
        };
        let made = make(&config.params, &mut cx, seed, stamp, go_on);
        self.set_instant(false);
        made
    }

    /// Forget a page, in no time.
    ///
    /// # Errors
    /// When the map cannot be updated.
    pub fn forget(&mut self, lpn: Lpn) -> Result<(), SubmitError> {
        self.set_instant(true);
        self.with_ftl(Ps::ZERO, |ftl, cx| ftl.trim(cx, lpn))?;
        self.programmed.clear();
        self.set_instant(false);
        Ok(())
    }

    /// Bring the write cache and the page buffers to flash in no time.
    ///
    /// # Errors
    /// When there is no space.
    pub fn drain(&mut self) -> Result<(), SubmitError> {
        self.flush_all(Ps::ZERO)?;
        self.settle();
        self.unflushed.clear();
        Ok(())
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
            Place::Flash(ppn) => self.flash_unit(ppn, lpn).map(Some),
        }
    }

    /// Where the FTL has the newest version of a page, looked up behind the drive's back; the write cache is not asked.
    pub fn place(&self, lpn: Lpn) -> Place {
        self.ftl.peek(lpn)
    }

    /// What a slot holds, which must be this page.
    pub(crate) fn flash_unit(&self, ppn: Ppn, lpn: Lpn) -> Result<Unit, FtlError> {
        let unit = self.medium.unit(ppn)?;
        if unit.lpn != lpn {
            return Err(FtlError::WrongPage { at: ppn, expected: lpn, found: unit.lpn });
        }
        Ok(unit)
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
            programmed: &mut self.programmed,
        };
        work(self.ftl.as_mut(), &mut cx)
    }

    /// The first operation of a command: the controller's work on it.
    pub(crate) fn begin(&mut self) -> OpId {
        self.command = match self.settings.command_time {
            Dur::ZERO => OpId::NONE,
            time => self.plan.push(OpKind::Delay(time), Class::HostRead, &[]),
        };
        self.command
    }

    pub(crate) fn complete(&mut self, tag: Tag, class: Class, after: &[OpId]) {
        self.plan.push(OpKind::Complete(tag), class, after);
    }

    fn flush_all(&mut self, now: Ps) -> Result<(), FtlError> {
        let dirty = self.cache.as_ref().map_or(0, WriteCache::len);
        self.evict(now, dirty)?;
        self.with_ftl(now, |ftl, cx| ftl.flush(cx))
    }

    fn flush(&mut self, now: Ps, tag: Tag) -> Result<(), FtlError> {
        let command = self.begin();
        self.flush_all(now)?;
        self.settle();
        let mut after = self.pending_programs();
        after.push(command);
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
    fn submit(&mut self, now: Ps, tag: Tag, cmd: Cmd<'_>, reply: &mut Reply) -> Result<(), SubmitError> {
        reply.stamps.clear();
        reply.bytes.clear();
        if let Cmd::Read { lba, sectors } | Cmd::Write { lba, sectors, .. } | Cmd::Trim { lba, sectors } = cmd {
            let end = lba.0.checked_add(u64::from(sectors));
            if sectors == 0 || end.is_none_or(|end| end > self.sectors()) {
                return Err(SubmitError::OutOfRange { sectors: self.sectors() });
            }
        }
        self.prune_unflushed();
        self.plan.clear();
        match cmd {
            Cmd::Read { lba, sectors } => self.read(now, tag, lba, sectors, reply)?,
            Cmd::Write { lba, sectors, fua, content, data } => {
                self.write(now, tag, (lba, sectors), fua, content, data)?
            }
            Cmd::Trim { lba, sectors } => self.trim(now, tag, lba, sectors)?,
            Cmd::Flush => self.flush(now, tag)?,
        }
        if self.instant {
            self.unflushed.clear();
        } else {
            self.outstanding += 1;
            self.engine.issue(now, &self.plan);
        }
        Ok(())
    }

    fn next_event(&self) -> Option<Ps> {
        self.engine.next_event()
    }

    fn advance(&mut self, until: Ps, out: &mut Vec<Done>) {
        self.engine.advance(until, &mut self.finished);
        self.outstanding -= self.finished.len();
        out.extend(self.finished.drain(..).map(|f| Done { tag: f.tag, at: f.at }));
    }

    fn idle(&mut self, now: Ps, until: Ps) -> Result<(), SubmitError> {
        if self.outstanding > 0 || until.since(now) <= self.settings.idle_after {
            return Ok(());
        }
        let mut at = now.after(self.settings.idle_after);
        // each round frees at least one slot somewhere, so there are at most as many as slots
        for _ in 0..self.layout.slots() {
            while let Some(event) = self.engine.next_event().filter(|&e| e <= until) {
                self.engine.advance(event, &mut self.finished);
            }
            at = at.max(self.engine.now());
            if at >= until || self.engine.next_event().is_some() {
                break;
            }
            self.plan.clear();
            self.command = OpId::NONE;
            if !self.with_ftl(at, |ftl, cx| ftl.idle(cx))? {
                break;
            }
            self.settle();
            self.engine.issue(at, &self.plan);
        }
        Ok(())
    }

    fn unit_sectors(&self) -> u32 {
        self.layout.unit_sectors()
    }

    fn sectors(&self) -> u64 {
        self.layout.sectors()
    }

    fn check(&self) -> Result<(), Violation> {
        self.ftl.check(&self.medium)
    }
}
