//! The map in DRAM and NVM. DRAM has the whole map with all updates. A FLUSH copies segments to
//! NVM, and writes the segments for which NVM has no room to flash (Lee, Kang and Eom, *Optimizing
//! L2P Mapping of NAND Flash Storage based on Hybrid Memory Architecture*, section 2).
//!
//! A FLUSH copies every segment with a changed entry to NVM if there is room for all of them.
//! Otherwise sparse segments (with few changed entries) go to NVM first. Dense segments follow, and
//! the segments with the fewest changed entries come first. Full segments (by default, segments in
//! which all entries have changed) go to flash. Sparse and dense segments for which NVM has no room
//! go to flash too, and are counted separately. In idle time segments move from NVM to flash,
//! starting with the segment that has been in NVM longest.
//!
//! In the paper, segments leave NVM only in idle time. Under a load without pauses no segment
//! leaves, and segments that changed once occupy the room that others need. With `map.nvm_evict`, a
//! segment in NVM is written to flash for each segment that finds no room. It is the segment that
//! has been in NVM longest, or the segment with the fewest entries that differ from flash.
//!
//! The paper leaves two points open. Here, a new copy of a segment in NVM is written to another
//! slot than the old copy, so one slot is always free. A copy is used if its checksums match and it
//! is newer than the segment's copy on flash.

use crate::list::IndexList;
use crate::maps::pages::ids::{Segment, filled};
use crate::maps::pages::resident::{PARAMS, Resident, SEGMENT_BYTES, fits, segment_pages};
use crate::maps::pages::slots::{Slots, slot_bytes};
use crate::maps::{MapContext, MapPage, MapStore, MapStoreDef, Replay, StoreConfig, Update};
use crate::pool::Pool;
use crate::report::{PageCounters, Reason};
use crate::{FREE_CHANGES, Idle, MapCounters, MemoryUse, MountReport};
use flashatlas_nand::Medium;
use flashatlas_nand::params::NVM_BYTES;
use flashatlas_types::params::concat;
use flashatlas_types::{
    BlockId, Class, ConfigError, Dur, FtlError, Layout, Lpn, Mechanism, MemoryKind, Note, OpId,
    Param, Params, Ppn, PpnTable, Ps, SeededBug, Text, TiVec, Violation,
};

pub const DEF: MapStoreDef = MapStoreDef {
    name: "nvm-hybrid",
    summary: "the whole map in DRAM; a FLUSH copies changed segments to NVM, or to flash if NVM \
              has no room",
    paper: "Lee, Kang and Eom, Optimizing L2P Mapping of NAND Flash Storage based on Hybrid Memory \
            Architecture (2016)",
    params: &concat::<11>(&[
        &[SEGMENT_BYTES.def, DENSE_SHARE.def, FULL_SHARE.def, NVM_IDLE.def, NVM_EVICT.def],
        PARAMS,
    ]),
    fits: &|&StoreConfig { params, .. }, layout| {
        let quota = fits(params, layout, SEGMENT_BYTES)?;
        let (nvm, slot) = (params.get(NVM_BYTES), slot_bytes(params.get(SEGMENT_BYTES)));
        if nvm > 0 && nvm < slot {
            let why = format!(
                "{nvm} bytes are less than one slot: a segment of {} bytes and its header take \
                 {slot} bytes (give 0 for no NVM)",
                params.get(SEGMENT_BYTES)
            );
            return Err(ConfigError::new("nvm.bytes", why));
        }
        if params.get(DENSE_SHARE) > params.get(FULL_SHARE) {
            return Err(ConfigError::new("map.dense_share", "is above map.full_share"));
        }
        Ok(quota)
    },
    exports_entries: false,
    build: &|&StoreConfig { params, .. }, layout| Box::new(NvmHybrid::new(params, layout)),
    small: &[
        // room for all segments, for some segments, for one (the spare slot), and for none
        &["map.segment_bytes=128", "nvm.bytes=4KiB"],
        &["map.segment_bytes=64", "nvm.bytes=512", "map.dense_share=0.2", "map.full_share=0.5"],
        &["map.segment_bytes=64", "nvm.bytes=300", "map.nvm_idle=10us"],
        &["map.segment_bytes=256", "nvm.bytes=0"],
        &["map.segment_bytes=64", "nvm.bytes=640", "map.roll_forward=false"],
        &["map.segment_bytes=64", "nvm.bytes=400", "map.directory=page", "map.roll_forward=false"],
        &["map.segment_bytes=64", "nvm.bytes=400", "map.nvm_evict=oldest"],
        &[
            "map.segment_bytes=64",
            "nvm.bytes=640",
            "map.nvm_evict=emptiest",
            "map.roll_forward=false",
        ],
    ],
    mechanisms: &[
        Mechanism::new("sparse segment to NVM", "map.segments_to_nvm_sparse"),
        Mechanism::new("dense segment to NVM", "map.segments_to_nvm_dense")
            .without(&["map.dense_share=1", "map.full_share=1"]),
        Mechanism::new("full segment to NVM", "map.segments_to_nvm_full"),
        Mechanism::new("full segment to flash", "map.segments_to_flash_full"),
        Mechanism::new("segment to flash for want of NVM", "map.segments_to_flash_no_room"),
        Mechanism::new("write-back in idle time", "map.segments_to_flash_idle")
            .without(&["map.nvm_idle=1h"]),
        Mechanism::new("write-back under load", "map.segments_to_flash_evicted")
            .without(&["map.nvm_evict=off"]),
    ],
};

