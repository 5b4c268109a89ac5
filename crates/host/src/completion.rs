//! Tracker of commands from above. Each command is complete when all its commands to the lower
//! device are complete.

use flashatlas_device::Done;
use flashatlas_types::{Ps, Tag};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Commands from above in flight (*flights*), and the commands to the lower device for which each
/// flight waits.
#[derive(Default)]
pub(crate) struct CompletionTracker {
    flights: Vec<Flight>,
    vacant: Vec<u32>,
    /// The flights that wait for each command to the lower device, from tag `base` on. `None` for
    /// commands that are complete.
    waiting: VecDeque<Option<SmallVec<[u32; 2]>>>,
    base: u64,
    /// Flights that wait for no command, each with the time at which it is complete.
    due: BinaryHeap<Reverse<(Ps, u64, u32)>>,
    sequence: u64,
}

#[derive(Clone, Copy)]
struct Flight {
    tag: Tag,
    left: u32,
}

impl CompletionTracker {
    /// Notes a command that was sent to the lower device.
    ///
    /// Tags must ascend. The table stays short if few tags are skipped and most commands complete
    /// in order.
    #[inline]
    pub fn sent(&mut self, below: Tag) {
        if self.waiting.is_empty() {
            self.base = below.0;
        }
        let place = below.0.checked_sub(self.base).expect("tags ascend") as usize;
        assert!(place >= self.waiting.len(), "tag {below} of the lower device was used before");
        self.waiting.resize_with(place, || None);
        self.waiting.push_back(Some(SmallVec::new()));
    }

    fn place(&self, below: Tag) -> Option<usize> {
        below.0.checked_sub(self.base).map(|place| place as usize)
    }

    /// Returns `true` if a command to the lower device is in flight.
    #[inline]
    pub fn is_in_flight(&self, below: Tag) -> bool {
        self.place(below).is_some_and(|place| self.waiting.get(place).is_some_and(Option::is_some))
    }

    /// Removes a command that the lower device refused.
    pub fn refused(&mut self, below: Tag) {
        let flights = self.take(below);
        assert!(
            flights.is_none_or(|f| f.is_empty()),
            "a command waits for command {below} of the lower device, which was refused"
        );
    }

    /// Makes the command `tag` complete when all commands of `below` in flight are complete.
    ///
    /// If none of these commands is in flight, `tag` is complete at `alone`.
    pub fn wait(&mut self, tag: Tag, below: &[Tag], alone: Ps) {
        let flight = match self.vacant.pop() {
            Some(flight) => flight,
            None => {
                self.flights.push(Flight { tag, left: 0 });
                (self.flights.len() - 1) as u32
            }
        };
        let mut left = 0;
        for lower in below {
            let place = self.place(*lower);
            if let Some(Some(flights)) = place.and_then(|place| self.waiting.get_mut(place)) {
                flights.push(flight);
                left += 1;
            }
        }
        self.flights[flight as usize] = Flight { tag, left };
        if left == 0 {
            self.sequence += 1;
            self.due.push(Reverse((alone, self.sequence, flight)));
        }
    }

    /// Ends a command to the lower device. Returns the flights that wait for it.
    ///
    /// Returns `None` if the command is not in flight.
    #[inline]
    fn take(&mut self, below: Tag) -> Option<SmallVec<[u32; 2]>> {
        let place = self.place(below)?;
        let flights = self.waiting.get_mut(place)?.take();
        while let Some(None) = self.waiting.front() {
            self.waiting.pop_front();
            self.base += 1;
        }
        flights
    }

    /// Ends commands to the lower device that will never be complete.
    ///
    /// Flights that wait for no other command are complete at `at`.
    pub fn abandon(&mut self, which: impl Fn(Tag) -> bool, at: Ps) {
        let end = self.base + self.waiting.len() as u64;
        for below in (self.base..end).map(Tag).filter(|&tag| which(tag)) {
            for flight in self.take(below).into_iter().flatten() {
                let left = &mut self.flights[flight as usize].left;
                *left -= 1;
                if *left == 0 {
                    self.sequence += 1;
                    self.due.push(Reverse((at, self.sequence, flight)));
                }
            }
        }
    }

    /// Returns the commands to the lower device for which `tag` waits.
    pub fn behind(&self, tag: Tag) -> SmallVec<[Tag; 2]> {
        let waits = |flights: &SmallVec<[u32; 2]>| {
            flights.iter().any(|&f| self.flights[f as usize].tag == tag)
        };
        let all = (self.base..).zip(&self.waiting);
        all.filter(|(_, flights)| flights.as_ref().is_some_and(waits))
            .map(|(tag, _)| Tag(tag))
            .collect()
    }

    /// Completes a command to the lower device, and the flights that waited for this command only.
    #[inline]
    pub fn done(&mut self, below: Done, out: &mut Vec<Done>) {
        let Some(flights) = self.take(below.tag) else { return };
        for &index in &flights {
            let flight = &mut self.flights[index as usize];
            flight.left -= 1;
            if flight.left > 0 {
                continue;
            }
            out.push(Done { tag: flight.tag, at: below.at });
            self.vacant.push(index);
        }
    }

    /// Returns the time of the first flight in `due`, or `None` if there is none.
    #[inline]
    pub fn next_due(&self) -> Option<Ps> {
        self.due.peek().map(|Reverse((at, ..))| *at)
    }

    /// Completes the flights that are due up to `until`. Returns `true` if there were any.
    #[inline]
    pub fn complete_due(&mut self, until: Ps, out: &mut Vec<Done>) -> bool {
        let before = out.len();
        while let Some(&Reverse((at, _, flight))) = self.due.peek()
            && at <= until
        {
            self.due.pop();
            out.push(Done { tag: self.flights[flight as usize].tag, at });
            self.vacant.push(flight);
        }
        out.len() > before
    }

    /// Returns `true` if no command, from above or to the lower device, is in flight.
    pub fn is_idle(&self) -> bool {
        self.waiting.iter().all(Option::is_none) && self.due.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_complete_when_all_that_it_waits_for_is() {
        let mut completions = CompletionTracker::default();
        let mut out = Vec::new();
        (1..=3).for_each(|tag| completions.sent(Tag(tag)));
        completions.wait(Tag(70), &[Tag(1), Tag(2)], Ps(50));
        completions.wait(Tag(71), &[Tag(2), Tag(9)], Ps(50));
        completions.wait(Tag(72), &[Tag(9)], Ps(7));
        assert_eq!(completions.behind(Tag(70)).as_slice(), [Tag(1), Tag(2)]);
        completions.done(Done { tag: Tag(2), at: Ps(5) }, &mut out);
        assert!(out.len() == 1 && completions.next_due() == Some(Ps(7)), "9 is not in flight");
        completions.complete_due(Ps(7), &mut out);
        completions.done(Done { tag: Tag(1), at: Ps(9) }, &mut out);
        assert!(!completions.complete_due(Ps(60), &mut out));
        let done = |tag, at| Done { tag: Tag(tag), at: Ps(at) };
        assert_eq!(out, [done(71, 5), done(72, 7), done(70, 9)]);
        assert!(!completions.is_idle() && completions.is_in_flight(Tag(3)));
        completions.refused(Tag(3));
        assert!(completions.is_idle());
    }
}
