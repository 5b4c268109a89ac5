//! The controller of a drive: splits commands into mapping units, merges partial ones, keeps the write cache, and hands
//! plans to the timing engine.

use crate::cache::{Entry, WriteCache};
use crate::{Cmd, Device, Done, DriveConfig, Reply, SubmitError};
use flashatlas_ftl::{Cx, Ftl, FtlReport, Place, Programmed, scheme_by_name};
use flashatlas_nand::{Flash, Medium, Part, Rules, Unit};
use flashatlas_timing::{Engine, Finished, Statistics, Times};
use flashatlas_types::{
    BlockId, Cause, Class, ConfigError, Dur, FtlError, Layout, Lba, Lpn, OpId, OpKind, Plan, Ppn, Ps, SECTOR_BYTES,
    Seed, Stamp, Tag, Violation,
};
use smallvec::{SmallVec, smallvec};
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
    programmed: Vec<Programmed>,
    /// The first operation of the current command.
    command: OpId,
    /// Units on their way from the cache to the FTL, and what brings them; empty between calls.
    run: Vec<Unit>,
    ready: Vec<OpId>,
    /// Programs of host data that the next FLUSH waits for.
    unflushed: Vec<OpId>,
    unflushed_limit: usize,
    finished: Vec<Finished>,
    instant: bool,
    /// Commands in flight.
    outstanding: usize,
}

/// The part of a write that falls into one mapping unit.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub lpn: Lpn,
    /// First sector in the unit.
    pub first: u32,
    pub sectors: u32,
    /// First sector of the piece, counted from the first sector of the command.
    pub offset: u32,
}

impl Piece {
    pub fn is_whole(&self, unit_sectors: u32) -> bool {
        self.sectors == unit_sectors
    }

    /// The bits of the sectors it covers.
    pub fn mask(&self) -> u128 {
        let ones = if self.sectors == 128 { u128::MAX } else { (1u128 << self.sectors) - 1 };
        ones << self.first
    }

