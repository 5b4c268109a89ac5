//! The reference model of a drive behind a controller: what a host may find after a power failure.
//!
//! The model follows the commands of the host and their completions, and does not depend on the
//! controller.

use super::home::{Home, SlotWrite};
use super::step::Step;
use super::units::{Floors, Promise, Units};
use crate::Failure;

/// Totals of the SMART log that never go back, by their name and offset in the page
/// (Base 5.1.12.1.3).
pub const TOTALS: [(&str, usize); 8] = [
    ("data units read", 32),
    ("data units written", 48),
    ("read commands", 64),
    ("write commands", 80),
    ("power cycles", 112),
    ("unsafe shutdowns", 144),
    ("media errors", 160),
    ("error log entries", 176),
];

/// Totals of the SMART log, in the order of [`TOTALS`].
pub type Totals = [u128; TOTALS.len()];

/// Returns the totals of a SMART log page.
pub fn totals(page: &[u8]) -> Totals {
    TOTALS.map(|(_, at)| u128::from_le_bytes(page[at..at + 16].try_into().expect("16 bytes")))
}

/// Returns a failure if a total went back.
pub fn never_back(seen: &Totals, now: &Totals) -> Result<(), Failure> {
    TOTALS.iter().zip(seen.iter().zip(now)).try_for_each(|((name, _), (seen, now))| {
        Failure::unless(seen <= now, "N7", || format!("{name}: {now} after the host saw {seen}"))
    })
}

/// Over temperature threshold of a controller without a saved threshold, in kelvins (WCTEMP).
const THRESHOLD: u16 = 343;

/// A value that outlives power, with the values that a cut may leave.
#[derive(Clone, Debug)]
pub struct Kept<T>(Vec<T>);

impl<T: Copy + PartialEq> Kept<T> {
    /// Returns a value that is durable.
    fn certain(value: T) -> Kept<T> {
        Kept(vec![value])
    }

    /// Begins to save a value.
    fn begin(&mut self, value: T) {
        self.0.push(value);
    }

    /// Ends saving: the newest value is durable.
    fn end(&mut self) {
        self.0.drain(..self.0.len() - 1);
    }

    /// Returns the newest value.
    pub fn newest(&self) -> T {
        self.0[self.0.len() - 1]
    }

    /// Returns the values that a cut may leave.
    pub fn allowed(&self) -> &[T] {
        &self.0
    }
}

/// A command that is not complete.
#[derive(Clone, Debug)]
struct Pending {
    number: u32,
    step: Step,
    /// Versions that the command makes.
    changes: Floors,
    /// Versions that its completion promises.
    floors: Floors,
    promise: Promise,
}

/// State that a host may find.
#[derive(Clone)]
pub struct Model {
    /// The contents.
    pub units: Units,
    /// The home of the controller's record.
    pub home: Home,
    /// Saved value of the volatile write cache.
    pub saved_cache: Kept<bool>,
    /// Saved value of the over temperature threshold.
    pub saved_threshold: Kept<u16>,
    /// Power cycles that the record counts.
    pub cycles: Kept<u32>,
    /// `true` if the next power-on counts an unsafe shutdown.
    pub in_use: Kept<bool>,
    /// Totals that the host has seen.
    pub seen: Totals,
    /// `true` while the cache is on and not being switched off.
    cached: bool,
    pending: Vec<Pending>,
    /// Changes that nobody waits for after a reset.
    orphans: Floors,
}

impl Model {
    /// Returns the model of a drive whose controller never had power.
    pub fn new(units: Units) -> Model {
        Model {
            units,
            home: Home::new(),
            saved_cache: Kept::certain(true),
            saved_threshold: Kept::certain(THRESHOLD),
            cycles: Kept::certain(0),
            in_use: Kept::certain(false),
            seen: Totals::default(),
            cached: true,
            pending: Vec::new(),
            orphans: Floors::new(),
        }
    }