const DENSE_SHARE: Param<f64> = Param::ratio(
    "map.dense_share",
    0.0,
    1.0,
    "smallest share of changed entries of a dense segment (the paper does not give its thresholds)",
)
.or("0.5");

const FULL_SHARE: Param<f64> = Param::ratio(
    "map.full_share",
    0.0,
    1.0,
    "smallest share of changed entries of a full segment (in the paper all entries)",
)
.or("1");

const NVM_IDLE: Param<Dur> = Param::time(
    "map.nvm_idle",
    "idle time after which segments move from NVM to flash, but not before host.idle_after; 0: \
     segments stay in NVM",
)
.or("200ms");

const NVM_EVICT: Param<Text> = Param::choice(
    "map.nvm_evict",
    &["off", "oldest", "emptiest"],
    "the segment that moves from NVM to flash if NVM has no room for a changed segment: no segment \
     (`off`), the segment that has been in NVM longest (`oldest`), or the segment with the fewest \
     entries that differ from flash (`emptiest`)",
)
.or("off");

/// The choice of the segment that leaves NVM under load.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Eviction {
    Off,
    Oldest,
    Emptiest,
}

struct NvmHybrid {
    resident: Resident,
    slots: Slots,
    /// Segments with a slot, in the order of their time in NVM, longest first.
    held: IndexList<Segment>,
    dense_share: f64,
    full_share: f64,
    idle_after: Dur,
    evict: Eviction,
    /// The number of changed entries in each segment's copies to NVM since the segment was written
    /// to flash. An entry counts once for each copy in which it had changed.
    differing: TiVec<Segment, u32>,
    /// The fence of each segment's newest copy in NVM. The fence waits for the data that the copy
    /// points to.
    fences: TiVec<Segment, OpId>,
    /// The time of the host's last request.
    active: Ps,
    /// Segments of which a mount found only a part on flash, because the power failed during the
    /// write.
    halved: Vec<Segment>,
    work: SegmentCounters,
}

/// The work of FLUSHes and of idle time, in segments.
#[derive(Clone, Copy, Default)]
struct SegmentCounters {
    flushes: u64,
    nvm_sparse: u64,
    nvm_dense: u64,
    nvm_full: u64,
    flash_full: u64,
    /// Sparse or dense segments that were written to flash because NVM had no room.
    flash_no_room: u64,
    /// Segments that left NVM to make room for another segment.
    evicted: u64,
    idle: u64,
}

/// The share of a segment that has changed, as a class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Utilization {
    Sparse,
    Dense,
    Full,
}

