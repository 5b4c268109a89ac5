//! LRU stack distances of a stream of units.
//!
//! Up to a limit of units, distances are counted exactly, with a tree over the order of last
//! accesses (Bennett and Kruskal: LRU Stack Processing, IBM Journal of Research and Development
//! 19(4), 1975). With more units, the largest possible sample of them is followed (Waldspurger,
//! Park, Garthwaite, Ahmad: Efficient MRC Construction with SHARDS, FAST 2015, fixed size, with its
//! correction of the first distance).

use super::LogBins;
use flashatlas_types::content::mix;
use rustc_hash::FxHashMap;
use std::collections::BinaryHeap;

/// Number of values of the hash that decides which units are followed.
const HASHES: u64 = 1 << 24;

/// A unit that is followed.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Place of the unit in the order of last accesses.
    stamp: usize,
    /// Number of the last access to the unit among all accesses.
    clock: u64,
    /// Number of accesses to the unit.
    count: u64,
}

/// Distances between accesses to the same unit, in distinct units and in accesses.
#[derive(Debug)]
pub struct Distances {
    limit: usize,
    /// Hash below which a unit is followed.
    threshold: u64,
    seen: FxHashMap<u64, Seen>,
    by_hash: BinaryHeap<(u64, u64)>,
    order: Order,
    accesses: u64,
    followed: f64,
    /// Number of units that an LRU cache must hold for an access to hit.
    needed: LogBins,
    intervals: LogBins,
}

impl Distances {
    /// Returns distances that follow at most `limit` units, at least one.
    pub fn new(limit: usize) -> Distances {
        Distances {
            limit: limit.max(1),
            threshold: HASHES,
            seen: FxHashMap::default(),
            by_hash: BinaryHeap::new(),
            order: Order::default(),
            accesses: 0,
            followed: 0.0,
            needed: LogBins::default(),
            intervals: LogBins::default(),
        }
    }

    /// Counts an access to unit `number` of an address space.
    pub fn touch(&mut self, space: u32, number: u64) {
        self.accesses += 1;
        let unit = mix(u64::from(space)).wrapping_add(number);
        // equal units have equal values; two different units have the same value with a probability
        // of 2^-64
        let hash = mix(unit) % HASHES;
        if hash >= self.threshold {
            return;
        }
        self.followed += 1.0;
        if self.order.is_full() {
            self.compact();
        }
        let stamp = self.order.append();
        let seen = Seen { stamp, clock: self.accesses, count: 1 };
        let Some(before) = self.seen.get_mut(&unit) else {
            self.seen.insert(unit, seen);
            self.by_hash.push((hash, unit));
            self.shrink();
            return;
        };
        let between = self.order.above(before.stamp) - 1;
        self.order.remove(before.stamp);
        let interval = self.accesses - before.clock;
        *before = Seen { count: before.count + 1, ..seen };
        let distance = (between as f64 / self.sampled_share()).round() as u64;
        self.needed.add(distance + 1, 1.0);
        self.intervals.add(interval, 1.0);
    }

    /// Lowers the threshold until the number of units followed is at most the limit.
    fn shrink(&mut self) {
        while self.seen.len() > self.limit {
            let &(largest, _) = self.by_hash.peek().expect("every followed unit has an entry");
            while let Some(&(hash, unit)) = self.by_hash.peek()
                && hash == largest
            {
                self.by_hash.pop();
                let seen = self.seen.remove(&unit).expect("the same units");
                self.order.remove(seen.stamp);
            }
            let by = largest as f64 / self.threshold as f64;
            self.threshold = largest;
            self.followed *= by;
            self.needed.scale(by);
            self.intervals.scale(by);
        }
    }

    /// Numbers the last accesses anew, in their order.
    fn compact(&mut self) {
        let mut units: Vec<(usize, u64)> = self.seen.iter().map(|(&u, s)| (s.stamp, u)).collect();
        units.sort_unstable();
        self.order = Order::of(units.len(), 2 * self.limit.min(units.len().max(512)) + 2);
        for (stamp, (_, unit)) in units.into_iter().enumerate() {
            self.seen.get_mut(&unit).expect("it was listed").stamp = stamp;
        }
    }

