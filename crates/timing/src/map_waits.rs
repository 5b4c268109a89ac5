//! Reads of the map that host reads may wait for ([`crate::inherit`]).

use flashatlas_types::{OpId, beat};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Relation of a read to the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HostRead {
    /// The read is not for a host.
    No,
    /// The read is of a page of the host.
    OfItsData,
    /// The read is of a page of the map that a read of the host waits for.
    OfItsMap,
}

/// An operation that may be unfinished: a read of the map, or an operation that waits for such
/// reads.
#[derive(Debug)]
pub(crate) struct Waiting {
    id: OpId,
    /// `true` if the operation reads a page of the map.
    reads_map: bool,
    /// `true` if a host read waits for the operation.
    raised: bool,
    /// Operations of the list that this one waits for.
    on: SmallVec<[OpId; 2]>,
}

/// The operations behind which a host read would wait for the map, in order of number.
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

    /// Returns the operation of this number, if it is in the list and no host read waits for it.
    #[inline]
    pub fn find(&mut self, id: OpId) -> Option<&mut Waiting> {
        // most operations wait for one that is older or newer than all of these
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

    /// Marks the operations that a new host read waits for: `on`, and all that these wait for.
    /// Returns the reads of the map among them that no host read has waited for, in order of
    /// number.
    ///
    /// Each operation is marked once, because the operations that it waits for are known when it is
    /// issued.
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