impl NvmHybrid {
    fn new(params: &Params, layout: &Layout) -> NvmHybrid {
        let bytes = params.get(SEGMENT_BYTES);
        let resident = Resident::new(params, layout, SEGMENT_BYTES);
        let segments = resident.segments();
        NvmHybrid {
            slots: Slots::new(params.get(NVM_BYTES), bytes, segments),
            held: IndexList::new(segments),
            dense_share: params.get(DENSE_SHARE),
            full_share: params.get(FULL_SHARE),
            idle_after: params.get(NVM_IDLE),
            evict: match params.get(NVM_EVICT) {
                "oldest" => Eviction::Oldest,
                "emptiest" => Eviction::Emptiest,
                _ => Eviction::Off,
            },
            differing: filled(segments, 0),
            fences: filled(segments, OpId::NONE),
            active: Ps::ZERO,
            halved: Vec::new(),
            work: SegmentCounters::default(),
            resident,
        }
    }

    fn utilization(&self, segment: Segment) -> Utilization {
        let (changed, entries) = self.resident.count(segment);
        let share = f64::from(changed) / f64::from(entries);
        match share {
            _ if share >= self.full_share => Utilization::Full,
            _ if share >= self.dense_share => Utilization::Dense,
            _ => Utilization::Sparse,
        }
    }

    /// Copies a segment to NVM after `last`, the fence of the previous copy. Returns the fence of
    /// the new copy.
    fn copy(
        &mut self,
        io: &mut MapContext<'_, '_>,
        segment: Segment,
        last: OpId,
    ) -> Result<OpId, FtlError> {
        match self.utilization(segment) {
            Utilization::Sparse => self.work.nvm_sparse += 1,
            Utilization::Dense => self.work.nvm_dense += 1,
            Utilization::Full => self.work.nvm_full += 1,
        }
        self.differing[segment] += self.resident.count(segment).0;
        let pages = self.resident.pages_of(segment);
        let map = &mut self.resident.map;
        let newest = pages.clone().map(|p| map.changes.newest(p)).max().unwrap_or(OpId::NONE);
        let mut after = vec![io.cx.command.first, last];
        after.extend(io.pool.unfinished(newest));
        let mut entries = Vec::new();
        let since = pages.clone().filter_map(|page| map.changes.since(page)).min();
        for page in pages {
            map.changes.clear(page);
            map.table.encode(page, &mut entries);
        }
        let header = map.header(io);
        let fenced = self.slots.store(io.cx, segment, header, &entries, &after)?;
        self.resident.map.copied(io.cx, fenced, since);
        self.held.touch(segment);
        self.fences[segment] = fenced;
        Ok(fenced)
    }

    /// Writes segments to flash. Their slots are free afterwards.
    fn write(
        &mut self,
        io: &mut MapContext<'_, '_>,
        segments: &[Segment],
        reason: Reason,
    ) -> Result<OpId, FtlError> {
        // entries that have not changed since their copy in NVM may point to data that is still in
        // flight, so the write waits for the fence of the copy
        let mut after = vec![io.cx.command.first];
        after.extend(segments.iter().map(|&s| std::mem::take(&mut self.fences[s])));
        after.retain(|&op| op >= io.cx.command.oldest_unfinished || op == io.cx.command.first);
        let written = self.resident.write(io, segments, reason, &after)?;
        for &segment in segments {
            self.slots.release(segment, written);
            self.held.remove(segment);
            self.differing[segment] = 0;
        }
        Ok(written)
    }

    /// Writes an unchanged segment from NVM to flash, to make room for another segment. Returns
    /// `false` if there is no unchanged segment.
    fn make_room(&mut self, io: &mut MapContext<'_, '_>) -> Result<bool, FtlError> {
        let unchanged = |&s: &Segment| self.resident.count(s).0 == 0;
        let victim = match self.evict {
            Eviction::Off => None,
            Eviction::Oldest => self.held.iter().find(unchanged),
            Eviction::Emptiest => {
                self.held.iter().filter(unchanged).min_by_key(|&s| self.differing[s])
            }
        };
        let Some(victim) = victim else { return Ok(false) };
        self.work.evicted += 1;
        self.write(io, &[victim], Reason::Evict)?;
        Ok(true)
    }
}

impl MapStore for NvmHybrid {
    fn get(&mut self, io: &mut MapContext<'_, '_>, lpn: Lpn) -> Result<(Ppn, OpId), FtlError> {
        self.active = io.cx.command.now;
        Ok(self.resident.get(io.cx, lpn))
    }

    fn peek(&self, lpn: Lpn) -> Ppn {
        self.resident.map.table.get(lpn)
    }

