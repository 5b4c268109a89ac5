//! The page-mapped FTL: every logical page may be in any block, and full blocks are collected.
//!
//! Each lane has its own frontiers (blocks being filled), free blocks and victim policy, so lanes
//! collect independently. Host writes visit the lanes in allocation order. A frame is gathered in
//! the buffer of its frontier and programmed when it is full. The map points to a unit only after
//! the unit is programmed. Until then the old version of a buffered page stays on flash, so one of
//! the two versions survives a power cut.

mod blank_table;
mod check;
mod collect;
mod copyback;
mod emptying;
mod enter;
mod fill;
mod flush;
mod frontier;
mod history;
mod lower_pages;
mod mechanisms;
mod mount;
mod partial;
mod refresh;
mod roll_forward;
mod settings;
mod slc;
mod slc_settings;
mod steady;
mod steps;
mod steps_settings;
mod sums;
mod throttle;
mod versions;
mod wear;

use super::{SchemeDef, SteadyState};
use crate::blocks::Role;
use crate::classifiers::{self, Classifier, Filled};
use crate::maps::{MapContext, MapStore, Update};
use crate::notes::{LAST_WRITE_KNOWN, STREAMS_CROWD};
use crate::pool::Pool;
use crate::superseded::Superseded;
use crate::victims::{self, Moment, VictimPolicy};
use crate::{Ftl, FtlContext, FtlReport, Idle, Located, MemoryUse, MountReport, Place, maps};
use copyback::Copyback;
use flashatlas_nand::{Medium, Unit};
use flashatlas_types::{
    BlockId, BlockMode, Cause, FrontierId, FtlError, LaneId, Layout, Lpn, MemoryKind, OpId,
    ParamDef, Ppn, StampSum, TiVec, Violation,
};
use frontier::{Frontier, Leaving, Pending};
use history::History;
use lower_pages::Defence;
use mechanisms::MECHANISMS;
use partial::Sweep;
pub use refresh::REFRESH;
use refresh::Refreshing;
use rustc_hash::FxHashMap;
pub use settings::WORN_OUT;
use settings::{GcMode, GcPace, PARAMS, PageSettings, fits, mount_limit};
use slc::SlcCache;
use smallvec::SmallVec;
use steps::Steps;
pub use steps_settings::{FLUSH, PROGRAM_STEPS};
pub use throttle::{THROTTLE_FROM, THROTTLE_RATE};

pub const DEF: SchemeDef = SchemeDef {
    name: "page",
    summary: "page mapping: every logical page may be anywhere on flash",
    paper: "Ban, US 5,404,485 (1995)",
    params: &|parts, text| {
        let common = [PARAMS, maps::PARAMS, victims::PARAMS, classifiers::PARAMS];
        let mut all: Vec<&'static ParamDef> = common.into_iter().flatten().collect();
        let store = parts.store(&text("map.store").unwrap_or("dram".into()))?;
        all.extend(parts.store_params(store, text)?);
        all.extend(parts.victim(&text("ftl.victim").unwrap_or("greedy".into()))?.params);
        all.extend(parts.classifier(&text("ftl.classifier").unwrap_or("none".into()))?.params);
        Ok(all)
    },
    fits: &fits,
    rebuild: &|config, cx, seed| Ok(Box::new(PageMapped::mount(config, cx, seed)?)),
    on_flash: &[
        "ftl.flush",
        "ftl.flush_blocks",
        "ftl.gc_mode",
        "ftl.low_water",
        "ftl.lower_pages",
        "ftl.slc",
        "ftl.slc_static",
        "ftl.streams",
        "map.entry_bytes",
        "map.directory",
        "map.flush",
        "map.lanes",
        "map.over_provisioning",
        "map.page_bytes",
        "map.segment_bytes",
        "nvm.bytes",
    ],
    mount_limit: &mount_limit,
    steady: Some(SteadyState {
        check: steady::check,
        make: steady::make,
        base: steady::base,
        write_map: PageMapped::write_map,
        takes_up_a_base: |config| maps::takes_up_a_base(config.params),
    }),
    small: &[
        &[],
        &["ftl.gc_mode=single"],
        &["ftl.streams=2", "ftl.classifier=dac", "ftl.wear_static=true", "ftl.wear_threshold=2"],
        &["ftl.gc_pace=even"],
        &["ftl.gc_pace=paced"],
        &[
            "ftl.slc=hybrid",
            "ftl.slc_static=1",
            "drive.cell=mlc",
            "timing.t_read_slc=20us",
            "timing.t_program_slc=75us",
        ],
        &[
            "ftl.slc=dynamic",
            "ftl.slc_dynamic=2",
            "ftl.slc_keep=1",
            "drive.cell=mlc",
            "drive.program_unit=word-line",
            "drive.spare_bytes=256",
            "cache.bytes=16KiB",
            "map.unit=512",
            "timing.t_read_slc=20us",
            "timing.t_program_slc=75us",
        ],
    ],
    mechanisms: MECHANISMS,
};

