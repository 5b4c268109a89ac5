//! Song et al., An implementation of low latency address-mapping logic for SSD controllers (2019):
//! a hash table in DRAM (LPMT) leads to the first page of an extent, and block tables (BT) lead
//! from page to page. Every lookup and every change is a series of commands to the banks of that
//! DRAM.
//!
//! The store goes beyond the paper in two ways. An extent ends at the latest where its window of
//! `lookup.extent_pages` pages ends. A bit map marks the first page of every extent, for reads that
//! begin in the middle of an extent ([`flashatlas_lookup::extents`]). To reach the next page of a
//! request, the store follows one link of the block table.
//!
//! ```
//! use flashatlas_device::Registry;
//! use flashatlas_ftl::Registry as Parts;
//!
//! let ftl = Parts { kinds: flashatlas_lpmt::KINDS, ..Registry::DRIVES.ftl };
//! let registry = Registry { ftl, ..Registry::DRIVES }.with(&flashatlas_lpmt::DEF)?;
//! let settings = ["map.store=lpmt".to_owned(), "lookup.hash=radix".to_owned()];
//! registry.load("tiny", None, &settings)?;
//! # Ok::<(), flashatlas_types::ConfigError>(())
//! ```

mod notes;

use crate::notes::{BANKS_BY_SUBMISSION, DRAM_FOR_MAP_ALONE};
use flashatlas_dram as dram;
use flashatlas_ftl::maps::{
    MapContext, MapPage, MapStore, MapStoreDef, Replay, StoreConfig, Update,
};
use flashatlas_ftl::notes::NO_MAP_ON_FLASH;
use flashatlas_ftl::pool::{MapQuota, Pool};
use flashatlas_ftl::{FtlContext, MapCounters, MemoryUse, MountReport, refuse_entry_bytes};
use flashatlas_lookup::Extents;
use flashatlas_lookup::hashes::{self, HASH, Hash, HashDef};
use flashatlas_lookup::probe::{self, Scheduler};
use flashatlas_lookup::tables::{self, Pn, TableShape, Tables};
use flashatlas_nand::Medium;
use flashatlas_types::params::concat;
use flashatlas_types::{
    BlockId, Class, ConfigError, FtlError, Kinds, Layout, Lpn, Mechanism, MemoryKind, Note, OpId,
    Param, Params, Ppn, Violation,
};

pub use notes::NOTES;

/// Kinds of parts that a setting of the store chooses: the hash functions of the lookup engine.
pub const KINDS: Kinds = Kinds::of(&[&hashes::STANDARD]);

/// Entry of the store, for a registry whose kinds include [`KINDS`].
pub const DEF: MapStoreDef = MapStoreDef {
    name: "lpmt",
    summary: "a hash table of extents in multi-bank DRAM, with every access timed command by \
              command; no map is on flash, so that trims are undone by a mount even if they were \
              flushed",
    paper: "Song et al., An implementation of low latency address-mapping logic for SSD \
            controllers (2019)",
    params: &concat::<39>(&[
        &[EXTENT_PAGES.def, HASH.def],
        tables::PARAMS,
        probe::PARAMS,
        dram::PARAMS,
    ]),
    fits: &|config, layout| {
        refuse_entry_bytes(config.params, "map.store = lpmt", "set another map.store")?;
        let (shape, _) = parts(config.params, layout)?;
        hash(config, &shape)?;
        Ok(MapQuota::default())
    },
    exports_entries: false,
    build: &|config, layout| Box::new(LpmtStore::new(config, layout)),
    small: &[
        &["lookup.ways=2", "lookup.banks=2"],
        // all pages in one chain of sets, and each page in an extent of its own
        &[
            "lookup.hash=division",
            "lookup.divisor=1",
            "lookup.ways=4",
            "lookup.banks=2",
            "lookup.extent_pages=1",
        ],
    ],
    mechanisms: &[
        Mechanism::new("lookup in the hash table", "map.sets_scanned"),
        Mechanism::new("second search", "map.second_searches"),
        Mechanism::new("extent in the secondary table", "map.extents_secondary"),
        Mechanism::new("extent that goes on", "map.extents_continued"),
    ],
};

const EXTENT_PAGES: Param<u32> = Param::int(
    "lookup.extent_pages",
    1,
    64,
    "pages in a window, a power of two; no extent crosses the end of its window; 1: every page has \
     its own entry",
)
.or("8");

