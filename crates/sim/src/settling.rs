//! `until=steady`: the workload is played again and again until five passes in a row are a steady
//! state. Then it is played once more and measured.
//!
//! The SNIA Solid State Storage Performance Test Specification (version 2.0.2) does the same with
//! rounds: until five in a row pass, and at most 25. It reports the five that passed. Passes that
//! were chosen because they look alike look more alike than they are, so here the pass after them
//! is measured.

use crate::RunError;
use crate::metrics::{Pace, Start};
use crate::notes::NOT_SETTLED;
use crate::steadiness::{Count, ROUNDS, Rounds, Verdict};
use flashatlas_types::Note;
use serde_json::{Value, json};

/// Passes without a steady state, after which the next one is measured all the same.
pub(crate) const PASSES_MAX: usize = 25;

/// The passes of a workload before it is measured.
pub(crate) struct Passes {
    start: Start,
    page_bytes: f64,
    /// Counts at the beginning, and at the end of each pass; at most the last six are looked at.
    ends: Vec<Count>,
    judged: Value,
    steady: bool,
}

impl Passes {
    /// Returns the passes of a run before its first pass.
    ///
    /// `count` has the drive's counts so far, and a page has `page_bytes` bytes.
    pub fn new(start: Start, page_bytes: u32, count: Count) -> Passes {
        let page_bytes = f64::from(page_bytes);
        Passes { start, page_bytes, ends: vec![count], judged: Value::Null, steady: false }
    }

    /// Notes the end of a pass, and returns `true` if the next one is measured.
    ///
    /// # Errors
    /// Returns an error if the passes have nothing that can be judged.
    pub fn ended(&mut self, count: Count) -> Result<bool, RunError> {
        self.ends.push(count);
        let passes = self.ends.len() - 1;
        let Some(verdict) = self.judge() else { return Ok(false) };
        if verdict.judged.is_empty() {
            return Err(RunError::option(
                "until",
                "nothing of this workload can be judged: it writes nothing in some pass, and its \
                 requests come at their own times or in no time",
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

    /// Notes the end of the measured pass, and judges it with the four before it.
    ///
    /// A trace has phases of its own, so fifths of a pass say less than passes do.
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