struct Lane {
    policy: Box<dyn VictimPolicy>,
    /// Host frontiers by stream. In dual mode, the frontiers of collection follow. With static wear
    /// levelling, the frontier of cold data is last.
    frontiers: TiVec<FrontierId, Frontier>,
    leaving: Vec<Leaving>,
    /// The victim that is being collected frame by frame, at the paces `even` and `paced`.
    sweep: Option<Sweep>,
    /// The number of slots that the host has filled and collection has not freed in return yet.
    owed_slots: u32,
    /// The last copy that was planned. At the paces `even` and `paced`, `shares` has the last
    /// copies of the shares of collection after the host's last two frames.
    last_copy: OpId,
    shares: [OpId; 2],
}

struct PageMapped {
    layout: Layout,
    settings: PageSettings,
    map: Box<dyn MapStore>,
    pool: Pool,
    lanes: TiVec<LaneId, Lane>,
    /// The blocks in SLC mode, if there is an SLC cache.
    slc: Option<SlcCache>,
    defence: Defence,
    /// The copies inside dies, if there are any.
    copyback: Option<Box<Copyback>>,
    /// The frames between their steps, if programs have several.
    steps: Option<Box<Steps>>,
    classifier: Box<dyn Classifier>,
    /// The history, if the classifier needs it.
    history: Option<History>,
    /// The number of units that the host has written so far.
    host_units: u64,
    /// For each host frontier, the lane in which the search for room begins.
    cursor: TiVec<FrontierId, LaneId>,
    /// For each host frontier, the lane whose buffer is gathering a frame.
    gathering: TiVec<FrontierId, Option<LaneId>>,
    /// Lane and frontier of host units in buffers. The map is searched by key only, never iterated.
    buffered: FxHashMap<Lpn, (LaneId, FrontierId)>,
    /// Host programs that invalidated slots of a block.
    superseded: Superseded,
    /// The number of slots programmed so far, and the time at which the current command was
    /// submitted.
    at: Moment,
    /// The number of frames of victims that were collected in parts, at the paces `even` and
    /// `paced`.
    partial_frames: u64,
    refreshing: Refreshing,
    report: FtlReport,
    mount: MountReport,
}

impl PageMapped {
    /// Closes a block, which becomes a candidate for collection.
    fn close(&mut self, block: BlockId) {
        if self.slc.as_ref().is_some_and(|slc| slc.holds(block)) {
            return self.close_slc(block);
        }
        self.pool.blocks.set_role(block, Role::Closed);
        let (lane, local) = self.layout.in_lane(block);
        self.lanes[lane].policy.closed(local, self.pool.blocks.valid(block), self.at);
        let stream = self.history.as_ref().and_then(|history| history.stream(block));
        self.classifier.closed(&Filled { id: block, lane, block: local, stream });
    }

    /// Closes a block, and notifies the map.
    fn close_for_map(&mut self, cx: &mut FtlContext<'_>, block: BlockId) -> Result<(), FtlError> {
        self.close(block);
        self.map.closed(&mut MapContext::new(cx, &mut self.pool), block)
    }

