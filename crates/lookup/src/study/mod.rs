//! A study of the engine without a drive. A stream of lookups passes tables, placement and DRAM.
//!
//! Lookups follow each other without a pause. The *service* of a lookup is the time from the last
//! read of the previous lookup to its own last read. So the mean service is the inverse of the
//! throughput. The time of a timed change is part of the next lookup's service. With
//! `lookup.look_ahead = n`, a lookup arrives when the lookup `n` places before it has issued its
//! last read.

mod addresses;
mod commands;
mod drawn;
mod error;
mod gathered;
mod measure;
mod queued;
mod whole;

pub use addresses::{Address, Addressing};
pub use drawn::{DrawnFiles, DrawnSets};
pub use error::StudyError;
pub use gathered::Gathered;
pub use measure::{PERCENTILES, Summary, Tenth};

use crate::LookupError;
use crate::hashes::{self, HASH, HashDef};
use crate::probe::{self, Linear, Scheduler};
use crate::tables::{self, Location, Memory, Pn, SearchResult, TableShape, Tables};
use commands::CommandLog;
use flashatlas_dram::{self as dram, Command, Device, Dram, Queue, Served, Transitions};
use flashatlas_types::{
    ConfigError, DramAccess, Entries, Param, ParamDef, Params, RawConfig, Text,
};
use measure::Measure;
use queued::Queued;
use std::collections::VecDeque;

/// The parameter `lookup.table`.
pub const TABLE: Param<Text> = Param::choice(
    "lookup.table",
    &["lpmt", "flat"],
    "table of the lookups: the `lpmt` with its block tables, or a `flat` array with \
     lookup.flat_bytes bytes for each address",
)
.or("lpmt");

const FLAT_BYTES: Param<u32> =
    Param::int("lookup.flat_bytes", 1, 8, "bytes of an entry of the `flat` array").or("4");

/// The parameter `lookup.la_bits`.
pub const LA_BITS: Param<u32> =
    Param::int("lookup.la_bits", 1, 31, "bits of a logical address").or("20");

const BLOCK_TABLES_COUNT: Param<u32> =
    Param::int("lookup.block_tables_count", 1, 1 << 24, "block tables, one for each flash block")
        .or("4096");

const ROWS: Param<u32> =
    Param::int("lookup.rows", 1, 1 << 16, "rows of a block table, one for each page").or("256");

/// The parameter `lookup.look_ahead`.
pub const LOOK_AHEAD: Param<u32> = Param::int(
    "lookup.look_ahead",
    0,
    1 << 16,
    "number of lookups that have arrived and have not issued their last read; 1: each lookup waits \
     for the previous one; 0: all lookups arrive at the same time",
)
.or("0");

/// The parameter `lookup.queue`.
pub const QUEUE: Param<u32> = Param::int(
    "lookup.queue",
    0,
    1 << 12,
    "bursts in the queue of the memory controller, which first serves the burst whose data can \
     come first, and row hits before other bursts (FR-FCFS); 0: lookups are served in order, as in \
     the paper's hardware",
)
.or("0");

const PAGES: Param<Text> = Param::choice(
    "lookup.pages",
    &["first", "all"],
    "target of a lookup: the `first` page of a file, as the paper measures lookups, or `all` pages \
     that the request asks for, found through the block tables",
)
.or("first");

/// The parameter `lookup.changes`.
pub const CHANGES: Param<Text> = Param::choice(
    "lookup.changes",
    &["free", "timed"],
    "time of insertions and deletions: none (`free`), or the time of their DRAM accesses \
     (`timed`); the paper times lookups only",
)
.or("free");

/// Parameters that only a study has.
pub const PARAMS: &[ParamDef] = &[
    TABLE.def,
    FLAT_BYTES.def,
    LA_BITS.def,
    BLOCK_TABLES_COUNT.def,
    ROWS.def,
    LOOK_AHEAD.def,
    QUEUE.def,
    PAGES.def,
    CHANGES.def,
];

/// Returns every parameter of a study that chooses from these hash functions.
pub fn params(hashes: Entries<HashDef>) -> Vec<&'static ParamDef> {
    let own = [PARAMS, tables::PARAMS, &[HASH.def], probe::PARAMS, dram::PARAMS];
    own.into_iter().flatten().chain(hashes::params(hashes)).collect()
}

/// Returns the parameters of a study. The defaults are the paper's device and sizes, which `given`
/// changes.
///
/// # Errors
/// Returns an error for an unknown key or a bad value.
pub fn settings(hashes: Entries<HashDef>, given: &[String]) -> Result<Params, ConfigError> {
    let mut raw = RawConfig::default();
    raw.set("dram.preset", "table-1", "default");
    raw.set("lookup.on_delete", "leave", "default");
    for setting in given {
        let (key, text) = setting.split_once('=').ok_or_else(|| {
            ConfigError::new(
                setting.as_str(),
                "a setting needs `=`: write KEY=VALUE, such as lookup.banks=8",
            )
        })?;
        raw.set(key.trim(), text.trim(), "set");
    }
    raw.resolve(&params(hashes), |_| None)
}