    /// The stamp of the unit after this piece of write `content`, over `old`.
    pub fn stamp(&self, old: Stamp, content: u64, unit_sectors: u32) -> Stamp {
        if self.is_whole(unit_sectors) {
            Stamp::whole(content, self.offset)
        } else {
            old.overwritten(content, self.first, self.sectors)
        }
    }
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

/// The pieces of a range of sectors.
pub(crate) fn pieces(lba: Lba, sectors: u32, unit_sectors: u32) -> impl Iterator<Item = Piece> {
    let (unit, start, end) = (u64::from(unit_sectors), lba.0, lba.0 + u64::from(sectors));
    (start / unit..end.div_ceil(unit)).map(move |lpn| {
        let (from, to) = (start.max(lpn * unit), end.min((lpn + 1) * unit));
        Piece {
            lpn: Lpn(lpn as u32),
            first: (from - lpn * unit) as u32,
            sectors: (to - from) as u32,
            offset: (from - start) as u32,
        }
    })
}

impl Ssd {
    pub(crate) fn new(config: &DriveConfig, seed: Seed) -> Result<Ssd, ConfigError> {
        let p = &config.params;
        let layout = Arc::new(config.layout()?);
        let rules = Rules::from_params(p);
        let mut medium = Medium::new(layout.clone(), rules, p.u32("nand.factory_bad"), seed)?;
        fits_good_blocks(config, &layout, &medium)?;
        let engine = Engine::new(&layout, Times::from_params(p)?);
        let mut plan = Plan::default();
        plan.set_recording(false);
        let mut programmed = Vec::new();
        let mut cx = Cx {
            flash: Flash { medium: &mut medium, plan: &mut plan },
            now: Ps::ZERO,
            command: OpId::NONE,
            oldest_unfinished: OpId(u64::MAX),
            programmed: &mut programmed,
        };
        let scheme = scheme_by_name(p.text("ftl.scheme"))?;
        let ftl = (scheme.mount)(p, &mut cx, seed)
            .map_err(|e| ConfigError::new("ftl.scheme", format!("cannot mount: {e}")))?;
        plan.set_recording(true);
        let cache = (p.text("cache.mode") == "write-back").then(|| {
            let capacity = (p.int("cache.bytes") / u64::from(layout.unit_bytes)).min(1 << 30) as u32;
            let share = |key| (p.ratio(key) * f64::from(capacity)) as u32;
            WriteCache::new(capacity, share("cache.high"), share("cache.low"))
        });
        Ok(Ssd {
            medium,
            ftl,
            engine,
            plan,
            cache,
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

    /// What the controller counted.
    pub fn counters(&self) -> DeviceCounters {
        self.counters
    }

    /// Bytes of the write cache.
    pub fn cache_bytes(&self) -> u64 {
        self.cache.as_ref().map_or(0, |c| u64::from(c.capacity()) * u64::from(self.layout.unit_bytes))
    }

    /// How busy the resources were.
    pub fn statistics(&mut self) -> &Statistics {
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
        }
        self.with_ftl(Ps::ZERO, |ftl, cx| ftl.flush(cx, Cause::Host))?;
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

    // ---- writes

    fn write(
        &mut self,
        now: Ps,
        tag: Tag,
        range: (Lba, u32),
        fua: bool,
        content: u64,
        data: Option<&[u8]>,
    ) -> Result<(), FtlError> {
        let command = self.begin();
        let unit_sectors = self.layout.unit_sectors();
        let pieces: SmallVec<[Piece; 4]> = pieces(range.0, range.1, unit_sectors).collect();
        if self.cache.is_none() {
            return self.write_through(now, tag, &pieces, content, data, command);
        }
        let mut arrived: SmallVec<[OpId; 4]> = SmallVec::new();
        let mut rest = &pieces[..];
        while !rest.is_empty() {
            let chunk = self.writable_chunk(now, rest)?;
            arrived.push(self.write_cached(&rest[..chunk], content, data, command)?);
            rest = &rest[chunk..];
            let cache = self.cache.as_ref().expect("write-back");
            if cache.len() > cache.high {
                let surplus = cache.len() - cache.low;
                self.evict(now, surplus)?;
            }
        }
        if fua {
            for piece in &pieces {
                self.evict_page(now, piece.lpn)?;
            }
            self.with_ftl(now, |ftl, cx| ftl.flush(cx, Cause::CacheEvict))?;
            self.settle();
            arrived.extend(self.pending_programs());
        }
        self.complete(tag, Class::HostWrite, &arrived);
        Ok(())
    }

    /// How many of `pieces` can enter the cache together; makes room for one when there is none.
    fn writable_chunk(&mut self, now: Ps, pieces: &[Piece]) -> Result<usize, FtlError> {
        let cache = self.cache.as_ref().expect("write-back");
        if cache.free_slots() == 0 && cache.get(pieces[0].lpn).is_none() {
            let surplus = cache.len().saturating_sub(cache.low).max(1);
            self.evict(now, surplus)?;
            if self.cache.as_ref().is_some_and(|c| c.free_slots() == 0) {
                self.with_ftl(now, |ftl, cx| ftl.flush(cx, Cause::CacheEvict))?;
                self.settle();
            }
        }
        let cache = self.cache.as_ref().expect("write-back");
        let mut slots = cache.free_slots();
        let fits = pieces.iter().take_while(|p| {
            let hit = cache.get(p.lpn).is_some();
            let fits = hit || slots > 0;
            slots -= u32::from(!hit && fits);
            fits
        });
        let count = fits.count();
        assert!(count > 0, "the write cache has no slot after eviction and flush");
        Ok(count)
    }

    /// Put pieces into the cache: one transfer from the host, which waits for the slots.
    fn write_cached(
        &mut self,
        pieces: &[Piece],
        content: u64,
        data: Option<&[u8]>,
        command: OpId,
    ) -> Result<OpId, FtlError> {
        let unit_sectors = self.layout.unit_sectors();
        let cache = self.cache.as_mut().expect("write-back");
        let mut after: SmallVec<[OpId; 8]> = smallvec![command];
        for piece in pieces {
            after.push(match cache.get(piece.lpn) {
                None => cache.take_slot(),
                // the slot may still wait for its last program, or for data that this write leaves in place
                Some(entry) => entry.ready,
            });
        }
        let link = OpKind::Link { inbound: true, bytes: bytes_of(pieces) };
        let arrived = self.plan.push(link, Class::HostWrite, &after);
        for piece in pieces {
            let hit = self.cache.as_mut().expect("write-back").touch(piece.lpn).map(|e| e.stamp);
            let (old, base) = match hit {
                Some(stamp) => (stamp, None),
                None if piece.is_whole(unit_sectors) => (Stamp::ZERO, Some(Stamp::ZERO)),
                None => {
                    // only the stamp is looked up here; sectors are fetched, and charged, when the unit leaves
                    let old = self.peek(piece.lpn)?.map_or(Stamp::ZERO, |u| u.stamp);
                    (old, Some(old))
                }
            };
            let stamp = piece.stamp(old, content, unit_sectors);
            let bytes = data.map(|d| slice_of(d, piece));
            let unit_bytes = self.layout.unit_bytes as usize;
            let cache = self.cache.as_mut().expect("write-back");
            if let Some(base) = base {
                let bytes = bytes.map(|b| placed(b, piece, vec![0; unit_bytes].into()));
                cache.insert(piece.lpn, stamp, base, piece.mask(), bytes, arrived);
            } else {
                self.counters.cache_write_hits += 1;
                let entry = cache.get_mut(piece.lpn).expect("hit");
                (entry.stamp, entry.ready) = (stamp, arrived);
                entry.present |= piece.mask();
                if let (Some(new), Some(held)) = (bytes, entry.bytes.take()) {
                    entry.bytes = Some(placed(new, piece, held));
                }
            }
        }
        Ok(arrived)
    }

    /// Without a cache: fetch what a partial unit lacks, program, and pad the last frame.
    fn write_through(
        &mut self,
        now: Ps,
        tag: Tag,
        pieces: &[Piece],
        content: u64,
        data: Option<&[u8]>,
        command: OpId,
    ) -> Result<(), FtlError> {
        let unit_sectors = self.layout.unit_sectors();
        let link = OpKind::Link { inbound: true, bytes: bytes_of(pieces) };
        let mut after = vec![self.plan.push(link, Class::HostWrite, &[command])];
        let mut run = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let (mut old, mut base) = (Stamp::ZERO, None);
            if !piece.is_whole(unit_sectors)
                && let Some((unit, fetched)) = self.fetch_missing(now, piece.lpn, piece.mask())?
            {
                after.push(fetched);
                (old, base) = (unit.stamp, unit.bytes);
            }
            let bytes = data.map(|d| {
                let under = base.map_or_else(|| vec![0; self.layout.unit_bytes as usize].into(), |b| Box::from(&*b));
                Arc::from(placed(slice_of(d, piece), piece, under))
            });
            run.push(Unit { lpn: piece.lpn, stamp: piece.stamp(old, content, unit_sectors), bytes });
        }
        self.with_ftl(now, |ftl, cx| {
            ftl.write(cx, &run, Cause::Host, &after)?;
            ftl.flush(cx, Cause::Host)
        })?;
        after.truncate(1);
        after.extend(self.programmed.iter().map(|p| p.op));
        self.settle();
        self.complete(tag, Class::HostWrite, &after);
        Ok(())
    }

    /// Read the sectors of a page that are not in `present`, and hand back the whole unit. `None` when nobody wrote it.
    fn fetch_missing(&mut self, now: Ps, lpn: Lpn, present: u128) -> Result<Option<(Unit, OpId)>, FtlError> {
        let located = self.with_ftl(now, |ftl, cx| ftl.locate(cx, lpn))?;
        let unit = match located.place {
            Place::Nowhere => return Ok(None),
            Place::Buffer(unit) => return Ok(Some((unit, located.ready))),
            Place::Flash(ppn) => {
                self.counters.rmw_units += 1;
                let layout = self.layout.clone();
                let (frame, slot) = (layout.frame_of(ppn), ppn.0 % layout.slots_per_frame);
                let part = missing(present, layout.unit_sectors());
                let op = self.with_ftl(now, |_, cx| {
                    Ok(cx.flash.read(frame, 1 << slot, part, Cause::Rmw, &[located.ready])?)
                })?;
                (self.flash_unit(ppn, lpn)?, op)
            }
        };
        Ok(Some(unit))
    }

    /// Send the `count` least recently written units to the FTL; consecutive pages go together.
    fn evict(&mut self, now: Ps, count: u32) -> Result<(), FtlError> {
        let (mut run, mut ready) = (std::mem::take(&mut self.run), std::mem::take(&mut self.ready));
        for _ in 0..count {
            let Some(lpn) = self.cache.as_ref().and_then(WriteCache::oldest) else { break };
            if run.last().is_some_and(|last| last.lpn.0 + 1 != lpn.0) {
                self.send_run(now, &mut run, &mut ready)?;
            }
            self.take_out(now, lpn, &mut run, &mut ready)?;
        }
        self.send_run(now, &mut run, &mut ready)?;
        (self.run, self.ready) = (run, ready);
        Ok(())
    }

    fn evict_page(&mut self, now: Ps, lpn: Lpn) -> Result<(), FtlError> {
        let (mut run, mut ready) = (Vec::new(), Vec::new());
        if self.cache.as_ref().is_some_and(|c| c.get(lpn).is_some()) {
            self.take_out(now, lpn, &mut run, &mut ready)?;
        }
        self.send_run(now, &mut run, &mut ready)
    }

    /// Take a unit out of the cache, whole: sectors that it lacks are fetched.
    fn take_out(&mut self, now: Ps, lpn: Lpn, run: &mut Vec<Unit>, ready: &mut Vec<OpId>) -> Result<(), FtlError> {
        let Some(mut entry) = self.cache.as_mut().and_then(|c| c.remove(lpn)) else { return Ok(()) };
        self.counters.cache_evictions += 1;
        if entry.present != all_sectors(self.layout.unit_sectors()) {
            if let Some((unit, fetched)) = self.fetch_missing(now, lpn, entry.present)? {
                self.assert_base(&entry, unit.stamp);
                merge_under(&mut entry, unit.bytes.as_deref());
                ready.push(fetched);
            }
        }
        ready.push(entry.ready);
        run.push(Unit { lpn, stamp: entry.stamp, bytes: entry.bytes.map(Arc::from) });
        Ok(())
    }

    /// What a fetch finds is what the stamp of the cached unit was built on.
    pub(crate) fn assert_base(&self, entry: &Entry, found: Stamp) {
        assert!(
            entry.base == found,
            "page {}: fetched sectors of stamp {:?}, the cached unit was built on {:?}",
            entry.lpn,
            found,
            entry.base
        );
    }

    fn send_run(&mut self, now: Ps, run: &mut Vec<Unit>, ready: &mut Vec<OpId>) -> Result<(), FtlError> {
        if !run.is_empty() {
            ready.dedup();
            self.with_ftl(now, |ftl, cx| ftl.write(cx, run, Cause::CacheEvict, ready))?;
            self.settle();
            run.clear();
            ready.clear();
        }
        Ok(())
    }

    /// Programs that took host data to flash free its cache slots and belong to the next FLUSH.
    fn settle(&mut self) {
        for programmed in self.programmed.drain(..) {
            if let Some(cache) = &mut self.cache {
                cache.release(programmed.op, programmed.units);
            }
            if programmed.op != OpId::NONE {
                self.unflushed.push(programmed.op);
            }
        }
    }

    /// Programs of host data that are not complete: of earlier plans, and of this one.
    fn pending_programs(&mut self) -> Vec<OpId> {
        let first = self.plan.first_id();
        self.unflushed.retain(|&op| op >= first || !self.engine.is_complete(op));
        self.unflushed.clone()
    }

    /// Forget programs that are complete; the list stays in proportion to what is in flight.
    fn prune_unflushed(&mut self) {
        if self.unflushed.len() > self.unflushed_limit {
            self.unflushed.retain(|&op| !self.engine.is_complete(op));
            self.unflushed_limit = (2 * self.unflushed.len()).max(1024);
        }
    }

    // ---- flush and trim

    fn flush_all(&mut self, now: Ps) -> Result<(), FtlError> {
        let dirty = self.cache.as_ref().map_or(0, WriteCache::len);
        self.evict(now, dirty)?;
        self.with_ftl(now, |ftl, cx| ftl.flush(cx, Cause::CacheEvict))
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

/// Bytes of some pieces.
fn bytes_of(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|p| u64::from(p.sectors)).sum::<u64>() * u64::from(SECTOR_BYTES)
}

/// The bits of all sectors of a unit.
pub(crate) fn all_sectors(unit_sectors: u32) -> u128 {
    if unit_sectors == 128 { u128::MAX } else { (1 << unit_sectors) - 1 }
}

/// From the first to the last sector that is not present.
fn missing(present: u128, unit_sectors: u32) -> Part {
    let lacking = all_sectors(unit_sectors) & !present;
    let first = lacking.trailing_zeros();
    Part::Sectors { first, count: (u128::BITS - lacking.leading_zeros()) - first }
}

/// The bytes of one piece in the data of its command.
fn slice_of<'d>(data: &'d [u8], piece: &Piece) -> &'d [u8] {
    let start = (piece.offset * SECTOR_BYTES) as usize;
    &data[start..start + (piece.sectors * SECTOR_BYTES) as usize]
}

/// `unit` with a piece's bytes in their place.
fn placed(bytes: &[u8], piece: &Piece, mut unit: Box<[u8]>) -> Box<[u8]> {
    let start = (piece.first * SECTOR_BYTES) as usize;
    unit[start..start + bytes.len()].copy_from_slice(bytes);
    unit
}

/// Fill the sectors that an entry lacks from the bytes under it.
pub(crate) fn merge_under(entry: &mut Entry, under: Option<&[u8]>) {
    if let (Some(bytes), Some(under)) = (&mut entry.bytes, under) {
        for (sector, (to, from)) in bytes.chunks_mut(512).zip(under.chunks(512)).enumerate() {
            if entry.present >> sector & 1 == 0 {
                to.copy_from_slice(from);
            }
        }
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