/// Returns the tables that `params` describe for a drive, and the scheduler of their accesses.
fn parts(params: &Params, layout: &Layout) -> Result<(TableShape, Scheduler), ConfigError> {
    let extent = params.get(EXTENT_PAGES);
    if !extent.is_power_of_two() {
        return Err(ConfigError {
            allowed: [1, 2, 4, 8, 16, 32, 64].iter().map(u32::to_string).collect(),
            ..ConfigError::new(
                "lookup.extent_pages",
                format!("an extent of {extent} pages is not a power of two"),
            )
        });
    }
    let pages = u64::from(layout.logical_units);
    let shape = TableShape::from_params(params, pages, layout.blocks(), slots_per_block(layout))?;
    shape.check("drive.logical_pages", "drive.blocks")?;
    shape.holds_any(pages)?;
    let (device, timings, rules) = dram::timings::from_params(params)?;
    let scheduler = Scheduler::from_params(params, &shape, &device, &timings, rules, extent > 1)?;
    Ok((shape, scheduler))
}

/// Returns the hash function that the configuration chooses, built for these tables.
fn hash(config: &StoreConfig<'_>, shape: &TableShape) -> Result<Box<dyn Hash>, ConfigError> {
    let def = config.kinds.get::<HashDef>().named(config.params.get(HASH))?;
    (def.build)(config.params, shape.la_bits, shape.set_bits)
}

fn slots_per_block(layout: &Layout) -> u32 {
    layout.frames_per_block * layout.slots_per_frame
}

/// The page at which the last lookup ended. The next page of the request may be one link further.
struct Cursor {
    command: u64,
    lpn: Lpn,
    pn: Pn,
    op: OpId,
}

struct LpmtStore {
    extents: Extents,
    scheduler: Scheduler,
    slots_per_block: u32,
    cursor: Option<Cursor>,
    /// The physical page of each logical page and the number of its program, during a mount.
    found: Option<Vec<(Ppn, u64)>>,
    counters: MapCounters,
}

impl LpmtStore {
    fn new(config: &StoreConfig<'_>, layout: &Layout) -> LpmtStore {
        let params = config.params;
        let (shape, scheduler) = parts(params, layout).expect("the configuration is checked");
        let hash = hash(config, &shape).expect("the configuration is checked");
        let tables = Tables::new(&shape, hash);
        LpmtStore {
            extents: Extents::new(tables, layout.logical_units, params.get(EXTENT_PAGES)),
            scheduler,
            slots_per_block: slots_per_block(layout),
            cursor: None,
            found: Some(vec![(Ppn::NONE, 0); layout.logical_units as usize]),
            counters: MapCounters::default(),
        }
    }

    fn pn(&self, ppn: Ppn) -> Pn {
        self.extents.tables.blocks.page(ppn.0 / self.slots_per_block, ppn.0 % self.slots_per_block)
    }

    fn ppn(&self, pn: Option<Pn>) -> Ppn {
        let place = pn.map(|pn| self.extents.tables.blocks.split(pn));
        place.map_or(Ppn::NONE, |(block, slot)| Ppn(block * self.slots_per_block + slot))
    }

    /// Adds one operation with the accesses that were gathered since the last [`Scheduler::begin`].
    fn issue(&self, cx: &mut FtlContext<'_>, update: bool, after: OpId) -> OpId {
        match self.scheduler.accesses() {
            [] => OpId::NONE,
            accesses => cx.flash.plan.push_dram(accesses, update, Class::Map, &[after]),
        }
    }
}

impl MapStore for LpmtStore {
    fn get(&mut self, io: &mut MapContext<'_, '_>, lpn: Lpn) -> Result<(Ppn, OpId), FtlError> {
        self.counters.lookups += 1;
        self.counters.hits += 1;
        self.scheduler.begin();
        let mut after = io.cx.command.first;
        let mut pn = None;
        if let Some(cursor) = &self.cursor
            && cursor.command == io.cx.command.number
            && cursor.lpn.0 + 1 == lpn.0
            && self.extents.share_window(cursor.lpn.0, lpn.0)
        {
            after = cursor.op;
            pn = self.extents.next_page(cursor.pn, &mut self.scheduler);
        }
        let pn = pn.or_else(|| self.extents.lookup(lpn.0, &mut self.scheduler));
        let op = self.issue(io.cx, false, after);
        self.cursor = pn.map(|pn| Cursor { command: io.cx.command.number, lpn, pn, op });
        Ok((self.ppn(pn), op))
    }

