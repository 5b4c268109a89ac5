//! Translation of the items that an operation reads or changes into accesses to banks, in order.

use super::places::policy;
use super::{Order, Places, Recency};
use crate::probe::{CHAIN, PROBE, SCAN};
use crate::tables::{Location, Memory, Pn, TableShape};
use flashatlas_dram::{Device, Rules, Timings};
use flashatlas_types::{ConfigError, DramAccess, Params};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scan {
    Full,
    Stop,
    Pipelined,
}

/// The rows that are open after the accesses so far.
#[derive(Clone, Debug)]
struct OpenRows {
    /// Open row of each bank.
    rows: Vec<u32>,
    recency: Recency,
}

impl OpenRows {
    #[inline]
    fn open(&mut self, bank: u8, row: u32) {
        let open = &mut self.rows[usize::from(bank)];
        if *open != row {
            *open = row;
            self.recency.activated(bank);
        }
    }
}

/// Scheduler that turns lookups and changes into accesses.
///
/// The order of a set's banks is decided when the set is scanned. It depends on the activations
/// that the scheduler's accesses need. Activations that are needed only because of a refresh are
/// not counted.
#[derive(Clone, Debug)]
pub struct Scheduler {
    places: Places,
    order: Order,
    one_by_one: bool,
    scan: Scan,
    /// Number of later reads that are already issued when the data of a read arrives.
    late: u32,
    /// All banks, group by group. Within a group, the banks are in the order of their last visits.
    visits: Vec<u8>,
    open: OpenRows,
    row_of_table: u32,
    rows: u32,
    /// The operation's accesses so far.
    pub(crate) accesses: Vec<DramAccess>,
    /// `true` if the operation has loaded an item on which the next access depends.
    loaded: bool,
    /// `true` if the last load was a set. The next set of its chain may then be read without a
    /// wait.
    chain: bool,
    chain_waits: bool,
    /// Number of sets scanned so far, by all operations.
    pub sets_scanned: u64,
}

impl Scheduler {
    /// Returns the scheduler that `params` describe.
    ///
    /// # Errors
    /// Returns the errors of [`Places::from_params`].
    pub fn from_params(
        params: &Params,
        shape: &TableShape,
        device: &Device,
        timings: &Timings,
        rules: Rules,
        starts: bool,
    ) -> Result<Scheduler, ConfigError> {
        let one_by_one = params.get(PROBE) == "abcd";
        let places = Places::from_params(params, shape, device, starts)?;
        Ok(Scheduler {
            order: policy(params)?.order,
            one_by_one,
            scan: match params.get(SCAN) {
                "stop" => Scan::Stop,
                "pipelined" => Scan::Pipelined,
                _ => Scan::Full,
            },
            // until the data arrives (CL and DL), further reads are issued at intervals of tCCD_L
            // or tCCD_S
            late: (timings.cl + timings.dl - 1)
                / if one_by_one || !rules.ccd_l { timings.ccd_s } else { timings.ccd_l },
            visits: (0..places.banks as u8).collect(),
            open: OpenRows {
                rows: vec![u32::MAX; places.banks as usize],
                recency: Recency::new(places.banks),
            },
            places,
            row_of_table: shape.row_bits(),
            rows: shape.rows,
            accesses: Vec::new(),
            loaded: false,
            chain: false,
            chain_waits: params.get(CHAIN) == "wait",
            sets_scanned: 0,
        })
    }

    /// Returns the places of everything.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Begins an operation.
    #[inline]
    pub fn begin(&mut self) {
        self.accesses.clear();
        (self.loaded, self.chain) = (false, false);
    }

    /// Returns the accesses of the operation so far.
    #[inline]
    pub fn accesses(&self) -> &[DramAccess] {
        &self.accesses
    }

    /// Loads an item that is outside of the tables.
    pub fn load(&mut self, access: DramAccess) {
        self.push(DramAccess { dependent: self.loaded, ..access });
        (self.loaded, self.chain) = (true, false);
    }

