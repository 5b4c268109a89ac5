//! Reads of the map that host reads may wait for ([`crate::inherit`]).

use flashatlas_types::{OpId, beat};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Relation of a read to the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HostRead {
    /// No host waits for the read.
    No,
    /// The read is of a page of host data.
    OfItsData,
    /// The read is of a map page, and a host read waits for it.
    OfItsMap,
}

/// A read of the map, or an operation that waits for a read of the map. It may be unfinished.
#[derive(Debug)]
pub(crate) struct Waiting {
    id: OpId,
    /// `true` if the operation reads a map page.
    reads_map: bool,
    /// `true` if a host read waits for the operation.
    raised: bool,
    /// Operations of the list that this operation waits for.
    on: SmallVec<[OpId; 2]>,
}

/// The reads of the map and the operations that wait for them, in order of number.
#[derive(Debug, Default)]
pub(crate) struct MapWaits {
    list: VecDeque<Waiting>,
    /// Number of operations in the list that no host read waits for.
    free: usize,
}

impl MapWaits {
    /// Returns `true` if the list is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the operation with number `id`, if it is in the list and no host read waits for it.
    #[inline]
    pub fn find(&mut self, id: OpId) -> Option<&mut Waiting> {
        // most operations wait for an operation that is older or newer than all operations of the
        // list
        if self.list.back()?.id < id || self.list.front()?.id > id {
            return None;
        }
        let place = self.list.binary_search_by_key(&id, |one| one.id).ok()?;
        self.list.get_mut(place).filter(|one| !one.raised)
    }

    /// Removes operations that are complete from the front of the list.
    #[inline]
    pub fn forget(&mut self, oldest: OpId) {
        while let Some(one) = self.list.front()
            && one.id < oldest
        {
            self.free -= usize::from(!one.raised);
            self.list.pop_front();
        }
    }

    /// Adds an operation that waits for these operations of the list.
    pub fn add(&mut self, id: OpId, reads_map: bool, on: SmallVec<[OpId; 2]>) {
        self.list.push_back(Waiting { id, reads_map, raised: false, on });
        self.free += 1;
    }

    /// Marks the operations that a new host read waits for: the operations in `on`, and all
    /// operations that they wait for. Returns the reads of the map that are newly marked, in order
    /// of number.
    ///
    /// Each operation is marked only once, because the operations that it waits for are known when
    /// it is issued.
    pub fn raise(&mut self, mut on: SmallVec<[OpId; 2]>) -> SmallVec<[OpId; 4]> {
        let mut reads = SmallVec::new();
        while let Some(id) = on.pop() {
            beat(1); // a chain of a million operations may wait, each for the next
            let Some(one) = self.find(id) else { continue };
            one.raised = true;
            if one.reads_map {
                reads.push(id);
            }
            on.append(&mut one.on);
            self.free -= 1;
        }
        if self.free == 0 {
            self.list.clear();
        }
        reads.sort_unstable();
        reads
    }
}
