//! The write cache: mapping units in the controller's memory that are not on flash yet, least
//! recently written first.
//!
//! A unit that was written in part knows which of its sectors it holds; the others are fetched when
//! it leaves, and only if nobody wrote them in the meantime. Its slot is free again when the
//! program that took it to flash is complete: a write that needs a slot waits for that program.

use flashatlas_types::{Lpn, OpId, Stamp};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

const NIL: u32 = u32::MAX;

/// One dirty unit.
#[derive(Clone, Debug)]
pub struct CacheEntry {
    /// Which page.
    pub lpn: Lpn,
    /// Stamp of the unit as a read must return it.
    pub stamp: Stamp,
    /// Stamp of the unit on flash when the entry was made: what a fetch of missing sectors must
    /// find.
    pub base: Stamp,
    /// Sectors of the unit that are here.
    pub present: u128,
    /// The bytes of the unit, where the drive keeps bytes; meaningful where `present`.
    pub bytes: Option<Box<[u8]>>,
    /// The operation that brings the data.
    pub ready: OpId,
    newer: u32,
    older: u32,
}

/// A unit whose program is planned: its slot holds the data until the program is complete.
#[derive(Clone, Copy, Debug)]
struct LeavingUnit {
    /// What brought its sectors here: from the host, and from flash where some were missing.
    arrived: [OpId; 2],
    /// Its program is planned before this operation.
    before: OpId,
}

/// Dirty units, and the slots they occupy.
#[derive(Debug)]
pub struct WriteCache {
    capacity: u32,
    unused: u32,
    /// For each free slot that was used before, the program that freed it.
    freed: VecDeque<OpId>,
    index: FxHashMap<Lpn, u32>,
    entries: Vec<CacheEntry>,
    vacant: Vec<u32>,
    /// Units on their way to flash. Looked up only; the order of `retain` changes nothing.
    leaving: FxHashMap<Lpn, LeavingUnit>,
    leaving_limit: usize,
    newest: u32,
    oldest: u32,
    /// Units above which eviction starts, and at which it stops.
    pub high: u32,
    /// See `high`.
    pub low: u32,
}

impl WriteCache {
    /// A cache of `capacity` units.
    pub fn new(capacity: u32, high: u32, low: u32) -> WriteCache {
        WriteCache {
            capacity,
            unused: capacity,
            freed: VecDeque::new(),
            index: FxHashMap::default(),
            entries: Vec::new(),
            vacant: Vec::new(),
            leaving: FxHashMap::default(),
            leaving_limit: 2 * capacity as usize,
            newest: NIL,
            oldest: NIL,
            high,
            low,
        }
    }

    /// A unit leaves whose sectors `arrived` with these operations; its program is one of those
    /// that come before operation `before`.
    pub fn leave(&mut self, lpn: Lpn, arrived: [OpId; 2], before: OpId, oldest_unfinished: OpId) {
        if self.leaving.len() >= self.leaving_limit {
            self.leaving.retain(|_, unit| unit.before > oldest_unfinished);
            // one old operation may keep all of them: twice as many, before all are looked at again
            self.leaving_limit = 2 * self.leaving.len().max(self.capacity as usize);
        }
        self.leaving.insert(lpn, LeavingUnit { arrived, before });
    }

    /// With what the sectors of a unit arrived that may still be here although it was sent to
    /// flash. Whether its program is complete, the caller knows.
    pub fn left(&self, lpn: Lpn) -> Option<[OpId; 2]> {
        self.leaving.get(&lpn).map(|unit| unit.arrived)
    }

    /// Dirty units.
    pub fn len(&self) -> u32 {
        self.index.len() as u32
    }

    /// Units that the cache can hold.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Slots that can be taken.
    pub fn free_slots(&self) -> u32 {
        self.unused + self.freed.len() as u32
    }

    /// Take a free slot; returns the operation that must be complete before it is written.
    ///
    /// # Panics
    /// When there is none.
    pub fn take_slot(&mut self) -> OpId {
        if self.unused > 0 {
            self.unused -= 1;
            return OpId::NONE;
        }
        self.freed.pop_front().expect("a free slot was checked for")
    }

    /// `count` slots are free once `op` is complete.
    pub fn release(&mut self, op: OpId, count: u32) {
        self.freed.extend(std::iter::repeat_n(op, count as usize));
        assert!(
            self.free_slots() + self.len() <= self.capacity,
            "more cache slots were freed than taken"
        );
    }