    fn push(&mut self, access: DramAccess) {
        self.open.open(access.bank, access.row);
        self.accesses.push(access);
    }

    fn row_access(&self, pn: Pn, write: bool) -> DramAccess {
        let (table, row) = (pn >> self.row_of_table, pn & ((1 << self.row_of_table) - 1));
        let item = u64::from(table) * u64::from(self.rows) + u64::from(row);
        self.places.block_tables.access(item, write, self.loaded)
    }
}

/// Limit of the reads of a set, if the scan stops before its end.
struct Limit {
    /// Place of the wanted entry: its bank, counted from the first bank of the set, and the burst
    /// that completes the entry.
    wanted: (u32, u16),
    /// Number of reads that are issued after the wanted burst.
    more: u32,
    /// Number of reads that may still be issued; `None` until the wanted burst is reached.
    left: Option<u32>,
}

impl Limit {
    /// Returns the number of bursts that are read, of the bursts from `begin` to `end` of a bank.
    fn allow(&mut self, stripe: u32, begin: u16, end: u16) -> u32 {
        let bursts = u32::from(end - begin);
        let (there, at) = self.wanted;
        if self.left.is_none() && there == stripe && (begin..end).contains(&at) {
            self.left = Some(u32::from(at - begin) + 1 + self.more);
        }
        let allowed = self.left.map_or(bursts, |left| left.min(bursts));
        self.left = self.left.map(|left| left - allowed);
        allowed
    }
}

impl Memory for Scheduler {
    #[inline]
    fn scan(&mut self, set: u32, hit: Option<u32>) {
        self.sets_scanned += 1;
        let (first_bank, row) = self.places.set(set);
        let stripes = &mut self.visits[first_bank as usize..][..self.places.spread as usize];
        if self.order == Order::LeastRecent {
            self.open.recency.sort(stripes);
        }
        let dependent = self.loaded && (self.chain_waits || !self.chain);
        (self.loaded, self.chain) = (true, true);
        let mut limit = match (self.scan, hit) {
            (Scan::Full, _) | (_, None) => None,
            (scan, Some(way)) => Some(Limit {
                wanted: self.places.way(way),
                more: if scan == Scan::Pipelined { self.late } else { 0 },
                left: None,
            }),
        };
        let rounds = if self.one_by_one { self.places.bursts(0) } else { 1 };
        for round in 0..rounds {
            for &bank in &*stripes {
                let stripe = u32::from(bank) - first_bank;
                let all = self.places.bursts(stripe);
                let (begin, end) =
                    if self.one_by_one { (round.min(all), (round + 1).min(all)) } else { (0, all) };
                let bursts = match &mut limit {
                    None => u32::from(end - begin),
                    Some(limit) => limit.allow(stripe, begin, end),
                };
                if bursts > 0 {
                    self.open.open(bank, row);
                    self.accesses.push(DramAccess {
                        row,
                        bank,
                        bursts: bursts as u16,
                        write: false,
                        dependent,
                    });
                }
            }
        }
    }

    fn store_entry(&mut self, at: Location) {
        let (first_bank, row) = self.places.set(at.set);
        let (stripe, _) = self.places.way(at.way);
        let bank = (first_bank + stripe) as u8;
        self.push(DramAccess {
            row,
            bank,
            bursts: self.places.entry_bursts(),
            write: true,
            dependent: self.loaded,
        });
    }

    fn load_row(&mut self, pn: Pn) {
        self.push(self.row_access(pn, false));
        (self.loaded, self.chain) = (true, false);
    }

    fn store_row(&mut self, pn: Pn) {
        self.push(self.row_access(pn, true));
    }

    fn load_starts(&mut self, la: u32) {
        self.load(self.places.starts.access(la.into(), false, true));
    }

    fn store_start(&mut self, la: u32) {
        self.push(self.places.starts.access(la.into(), true, self.loaded));
    }
}
