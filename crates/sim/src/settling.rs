//! `until=steady`: a workload is repeated until it is steady, and then measured.
//!
//! The workload is played until five passes in a row are a steady state. Then it is played once
//! more, and this pass is measured.
//!
//! The SNIA Solid State Storage Performance Test Specification (version 2.0.2) does the same with
//! rounds: it plays rounds until five in a row meet its criterion, and at most 25 rounds. It
//! reports these five rounds. The choice of five similar passes understates their differences, so
//! here the pass after them is measured.

use crate::RunError;
use crate::metrics::{Pace, Start};
use crate::notes::NOT_SETTLED;
use crate::steadiness::{Count, ROUNDS, Rounds, Verdict};
use flashatlas_types::Note;
use serde_json::{Value, json};

/// Number of passes without a steady state after which the next pass is measured all the same.
pub(crate) const PASSES_MAX: usize = 25;

/// The passes of a workload before it is measured.
pub(crate) struct Passes {
    start: Start,
    page_bytes: f64,
    /// Counts at the beginning, and at the end of each pass; only the last six counts are used.
    ends: Vec<Count>,
    judged: Value,
    steady: bool,
}

impl Passes {
    /// Returns the passes of a run before its first pass.
    ///
    /// `count` contains the drive's counts so far; `page_bytes` is the size of a page.
    pub fn new(start: Start, page_bytes: u32, count: Count) -> Passes {
        let page_bytes = f64::from(page_bytes);
        Passes { start, page_bytes, ends: vec![count], judged: Value::Null, steady: false }
    }

    /// Notes the end of a pass, and returns `true` if the next pass is measured.
    ///
    /// # Errors
    /// Returns an error if neither throughput nor write amplification of the passes can be judged.
    pub fn ended(&mut self, count: Count) -> Result<bool, RunError> {
        self.ends.push(count);
        let passes = self.ends.len() - 1;
        let Some(verdict) = self.judge() else { return Ok(false) };
        if verdict.judged.is_empty() {
            return Err(RunError::option(
                "until",
                "neither throughput nor write amplification can show a steady state of this \
                 workload: some pass writes nothing, and requests arrive at their own times or in \
                 no time",
            ));
        }
        self.steady = verdict.reasons.is_empty();
        self.judged = json!({
            "passes": passes,
            "steady": self.steady,
            "reasons": verdict.reasons,
            "rounds": verdict.rounds(),
        });
        Ok(self.steady || passes == PASSES_MAX)
    }

    /// Notes the end of the measured pass, and judges it with the four passes before it.
    ///
    /// A trace has phases of its own, so passes are better rounds than fifths of a pass.
    pub fn measured(&mut self, count: Count) -> Verdict {
        self.ends.push(count);
        self.judge().expect("five passes came before")
    }

    /// Judges the last five passes; returns `None` if there are fewer.
    fn judge(&self) -> Option<Verdict> {
        let ends = self.ends.last_chunk::<{ ROUNDS + 1 }>()?;
        let each = |of: fn(&Count) -> u64| -> [f64; ROUNDS] {
            std::array::from_fn(|i| (of(&ends[i + 1]) - of(&ends[i])) as f64)
        };
        let (clock, requests) = (each(|c| c.clock), each(|c| c.requests));
        let paced = self.start.timed && self.start.pace == Pace::Drive;
        let all = |of: fn(&Count) -> u64| of(&ends[ROUNDS]) - of(&ends[0]);
        let rounds = Rounds {
            of: "the last five passes",
            iops: paced.then(|| std::array::from_fn(|i| requests[i] / (clock[i] / 1e12))),
            written: each(|c| c.written),
            programmed: each(|c| c.programmed).map(|pages| pages * self.page_bytes),
            programmed_pages: all(|c| c.programmed),
            erased_pages: all(|c| c.erased),
        };
        Some(rounds.judge())
    }

    /// Returns the passes and their measurements, for the run record.
    pub fn json(&self) -> &Value {
        &self.judged
    }

    /// Returns a note if the workload was measured although it had not settled.
    pub fn complaint(&self) -> Option<Note> {
        (!self.steady).then(|| NOT_SETTLED.with([("passes", PASSES_MAX.into())]))
    }
}
