//! A table of transitions: the answers of a device to accesses that it served before, in the same
//! relative state.
//!
//! Lookups are much alike. Each visits the banks of a set in the order in which the lookup before
//! left them, and finds other rows open. So a device returns to few relative states, and the engine
//! works out most steps only once. It works out every step with a refresh. It works out all steps
//! if states do not return. This happens if banks are drawn at random one by one, because there are
//! too many states then.

use crate::engine::{Relative, WINDOW};
use crate::{Dram, Served};
use flashatlas_types::DramAccess;
use rustc_hash::FxHashMap;

/// The largest number of accesses of an operation that is in the table.
const ACCESSES: usize = 8;

/// Bits of one access.
const BITS: usize = 128 / ACCESSES;

/// The number of hits that make up for one miss. A miss takes longer than a hit, and longer than
/// the engine alone.
const WORTH: i64 = 8;

/// The largest lead of hits over misses. A table is given up after an eighth of this number of
/// misses in a row.
const CREDIT: i64 = 1 << 15;

/// The largest number of states of a table, and of steps from each state.
const STATES: usize = 1 << 14;
const STEPS: usize = 64;

/// The result of some accesses in one state, in clocks from the newest read or write before them.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The accesses, and which of them find their row open.
    accesses: u128,
    /// The clock from which on the accesses were known.
    from: i64,
    last: i64,
    data: i64,
    bursts: u32,
    activations: u32,
    /// The state afterwards.
    to: u32,
}

/// A DRAM device that serves as [`Dram::serve_all`] does, from a table where it can.
#[derive(Debug)]
pub struct Transitions {
    /// The device. If `at` is given, the times of the device are out of date, and that state has
    /// them.
    dram: Dram,
    /// State of the device, if it is in the table.
    at: Option<usize>,
    /// Newest read or write.
    column: i64,
    states: Vec<(Relative, Vec<Step>)>,
    numbers: FxHashMap<Relative, usize>,
    /// The lead of hits over misses; below zero the table is not used any more.
    credit: i64,
    hits: u64,
    misses: u64,
}

impl Transitions {
    /// Wraps a device with a table, which is empty at first.
    pub fn new(dram: Dram) -> Transitions {
        Transitions {
            column: dram.newest(),
            dram,
            at: None,
            states: Vec::new(),
            numbers: FxHashMap::default(),
            credit: CREDIT,
            hits: 0,
            misses: 0,
        }
    }

    /// Returns the number of operations that were found in the table, and of others.
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits, self.misses)
    }

    /// Returns the activations and the refreshes so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.dram.activations, self.dram.refreshes)
    }

    /// Returns the device itself, up to date and ready for commands.
    pub fn dram(&mut self) -> &mut Dram {
        if let Some(at) = self.at.take() {
            self.dram.take_up(&self.states[at].0, self.column);
        }
        &mut self.dram
    }

    /// Serves accesses as [`Dram::serve_all`] does, but without showing the commands.
    #[inline]
    pub fn serve_all(&mut self, accesses: &[DramAccess], from: i64) -> Served {
        if self.credit < 0 {
            return self.dram().serve_all(accesses, from, &mut |_| {});
        }
        let Some((at, described)) = self.at.zip(describe(accesses)) else {
            return self.work_out(None, accesses, from);
        };
        let (described, before) = self.open_rows(accesses, described);
        let column = self.column;
        let since = (from - column).max(-WINDOW);
        let mut steps = self.states[at].1.iter();
        let step = steps.find(|step| step.accesses == described && step.from == since);
        // the last access begins no later than `step.data`, so no access meets a refresh
        match step.filter(|step| !self.dram.is_refresh_due(column + step.data)) {
            Some(step) => {
                self.hits += 1;
                self.credit = CREDIT.min(self.credit + 1);
                self.at = Some(step.to as usize);
                self.column = column + step.last;
                self.dram.bursts += u64::from(step.bursts);
                self.dram.activations += u64::from(step.activations);
                Served { last: self.column, data: column + step.data }
            }
            None => {
                let new = step.is_none().then_some((at, described, since));
                for (access, &row) in accesses.iter().zip(&before).rev() {
                    self.dram.set_row(access.bank, row);
                }
                self.work_out(new, accesses, from)
            }
        }
    }

    /// Opens the rows of accesses. Returns which accesses found their row open, and the row that
    /// each access found.
    #[inline]
    fn open_rows(&mut self, accesses: &[DramAccess], described: u128) -> (u128, [u32; ACCESSES]) {
        let (mut found, mut before) = (0, [0; ACCESSES]);
        for (access, before) in accesses.iter().zip(&mut before) {
            *before = self.dram.set_row(access.bank, access.row);
            found = found << BITS | u128::from(*before == access.row);
        }
        (described | found, before)
    }

    /// Lets the engine serve accesses and notes the outcome. `new` is the state and the accesses of
    /// a step that is not in the table yet.
    #[cold]
    fn work_out(
        &mut self,
        new: Option<(usize, u128, i64)>,
        accesses: &[DramAccess],
        from: i64,
    ) -> Served {
        let column = self.column;
        let dram = self.dram();
        let (bursts, activations, refreshes) = (dram.bursts, dram.activations, dram.refreshes);
        let served = dram.serve_all(accesses, from, &mut |_| {});
        self.column = self.dram.newest();
        self.misses += 1;
        self.credit -= WORTH;
        if self.column < 0 {
            return served; // there was no access yet
        }
        let state = self.dram.relative();
        let next = self.states.len();
        let to = match self.numbers.get(&state) {
            Some(&known) => known,
            None if next == STATES => return served,
            None => {
                self.states.push((state.clone(), Vec::new()));
                self.numbers.insert(state, next);
                next
            }
        };
        self.at = Some(to);
        if let Some((at, accesses, from)) = new
            && self.dram.refreshes == refreshes
            && self.states[at].1.len() < STEPS
        {
            self.states[at].1.push(Step {
                accesses,
                from,
                last: served.last - column,
                data: served.data - column,
                bursts: (self.dram.bursts - bursts) as u32,
                activations: (self.dram.activations - activations) as u32,
                to: to as u32,
            });
        }
        served
    }
}

/// Returns accesses encoded as one number, or `None` if they do not fit. The bits that mark open
/// rows are zero.
#[inline]
fn describe(accesses: &[DramAccess]) -> Option<u128> {
    let plain = |access: &DramAccess| access.bank < 16 && access.bursts < 256;
    let known = (1..=ACCESSES).contains(&accesses.len()) && accesses.iter().all(plain);
    let number = |access: &DramAccess| {
        let (bursts, bank) = (u128::from(access.bursts), u128::from(access.bank));
        let (write, dependent) = (u128::from(access.write), u128::from(access.dependent));
        bursts << 8 | bank << 4 | write << 3 | dependent << 2 | 2
    };
    known.then(|| accesses.iter().fold(0, |all, access| all << BITS | number(access)))
}