    /// Returns the number of accesses in all.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Returns the share of the units that is followed: 1 if distances are exact.
    pub fn sampled_share(&self) -> f64 {
        self.threshold as f64 / HASHES as f64
    }

    /// Returns the number of distinct units. It is an estimate if a sample is followed.
    pub fn distinct(&self) -> f64 {
        self.seen.len() as f64 / self.sampled_share()
    }

    /// Returns sizes of an LRU cache in units, each with its miss ratio. The sizes are the powers
    /// of two below the number of distinct units, and then that number.
    pub fn miss_ratios(&self) -> Vec<(u64, f64)> {
        let all = (self.distinct().ceil() as u64).max(1);
        let sizes = (0..63).map(|power| 1 << power).take_while(|&size| size < all);
        let mut curve: Vec<(u64, f64)> =
            sizes.map(|size| (size, self.miss_ratio(|needed| needed <= size))).collect();
        curve.push((all, self.miss_ratio(|_| true)));
        curve
    }

    fn miss_ratio(&self, held: impl Fn(u64) -> bool) -> f64 {
        let expected = self.accesses as f64 * self.sampled_share();
        if expected == 0.0 {
            return 0.0;
        }
        let hits: f64 =
            self.needed.iter().filter(|&(needed, _)| held(needed)).map(|(_, weight)| weight).sum();
        // the denominator is the expected number of accesses in the sample: any excess or lack of
        // accesses counts as hits
        ((self.followed - hits) / expected).clamp(0.0, 1.0)
    }

    /// Returns the intervals from an access to a unit to the next access to that unit, counted in
    /// accesses. Each item is the largest interval of a bin and the share of the accesses in that
    /// bin. The first access to each unit is not counted.
    pub fn intervals(&self) -> Vec<(u64, f64)> {
        let total = self.intervals.total();
        self.intervals.iter().map(|(most, weight)| (most, weight / total)).collect()
    }

    /// Returns shares of the units, each with the share of the accesses that go to these units. The
    /// units accessed most often come first.
    pub fn skew(&self) -> Vec<(f64, f64)> {
        let mut counts: Vec<u64> = self.seen.values().map(|seen| seen.count).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let total: u64 = counts.iter().sum();
        let share = |units: f64| {
            let units = (units * counts.len() as f64).ceil() as usize;
            counts[..units].iter().sum::<u64>() as f64 / total.max(1) as f64
        };
        [0.01, 0.05, 0.1, 0.2, 0.5].map(|units| (units, share(units))).to_vec()
    }
}

/// Order of the last accesses: a Fenwick tree with a one at the place of each.
#[derive(Default, Debug)]
struct Order {
    tree: Vec<usize>,
    next: usize,
    ones: usize,
}

impl Order {
    /// Returns an order of at least `room` places, of which the first `ones` are taken.
    fn of(ones: usize, room: usize) -> Order {
        let mut order = Order { tree: vec![0; room.max(ones + 1)], next: ones, ones };
        for place in 0..ones {
            order.add(place, 1);
        }
        order
    }

    fn is_full(&self) -> bool {
        self.next == self.tree.len()
    }

    /// Takes the next place, and returns it.
    fn append(&mut self) -> usize {
        let place = self.next;
        self.next += 1;
        self.ones += 1;
        self.add(place, 1);
        place
    }

    fn remove(&mut self, place: usize) {
        self.ones -= 1;
        self.add(place, usize::MAX);
    }

    /// Returns the number of ones behind `place`.
    fn above(&self, place: usize) -> usize {
        let (mut sum, mut at) = (0, place + 1);
        while at > 0 {
            sum += self.tree[at - 1];
            at &= at - 1;
        }
        self.ones - sum
    }

    /// Adds `by` at `place`. [`usize::MAX`] wraps around, and so subtracts one.
    fn add(&mut self, place: usize, by: usize) {
        let mut at = place + 1;
        while at <= self.tree.len() {
            self.tree[at - 1] = self.tree[at - 1].wrapping_add(by);
            at += at & at.wrapping_neg();
        }
    }
}