    fn peek(&self, lpn: Lpn) -> Ppn {
        match &self.found {
            Some(found) => found[lpn.0 as usize].0,
            None => self.ppn(self.extents.peek(lpn.0)),
        }
    }

    fn set(
        &mut self,
        io: &mut MapContext<'_, '_>,
        update: Update,
    ) -> Result<(Ppn, OpId), FtlError> {
        self.counters.updates += 1;
        self.counters.update_hits += 1;
        self.cursor = None;
        self.scheduler.begin();
        let new = update.ppn.mapped().map(|ppn| self.pn(ppn));
        let old = self.extents.write(update.lpn.0, new, true, &mut self.scheduler);
        Ok((self.ppn(old), self.issue(io.cx, true, update.op)))
    }

    /// Changes the entry of a page that collection moves. Collection knows the old place of the
    /// page, and the links start from that place, so no lookup is needed.
    fn moved(&mut self, io: &mut MapContext<'_, '_>, update: Update) -> Result<Ppn, FtlError> {
        self.counters.updates += 1;
        self.cursor = None;
        self.scheduler.begin();
        let old = self.peek(update.lpn);
        let (from, to) = (self.pn(old), self.pn(update.ppn));
        self.extents
            .relocate(from, to, &mut self.scheduler)
            .expect("a valid page moves to a free one");
        self.issue(io.cx, true, update.op);
        Ok(old)
    }

    fn before_erase(
        &mut self,
        _: &mut MapContext<'_, '_>,
        block: BlockId,
    ) -> Result<OpId, FtlError> {
        self.extents.tables.blocks.erase(block.number());
        Ok(OpId::NONE)
    }

    fn load(
        &mut self,
        _: &mut MapContext<'_, '_>,
        _: &[BlockId],
        _: &mut MountReport,
    ) -> Result<Replay, FtlError> {
        Ok(Replay::everything(1))
    }

    fn restore(&mut self, lpn: Lpn, ppn: Ppn, sequence: u64) {
        self.found.as_mut().expect("a mount is under way")[lpn.0 as usize] = (ppn, sequence);
    }

    /// Builds the tables. Successive pages belong to one extent if one program or two successive
    /// programs wrote them to flash.
    fn mounted(&mut self, _: &mut MapContext<'_, '_>, _: &mut MountReport) -> Result<(), FtlError> {
        let found = self.found.take().expect("a mount is under way");
        let mut before = 0;
        for (lpn, (ppn, sequence)) in (0..).zip(found) {
            if ppn != Ppn::NONE {
                self.extents.write(
                    lpn,
                    Some(self.pn(ppn)),
                    sequence.abs_diff(before) <= 1,
                    &mut (),
                );
                before = sequence;
            }
        }
        self.extents.pause();
        self.reset_counters();
        Ok(())
    }

    fn forgets_trims(&self) -> bool {
        true
    }

    fn page_of(&self, _: Lpn) -> MapPage {
        MapPage::new(0)
    }

    fn check(&self, _: &Medium, _: &Pool) -> Result<u64, Violation> {
        self.extents.check().map(|()| 0)
    }

    fn counters(&self) -> MapCounters {
        self.counters
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        let (lpmt, counts) = (&self.extents.tables.lpmt, self.extents.counts);
        vec![
            ("extents_primary", lpmt.used[0]),
            ("extents_secondary", lpmt.used[1]),
            ("secondary_sets_used", lpmt.secondary_used.into()),
            ("sets_scanned", self.scheduler.sets_scanned),
            ("second_searches", counts.second_searches),
            ("pages_walked", counts.walked),
            ("extents_continued", counts.continued),
        ]
    }

    fn reset_counters(&mut self) {
        self.counters = MapCounters::default();
        self.extents.counts = Default::default();
        self.scheduler.sets_scanned = 0;
    }

    fn memory(&self) -> Vec<MemoryUse> {
        let dram = |table, bytes| MemoryUse { table, memory: MemoryKind::Dram, bytes };
        let (lpmt, blocks) = self.scheduler.places().bytes;
        let mut all = vec![dram("LPMT, primary and secondary", lpmt), dram("block tables", blocks)];
        match self.extents.bitmap_bytes() {
            0 => {}
            bytes => all.push(dram("beginnings of extents (bitmap)", bytes)),
        }
        all
    }

    fn approximations(&self) -> Vec<Note> {
        vec![
            NO_MAP_ON_FLASH.with([("setting", "map.store = lpmt".into())]),
            DRAM_FOR_MAP_ALONE.note(),
            BANKS_BY_SUBMISSION.note(),
        ]
    }
}
