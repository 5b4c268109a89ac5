//! Sorting of items by their window of memory. A caller then goes through one window at a time.

/// A sort of items by window, in two passes over the items.
///
/// The first pass counts each item. The second places each item behind the items of earlier windows
/// and behind the earlier items of its own window.
#[derive(Debug)]
pub struct Dealing {
    /// The number of items of each window at first, then the place of the window's next item.
    windows: Vec<usize>,
}

impl Dealing {
    /// Returns `items` sorted by the number of their window. Every number is less than `windows`.
    pub fn sorted<T: Copy>(
        windows: usize,
        items: impl Iterator<Item = (usize, T)> + Clone,
    ) -> Vec<T> {
        if windows == 1 {
            return items.map(|(_, item)| item).collect();
        }
        let Some((_, any)) = items.clone().next() else { return Vec::new() };
        let mut dealing = Dealing::new(windows);
        items.clone().for_each(|(window, _)| dealing.count(window));
        let mut sorted = vec![any; dealing.counted()];
        items.for_each(|(window, item)| sorted[dealing.place(window)] = item);
        sorted
    }

    /// Creates a sort in which no item is counted yet.
    pub fn new(windows: usize) -> Dealing {
        Dealing { windows: vec![0; windows] }
    }

    /// Counts an item of this window. Panics beyond the last window.
    #[inline]
    pub fn count(&mut self, window: usize) {
        self.windows[window] += 1;
    }

    /// Ends the first pass, once all items are counted, and returns their number.
    pub fn counted(&mut self) -> usize {
        let mut total = 0;
        for window in &mut self.windows {
            total += std::mem::replace(window, total);
        }
        total
    }

    /// Returns the place of the next item of this window. Panics beyond the last window.
    #[inline]
    pub fn place(&mut self, window: usize) -> usize {
        let place = self.windows[window];
        self.windows[window] += 1;
        place
    }

    /// Returns the place at which each window ends, once all items are placed.
    pub fn ends(self) -> Vec<usize> {
        self.windows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_stand_window_by_window_in_their_order() {
        let items = [(2, 'a'), (0, 'b'), (2, 'c'), (3, 'd'), (0, 'e')];
        let mut dealing = Dealing::new(4);
        items.iter().for_each(|&(window, _)| dealing.count(window));
        assert_eq!(dealing.counted(), items.len());
        let mut dealt = [' '; 5];
        items.iter().for_each(|&(window, item)| dealt[dealing.place(window)] = item);
        assert_eq!(dealt, ['b', 'e', 'a', 'c', 'd']);
        assert_eq!(dealing.ends(), [2, 2, 4, 5]);
        assert_eq!(Dealing::sorted(4, items.into_iter()), dealt);
        assert_eq!(Dealing::sorted(4, items[..0].iter().copied()), []);
        assert_eq!(Dealing::sorted(1, items.map(|item| (0, item)).into_iter()), items);
    }
}