    fn set(
        &mut self,
        io: &mut MapContext<'_, '_>,
        update: Update,
    ) -> Result<(Ppn, OpId), FtlError> {
        self.active = io.cx.command.now;
        Ok((self.resident.set(io.pool, update), OpId::NONE))
    }

    fn moved(&mut self, io: &mut MapContext<'_, '_>, update: Update) -> Result<Ppn, FtlError> {
        Ok(self.resident.set(io.pool, update))
    }

    fn flush(&mut self, io: &mut MapContext<'_, '_>) -> Result<OpId, FtlError> {
        self.active = io.cx.command.now;
        self.work.flushes += 1;
        let mut changed = self.resident.changed();
        let new = changed.iter().filter(|&&s| !self.slots.holds(s)).count() as u32;
        let all = self.slots.free() > new;
        let mut last = OpId::NONE;
        let mut to_flash = Vec::new();
        if !all {
            changed.sort_by_cached_key(|&s| (self.utilization(s), self.resident.count(s).0));
        }
        for segment in changed {
            let full = self.utilization(segment) == Utilization::Full;
            if all || (!full && (self.slots.has_room(segment) || self.make_room(io)?)) {
                last = self.copy(io, segment, last)?;
            } else {
                *if full { &mut self.work.flash_full } else { &mut self.work.flash_no_room } += 1;
                to_flash.push(segment);
            }
        }
        self.resident.map.note_survival();
        let written = match to_flash[..] {
            [] => OpId::NONE,
            _ => self.write(io, &to_flash, Reason::Flush)?,
        };
        let earlier = self.resident.map.unfinished(io.cx);
        Ok(io.cx.flash.plan.join(Class::Map, &[last, written, earlier]))
    }

    fn before_erase(
        &mut self,
        io: &mut MapContext<'_, '_>,
        block: BlockId,
    ) -> Result<OpId, FtlError> {
        if self.resident.map.needs(block) {
            self.flush(io)?;
        }
        Ok(self.resident.map.unfinished_for(io.cx, block))
    }

    fn idle(&mut self, io: &mut MapContext<'_, '_>) -> Result<Idle, FtlError> {
        let Some(segment) = self.held.first().filter(|_| self.idle_after > Dur::ZERO) else {
            return Ok(Idle::Nothing);
        };
        let due = self.active.after(self.idle_after);
        if io.cx.command.now < due {
            return Ok(Idle::Wait(due));
        }
        self.work.idle += 1;
        // the entries in DRAM are as new as the copy in NVM or newer, and the map points only to
        // data on flash
        self.write(io, &[segment], Reason::Idle)?;
        Ok(Idle::Worked)
    }

    fn load(
        &mut self,
        io: &mut MapContext<'_, '_>,
        blocks: &[BlockId],
        mount: &mut MountReport,
    ) -> Result<Replay, FtlError> {
        let mut replay = self.resident.map.load_all(io, blocks, mount)?;
        let (table, group, held) =
            (&mut self.resident.map.table, self.resident.group, &mut self.held);
        let halved = &mut self.halved;
        let page_bytes = table.page_len();
        let mut order = Vec::new();
        let (damaged, newest) =
            self.slots.mount(&io.cx.flash.medium.nvm, |segment, header, entries| {
                let pages = segment_pages(segment, group, table.pages());
                let (mut newer, mut older) = (false, false);
                for (page, entries) in pages.zip(entries.chunks_exact(page_bytes)) {
                    if header.version < replay.version[page] {
                        older = true;
                    } else {
                        newer = true;
                        (replay.upto[page], replay.version[page]) = (header.upto, header.version);
                        table.restore(page, entries);
                    }
                }
                if newer {
                    order.push((header.version, segment));
                }
                if newer && older {
                    halved.push(segment);
                }
                replay.from = replay.from.max(header.replay_from);
                replay.hear(header.version, header.mending);
                newer
            });
        if !SeededBug::NumbersBeginAgain.is_active() {
            io.cx.flash.medium.raise_number(newest);
        }
        order.sort_unstable();
        order.into_iter().for_each(|(_, segment)| held.push(segment));
        mount.damaged_nvm_slots += u64::from(damaged);
        mount.nvm_bytes += self.slots.mount_bytes();
        if self.resident.map.is_incomplete() || damaged > 0 && self.resident.map.rolls_forward() {
            // the damaged copy was incomplete, or was damaged later: its changes may have any age
            replay.from = 0;
        } else if !held.is_empty() && !self.resident.map.rolls_forward() {
            replay.from = u64::MAX;
        }
        self.resident.map.take_up(&mut replay, mount);
        Ok(replay)
    }

