//! The write cache, in the controller's memory. It holds mapping units that were written and are
//! not on flash yet. The least recently written unit leaves first.
//!
//! If only a part of a unit was written, the cache lists the sectors that it has. The other sectors
//! are fetched when the unit leaves, unless the host has written them in the meantime. The slot of
//! a unit is free again when the program that wrote the unit to flash is complete. A write that
//! needs slots waits until operations have freed enough slots of the cache. Slots count whichever
//! die freed them, so a write never waits for one particular die.

use flashatlas_types::{Lpn, OpId, Stamp};
use rustc_hash::FxHashMap;
use std::sync::Arc;

const NIL: u32 = u32::MAX;

/// One dirty unit.
#[derive(Clone, Debug)]
pub struct CacheEntry {
    /// The page.
    pub lpn: Lpn,
    /// Stamp that a read of the unit must return.
    pub stamp: Stamp,
    /// Stamp of the unit on flash when the entry was added. A fetch of missing sectors must return
    /// this stamp.
    pub base: Stamp,
    /// Sectors of the unit that the entry contains, one bit for each.
    pub present: u128,
    /// Bytes of the unit, if the drive keeps bytes. Only the bytes of sectors in `present` are
    /// valid.
    pub bytes: Option<Arc<[u8]>>,
    /// The operation that transfers the data to the cache.
    pub ready: OpId,
    newer: u32,
    older: u32,
}

/// A unit whose program is planned. Its slot keeps the data until the program is complete.
#[derive(Clone, Copy, Debug)]
struct LeavingUnit {
    /// Operations that transferred the unit's sectors: from the host, and from flash if some
    /// sectors were missing.
    arrived: [OpId; 2],
    /// Operation that was planned next after the unit's program.
    before: OpId,
}

/// Dirty units, and the slots that they occupy.
#[derive(Debug)]
pub struct WriteCache {
    capacity: u32,
    /// Slots taken so far.
    taken: u64,
    /// Slots that operations free when they complete, including operations that are not complete.
    freed: u64,
    /// Slots that were freed without an operation.
    freed_at_once: u64,
    index: FxHashMap<Lpn, u32>,
    entries: Vec<CacheEntry>,
    vacant: Vec<u32>,
    /// Units on their way to flash. The map is searched by key only, and the order in which
    /// `retain` visits the units changes nothing.
    leaving: FxHashMap<Lpn, LeavingUnit>,
    leaving_limit: usize,
    newest: u32,
    oldest: u32,
    upcoming: [Upcoming; 2],
    /// Limits for the number of dirty units and for the number of units on their way to flash.
    pub limits: Limits,
    /// `true` if the number of dirty units has exceeded `limits.high` and has not fallen to
    /// `limits.low` since then.
    pub too_full: bool,
}

/// Progress of a walk through the units, from the least recently written unit on.
#[derive(Clone, Copy, Debug)]
struct Upcoming {
    /// Entry visited last, or `NIL`.
    last: u32,
    /// Number of visited entries, including entries that were written again after the visit.
    count: u32,
}

impl Upcoming {
    const NONE: Upcoming = Upcoming { last: NIL, count: 0 };
}

/// Returns the next limit for the length of the list of leaving units. When the list reaches this
/// limit, units whose programs are complete are removed. Now the list has `listed` units.
///
/// The limit is twice `listed` and at least 128, so that removing units does not cost more than
/// adding them.
fn leaving_limit(listed: usize) -> usize {
    2 * listed.max(64)
}

/// Limits for the number of dirty units and for the number of units on their way to flash.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Number of dirty units above which units begin to leave.
    pub high: u32,
    /// Number of dirty units at which units stop leaving.
    pub low: u32,
    /// Greatest number of units on their way to flash.
    pub ahead: u32,
}

impl WriteCache {
    /// Returns an empty cache of `capacity` units. The drive's engine counts freed slots without
    /// end; its count is now `freed`, because the drive had a cache before.
    pub fn new(capacity: u32, limits: Limits, freed: u64) -> WriteCache {
        WriteCache {
            capacity,
            taken: freed,
            freed,
            freed_at_once: 0,
            index: FxHashMap::default(),
            entries: Vec::new(),
            vacant: Vec::new(),
            leaving: FxHashMap::default(),
            leaving_limit: leaving_limit(limits.ahead.min(capacity) as usize),
            newest: NIL,
            oldest: NIL,
            upcoming: [Upcoming::NONE; 2],
            limits,
            too_full: false,
        }
    }

    /// Notes that a unit leaves the cache. Operations `arrived` transferred its sectors, and its
    /// program is planned before operation `before`.
    pub fn leave(&mut self, lpn: Lpn, arrived: [OpId; 2], before: OpId, oldest_unfinished: OpId) {
        if self.leaving.len() >= self.leaving_limit {
            self.leaving.retain(|_, unit| unit.before > oldest_unfinished);
            // a single unfinished operation may keep all units in the list
            self.leaving_limit = leaving_limit(self.leaving.len());
        }
        self.leaving.insert(lpn, LeavingUnit { arrived, before });
    }