    /// Programs the units of a buffer. Copies are dropped first if the host has since written or
    /// trimmed their page. If the frame is then no longer full, it waits for more units, unless
    /// `padded` is `true`.
    fn program(
        &mut self,
        cx: &mut FtlContext<'_>,
        lane: LaneId,
        f: FrontierId,
        padded: bool,
    ) -> Result<(), FtlError> {
        let has_steps = self.steps.is_some();
        if has_steps {
            self.finish_newer_than_copies(cx, lane, f)?;
            self.make_room_again(cx, lane, f)?;
        }
        let mut buffer = std::mem::take(&mut self.lanes[lane].frontiers[f].buffer);
        let is_stale = |p: &Pending| !p.is_host() && !self.pool.blocks.is_valid(p.from);
        if buffer.iter().any(is_stale) {
            self.drop_stale_copies(lane, &mut buffer);
            if buffer.is_empty() || (buffer.len() < self.frame_len(f) && !padded) {
                self.lanes[lane].frontiers[f].buffer = buffer;
                return self.erase_left(cx, lane);
            }
        }
        if self.lanes[lane].frontiers[f].block.is_none()
            && let Err(error) = self.open(cx, lane, f)
        {
            self.lanes[lane].frontiers[f].buffer = buffer;
            return Err(error);
        }
        let (block, frame, full) = self.take_frame(lane, f);

        // the frame gets the cause of its first host unit, if it has one
        let (mut host_units, mut cause) = (0, buffer[0].cause);
        for p in buffer.iter().filter(|p| p.is_host()) {
            cause = if host_units == 0 { p.cause } else { cause };
            host_units += 1;
        }
        let copies = buffer.len() as u32 - host_units;
        // at the paces `even` and `paced`, a host frame waits for the share of collection that
        // followed the frame before the previous one
        let mut after: SmallVec<[OpId; 8]> = SmallVec::new();
        if host_units > 0 && self.settings.pace != GcPace::Burst {
            after.push(self.lanes[lane].shares[0]);
        }
        for p in &buffer {
            if after.last() != Some(&p.ready) {
                after.push(p.ready);
            }
        }
        if has_steps && self.mode_of(f) == BlockMode::Native {
            return self.begin_program(cx, (lane, f), (frame, full), buffer, (cause, &after));
        }
        let has_backup = self.back_up(cx, (lane, f), frame, cause, &mut after)?;
        let begin = cx.flash.plan.next_id();
        let units = buffer.iter().map(|p| &p.unit);
        let (first, op) = match cx.flash.program(frame, units, cause, &after) {
            Err(error) => {
                self.lanes[lane].frontiers[f].buffer = buffer;
                return Err(error.into());
            }
            Ok(programmed) => programmed,
        };
        self.endangers(cx, lane, frame, (op, has_backup));
        if has_steps && self.mode_of(f) == BlockMode::Slc {
            self.programmed_at_once(cx, &buffer, op);
        }
        if copies > 0 {
            let from = buffer.iter().map(|p| (p.from, p.ready));
            cx.copies.note((begin, op), from, cx.command.oldest_unfinished);
            self.lanes[lane].last_copy = op;
            self.copyback.iter_mut().for_each(|copyback| copyback.over_channel(copies));
        }
        self.at.clock += u64::from(self.layout.slots_per_frame);
        self.pool.programmed(cx, op);
        let mapped = self.enter::<false>(cx, lane, &mut buffer, (first, op), 0)?;
        self.pool.settled = cx.flash.medium.sequence();
        if host_units > 0 {
            cx.took_host_data(mapped, host_units);
            if self.slc.is_some() {
                self.count_host_write(f, host_units);
            }
        }
        let frontier = &mut self.lanes[lane].frontiers[f];
        frontier.buffer = buffer;
        if full {
            frontier.block = None;
            self.close_for_map(cx, block)?;
        }
        if host_units > 0
            && let Some(lane) = self.gathering.get_mut(f)
        {
            *lane = None;
        }
        self.erase_left(cx, lane)?;
        if host_units > 0 { self.keep_pace(cx, lane) } else { Ok(()) }
    }
}

impl Ftl for PageMapped {
    #[inline]
    fn locate(
        &mut self,
        cx: &mut FtlContext<'_>,
        lpn: Lpn,
        ahead: u32,
    ) -> Result<Located, FtlError> {
        if let Some(pending) = self.in_buffer(lpn) {
            let located =
                Located { place: Place::Buffer(pending.unit.clone()), ready: pending.ready };
            self.report.buffer_hits += 1;
            return Ok(located);
        }
        let (ppn, ready) =
            self.map.get(&mut MapContext { cx, pool: &mut self.pool, ahead }, lpn)?;
        Ok(Located { place: ppn.mapped().map_or(Place::Nowhere, Place::Flash), ready })
    }

