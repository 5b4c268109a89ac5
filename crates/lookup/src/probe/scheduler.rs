//! From what an operation touches to accesses to banks, in order.

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

/// Turns lookups and changes into accesses. It decides on the order of banks when an operation
/// begins, from the activations that its own accesses need: those of refreshes are not among them.
#[derive(Clone, Debug)]
pub struct Scheduler {
    places: Places,
    order: Order,
    one_by_one: bool,
    scan: Scan,
    /// Reads that are under way when the data of one comes back.
    late: u32,
    recency: Recency,
    /// Row that the last access left open in each bank.
    open: Vec<u32>,
    row_of_table: u32,
    rows: u32,
    /// The operation's accesses so far.
    pub(crate) accesses: Vec<DramAccess>,
    /// Something was loaded, on which what follows depends.
    loaded: bool,
    /// The last load was a set: the next one of its chain may follow without waiting.
    chain: bool,
    chain_waits: bool,
    /// Sets scanned so far, of all operations.
    pub sets_scanned: u64,
}

impl Scheduler {
    /// The scheduler that `params` describe.
    ///
    /// # Errors
    /// As [`Places::from_params`].
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
            // while data is under way (CL and DL), reads go on at the pace of one bank, or of
            // different ones
            late: (timings.cl + timings.dl - 1)
                / if one_by_one || !rules.ccd_l { timings.ccd_s } else { timings.ccd_l },
            recency: Recency::new(places.banks),
            open: vec![u32::MAX; places.banks as usize],
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

    /// Where everything lies.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Begin an operation.
    #[inline]
    pub fn begin(&mut self) {
        self.accesses.clear();
        (self.loaded, self.chain) = (false, false);
    }

    /// The accesses of the operation so far.
    #[inline]
    pub fn accesses(&self) -> &[DramAccess] {
        &self.accesses
    }

    /// Load an item that lies apart from the tables.
    pub fn load(&mut self, access: DramAccess) {
        self.push(DramAccess { dependent: self.loaded, ..access });
        (self.loaded, self.chain) = (true, false);
    }

    #[inline]
    fn push(&mut self, access: DramAccess) {
        let open = &mut self.open[access.bank as usize];
        if *open != access.row {
            *open = access.row;
            self.recency.activated(access.bank);
        }
        self.accesses.push(access);
    }

    fn row_access(&self, pn: Pn, write: bool) -> DramAccess {
        let (table, row) = (pn >> self.row_of_table, pn & ((1 << self.row_of_table) - 1));
        let item = u64::from(table) * u64::from(self.rows) + u64::from(row);
        self.places.block_tables.access(item, write, self.loaded)
    }

    /// The banks of a set in the order of visits, counted from its first.
    #[inline]
    fn stripes(&self, first_bank: u32) -> [u8; 64] {
        let mut stripes = [0; 64];
        let spread = self.places.spread;
        match self.order {
            Order::LeastRecent if spread > 1 => {
                let mut next = 0;
                for bank in self.recency.least_recent_first() {
                    let stripe = u32::from(bank).wrapping_sub(first_bank);
                    if stripe < spread {
                        stripes[next] = stripe as u8;
                        next += 1;
                    }
                }
            }
            _ => (0..spread as u8).for_each(|stripe| stripes[stripe as usize] = stripe),
        }
        stripes
    }
}

impl Memory for Scheduler {
    #[inline]
    fn scan(&mut self, set: u32, hit: Option<u32>) {
        self.sets_scanned += 1;
        let (first_bank, row) = self.places.set(set);
        let stripes = self.stripes(first_bank);
        let stripes = &stripes[..self.places.spread as usize];
        let dependent = self.loaded && (self.chain_waits || !self.chain);
        (self.loaded, self.chain) = (true, true);
        let wanted = match self.scan {
            Scan::Full => None,
            _ => hit.map(|way| self.places.way(way)),
        };
        // reads that may still be issued once the wanted one was
        let mut left = u32::MAX;
        let more = if self.scan == Scan::Pipelined { self.late } else { 0 };
        let rounds = if self.one_by_one { self.places.bursts(0) } else { 1 };
        for round in 0..rounds {
            for &stripe in stripes {
                let all = self.places.bursts(stripe.into());
                let (begin, end) =
                    if self.one_by_one { (round, (round + 1).min(all)) } else { (0, all) };
                let mut bursts = u32::from(end.saturating_sub(begin)).min(left);
                if let Some((there, at)) = wanted
                    && there == u32::from(stripe)
                    && (begin..end).contains(&at)
                    && left == u32::MAX
                {
                    let upto = u32::from(at - begin) + 1;
                    bursts = bursts.min(upto + more);
                    left = more + upto;
                }
                if left != u32::MAX {
                    left -= bursts;
                }
                if bursts > 0 {
                    let bank = (first_bank + u32::from(stripe)) as u8;
                    self.push(DramAccess {
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