/// Checks that a number of a study is `least` or more.
///
/// # Errors
/// Returns an error that names `key` if the number is smaller.
pub fn at_least(key: &'static str, value: u64, least: u64) -> Result<(), StudyError> {
    if value < least {
        return Err(StudyError::Small { key, value, least });
    }
    Ok(())
}

/// Number of requests whose entries are searched for together.
const AT_ONCE: usize = 32;

/// A request to the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookupRequest {
    /// Lookup of a number of pages from an address on. Pages that are not there are inserted.
    Pages(u32, u32),
    /// Deletion of the file that begins at an address.
    Delete(u32),
    /// Scan of a whole set, regardless of its entries.
    Set(u32),
}

/// A change of the tables.
enum TableChange {
    /// Insertion of an address that was not found.
    Insert(SearchResult, u32, Pn),
    Extend(Pn, Pn),
    Delete(u32),
}

impl TableChange {
    fn carry_out(self, tables: &mut Tables, memory: &mut impl Memory) -> Result<(), LookupError> {
        match self {
            TableChange::Insert(found, la, pn) => {
                tables.insert_where(found, la, pn, memory).map(|_| ())
            }
            TableChange::Extend(last, pn) => tables.extend(last, pn, memory),
            TableChange::Delete(la) => tables.delete(la, memory, |_| {}),
        }
    }
}

/// Array with one entry for each address.
struct Flat {
    places: Linear,
    bytes: u64,
}

impl Flat {
    fn from_params(params: &Params, la_bits: u32, device: &Device) -> Result<Flat, ConfigError> {
        let bad =
            |key: &str, why: String, allowed: String| Err(ConfigError::allowing(key, why, allowed));
        let banks = probe::banks(params)?;
        if banks > device.banks {
            let why = format!(
                "the LPMT takes {banks} banks, but the device has {} (dram.device_banks)",
                device.banks
            );
            return bad("lookup.banks", why, format!("1 to {}", device.banks));
        }
        if params.get(PAGES) == "all" {
            return bad(
                "lookup.pages",
                "a flat array cannot look up all pages of a file".into(),
                "first".into(),
            );
        }
        let places = Linear::new(device, 0, banks, 0, params.get(FLAT_BYTES) * 8);
        let rows = places.rows(1 << la_bits);
        if rows > u64::from(device.rows) {
            let why = format!(
                "the flat array takes {rows} rows of a bank, but a bank has {} rows",
                device.rows
            );
            return bad("dram.rows", why, format!("{rows} or more; or use more lookup.banks"));
        }
        Ok(Flat { places, bytes: rows * u64::from(banks) * u64::from(device.row_bytes()) })
    }
}

/// Returns the queue before the DRAM, if there is one.
fn queue(params: &Params) -> Result<Option<Queue>, ConfigError> {
    let no = |with: &str| {
        let why = format!("a queue needs all lookups beforehand, so it cannot be used {with}");
        Err(ConfigError::new(QUEUE.key(), why))
    };
    match params.get(QUEUE) {
        0 => Ok(None),
        _ if params.get(LOOK_AHEAD) > 0 => no("with lookup.look_ahead above 0"),
        _ if params.get(CHANGES) == "timed" => no("with lookup.changes = timed"),
        length => Ok(Some(Queue::new(length as usize))),
    }
}

/// Tables, placement and DRAM, with the measurements.
pub struct Study {
    tables: Tables,
    shape: TableShape,
    scheduler: Scheduler,
    flat: Option<Flat>,
    dram: Transitions,
    commands: CommandLog,
    queued: Option<Queued>,
    measure: Measure,
    look_ahead: usize,
    /// Clock of the last read of each of the last lookups.
    ends: VecDeque<i64>,
    /// Clock of the last read of the last lookup, and of the end of its data.
    last: Served,
    all_pages: bool,
    timed_changes: bool,
}

