//! Detection of hot pages by a counter of two bits for each page (MiDAS, section 4.1). The counter
//! is raised if the host writes the page again soon. It is lowered if the host writes the page
//! later, or if collection moves the page.

use super::model::MeasuredHot;
use flashatlas_types::{Index, Lpn, TiVec, ti_vec};
use std::collections::VecDeque;

/// The value of a full counter, which means that the page is hot.
const FULL: u8 = 3;
/// The number of measurements in a mean.
const MEASURED: usize = 10;

pub struct HotFilter {
    counters: TiVec<Lpn, u8>,
    /// The age up to which a page counts as written again soon, in pages that the host writes.
    window: f64,
    /// Counts since the last step: host writes, host writes to HOT, and collected blocks of HOT.
    /// The sums of the ages and of the valid shares of these blocks follow.
    writes: u64,
    to_hot: u64,
    collected: u32,
    ages: f64,
    valid: f64,
    measured: VecDeque<MeasuredHot>,
}

impl HotFilter {
    pub fn new(pages: u32) -> HotFilter {
        HotFilter {
            counters: ti_vec![0; pages.index()],
            window: f64::from(pages),
            writes: 0,
            to_hot: 0,
            collected: 0,
            ages: 0.0,
            valid: 0.0,
            measured: VecDeque::new(),
        }
    }

    /// Notes a host write of a page whose last version is in `group`, if the group is known.
    /// Returns whether the page is hot.
    pub fn written(&mut self, lpn: Lpn, group: Option<usize>, age: Option<u64>) -> bool {
        let soon = age.is_some_and(|age| age as f64 <= self.window);
        let counter = &mut self.counters[lpn];
        match group {
            Some(0) => *counter = (*counter + 1).min(FULL),
            Some(1) if soon => *counter = (*counter + 1).min(FULL),
            Some(1) => *counter = counter.saturating_sub(1),
            _ => {}
        }
        let hot = *counter == FULL;
        (self.writes, self.to_hot) = (self.writes + 1, self.to_hot + u64::from(hot));
        hot
    }

    /// Notes that collection moves a page from a group.
    pub fn moved(&mut self, lpn: Lpn, group: usize) {
        let down = [2, 1, 0][group.min(2)];
        let counter = &mut self.counters[lpn];
        *counter = counter.saturating_sub(down);
    }

    /// Notes an erased block of HOT, with its valid share and its age in pages that the host wrote.
    pub fn collected(&mut self, age: u64, valid: f64) {
        self.collected += 1;
        self.ages += age as f64;
        self.valid += valid;
    }

    /// Adapts the window to the mean age of collected HOT blocks, once the host has written a
    /// window of pages. `segments` is the present size of HOT.
    pub fn step(&mut self, segments: f64) {
        if (self.writes as f64) < self.window || self.collected == 0 {
            return;
        }
        let mean = self.ages / f64::from(self.collected);
        self.window = if mean >= 2.0 * self.window {
            1.5 * self.window
        } else {
            f64::midpoint(mean, self.window)
        };
        if self.measured.len() == MEASURED {
            self.measured.pop_front();
        }
        self.measured.push_back(MeasuredHot {
            traffic: self.to_hot as f64 / self.writes as f64,
            valid: self.valid / f64::from(self.collected),
            segments,
        });
        (self.writes, self.to_hot, self.collected, self.ages, self.valid) = (0, 0, 0, 0.0, 0.0);
    }

    /// Returns the means of the latest measurements of HOT.
    pub fn measured(&self) -> MeasuredHot {
        let count = self.measured.len().max(1) as f64;
        let mean = |of: fn(&MeasuredHot) -> f64| self.measured.iter().map(of).sum::<f64>() / count;
        MeasuredHot {
            traffic: mean(|m| m.traffic),
            valid: mean(|m| m.valid),
            segments: mean(|m| m.segments),
        }
    }

    /// Returns the bytes of the counters in a drive.
    pub fn bytes(&self) -> u64 {
        (self.counters.len() as u64).div_ceil(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_hot_after_three_updates_that_come_soon() {
        let mut filter = HotFilter::new(100);
        let write = |f: &mut HotFilter, group, age| f.written(Lpn(7), Some(group), Some(age));
        let soon: Vec<bool> = (0..3).map(|_| write(&mut filter, 1, 100)).collect();
        assert_eq!(soon, [false, false, true]);
        assert!(!write(&mut filter, 1, 101), "an update outside the window");
        assert!(write(&mut filter, 0, 1 << 40), "in HOT every update counts");
        assert!(filter.written(Lpn(7), None, None), "an unknown place changes nothing");
        filter.moved(Lpn(7), 0);
        assert_eq!(filter.counters[Lpn(7)], 1, "collection from HOT lowers the counter by two");
        filter.moved(Lpn(7), 1);
        filter.moved(Lpn(7), 4);
        assert_eq!(filter.counters[Lpn(7)], 0);
    }

    #[test]
    fn the_window_follows_how_long_hot_blocks_last() {
        let mut filter = HotFilter::new(100);
        for _ in 0..99 {
            filter.written(Lpn(1), None, None);
        }
        filter.collected(40, 0.1);
        filter.collected(60, 0.3);
        filter.step(3.0);
        assert_eq!(filter.window, 100.0, "the host has not written a window of pages yet");
        filter.written(Lpn(1), None, None);
        filter.step(3.0);
        assert_eq!(filter.window, 75.0);
        assert_eq!(filter.measured(), MeasuredHot { traffic: 0.0, valid: 0.2, segments: 3.0 });
        for _ in 0..75 {
            filter.written(Lpn(1), Some(0), Some(1));
        }
        filter.collected(1000, 0.0);
        filter.step(5.0);
        assert_eq!(filter.window, 112.5, "the window grows by at most half");
        assert_eq!(filter.measured().segments, 4.0);
    }
}
