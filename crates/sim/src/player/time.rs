//! The passing of time.
//!
//! A player simulates its drive up to an instant, or up to the first completion. In both cases the
//! metrics take the samples that are due, and a drive without commands may use the time.

use super::Player;
use crate::RunError;
use flashatlas_device::{Done, Stack};
use flashatlas_types::Ps;

impl Player {
    /// Simulates the drive up to `until`, which is not before now.
    ///
    /// `finished` gets the tag and the time of each command that completes.
    ///
    /// # Errors
    /// Returns an error if the drive cannot go on.
    pub fn advance(
        &mut self,
        until: Ps,
        mut finished: impl FnMut(u32, Ps),
    ) -> Result<(), RunError> {
        while self.flights.count > 0 && self.drive.next_event().is_some_and(|at| at <= until) {
            self.advance_to_completion(until, &mut finished)?;
        }
        self.offer_pause(until)?;
        self.now = until;
        while let Some(at) = self.measurement.due(until) {
            self.run(|drive, done| drive.advance(at, done), &mut finished);
            self.sample_at(at);
        }
        self.run(|drive, done| drive.advance(until, done), &mut finished);
        Ok(())
    }

    /// Advances as [`Player::advance`], but no further than the first completion.
    ///
    /// # Errors
    /// Returns an error if the drive cannot go on, or if `until` is [`Ps::MAX`] and no event is
    /// left.
    pub fn advance_to_completion(
        &mut self,
        until: Ps,
        mut finished: impl FnMut(u32, Ps),
    ) -> Result<(), RunError> {
        if until == Ps::MAX && self.drive.next_event().is_none() {
            return Err(self.stalled());
        }
        self.offer_pause(until)?;
        let before = self.tally.completed;
        let reached = loop {
            let sample = self.measurement.due(until);
            let to = sample.unwrap_or(until);
            let at = self.run(|drive, done| drive.advance_to_completion(to, done), &mut finished);
            if self.tally.completed > before {
                // a sample includes everything that has happened at its instant
                while let Some(due) = self.measurement.due(at) {
                    self.sample_at(due);
                }
                break at;
            }
            let Some(due) = sample.filter(|_| self.drive.next_event().is_some()) else { break at };
            self.sample_at(due);
        };
        self.now = self.now.max(reached);
        Ok(())
    }

    /// Lets the drive do background work up to `until`, if no command is in flight.
    fn offer_pause(&mut self, until: Ps) -> Result<(), RunError> {
        if self.flights.count > 0 || until <= self.now {
            return Ok(());
        }
        let from = self.flights.last_done.max(self.now);
        while let Some(at) = self.measurement.due(until) {
            self.drive.idle(from, at).map_err(|e| self.ended(self.tally.submitted, e))?;
            self.run(|drive, done| drive.advance(at, done), &mut |_, _| ());
            self.sample_at(at);
        }
        self.drive.idle(from, until).map_err(|e| self.ended(self.tally.submitted, e))
    }

    /// Runs the drive, and completes the commands that it returns.
    fn run<T>(
        &mut self,
        drive: impl FnOnce(&mut Stack, &mut Vec<Done>) -> T,
        finished: &mut impl FnMut(u32, Ps),
    ) -> T {
        let mut done = std::mem::take(&mut self.done);
        let result = drive(&mut self.drive, &mut done);
        for Done { tag, at } in done.drain(..) {
            let tag = tag.0 as u32;
            self.complete(tag, at);
            finished(tag, at);
        }
        self.done = done;
        result
    }

    fn complete(&mut self, tag: u32, at: Ps) {
        self.measurement.completed(at, self.flights.count);
        let flight = self.flights.complete(tag, at);
        self.tally.completed += 1;
        self.measurement.show(tag, flight, at, &mut self.drive, &self.flights);
    }
}
