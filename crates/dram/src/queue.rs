//! The queue of a memory controller: accesses wait in it, and the one that suits the device best is
//! served next (Rixner, Dally, Kapasi, Mattson and Owens, *Memory Access Scheduling*, ISCA 2000).
//!
//! The engine puts the precharge and the activation of an access before the reads of those that
//! were served earlier, where it was known by then. So "first ready" is a question of its first
//! read: whoever could read earliest goes next, of several those whose row is open, and of these
//! the oldest. An access that never is the earliest waits as long as others come.

use super::{Command, Dram, Served};
use flashatlas_types::DramAccess;

struct Waiting {
    access: DramAccess,
    owner: u64,
    from: i64,
}

/// A burst that was served, and for whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServedBurst {
    /// What [`Queue::push`] was told.
    pub owner: u64,
    /// The burst.
    pub access: DramAccess,
    /// When.
    pub served: Served,
}

/// Bursts that wait.
pub struct Queue {
    length: usize,
    waiting: Vec<Waiting>,
    /// When the place of the next one became free.
    room: i64,
}

impl Queue {
    /// Room for `length` bursts, at least one.
    pub fn new(length: usize) -> Queue {
        let length = length.max(1);
        Queue { length, waiting: Vec::with_capacity(length), room: 0 }
    }

    /// Whether one must be served before the next may wait.
    pub fn is_full(&self) -> bool {
        self.waiting.len() == self.length
    }

    /// One burst of an access waits, known from clock `from` on.
    ///
    /// # Panics
    /// When the queue is full.
    pub fn push(&mut self, access: DramAccess, owner: u64, from: i64) {
        assert!(!self.is_full(), "{} bursts wait", self.length);
        let access = DramAccess { bursts: 1, ..access };
        self.waiting.push(Waiting { access, owner, from: from.max(self.room) });
    }

    /// Serve one burst, if any waits. Each command is shown to `see` as it is issued.
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
