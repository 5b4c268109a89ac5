//! Commands of a layer that are complete when commands to the device beneath are.

use crate::Done;
use flashatlas_types::{Ps, Tag};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Commands from above in flight, and what each waits for.
#[derive(Default)]
pub(crate) struct Joins {
    flights: Vec<Flight>,
    vacant: Vec<u32>,
    /// By command to the device beneath: flights that wait for it. Every such command in flight has an entry.
    waiting: FxHashMap<Tag, SmallVec<[u32; 2]>>,
    /// Flights that are complete at a time of the layer's own.
    due: BinaryHeap<Reverse<(Ps, u64, u32)>>,
    sequence: u64,
}

#[derive(Clone, Copy)]
struct Flight {
    tag: Tag,
    left: u32,
    earliest: Ps,
}

impl Joins {
    /// A command to the device beneath is on its way.
    #[inline]
    pub fn sent(&mut self, beneath: Tag) {
        self.waiting.insert(beneath, SmallVec::new());
    }

    /// Whether it still is.
    pub fn is_in_flight(&self, beneath: Tag) -> bool {
        self.waiting.contains_key(&beneath)
    }

    /// The command `tag` is complete when all of `beneath` that are in flight are, not before `earliest`.
    pub fn wait(&mut self, tag: Tag, beneath: &[Tag], earliest: Ps) {
        let flight = match self.vacant.pop() {
            Some(flight) => flight,
            None => {
                self.flights.push(Flight { tag, left: 0, earliest });
                (self.flights.len() - 1) as u32
            }
        };
        let mut left = 0;
        for below in beneath {
            if let Some(flights) = self.waiting.get_mut(below) {
                flights.push(flight);
                left += 1;
            }
        }
        self.flights[flight as usize] = Flight { tag, left, earliest };
        if left == 0 {
            self.schedule(flight);
        }
    }

    fn schedule(&mut self, flight: u32) {
        self.sequence += 1;
        self.due.push(Reverse((self.flights[flight as usize].earliest, self.sequence, flight)));
    }

    /// Commands to the device beneath that `tag` waits for.
    pub fn behind(&self, tag: Tag) -> SmallVec<[Tag; 2]> {
        let waits = |flights: &SmallVec<[u32; 2]>| flights.iter().any(|&f| self.flights[f as usize].tag == tag);
        let mut behind: SmallVec<[Tag; 2]> =
            self.waiting.iter().filter(|(_, flights)| waits(flights)).map(|(&tag, _)| tag).collect();
        behind.sort_unstable();
        behind
    }

    /// A command to the device beneath is complete: so are those that waited for nothing else.
    #[inline]
    pub fn done(&mut self, beneath: Done, out: &mut Vec<Done>) {
        let Some(flights) = self.waiting.remove(&beneath.tag) else { return };
        for index in flights {
            let flight = &mut self.flights[index as usize];
            flight.left -= 1;
            if flight.left > 0 {
                continue;
            }
            if flight.earliest > beneath.at {
                self.schedule(index);
            } else {
                out.push(Done { tag: flight.tag, at: beneath.at });
                self.vacant.push(index);
            }
        }
    }

    /// When the next command is complete that waits for a time of its own.
    #[inline]
    pub fn next_due(&self) -> Option<Ps> {
        self.due.peek().map(|Reverse((at, ..))| *at)
    }

    /// Complete those that wait for a time up to `until`.
    pub fn complete_due(&mut self, until: Ps, out: &mut Vec<Done>) {
        while let Some(&Reverse((at, _, flight))) = self.due.peek()
            && at <= until
        {
            self.due.pop();
            out.push(Done { tag: self.flights[flight as usize].tag, at });
            self.vacant.push(flight);
        }
    }

    /// Whether any command, from above or to the device beneath, is in flight.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.due.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_complete_when_all_that_it_waits_for_is() {
        let mut joins = Joins::default();
        let mut out = Vec::new();
        (1..=3).for_each(|tag| joins.sent(Tag(tag)));
        joins.wait(Tag(70), &[Tag(1), Tag(2)], Ps(0));
        joins.wait(Tag(71), &[Tag(2), Tag(9)], Ps(50));
        joins.wait(Tag(72), &[Tag(9)], Ps(7));
        assert_eq!(joins.behind(Tag(70)).as_slice(), [Tag(1), Tag(2)]);
        joins.done(Done { tag: Tag(2), at: Ps(5) }, &mut out);
        assert!(out.is_empty() && joins.next_due() == Some(Ps(7)), "9 is not in flight");
        joins.complete_due(Ps(7), &mut out);
        joins.done(Done { tag: Tag(1), at: Ps(9) }, &mut out);
        joins.complete_due(Ps(60), &mut out);
        let done = |tag, at| Done { tag: Tag(tag), at: Ps(at) };
        assert_eq!(out, [done(72, 7), done(70, 9), done(71, 50)]);
        assert!(!joins.is_idle() && joins.is_in_flight(Tag(3)));
        joins.done(done(3, 80), &mut out);
        assert!(joins.is_idle());
    }
}
