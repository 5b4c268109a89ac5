//! The queue in the measured part: its level, and the longest time without a completion.

use flashatlas_types::{Dur, Ps};

/// Level of the queue over time.
#[derive(Default)]
pub(super) struct Level {
    /// Commands in flight, summed over the picoseconds since measuring began.
    pub time: u128,
    /// End of the time that was counted.
    until: Ps,
}

impl Level {
    /// Returns the level for a measured part that begins at `now`.
    pub fn from(now: Ps) -> Level {
        Level { time: 0, until: now }
    }

    /// Adds the time of the commands in flight up to `at`, before their number changes or is read.
    pub fn count(&mut self, at: Ps, in_flight: usize) {
        self.time += u128::from(at.since(self.until).0) * in_flight as u128;
        self.until = self.until.max(at);
    }
}

/// Times in which commands were in flight and no command completed.
#[derive(Default)]
pub(super) struct Stillness {
    /// The longest of these times in the measured part, and its beginning.
    pub longest: (Dur, Ps),
    /// Time since which commands are in flight and no command has completed.
    since: Ps,
}

impl Stillness {
    /// Forgets the longest time, because the measured part begins now.
    pub fn restart(&mut self, now: Ps) {
        self.longest = (Dur::ZERO, now);
    }

    /// Notes that a command was submitted while none was in flight.
    pub fn submitted_first(&mut self, now: Ps) {
        self.since = now;
    }

    /// Notes that a command completed.
    ///
    /// `measured_from` is the beginning of the measured part, if the part has begun.
    pub fn completed(&mut self, at: Ps, measured_from: Option<Ps>) {
        if let Some(from) = measured_from {
            let since = self.since.max(from);
            self.longest = self.longest.max((at.since(since), since));
        }
        self.since = at;
    }
}