    /// Returns `true` if a cut may leave one of several states.
    pub fn is_dirty(&self) -> bool {
        let kept = self.saved_cache.0.len() > 1
            || self.saved_threshold.0.len() > 1
            || self.cycles.0.len() > 1
            || self.in_use.0.len() > 1;
        kept || self.units.is_dirty()
    }

    /// Updates the model for a step that the host submits.
    pub fn submitted(&mut self, number: u32, step: Step) {
        let units = &mut self.units;
        let unit_blocks = units.unit_blocks();
        let everything = 0..units.len();
        let (mut changes, mut floors) = (Floors::new(), Floors::new());
        let mut promise = Promise("N1");
        match step {
            Step::Write { blocks, .. } => changes = units.write(blocks),
            Step::Zeroes { blocks, .. } => changes = units.zero(blocks),
            Step::Deallocate { ranges } => {
                changes = ranges.into_iter().flat_map(|range| units.deallocate(range)).collect();
            }
            Step::Flush => (floors, promise) = (units.confirmed(), Promise("N2")),
            Step::Read { blocks, fua: true } | Step::Compare { blocks, fua: true, .. } => {
                (floors, promise) = (units.all(blocks.touched(unit_blocks)), Promise("N8"));
            }
            Step::Shutdown => {
                (floors, promise) = (units.all(everything), Promise("N2"));
                self.in_use.begin(false);
            }
            Step::Cache { on, save } => {
                if !on && self.cached {
                    // commands in flight complete before the switch, and the flush of the switch
                    // follows them
                    (floors, promise) = (units.all(everything), Promise("N3"));
                    self.cached = false;
                }
                if save {
                    self.saved_cache.begin(on);
                }
            }
            Step::Threshold(kelvins) => self.saved_threshold.begin(kelvins),
            Step::PowerOn => self.cycles.begin(self.cycles.newest() + 1),
            Step::Enable => self.in_use.begin(true),
            Step::Reset => self.reset(),
            Step::Read { .. } | Step::Compare { .. } | Step::Smart | Step::CarryOut(_) => {}
        }
        let fua = matches!(step, Step::Write { fua: true, .. } | Step::Zeroes { fua: true, .. });
        if fua || !self.cached && !changes.is_empty() {
            floors.clone_from(&changes);
            promise = Promise(if fua { "N1" } else { "N3" });
        }
        self.pending.push(Pending { number, step, changes, floors, promise });
    }

    /// Updates the model for a reset: nobody waits for commands, and features have their saved
    /// values.
    fn reset(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        self.orphans.extend(pending.into_iter().flat_map(|pending| pending.changes));
        // a save that was not acknowledged may have happened or not
        self.cached = self.saved_cache.allowed().contains(&true);
    }

    /// Updates the model for the completion of a step, and returns `true` if the completion is a
    /// promise.
    ///
    /// # Panics
    /// Panics if no such step was submitted.
    pub fn completed(&mut self, number: u32, smart: Option<&Totals>) -> bool {
        let at = self.pending.iter().position(|pending| pending.number == number);
        let done = self.pending.swap_remove(at.expect("it was submitted"));
        self.units.confirm(&done.changes);
        self.units.settle(&done.floors, done.promise);
        match done.step {
            Step::Cache { on, save } => {
                self.cached = on;
                if save {
                    self.saved_cache.end();
                }
            }
            Step::Threshold(_) => self.saved_threshold.end(),
            Step::PowerOn => self.cycles.end(),
            Step::Shutdown => self.in_use.end(),
            Step::Enable => {
                self.in_use.end();
                // a controller is ready only when the media have carried out all earlier commands
                let orphans = std::mem::take(&mut self.orphans);
                self.units.confirm(&orphans);
            }
            _ => {}
        }
        if let Some(totals) = smart {
            self.seen = *totals;
        }
        let saved = matches!(
            done.step,
            Step::Cache { save: true, .. } | Step::Threshold(_) | Step::PowerOn | Step::Enable
        );
        saved || smart.is_some() || !done.floors.is_empty()
    }

    /// Updates the model for a write of the controller's record.
    pub fn kept(&mut self, write: &SlotWrite) {
        self.home.write(write);
    }
}
