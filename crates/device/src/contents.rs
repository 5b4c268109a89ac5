//! What the digests of a layer stand for.
//!
//! A simulation keeps a stamp of 32 bits for the bytes of a mapping unit (see [`Stamp`]). A layer
//! that gathers several pages of its own in one unit, or writes records of its own, gets that stamp
//! back when it reads, and must know what is there: this is the table from a stamp to what it
//! is the digest of. It is part of the simulation of *data*, not of the layer's memory: a stamp
//! that a drive returns after a power failure is looked up here, as the bytes would be read.

use flashatlas_types::Stamp;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Stamps of the pages in a unit, in order.
pub type Pages = SmallVec<[Stamp; 4]>;

/// What a unit holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UnitContent {
    /// Pages of the layer.
    Pages(Pages),
    /// Bytes of a record; zeros at the end are left out.
    Bytes(Arc<[u8]>),
}

/// The table.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    held: FxHashMap<Stamp, UnitContent>,
    next: u64,
}

/// Names of composed units lie apart from those of hosts' writes.
const COMPOSED: u64 = 1 << 61;

impl Contents {
    /// A stamp that stands for `held` from now on, and stood for nothing before.
    pub fn compose(&mut self, held: UnitContent) -> Stamp {
        loop {
            self.next += 1;
            // of 2^32 stamps few are taken: a second round is rare
            let stamp = Stamp::whole(COMPOSED | self.next, 0);
            if let Entry::Vacant(free) = self.held.entry(stamp) {
                free.insert(held);
                return stamp;
            }
        }
    }

    /// The stamps of units of `unit_bytes` that hold the bytes of a record from now on.
    pub fn compose_record(&mut self, bytes: &[u8], unit_bytes: u32) -> Vec<Stamp> {
        let unit = |bytes: &[u8]| {
            let used = bytes.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
            UnitContent::Bytes(Arc::from(&bytes[..used]))
        };
        bytes.chunks(unit_bytes as usize).map(|bytes| self.compose(unit(bytes))).collect()
    }

    /// The bytes of the record in units of `unit_bytes` with these stamps; units that nobody wrote
    /// are zeros. `None` where one of them is no part of a record.
    pub fn record(&self, stamps: &[Stamp], unit_bytes: u32) -> Option<Vec<u8>> {
        let mut bytes = vec![0; stamps.len() * unit_bytes as usize];
        for (unit, stamp) in bytes.chunks_mut(unit_bytes as usize).zip(stamps) {
            match self.get(*stamp) {
                Some(UnitContent::Bytes(held)) => unit[..held.len()].copy_from_slice(held),
                None if *stamp == Stamp::ZERO => {}
                _ => return None,
            }
        }
        Some(bytes)
    }

    /// What a stamp is the digest of; `None`: nothing that a layer wrote.
    #[inline]
    pub fn get(&self, stamp: Stamp) -> Option<&UnitContent> {
        self.held.get(&stamp)
    }

    /// Stamps that stand for something.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Forget all but those that a device still holds.
    pub fn retain(&mut self, held: impl Fn(Stamp) -> bool) {
        self.held.retain(|&stamp, _| held(stamp));
    }

    /// Know what `other` knows.
    pub fn learn(&mut self, other: &Contents) {
        self.held.extend(other.held.iter().map(|(&stamp, held)| (stamp, held.clone())));
        self.next = self.next.max(other.next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_stamp_stands_for_two_things() {
        let mut contents = Contents::default();
        for n in 0..200_000u32 {
            let stamp = contents.compose(UnitContent::Bytes(Arc::from(n.to_le_bytes())));
            assert_eq!(contents.get(stamp), Some(&UnitContent::Bytes(Arc::from(n.to_le_bytes()))));
        }
        // about 200,000^2 / 2^33 = 4.7 of them would have, were they not chosen
        assert_eq!(contents.len(), 200_000);
        assert!(contents.next > 200_000, "{} names for {} stamps", contents.next, contents.len());
    }
}
