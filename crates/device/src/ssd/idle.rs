//! Work in idle time, and the prediction of how long a gap between commands will last.
//!
//! By default, work begins when no command has come for `host.idle_after`. With `host.idle =
//! predicted`, it begins immediately if a step of it is predicted to fit into the rest of the gap.
//! The prediction is the exponential average of the gaps so far, of Hwang and Wu ("A
//! predictive system shutdown method for energy saving of event-driven computation", ICCAD 1997).
//! Two corrections of theirs limit its errors: a prediction is at most twice the one before, and a
//! gap that outlasts its prediction is looked at again. The length of a step is an average, too.

use super::{DeviceCounters, Ssd};
use crate::SubmitError;
use crate::params::IDLE;
use flashatlas_ftl::Idle;
use flashatlas_types::{Dur, Params, Ps};

/// State of the gap between the last command and the next.
#[derive(Clone, Copy, Debug, Default)]
struct Gap {
    /// Time of the last completion.
    began: Ps,
    /// The first decision of the gap: `true` if work was to begin immediately.
    decided: Option<bool>,
    /// `true` if a step of work has begun.
    worked: bool,
    /// `true` if there is no more work until the next command.
    nothing: bool,
    /// Begin of the step that may be unfinished.
    step: Option<Ps>,
}

/// Predictor of gaps, from the gaps so far.
#[derive(Debug, Default)]
pub(super) struct Predictor {
    /// Predicted length of a gap.
    length: Option<Dur>,
    /// Expected length of a step of work.
    step: Option<Dur>,
    gap: Gap,
}

fn mean(a: Dur, b: Dur) -> Dur {
    Dur(a.0 / 2 + b.0 / 2 + (a.0 & b.0 & 1))
}

impl Predictor {
    /// Returns the predictor that `params` describe, for a drive that is switched on at `now`, or
    /// `None` if work begins after a fixed time.
    pub fn of(params: &Params, now: Ps) -> Option<Box<Predictor>> {
        let mut predictor = (params.get(IDLE) == "predicted").then(Box::<Predictor>::default)?;
        predictor.gap_begins(now);
        Some(predictor)
    }

    /// Begins a gap: the last command in flight has completed at `at`.
    pub fn gap_begins(&mut self, at: Ps) {
        self.gap = Gap { began: at, ..Gap::default() };
    }

    /// Ends the gap with a command at `now`. The drive has rested since `rests_since`, unless it is
    /// at work.
    fn gap_ends(&mut self, now: Ps, rests_since: Option<Ps>, counters: &mut DeviceCounters) {
        let gap = self.gap;
        self.gap_begins(now); // a command that is refused ends the gap, too, and begins the next
        let length = now.since(gap.began);
        if length == Dur::ZERO {
            return;
        }
        self.length = Some(match self.length {
            None => length,
            Some(before) => mean(length, before).min(Dur(before.0.saturating_mul(2))),
        });
        let interrupted = gap.step.filter(|_| rests_since.is_none());
        match (interrupted, gap.step, rests_since) {
            // the step takes longer than this; twice the time is a guess
            (Some(begin), ..) => {
                let least = Dur(now.since(begin).0.saturating_mul(2));
                self.step = Some(self.step.unwrap_or_default().max(least));
            }
            (None, Some(begin), Some(end)) => self.step_took(end.since(begin)),
            _ => {}
        }
        counters.idle_gaps += 1;
        counters.idle_held_back += u64::from(gap.decided == Some(false));
        counters.idle_predicted += u64::from(gap.worked && gap.decided == Some(true));
        counters.idle_late += u64::from(gap.worked && gap.decided == Some(false));
        counters.idle_interrupted += u64::from(interrupted.is_some());
    }

    fn step_took(&mut self, time: Dur) {
        self.step = Some(self.step.map_or(time, |before| mean(time, before)));
    }

    /// Returns the time from which on work may begin, at or after `at`, on a drive that does
    /// nothing at `at`.
    ///
    /// This is `at` if the rest of the predicted gap is long enough for a step. Otherwise it is the
    /// time at which the gap has outlasted its prediction by `after`.
    fn may_work_from(&mut self, at: Ps, after: Dur) -> Ps {
        let predicted = self.length.unwrap_or_default();
        let rest = predicted.0.saturating_sub(at.since(self.gap.began).0);
        let now = rest > 0 && rest >= self.step.unwrap_or_default().0;
        self.gap.decided.get_or_insert(now);
        if now { at } else { at.max(self.gap.began.after(predicted).after(after)) }
    }
}

impl Ssd {
    /// Ends the gap before a command, if gaps are predicted and no command is in flight.
    #[inline]
    pub(super) fn end_gap(&mut self, now: Ps) {
        if let Some(predictor) = &mut self.predictor
            && !self.instant
            && self.in_flight.outstanding == 0
        {
            predictor.gap_ends(now, self.engine.rests_since(), &mut self.counters);
        }
    }

