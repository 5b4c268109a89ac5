//! Lookups whose reads wait in the queue of a memory controller. The controller may change the
//! order of the reads.

use super::commands::CommandLog;
use super::measure::Measure;
use flashatlas_dram::queue::ServedBurst;
use flashatlas_dram::{Dram, Queue};
use flashatlas_types::DramAccess;
use std::collections::VecDeque;

/// A lookup whose reads are not all served.
struct OpenLookup {
    /// Number of the lookup's bursts that were not served yet.
    left: u64,
    /// Clock at which the data of all served bursts has arrived.
    loaded: i64,
    /// `true` if the lookup's first read was served.
    begun: bool,
    hit: bool,
}

/// The queue, and the lookups that have reads in it.
pub(super) struct Queued {
    queue: Queue,
    /// Lookups, beginning with the oldest lookup that is not complete.
    open: VecDeque<OpenLookup>,
    /// Number of the first lookup in `open`.
    first: u64,
    /// Clock of the last read of the lookup that completed last.
    last: i64,
}

impl Queued {
    pub fn new(queue: Queue) -> Queued {
        Queued { queue, open: VecDeque::new(), first: 0, last: 0 }
    }

    /// Adds the reads of one lookup to the queue, and serves other reads if the queue is full.
    /// Reads that depend on earlier data are added when the data has arrived.
    pub fn look_up(
        &mut self,
        accesses: &[DramAccess],
        hit: bool,
        (dram, log): (&mut Dram, &mut CommandLog),
        measure: &mut Measure,
    ) {
        let owner = self.first + self.open.len() as u64;
        let bursts: u64 = accesses.iter().map(|access| u64::from(access.bursts)).sum();
        self.open.push_back(OpenLookup { left: bursts, loaded: 0, begun: false, hit });
        let (mut pushed, mut from) = (0, 0);
        for &access in accesses {
            if access.dependent {
                while self.lookup(owner).left > bursts - pushed {
                    self.serve(dram, log, measure);
                }
                from = self.lookup(owner).loaded;
            }
            for _ in 0..access.bursts {
                if self.queue.is_full() {
                    self.serve(dram, log, measure);
                }
                self.queue.push(access, owner, from);
                pushed += 1;
            }
        }
    }

    fn lookup(&mut self, owner: u64) -> &mut OpenLookup {
        &mut self.open[(owner - self.first) as usize]
    }

    /// Serves one burst, or returns `false` if the queue is empty.
    fn serve(&mut self, dram: &mut Dram, log: &mut CommandLog, measure: &mut Measure) -> bool {
        let Some(ServedBurst { owner, access, served }) = log.serve_one(&mut self.queue, dram)
        else {
            return false;
        };
        let lookup = self.lookup(owner);
        measure.read(access, !std::mem::replace(&mut lookup.begun, true));
        lookup.loaded = lookup.loaded.max(served.data);
        lookup.left -= 1;
        if lookup.left == 0 {
            let hit = lookup.hit;
            measure.lookup((served.last - self.last) as u64, None, hit);
            self.last = served.last;
        }
        while self.open.front().is_some_and(|lookup| lookup.left == 0) {
            self.open.pop_front();
            self.first += 1;
        }
        true
    }

    /// Serves all bursts in the queue.
    pub fn drain(&mut self, (dram, log): (&mut Dram, &mut CommandLog), measure: &mut Measure) {
        while self.serve(dram, log, measure) {}
    }
}