    fn prefetch(&self, lpns: &[Lpn]) {
        self.map.prefetch(lpns);
    }

    fn prefetch_write(&self, lpn: Lpn) {
        if let Some(old) = self.map.peek(lpn).mapped() {
            self.superseded.prefetch(self.pool.blocks.prefetch(old));
        }
    }

    fn export_entries(
        &mut self,
        cx: &mut FtlContext<'_>,
        pages: std::ops::Range<u32>,
    ) -> Result<OpId, FtlError> {
        self.map.export_entries(&mut MapContext::new(cx, &mut self.pool), pages)
    }

    fn peek(&self, lpn: Lpn) -> Place {
        match self.in_buffer(lpn) {
            Some(pending) => Place::Buffer(pending.unit.clone()),
            None => self.map.peek(lpn).mapped().map_or(Place::Nowhere, Place::Flash),
        }
    }

    fn write(
        &mut self,
        cx: &mut FtlContext<'_>,
        run: &[Unit],
        cause: Cause,
        after: &[OpId],
    ) -> Result<(), FtlError> {
        self.at.now = cx.command.now;
        let ready = cx.flash.plan.join(cause.class(false), after);
        let mut rest = run;
        while let Some(unit) = rest.first() {
            let f = self.tier(FrontierId::new(0));
            let frame = self.frame_len(f);
            if frame > 1
                && rest.len() >= frame
                && self.settings.streams.host == 1
                && self.buffered.is_empty()
            {
                self.write_frame(cx, f, &rest[..frame], cause, ready)?;
                rest = &rest[frame..];
            } else {
                self.write_unit(cx, unit, cause, ready)?;
                rest = &rest[1..];
            }
        }
        Ok(())
    }

    fn order_of_fill(&mut self, medium: &Medium) -> Option<Vec<Vec<BlockId>>> {
        self.blocks_of_fill(medium)
    }

    fn trim(&mut self, cx: &mut FtlContext<'_>, lpn: Lpn) -> Result<(), FtlError> {
        self.at.now = cx.command.now;
        if let Some((lane, f)) = self.buffered.remove(&lpn) {
            let buffer = &mut self.lanes[lane].frontiers[f].buffer;
            buffer.retain(|p| !(p.is_host() && p.unit.lpn == lpn));
            cx.took_host_data(OpId::NONE, 1);
        }
        if self.steps.is_some() {
            self.supersede_between(cx, lpn, OpId::NONE);
        }
        if self.map.peek(lpn) != Ppn::NONE {
            let (old, _) = self.map.set(
                &mut MapContext::new(cx, &mut self.pool),
                Update { lpn, ppn: Ppn::NONE, op: OpId::NONE },
            )?;
            self.invalidate(old);
        }
        if let Some(history) = &mut self.history {
            history.trimmed(lpn);
        }
        Ok(())
    }

    fn flush(&mut self, cx: &mut FtlContext<'_>) -> Result<(), FtlError> {
        self.at.now = cx.command.now;
        let copies = self.steps.as_ref().is_some_and(|steps| steps.copies_for_flush());
        for f in self.gathering.keys() {
            // units for native blocks stay in the buffer if they are copied to blocks in SLC mode
            if !copies || self.mode_of(f) == BlockMode::Slc {
                self.pad_host_units(cx, f)?;
            }
        }
        if self.steps.is_some() { self.finish_for_flush(cx) } else { Ok(()) }
    }

    fn finish(&mut self, cx: &mut FtlContext<'_>) -> Result<(), FtlError> {
        if self.steps.is_some() { self.pad_for_flush(cx) } else { Ok(()) }
    }

    fn persist(&mut self, cx: &mut FtlContext<'_>, fua: bool) -> Result<OpId, FtlError> {
        // the spare area of data that was written with FUA has all that a mount needs
        let flushed = if fua && self.map.rolls_forward() {
            OpId::NONE
        } else {
            self.map.flush(&mut MapContext::new(cx, &mut self.pool))?
        };
        self.rely_after(cx, flushed)
    }

