//! What happens next: events in the order of time and, at the same instant, in that in which they
//! were set. To set or take one takes a time that is logarithmic in how many are ahead: one for
//! each die, channel and way of the link that is at work, and the timers.

use flashatlas_types::Ps;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// The cells of a die are done or have stopped for a read, unless its generation has moved on.
    Die(u32, u32),
    /// A channel is free.
    Channel(u32),
    /// The host link is free, towards the drive (0) or from it (1).
    Link(u32),
    /// The timer of an operation has run out.
    Timer(u32),
}

/// An event by its time and its number in one: a heap compares little else.
#[derive(Clone, Copy, Debug)]
struct Ahead(u128, Event);

impl PartialEq for Ahead {
    fn eq(&self, other: &Ahead) -> bool {
        self.0 == other.0
    }
}

impl Eq for Ahead {}

impl PartialOrd for Ahead {
    #[inline]
    fn partial_cmp(&self, other: &Ahead) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ahead {
    /// The earliest is the greatest, which a heap hands out first.
    #[inline]
    fn cmp(&self, other: &Ahead) -> Ordering {
        other.0.cmp(&self.0)
    }
}

/// The events ahead.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    ahead: BinaryHeap<Ahead>,
    /// Events that were set.
    count: u64,
}

impl Agenda {
    /// Something happens at `at`.
    #[inline]
    pub fn set(&mut self, at: Ps, event: Event) {
        self.count += 1;
        self.ahead.push(Ahead(u128::from(at.0) << 64 | u128::from(self.count), event));
    }

    /// When the next event happens.
    #[inline]
    pub fn next_at(&self) -> Option<Ps> {
        self.ahead.peek().map(|Ahead(key, _)| Ps((key >> 64) as u64))
    }

    /// Take the next event, if it is not after `until`.
    #[inline]
    pub fn take(&mut self, until: Ps) -> Option<(Ps, Event)> {
        let at = self.next_at().filter(|&at| at <= until)?;
        self.ahead.pop().map(|Ahead(_, event)| (at, event))
    }
}