impl Study {
    /// Returns a study with empty tables.
    ///
    /// # Errors
    /// Returns an error if parameters contradict each other.
    pub fn new(hashes: Entries<HashDef>, params: &Params) -> Result<Study, ConfigError> {
        let (device, timings, rules) = dram::timings::from_params(params)?;
        let la_bits = params.get(LA_BITS);
        let flat = match params.get(TABLE) {
            "flat" => Some(Flat::from_params(params, la_bits, &device)?),
            _ => None,
        };
        let shape = match &flat {
            // the tables are not used, so they are as small as possible
            Some(_) => TableShape {
                set_bits: 0,
                ways: 1,
                secondary_sets: 1,
                block_tables: 1,
                rows: 1,
                ..TableShape::PAPER
            },
            None => {
                let (tables, rows) = (params.get(BLOCK_TABLES_COUNT), params.get(ROWS));
                let shape = TableShape::from_params(params, 1 << la_bits, tables, rows)?;
                shape.check("lookup.la_bits", "lookup.block_tables_count")?;
                shape
            }
        };
        let own = match &flat {
            Some(_) => &settings(hashes, &["lookup.policy=single".to_owned()])?,
            None => params,
        };
        let scheduler = Scheduler::from_params(own, &shape, &device, &timings, rules, false)?;
        let hash = hashes.named(params.get(HASH))?;
        Ok(Study {
            tables: Tables::new(&shape, (hash.build)(params, la_bits, shape.set_bits)?),
            shape: TableShape { la_bits, ..shape },
            scheduler,
            flat,
            dram: Transitions::new(Dram::new(&device, &timings, rules)),
            commands: CommandLog::default(),
            queued: queue(params)?.map(Queued::new),
            measure: Measure::new(&timings, device.banks),
            look_ahead: params.get(LOOK_AHEAD) as usize,
            ends: VecDeque::new(),
            last: Served { last: 0, data: 0 },
            all_pages: params.get(PAGES) == "all",
            timed_changes: params.get(CHANGES) == "timed",
        })
    }

    /// Announces the number of requests, so that the summary can divide them into tenths. Without
    /// this call, all requests are one part.
    pub fn expect(&mut self, requests: u64) {
        self.measure.expect(requests);
    }

    /// Returns the number of sets of the primary LPMT.
    pub fn sets(&self) -> u32 {
        self.shape.sets()
    }

    /// Returns the tables, which are empty if a flat array is studied.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Serves requests, in order.
    ///
    /// Several requests are searched for together, and the requests that find their entry in a
    /// primary set are then timed one by one. So the processor can search other sets while it waits
    /// for memory.
    ///
    /// # Errors
    /// Returns an error if the tables have no room for a request.
    pub fn ask_all(&mut self, asks: &[LookupRequest]) -> Result<(), LookupError> {
        let mut primary = [None; AT_ONCE];
        for some in asks.chunks(AT_ONCE) {
            // only a deletion can move an entry after it was found
            let moves = some.iter().any(|ask| matches!(ask, LookupRequest::Delete(_)));
            if self.all_pages || self.flat.is_some() || moves {
                some.iter().try_for_each(|&ask| self.ask(ask))?;
                continue;
            }
            for (place, ask) in primary.iter_mut().zip(some) {
                *place = match *ask {
                    LookupRequest::Pages(la, _) if self.shape.fits_address(la).is_ok() => {
                        let hit = self.tables.lookup(la, &mut ());
                        hit.map(|hit| hit.at).filter(|at| at.set < self.shape.sets())
                    }
                    _ => None,
                };
            }
            for (place, &ask) in primary.iter().zip(some) {
                let Some(at) = place else {
                    self.ask(ask)?;
                    continue;
                };
                self.measure.request();
                self.scheduler.begin();
                self.scheduler.scan(at.set, Some(at.way));
                self.time(true);
            }
        }
        Ok(())
    }

    /// Serves one request.
    ///
    /// # Errors
    /// Returns an error if the tables have no room for the request.
    pub fn ask(&mut self, ask: LookupRequest) -> Result<(), LookupError> {
        self.measure.request();
        self.scheduler.begin();
        match (ask, &self.flat) {
            (LookupRequest::Pages(la, _), Some(flat)) => {
                self.shape.fits_address(la)?;
                let access = flat.places.access(la.into(), false, false);
                self.serve(&[access], true);
                Ok(())
            }
            (LookupRequest::Pages(la, pages), None) => self.pages(la, pages),
            (LookupRequest::Delete(la), None) if self.tables.lookup(la, &mut ()).is_some() => {
                self.change(TableChange::Delete(la))
            }
            (LookupRequest::Delete(_), _) => Ok(()),
            (LookupRequest::Set(set), _) => {
                self.scheduler.scan(set, None);
                self.time(true);
                Ok(())
            }
        }
    }