    fn before_discard(&mut self, io: &mut MapContext<'_, '_>) -> Result<(), FtlError> {
        self.resident.map.before_discard(io)
    }

    fn restore(&mut self, lpn: Lpn, ppn: Ppn, sequence: u64) {
        self.resident.map.restore(lpn, ppn, sequence);
    }

    fn mounted(
        &mut self,
        io: &mut MapContext<'_, '_>,
        mount: &mut MountReport,
    ) -> Result<(), FtlError> {
        // the first page to be written already names the point from which a mount replays, because
        // another power failure may come before the last page is written
        self.resident.map.before_writes(io)?;
        let mut segments = std::mem::take(&mut self.halved);
        if self.resident.map.is_written_by_mounts() {
            // these segments have lost entries: the copy in NVM still has the old entries, and a
            // later mount would not notice the loss
            segments.extend(self.resident.changed().into_iter().filter(|&s| self.slots.holds(s)));
            segments.sort_unstable();
            segments.dedup();
        }
        mount.map_page_writes += u64::from(self.resident.group) * segments.len() as u64;
        self.write(io, &segments, Reason::Mount)?;
        self.resident.map.mounted(io, mount, false)
    }

    fn table_to_write(&mut self) -> Option<&mut PpnTable> {
        Some(self.resident.map.table.entries_mut())
    }

    fn whole_table(&self) -> Option<&PpnTable> {
        Some(self.resident.map.table.entries_of_all())
    }

    fn is_written(&self) -> bool {
        true
    }

    fn write_whole(&mut self, io: &mut MapContext<'_, '_>) -> Result<(), FtlError> {
        self.resident.map.write_whole(io)
    }

    fn rolls_forward(&self) -> bool {
        self.resident.map.rolls_forward()
    }

    fn page_of(&self, lpn: Lpn) -> MapPage {
        self.resident.map.table.page_of(lpn)
    }

    fn check(&self, medium: &Medium, pool: &Pool) -> Result<u64, Violation> {
        let mut entries = Vec::new();
        for segment in self.held.iter() {
            let pages = self.resident.pages_of(segment);
            if pages.clone().any(|p| self.resident.map.changes.contains(p)) {
                continue;
            }
            entries.clear();
            pages.for_each(|p| self.resident.map.table.encode(p, &mut entries));
            let holds = self.slots.entries(&medium.nvm, segment) == Some(Ok(&entries[..]));
            Violation::unless(
                holds,
                "NVM has the current entries of an unchanged segment",
                || format!("segment {segment}"),
            )?;
        }
        self.resident
            .map
            .check(medium, pool, |page| self.held.contains(self.resident.segment_of(page)))
    }

    fn counters(&self) -> MapCounters {
        self.resident.counters
    }

    fn pages(&self) -> PageCounters {
        self.resident.map.page_counters()
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        let w = self.work;
        vec![
            ("flushes", w.flushes),
            ("segments_to_nvm_sparse", w.nvm_sparse),
            ("segments_to_nvm_dense", w.nvm_dense),
            ("segments_to_nvm_full", w.nvm_full),
            ("segments_to_flash_full", w.flash_full),
            ("segments_to_flash_no_room", w.flash_no_room),
            ("segments_to_flash_evicted", w.evicted),
            ("segments_to_flash_idle", w.idle),
            ("nvm_slots", self.slots.len().into()),
            ("nvm_slots_used", (self.slots.len() - self.slots.free()).into()),
        ]
    }

    fn reset_counters(&mut self) {
        self.resident.counters = MapCounters::default();
        self.resident.map.reset_counters();
        self.work = SegmentCounters::default();
    }

    fn approximations(&self) -> Vec<Note> {
        vec![FREE_CHANGES.note()]
    }

    fn memory(&self) -> Vec<MemoryUse> {
        let mut memory = self.resident.memory();
        let bytes = self.slots.bytes();
        memory.push(MemoryUse { table: "map segments in NVM", memory: MemoryKind::Nvm, bytes });
        memory
    }
}