    /// Does background work in the time from `now` until `until`, in which no command comes. The
    /// end of this time decides nothing but the number of steps that begin before it.
    pub(super) fn work_in_idle_time(&mut self, now: Ps, until: Ps) -> Result<(), SubmitError> {
        let after = self.settings.idle_after;
        let mut at = now;
        if self.predictor.is_none() {
            if until.since(now) <= after {
                return Ok(());
            }
            at = now.after(after);
        }
        // each round frees a slot or moves a part of the map, or waits for such a round; 2^13 hours
        // are longer than simulated time
        for _ in 0..2 * self.layout.slots() + (1 << 13) {
            while let Some(event) = self.engine.next_event().filter(|&e| e <= until) {
                self.engine.advance(event, &mut self.in_flight.finished);
            }
            at = at.max(self.engine.now());
            if at >= until || self.engine.next_event().is_some() {
                break;
            }
            if let Some(predictor) = &mut self.predictor {
                if let (Some(begin), Some(end)) = (predictor.gap.step, self.engine.rests_since()) {
                    predictor.step_took(end.since(begin));
                    predictor.gap.step = None;
                }
                if predictor.gap.nothing {
                    break;
                }
                at = predictor.may_work_from(at, after);
                if at >= until {
                    break;
                }
            }
            self.plan.clear();
            self.medium.set_now(at);
            let idle = self.between_commands(at);
            match self.with_ftl(&idle, |ftl, cx| ftl.idle(cx)).map_err(|error| self.fail(error))? {
                Idle::Nothing => {
                    self.predictor.iter_mut().for_each(|predictor| predictor.gap.nothing = true);
                    break;
                }
                Idle::Wait(due) => at = at.max(due),
                Idle::Worked => {
                    self.settle();
                    self.wake(at);
                    self.issue_work(at);
                    if let Some(predictor) = &mut self.predictor {
                        (predictor.gap.step, predictor.gap.worked) = (Some(at), true);
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(time: u64) -> Ps {
        Ps(time * 1_000_000)
    }

    fn predicted(predictor: &Predictor) -> u64 {
        predictor.length.unwrap().0 / 1_000_000
    }

    /// Passes gaps of these lengths, in microseconds. Returns the predictions after each.
    fn after_gaps(gaps: &[u64]) -> Vec<u64> {
        let (mut predictor, mut now) = (Predictor::default(), 0);
        let mut pass = |&gap| {
            predictor.gap_begins(us(now));
            now += gap;
            predictor.gap_ends(us(now), None, &mut DeviceCounters::default());
            predicted(&predictor)
        };
        gaps.iter().map(&mut pass).collect()
    }

    #[test]
    fn a_prediction_is_the_mean_of_the_last_gap_and_the_last_prediction() {
        assert_eq!(after_gaps(&[800, 800, 400, 100, 0, 350]), [800, 800, 600, 350, 350, 350]);
        // the mean of 100 and 900 is 500, but a prediction at most doubles
        assert_eq!(after_gaps(&[100, 900, 900, 900]), [100, 200, 400, 650]);
        // one long gap among short ones changes little
        assert_eq!(after_gaps(&[10, 100_000, 10, 10]), [10, 20, 15, 12]);
    }

    #[test]
    fn work_begins_at_once_or_after_the_gap_has_outlasted_its_prediction() {
        let after = Dur::from_us(50);
        let mut predictor = Predictor::default();
        predictor.gap_begins(us(1_000));
        // nothing is known about gaps: as without a prediction
        assert_eq!(predictor.may_work_from(us(1_000), after), us(1_050));
        predictor.gap_ends(us(1_300), None, &mut DeviceCounters::default());
        predictor.gap_begins(us(2_000));
        // a gap of 300 us is predicted, and nothing is known about steps
        assert_eq!(predictor.may_work_from(us(2_000), after), us(2_000));
        assert_eq!(predictor.may_work_from(us(2_299), after), us(2_299));
        assert_eq!(predictor.may_work_from(us(2_300), after), us(2_350));
        predictor.step_took(Dur::from_us(120));
        assert_eq!(predictor.may_work_from(us(2_180), after), us(2_180), "120 us are left");
        assert_eq!(predictor.may_work_from(us(2_181), after), us(2_350), "119 us are left");
        assert_eq!(predictor.may_work_from(us(2_400), after), us(2_400));
    }

    #[test]
    fn a_step_that_a_command_interrupts_counts_as_twice_its_time() {
        let mut counters = DeviceCounters::default();
        let mut predictor = Predictor::default();
        let mut pass = |predictor: &mut Predictor, begin, step, end, rests_since: Option<u64>| {
            predictor.gap_begins(us(begin));
            predictor.gap.step = Some(us(step));
            predictor.gap_ends(us(end), rests_since.map(us), &mut counters);
            predictor.step.unwrap().0 / 1_000_000
        };
        assert_eq!(pass(&mut predictor, 0, 10, 40, None), 60);
        assert_eq!(pass(&mut predictor, 100, 110, 120, None), 60, "20 us say nothing");
        assert_eq!(pass(&mut predictor, 200, 210, 300, Some(290)), 70, "the mean of 60 and 80");
        assert_eq!((counters.idle_gaps, counters.idle_interrupted), (3, 2));
    }
}
