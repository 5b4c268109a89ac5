//! Pages that collection moved and whose entries are not in the map's memory. Their new entries are
//! gathered by map page, and written together before the erase of the collected block.
//!
//! At the pace `paced`, the host may look up these pages before the write. So a table in the
//! controller's memory stores the new entries and answers lookups. When the map page of an entry is
//! loaded, the new entry replaces the loaded entry, and counts as changed from then on. At other
//! paces, a lookup in a map page with moves writes that map page first.

use crate::maps::MapPage;
use flashatlas_types::Lpn;
use std::collections::BTreeSet;
use std::ops::Range;

/// Moves whose new entries are neither in the map's memory nor on flash.
pub(crate) struct Moves {
    /// Map pages with moves.
    pub pages: BTreeSet<MapPage>,
    /// The pages that were moved, for lookups, and the largest number of such pages so far.
    entries: Option<(BTreeSet<u32>, usize)>,
}

impl Moves {
    /// Returns an empty set of moves. If `kept` is `true`, a table of the moves answers lookups.
    pub fn new(kept: bool) -> Moves {
        Moves { pages: BTreeSet::new(), entries: kept.then(Default::default) }
    }

    /// Notes that collection moved `lpn`, whose entry is in map page `page`.
    pub fn add(&mut self, page: MapPage, lpn: Lpn) {
        self.pages.insert(page);
        if let Some((entries, most)) = &mut self.entries {
            entries.insert(lpn.0);
            *most = entries.len().max(*most);
        }
    }

    /// Removes the moves of a map page that was written. The entries of the map page are `lpns`.
    pub fn written(&mut self, page: MapPage, lpns: Range<u32>) {
        if self.pages.remove(&page)
            && let Some((entries, _)) = &mut self.entries
        {
            while let Some(&lpn) = entries.range(lpns.clone()).next() {
                entries.remove(&lpn);
            }
        }
    }

    /// Returns whether the table has the entry of a page.
    pub fn knows(&self, lpn: Lpn) -> bool {
        self.entries.as_ref().is_some_and(|(entries, _)| entries.contains(&lpn.0))
    }

    /// Removes entries of a map page from the table if `held` returns `true` for them, because they
    /// are stored elsewhere now. Returns these entries in ascending order, or an empty list if
    /// there is no table. The entries of the map page are `lpns`.
    pub fn take(
        &mut self,
        page: MapPage,
        lpns: Range<u32>,
        held: impl Fn(Lpn) -> bool,
    ) -> Vec<Lpn> {
        let Some((entries, _)) = &mut self.entries else { return Vec::new() };
        if !self.pages.contains(&page) {
            return Vec::new();
        }
        let taken: Vec<Lpn> =
            entries.range(lpns.clone()).map(|&lpn| Lpn(lpn)).filter(|&lpn| held(lpn)).collect();
        for lpn in &taken {
            entries.remove(&lpn.0);
        }
        if entries.range(lpns).next().is_none() {
            self.pages.remove(&page);
        }
        taken
    }

    /// Returns whether the entry of `lpn` in map page `page` may be out of date on flash.
    pub fn hide(&self, page: MapPage, lpn: Lpn) -> bool {
        self.hide_some(page) || self.knows(lpn)
    }

    /// Returns whether a map page has moves that are neither on flash nor in a table.
    pub fn hide_some(&self, page: MapPage) -> bool {
        self.entries.is_none() && self.pages.contains(&page)
    }

    /// Returns the name of the table and its largest size in bytes so far, or `None` if there is no
    /// table. An entry has two page numbers of 4 bytes.
    pub fn table(&self) -> Option<(&'static str, u64)> {
        let (_, most) = self.entries.as_ref()?;
        Some(("entries that collection moved, not yet written", *most as u64 * 8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_known_until_their_map_page_is_written() {
        let [first, second] = [0, 1].map(MapPage::new);
        // each map page has ten entries
        let mut moves = Moves::new(true);
        for lpn in [9, 10, 19, 20, 35] {
            moves.add(MapPage::new(lpn / 10), Lpn(lpn));
        }
        assert!(moves.knows(Lpn(19)) && !moves.knows(Lpn(11)));
        assert!(
            moves.hide(second, Lpn(19)) && !moves.hide(second, Lpn(11)),
            "flash has the other entries"
        );
        assert!(!moves.hide_some(second));
        moves.written(second, 10..20);
        let left: Vec<u32> = (0..40).filter(|&lpn| moves.knows(Lpn(lpn))).collect();
        assert_eq!((left, moves.pages.len()), (vec![9, 20, 35], 3));
        assert_eq!(moves.table().unwrap().1, 5 * 8, "at most five entries at a time, 8 bytes each");
        // an entry that is loaded leaves the table; with its last entry, the map page has no moves
        // either
        moves.add(first, Lpn(8));
        assert_eq!(moves.take(first, 0..10, |lpn| lpn.0 == 8), [Lpn(8)]);
        assert!(!moves.knows(Lpn(8)) && moves.knows(Lpn(9)) && moves.pages.contains(&first));
        assert_eq!(moves.take(first, 0..10, |_| true), [Lpn(9)]);
        assert_eq!(moves.pages.iter().map(|page| page.number()).collect::<Vec<_>>(), [2, 3]);
        // without the table, a map page with moves hides all its entries
        let mut moves = Moves::new(false);
        moves.add(second, Lpn(19));
        assert!(moves.hide_some(second) && moves.take(second, 10..20, |_| true).is_empty());
        assert!(moves.hide(second, Lpn(11)) && !moves.knows(Lpn(19)) && moves.table().is_none());
    }
}
