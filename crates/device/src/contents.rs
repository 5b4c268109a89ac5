//! Contents that a layer's stamps represent.
//!
//! A simulation stores a stamp of 32 bits instead of the bytes of a mapping unit (see [`Stamp`]). A
//! layer may gather several of its own pages in one unit, or write its own records. When the layer
//! reads, it gets the stamp of the unit back and needs the content. This table maps each stamp to
//! its content. The table is part of the simulation of *data*, not of the layer's memory. After a
//! power failure, a layer still looks up the stamps that a drive returns, as a real layer would
//! read the bytes.

use flashatlas_types::Stamp;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Stamps of the pages in a unit, in order.
pub type Pages = SmallVec<[Stamp; 4]>;

/// Content of a unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UnitContent {
    /// Pages of the layer.
    Pages(Pages),
    /// Bytes of a record, without trailing zeros.
    Bytes(Arc<[u8]>),
}

/// Table that maps stamps to the contents that they represent.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    held: FxHashMap<Stamp, UnitContent>,
    next: u64,
}

/// Bit that distinguishes the names of composed units from the names of host writes.
const COMPOSED: u64 = 1 << 61;

impl Contents {
    /// Returns a new stamp that represents `held` from now on.
    pub fn compose(&mut self, held: UnitContent) -> Stamp {
        loop {
            self.next += 1;
            // few of the 2^32 stamps are taken, so a second round is rare
            let stamp = Stamp::whole(COMPOSED | self.next, 0);
            if let Entry::Vacant(free) = self.held.entry(stamp) {
                free.insert(held);
                return stamp;
            }
        }
    }

    /// Returns the stamps of the units that store the bytes of a record from now on. Each unit has
    /// `unit_bytes` bytes.
    pub fn compose_record(&mut self, bytes: &[u8], unit_bytes: u32) -> Vec<Stamp> {
        let unit = |bytes: &[u8]| {
            let used = bytes.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
            UnitContent::Bytes(Arc::from(&bytes[..used]))
        };
        bytes.chunks(unit_bytes as usize).map(|bytes| self.compose(unit(bytes))).collect()
    }

    /// Returns the bytes of the record in the units with these stamps. Each unit has `unit_bytes`
    /// bytes. Units that were never written are zeros. Returns `None` if one of the units is not
    /// part of a record.
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

    /// Returns the content that a stamp represents, or `None` if no layer wrote such content.
    #[inline]
    pub fn get(&self, stamp: Stamp) -> Option<&UnitContent> {
        self.held.get(&stamp)
    }

    /// Returns the number of stamps that represent a content.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns `true` if no stamp represents a content.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Removes all stamps for which `held` returns `false`.
    pub fn retain(&mut self, held: impl Fn(Stamp) -> bool) {
        self.held.retain(|&stamp, _| held(stamp));
    }

    /// Adds all contents of `other`.
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
        // without the retry, about 200,000^2 / 2^33 = 4.7 stamps would represent two contents
        assert_eq!(contents.len(), 200_000);
        assert!(
            contents.next > 200_000,
            "there are {} names for {} stamps",
            contents.next,
            contents.len()
        );
    }
}