    /// The entry of a page.
    pub fn get(&self, lpn: Lpn) -> Option<&CacheEntry> {
        self.index.get(&lpn).map(|&e| &self.entries[e as usize])
    }

    /// The entry of a page, which is not the least recently written any more.
    pub fn touch(&mut self, lpn: Lpn) -> Option<&mut CacheEntry> {
        let &e = self.index.get(&lpn)?;
        self.unlink(e);
        self.link_newest(e);
        Some(&mut self.entries[e as usize])
    }

    /// The entry of a page, left in its place, to change.
    pub fn get_mut(&mut self, lpn: Lpn) -> Option<&mut CacheEntry> {
        let &e = self.index.get(&lpn)?;
        Some(&mut self.entries[e as usize])
    }

    /// Add a page that has no entry, in a slot that was taken.
    pub fn insert(
        &mut self,
        lpn: Lpn,
        stamp: Stamp,
        base: Stamp,
        present: u128,
        bytes: Option<Box<[u8]>>,
        ready: OpId,
    ) {
        let entry = CacheEntry { lpn, stamp, base, present, bytes, ready, newer: NIL, older: NIL };
        let e = match self.vacant.pop() {
            Some(e) => {
                self.entries[e as usize] = entry;
                e
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        assert!(self.index.insert(lpn, e).is_none(), "page {lpn} is cached twice");
        self.link_newest(e);
    }

    /// Take a page out; its slot stays taken until [`WriteCache::release`].
    pub fn remove(&mut self, lpn: Lpn) -> Option<CacheEntry> {
        let e = self.index.remove(&lpn)?;
        self.unlink(e);
        self.vacant.push(e);
        let bytes = self.entries[e as usize].bytes.take();
        Some(CacheEntry { bytes, ..self.entries[e as usize].clone() })
    }

    /// The page that was written least recently.
    pub fn oldest(&self) -> Option<Lpn> {
        (self.oldest != NIL).then(|| self.entries[self.oldest as usize].lpn)
    }

    fn link_newest(&mut self, e: u32) {
        (self.entries[e as usize].older, self.entries[e as usize].newer) = (self.newest, NIL);
        match self.newest {
            NIL => self.oldest = e,
            n => self.entries[n as usize].newer = e,
        }
        self.newest = e;
    }

    fn unlink(&mut self, e: u32) {
        let (older, newer) = (self.entries[e as usize].older, self.entries[e as usize].newer);
        match older {
            NIL => self.oldest = newer,
            o => self.entries[o as usize].newer = newer,
        }
        match newer {
            NIL => self.newest = older,
            n => self.entries[n as usize].older = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_written_leaves_first_and_slots_come_back() {
        let mut cache = WriteCache::new(3, 3, 1);
        for lpn in [1, 2, 3] {
            assert_eq!(cache.take_slot(), OpId::NONE);
            cache.insert(Lpn(lpn), Stamp(lpn), Stamp::ZERO, 1, None, OpId(7));
        }
        cache.touch(Lpn(1)).unwrap();
        assert_eq!((cache.free_slots(), cache.oldest()), (0, Some(Lpn(2))));
        assert_eq!(cache.remove(Lpn(3)).unwrap().stamp, Stamp(3));
        assert_eq!(cache.remove(Lpn(2)).unwrap().stamp, Stamp(2));
        assert_eq!((cache.len(), cache.free_slots(), cache.oldest()), (1, 0, Some(Lpn(1))));
        cache.release(OpId(40), 2);
        assert_eq!((cache.take_slot(), cache.take_slot()), (OpId(40), OpId(40)));
    }

    #[test]
    fn what_leaves_is_looked_at_a_few_times_each_whatever_is_unfinished() {
        // operation 1 is never complete: nothing can be forgotten
        let mut cache = WriteCache::new(8, 8, 4);
        let mut limits = 0;
        for n in 1..=100_000 {
            let before = cache.leaving_limit;
            cache.leave(Lpn(n), [OpId::NONE; 2], OpId(u64::from(n) + 1), OpId(1));
            limits += usize::from(cache.leaving_limit != before);
        }
        assert_eq!(limits, 13, "from 16 on, twice as many each time: 2^17 is more than all");
        // all are complete, and the next look forgets them
        for n in 100_001..=140_000 {
            cache.leave(Lpn(n), [OpId::NONE; 2], OpId(u64::from(n) + 1), OpId(100_001));
        }
        assert!(cache.leaving.len() < 60_000 && cache.left(Lpn(140_000)).is_some());
    }
}