    /// Returns the operations that transferred the sectors of a unit on its way to flash, or `None`
    /// if the unit is not in the list.
    ///
    /// Only the caller knows whether the unit's program is complete.
    pub fn left(&self, lpn: Lpn) -> Option<[OpId; 2]> {
        self.leaving.get(&lpn).map(|unit| unit.arrived)
    }

    /// Returns the number of dirty units.
    pub fn len(&self) -> u32 {
        self.index.len() as u32
    }

    /// Returns the number of units that the cache can hold.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Returns the number of slots that can be taken: empty slots, and slots that planned
    /// operations will free.
    pub fn free_slots(&self) -> u32 {
        self.capacity - (self.taken - self.freed - self.freed_at_once) as u32
    }

    /// Returns the number of units on their way to flash that still occupy a slot. Complete
    /// operations have freed `freed` slots so far.
    pub fn leaving(&self, freed: u64) -> u32 {
        (self.taken - self.freed_at_once - freed) as u32 - self.len()
    }

    /// Takes free slots for `count` new units. Returns the value that the engine's count of freed
    /// slots must reach before these units are written, or 0 if the units need not wait.
    ///
    /// # Panics
    /// Panics if fewer than `count` slots are free.
    pub fn take_slots(&mut self, count: u32) -> u64 {
        assert!(count <= self.free_slots(), "the caller checked the free slots");
        self.taken += u64::from(count);
        self.taken.saturating_sub(u64::from(self.capacity) + self.freed_at_once)
    }

    /// Frees `count` slots when operation `op` is complete, or immediately if `op` is
    /// [`OpId::NONE`]. From now on [`WriteCache::take_slots`] may take the slots. The engine counts
    /// the slots of an operation when it completes the operation.
    pub fn release(&mut self, op: OpId, count: u32) {
        match op {
            OpId::NONE => self.freed_at_once += u64::from(count),
            _ => self.freed += u64::from(count),
        }
        assert!(
            self.freed + self.freed_at_once + u64::from(self.len()) <= self.taken,
            "more cache slots were freed than taken"
        );
    }

    /// Returns every dirty unit, in no particular order.
    pub fn units(&self) -> impl Iterator<Item = &CacheEntry> {
        self.index.values().map(|&e| &self.entries[e as usize])
    }

    /// Returns the entry of a page, or `None` if the page has no entry.
    pub fn get(&self, lpn: Lpn) -> Option<&CacheEntry> {
        self.index.get(&lpn).map(|&e| &self.entries[e as usize])
    }

    /// Marks the entry of a page as the most recently written entry and returns the entry. Returns
    /// `None` if the page has no entry.
    pub fn touch(&mut self, lpn: Lpn) -> Option<&mut CacheEntry> {
        let &e = self.index.get(&lpn)?;
        self.unlink(e);
        self.link_newest(e);
        Some(&mut self.entries[e as usize])
    }

    /// Returns the entry of a page for modification, or `None` if the page has no entry. The entry
    /// keeps its place in the order.
    pub fn get_mut(&mut self, lpn: Lpn) -> Option<&mut CacheEntry> {
        let &e = self.index.get(&lpn)?;
        Some(&mut self.entries[e as usize])
    }

    /// Adds an entry for a page that has no entry. The caller has taken a slot for the entry.
    pub fn insert(
        &mut self,
        lpn: Lpn,
        stamp: Stamp,
        base: Stamp,
        present: u128,
        bytes: Option<Arc<[u8]>>,
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
        assert!(self.index.insert(lpn, e).is_none(), "logical page {lpn} is cached twice");
        self.link_newest(e);
    }

    /// Removes and returns the entry of a page, or returns `None` if the page has no entry. The
    /// slot of the entry stays taken until [`WriteCache::release`].
    pub fn remove(&mut self, lpn: Lpn) -> Option<CacheEntry> {
        let e = self.index.remove(&lpn)?;
        self.unlink(e);
        self.vacant.push(e);
        let bytes = self.entries[e as usize].bytes.take();
        Some(CacheEntry { bytes, ..self.entries[e as usize].clone() })
    }

    /// Returns one of the next `distance` pages to leave, or `None` if all of them were returned
    /// already. Each page is returned once for each `purpose`. Purposes 0 and 1 have a walk of
    /// their own through the pages.
    ///
    /// The pages are only hints: if pages are written again, some pages may never be returned.
    pub fn upcoming(&mut self, purpose: usize, distance: u32) -> Option<Lpn> {
        let upcoming = &mut self.upcoming[purpose];
        if upcoming.count >= distance {
            return None;
        }
        let next = match upcoming.last {
            NIL => self.oldest,
            last => self.entries[last as usize].newer,
        };
        let entry = self.entries.get(next as usize)?;
        *upcoming = Upcoming { last: next, count: upcoming.count + 1 };
        Some(entry.lpn)
    }

