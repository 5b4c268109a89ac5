//! The queue of a memory controller. The waiting access that the device can serve first goes next
//! (Rixner, Dally, Kapasi, Mattson and Owens, *Memory Access Scheduling*, ISCA 2000).
//!
//! If an access arrived early enough, the engine puts its precharge and its activation before the
//! reads of accesses that were served earlier. An access is therefore "first ready" if its first
//! read or write has the earliest clock, and this access goes next. Among several with the same
//! clock, an access whose row is open goes first, and then the oldest access. An access that is
//! never the earliest waits as long as other accesses arrive.

use super::{Command, Dram, Served};
use flashatlas_types::DramAccess;

struct Waiting {
    access: DramAccess,
    owner: u64,
    from: i64,
}

/// A burst that was served, and its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServedBurst {
    /// The owner that was passed to [`Queue::push`].
    pub owner: u64,
    /// The burst.
    pub access: DramAccess,
    /// The clocks at which the burst was served.
    pub served: Served,
}

/// Bursts that wait.
pub struct Queue {
    length: usize,
    waiting: Vec<Waiting>,
    /// The clock at which a place in the queue became free for the next burst.
    room: i64,
}

impl Queue {
    /// Returns an empty queue with room for `length` bursts, at least one.
    pub fn new(length: usize) -> Queue {
        let length = length.max(1);
        Queue { length, waiting: Vec::with_capacity(length), room: 0 }
    }

    /// Returns `true` if a burst must be served before another burst can be added.
    pub fn is_full(&self) -> bool {
        self.waiting.len() == self.length
    }

    /// Adds one burst of an access that arrives at clock `from`.
    ///
    /// # Panics
    /// Panics if the queue is full.
    pub fn push(&mut self, access: DramAccess, owner: u64, from: i64) {
        assert!(!self.is_full(), "the queue still holds {} bursts", self.length);
        let access = DramAccess { bursts: 1, ..access };
        self.waiting.push(Waiting { access, owner, from: from.max(self.room) });
    }

    /// Serves one burst, or returns `None` if no burst waits. The function passes each command to
    /// `see` when it issues the command.
    pub fn serve_one(
        &mut self,
        dram: &mut Dram,
        see: &mut impl FnMut(Command),
    ) -> Option<ServedBurst> {
        let ready = |w: &Waiting| (dram.column_if_next(w.access, w.from), !dram.is_open(w.access));
        let (next, _) = self.waiting.iter().map(ready).enumerate().min_by_key(|&(_, key)| key)?;
        let full = self.is_full();
        let Waiting { access, owner, from } = self.waiting.remove(next);
        let served = dram.serve(access, from, see);
        if full {
            self.room = served.last;
        }
        Some(ServedBurst { owner, access, served })
    }
}