    fn pages(&mut self, la: u32, pages: u32) -> Result<(), LookupError> {
        self.shape.fits_address(la)?;
        let found = self.tables.search(la, &mut self.scheduler);
        let mut last = None;
        let mut missing = if self.all_pages { pages.max(1) } else { 1 };
        if let SearchResult::At(at) = found {
            let (pn, single) = self.tables.lpmt.get(at);
            (last, missing) = (Some(pn), missing - 1);
            let mut more = !single;
            while missing > 0 && more {
                match self.tables.next_page(last.expect("it was found"), &mut self.scheduler) {
                    Some(next) => (last, missing) = (Some(next), missing - 1),
                    None => more = false,
                }
            }
        }
        self.time(last.is_some());
        for _ in 0..missing {
            let pn = self.tables.blocks.allocate().ok_or(LookupError::NoRow)?;
            self.change(match last {
                Some(last) => TableChange::Extend(last, pn),
                None => TableChange::Insert(found, la, pn),
            })?;
            last = Some(pn);
        }
        Ok(())
    }

    /// Changes the tables after the lookup that made the change necessary.
    fn change(&mut self, change: TableChange) -> Result<(), LookupError> {
        if !self.timed_changes {
            return change.carry_out(&mut self.tables, &mut ());
        }
        self.scheduler.begin();
        change.carry_out(&mut self.tables, &mut self.scheduler)?;
        let accesses = self.scheduler.accesses();
        self.commands.serve_all(&mut self.dram, accesses, self.last.data);
        self.measure.change(self.scheduler.accesses());
        Ok(())
    }

    /// Measures the time of the lookup whose accesses are in the scheduler.
    fn time(&mut self, hit: bool) {
        let accesses = std::mem::take(&mut self.scheduler.accesses);
        self.serve(&accesses, hit);
        self.scheduler.accesses = accesses;
    }

    fn serve(&mut self, accesses: &[DramAccess], hit: bool) {
        if let Some(queued) = &mut self.queued {
            let dram = (self.dram.dram(), &mut self.commands);
            queued.look_up(accesses, hit, dram, &mut self.measure);
            return;
        }
        let known = match self.look_ahead {
            0 => 0,
            ahead if self.ends.len() < ahead => 0,
            _ => self.ends.pop_front().expect("there is one end for each lookup ahead"),
        };
        let served = self.commands.serve_all(&mut self.dram, accesses, known);
        let service = (served.last - self.last.last) as u64;
        let latency = (self.look_ahead > 0).then(|| (served.data - known) as u64);
        if self.look_ahead > 0 {
            self.ends.push_back(served.last);
        }
        self.last = served;
        for (n, &access) in accesses.iter().enumerate() {
            self.measure.read(access, n == 0);
        }
        self.measure.lookup(service, latency, hit);
    }

    /// Begins to record every command that is issued to the DRAM.
    pub fn keep_commands(&mut self) {
        self.commands.keep();
    }

    /// Returns the number of recorded commands.
    pub fn commands_kept(&self) -> usize {
        self.commands.len()
    }

    /// Returns all measurements.
    pub fn finish(self) -> Summary {
        self.finish_with_commands().0
    }

    /// Returns all measurements, and the recorded commands in the order of their clocks.
    pub fn finish_with_commands(mut self) -> (Summary, Vec<Command>) {
        if let Some(queued) = &mut self.queued {
            queued.drain((self.dram.dram(), &mut self.commands), &mut self.measure);
        }
        let commands = std::mem::take(&mut self.commands).in_order();
        (self.summary(), commands)
    }

    fn summary(self) -> Summary {
        let mut summary = self.measure.finish(self.dram.counts());
        if let Some(flat) = &self.flat {
            (summary.lpmt_bytes, summary.lpmt_packed_bytes) = (flat.bytes, flat.bytes);
            return summary;
        }
        (summary.lpmt_bytes, summary.block_table_bytes) = self.scheduler.places().bytes;
        (summary.lpmt_packed_bytes, summary.block_table_packed_bytes) = self.shape.packed_bytes();
        let lpmt = &self.tables.lpmt;
        summary.entries = lpmt.used[0] + lpmt.used[1];
        summary.primary_share = lpmt.primary_share();
        summary.secondary_used = lpmt.secondary_used;
        summary.chains = chains(&self.tables);
        summary.sets_scanned = self.scheduler.sets_scanned;
        summary
    }
}

/// Returns the numbers of keys with chains of 1, 2, 3 … sets. Keys without an entry are not
/// counted.
fn chains(tables: &Tables) -> Vec<u64> {
    let lpmt = &tables.lpmt;
    let shape = lpmt.shape();
    let mut chains = Vec::new();
    for key in 0..shape.sets() {
        let mut length = 0;
        let mut set = Some(key);
        let mut used = false;
        while let Some(at) = set {
            used |= (0..shape.ways).any(|way| lpmt.is_valid(Location { set: at, way }));
            length += 1;
            set = lpmt.next(at);
        }
        if used {
            chains.resize(chains.len().max(length), 0);
            chains[length - 1] += 1;
        }
    }
    chains
}
