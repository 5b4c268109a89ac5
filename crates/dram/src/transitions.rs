//! A table of transitions. It stores the time that a device took to serve given accesses in a given
//! relative state, so that the engine need not compute this time again.
//!
//! Lookups are much alike. Each visits the same banks in the order that the previous lookup used,
//! and finds other rows open. So a device has few relative states, and the engine computes most
//! steps only once. A step during which a refresh occurs is always computed. If the bank of each
//! access is random, there are too many states for any of them to occur again, and every step is
//! computed.

use crate::engine::{Relative, WINDOW};
use crate::{Dram, Served};
use flashatlas_types::DramAccess;
use rustc_hash::FxHashMap;

/// The largest number of accesses in an operation of the table.
const ACCESSES: usize = 8;

/// Number of bits that encode one access.
const BITS: usize = 128 / ACCESSES;

/// The number of hits whose saved time equals the time that one miss costs. A miss takes longer
/// than the engine would take without a table.
const WORTH: i64 = 8;

/// Upper bound of `Transitions::credit`. After a row of misses, an eighth of this number, the table
/// is no longer used.
const CREDIT: i64 = 1 << 15;

/// The largest number of states of a table, and of steps from each state.
const STATES: usize = 1 << 14;
const STEPS: usize = 64;

/// The result of serving some accesses in one state. Clocks are counted from the newest read or
/// write before these accesses.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The encoded accesses, with a mark for each that finds its row open.
    accesses: u128,
    /// The time at which the accesses arrived, in clocks.
    from: i64,
    last: i64,
    data: i64,
    bursts: u32,
    activations: u32,
    /// Number of the state afterwards.
    to: u32,
}

/// A DRAM device that serves accesses as [`Dram::serve_all`] does, and uses a table where it can.
#[derive(Debug)]
pub struct Transitions {
    /// The device. While `at` is set, the times in `dram` are stale, and the current times are in
    /// state `at`.
    dram: Dram,
    /// Number of the device's present state, if the table contains that state.
    at: Option<usize>,
    /// Clock of the newest read or write.
    column: i64,
    states: Vec<(Relative, Vec<Step>)>,
    numbers: FxHashMap<Relative, usize>,
    /// A count that a hit raises by 1, up to [`CREDIT`], and that a miss lowers by [`WORTH`]. Below
    /// zero, the table is no longer used.
    credit: i64,
    hits: u64,
    misses: u64,
}

impl Transitions {
    /// Returns a device with an empty table.
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

    /// Returns the number of operations that were found in the table, and the number of all others.
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits, self.misses)
    }

    /// Returns the activations and the refreshes so far.
    pub fn counts(&self) -> (u64, u64) {
        (self.dram.activations, self.dram.refreshes)
    }

    /// Returns the device itself, after its times are brought up to date.
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
        // the last access begins at `step.data` at the latest, so no refresh is due before any
        // access
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

    /// Opens the rows of accesses. Returns `described` with a mark for each access whose row was
    /// open, and for each access the row that was open in its bank.
    #[inline]
    fn open_rows(&mut self, accesses: &[DramAccess], described: u128) -> (u128, [u32; ACCESSES]) {
        let (mut found, mut before) = (0, [0; ACCESSES]);
        for (access, before) in accesses.iter().zip(&mut before) {
            *before = self.dram.set_row(access.bank, access.row);
            found = found << BITS | u128::from(*before == access.row);
        }
        (described | found, before)
    }

    /// Lets the engine serve accesses and stores the outcome. If the step is not in the table yet,
    /// `new` is its state, its encoded accesses and their arrival.
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