    /// Returns the page that was written least recently, or `None` if the cache is empty.
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
        for upcoming in &mut self.upcoming {
            match upcoming {
                Upcoming { last, .. } if *last == e && older == NIL => *upcoming = Upcoming::NONE,
                Upcoming { last, .. } if *last == e => *last = older,
                Upcoming { count, .. } if self.oldest == e => *count = count.saturating_sub(1),
                _ => {}
            }
        }
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

    const LIMITS: Limits = Limits { high: 3, low: 1, ahead: 2 };

    #[test]
    fn least_recently_written_leaves_first_and_slots_come_back() {
        let mut cache = WriteCache::new(3, LIMITS, 0);
        for lpn in [1, 2, 3] {
            assert_eq!(cache.take_slots(1), 0);
            cache.insert(Lpn(lpn), Stamp(lpn), Stamp::ZERO, 1, None, OpId(7));
        }
        cache.touch(Lpn(1)).unwrap();
        assert_eq!((cache.free_slots(), cache.oldest()), (0, Some(Lpn(2))));
        assert_eq!(cache.remove(Lpn(3)).unwrap().stamp, Stamp(3));
        assert_eq!(cache.remove(Lpn(2)).unwrap().stamp, Stamp(2));
        assert_eq!((cache.len(), cache.free_slots(), cache.oldest()), (1, 0, Some(Lpn(1))));
        assert_eq!(cache.leaving(0), 2);
        cache.release(OpId(40), 1);
        assert_eq!((cache.free_slots(), cache.leaving(0), cache.leaving(1)), (1, 2, 1));
        // the fourth unit needs the slot that the operation frees
        assert_eq!((cache.take_slots(1), cache.free_slots()), (1, 0));
        // the fifth unit waits for no second operation, because its slot is free immediately
        cache.release(OpId::NONE, 1);
        assert_eq!(cache.take_slots(1), 1);
    }

    #[test]
    fn what_leaves_next_is_shown_once_for_each_purpose() {
        let mut cache = WriteCache::new(16, LIMITS, 0);
        let put = |cache: &mut WriteCache, lpn| {
            cache.take_slots(1);
            cache.insert(Lpn(lpn), Stamp(lpn), Stamp::ZERO, 1, None, OpId(7));
        };
        let shown = |cache: &mut WriteCache, purpose| -> Vec<u32> {
            std::iter::from_fn(|| cache.upcoming(purpose, 3)).map(|lpn| lpn.0).collect()
        };
        (1..=5).for_each(|lpn| put(&mut cache, lpn));
        assert_eq!((shown(&mut cache, 0), shown(&mut cache, 0)), (vec![1, 2, 3], vec![]));
        // after the two oldest pages have left, purpose 0 has two new pages to see and purpose 1
        // has three
        cache.remove(Lpn(1)).unwrap();
        cache.remove(Lpn(2)).unwrap();
        assert_eq!((shown(&mut cache, 0), shown(&mut cache, 1)), (vec![4, 5], vec![3, 4, 5]));
        // a page that was returned is written again: it leaves later, and is returned again
        cache.touch(Lpn(4)).unwrap();
        cache.remove(Lpn(3)).unwrap();
        assert_eq!(shown(&mut cache, 0), [4]);
        // the page that was returned last leaves before older pages do
        cache.remove(Lpn(4)).unwrap();
        put(&mut cache, 6);
        cache.remove(Lpn(5)).unwrap();
        assert_eq!(shown(&mut cache, 0), [6]);
        // no page is left, and the walk starts again
        cache.remove(Lpn(6)).unwrap();
        assert_eq!(shown(&mut cache, 0), [0; 0]);
        (7..=8).for_each(|lpn| put(&mut cache, lpn));
        assert_eq!(shown(&mut cache, 0), [7, 8]);
    }

    #[test]
    fn what_leaves_is_looked_at_a_few_times_each_whatever_is_unfinished() {
        // operation 1 is never complete, so no unit can be removed from the list
        let mut cache = WriteCache::new(8, LIMITS, 0);
        let mut limits = 0;
        for n in 1..=100_000 {
            let before = cache.leaving_limit;
            cache.leave(Lpn(n), [OpId::NONE; 2], OpId(u64::from(n) + 1), OpId(1));
            limits += usize::from(cache.leaving_limit != before);
        }
        assert_eq!(limits, 10, "from 128 on, the limit doubles up to 2^17 units");
        // all operations are complete, and the next removal drops their units
        for n in 100_001..=140_000 {
            cache.leave(Lpn(n), [OpId::NONE; 2], OpId(u64::from(n) + 1), OpId(100_001));
        }
        assert!(cache.leaving.len() < 60_000 && cache.left(Lpn(140_000)).is_some());
    }
}