    fn idle(&mut self, cx: &mut FtlContext<'_>) -> Result<Idle, FtlError> {
        self.at.now = cx.command.now;
        if self.settings.can_refresh() && self.refresh(cx, true)? > 0 {
            return Ok(Idle::Worked);
        }
        if self.fold_in_idle_time(cx)? || self.collect_in_idle_time(cx)? {
            return Ok(Idle::Worked);
        }
        let waits = self.map.idle(&mut MapContext::new(cx, &mut self.pool))?;
        Ok(match (waits, self.next_look()) {
            (Idle::Nothing, Some(look)) => Idle::Wait(look),
            (Idle::Wait(due), Some(look)) => Idle::Wait(due.min(look)),
            (waits, _) => waits,
        })
    }

    fn free_above_reserve(&self) -> u64 {
        self.free_above_low_water()
    }

    fn buffered(&self) -> Vec<Unit> {
        let units = self.lanes.iter().flat_map(|lane| &lane.frontiers).flat_map(|f| &f.buffer);
        let units = units.filter(|p| p.is_host());
        units.chain(self.older_in_steps()).map(|p| p.unit.clone()).collect()
    }

    fn keep_up(&mut self, cx: &mut FtlContext<'_>) -> Result<bool, FtlError> {
        self.at.now = cx.command.now;
        Ok(self.settings.can_refresh() && self.refresh(cx, false)? > 0)
    }

    fn for_each_block(&self, visit: &mut dyn FnMut(BlockId, Role, u32)) {
        self.pool.blocks.for_each_block(visit);
    }

    fn sum_of_stamps(&self, medium: &Medium) -> Option<StampSum> {
        Some(self.stamps(medium))
    }

    fn check(&self, medium: &Medium) -> Result<(), Violation> {
        self.check_tables(medium)
    }

    fn report(&self) -> FtlReport {
        let mut report = self.report.clone();
        if self.settings.pace != GcPace::Burst {
            report.scheme_details = vec![("partial_frames", self.partial_frames)];
        }
        if let Some(slc) = &self.slc {
            report.scheme_details.extend(slc.details());
        }
        report.scheme_details.extend(self.copyback.iter().flat_map(|copyback| copyback.details()));
        report.scheme_details.extend(self.lower_page_details());
        report.scheme_details.extend(self.steps.iter().flat_map(|steps| steps.details()));
        report.forgets_trims = self.map.forgets_trims();
        report.trusts_its_map = !self.map.rolls_forward();
        report.map = self.map.counters();
        report.map_pages = self.map.pages();
        report.scheme_details.extend(self.classifier.details());
        report.map_details = self.map.details();
        report.mount = self.mount.clone();
        report.refreshed = self.refreshing.blocks;
        report.retired_blocks = self.pool.retired;
        report.free_blocks =
            self.layout.lane_ids().map(|lane| u64::from(self.pool.listed(lane).len())).sum();
        report.approximations.extend(self.map.approximations());
        report.approximations.extend(self.steps.as_ref().map(|steps| steps.note()));
        report.approximations.extend(self.settings.streams_crowd.then(|| STREAMS_CROWD.note()));
        report.memory = self.map.memory();
        report.memory.extend(self.classifier.memory());
        if let Some(history) = &self.history {
            report.memory.push(history.memory());
            report.approximations.push(LAST_WRITE_KNOWN.note());
        }
        let blocks = u64::from(self.layout.blocks());
        report.memory.push(MemoryUse {
            table: "valid counts and bitmap",
            memory: MemoryKind::Dram,
            bytes: blocks * 4 + u64::from(self.layout.slots()).div_ceil(8),
        });
        let buffers = self.lanes.iter().map(|l| l.frontiers.len() as u64).sum::<u64>();
        report.memory.push(MemoryUse {
            table: "page buffers of the frontiers",
            memory: MemoryKind::Sram,
            bytes: buffers * self.layout.frame_bytes(),
        });
        report.memory.extend(self.steps.as_ref().map(|steps| steps.memory(&self.layout)));
        report
    }

    fn reset_counters(&mut self) {
        self.classifier.reset_counters();
        self.report = FtlReport::default();
        self.partial_frames = 0;
        (self.defence.skipped, self.defence.backed_up) = (0, 0);
        if let Some(slc) = &mut self.slc {
            slc.reset_counters();
        }
        self.copyback.iter_mut().for_each(|copyback| copyback.reset_counters());
        self.steps.iter_mut().for_each(|steps| steps.reset_counters());
        self.refreshing.blocks = [0; 2];
        self.map.reset_counters();
    }
}
