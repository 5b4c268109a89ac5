//! Learned segments of a group of 256 entries (LeaFTL, section 3). Segments are lines that predict
//! the places of pages, and they are ordered in levels.
//!
//! A segment covers up to 256 logical pages. It predicts `base + ceil(slope * (page - start))`,
//! with an error of at most gamma. It is stored in 8 bytes: start and length (1 each), slope (2:
//! half precision), and base (4). A segment is approximate if a prediction has an error above 0, or
//! if the distances between its pages are not equal. Its pages are then listed in the group's
//! conflict resolution buffer, which uses a byte for each page and one byte between segments. New
//! segments are added to the top level. Older segments that overlap a new segment give up the pages
//! that it covers. If they still overlap, they move down one level. A lookup uses the first segment
//! from the top that covers the page.

use super::bits::Bits;

/// Pages of a group.
pub(crate) const GROUP: u32 = 256;
/// Bytes of a segment.
const SEGMENT_BYTES: u64 = 8;

/// A set of pages of a group.
type Members = Bits<[u64; 4]>;

/// A line that predicts the places of pages.
#[derive(Clone, Debug)]
struct Segment {
    start: u8,
    last: u8,
    /// The slope, in half precision as it is stored.
    slope: f64,
    base: u32,
    members: Members,
    approximate: bool,
}

impl Segment {
    fn predict(&self, at: u8) -> u32 {
        self.base + (self.slope * f64::from(at - self.start)).ceil() as u32
    }

    fn overlaps(&self, other: &Segment) -> bool {
        self.start <= other.last && other.start <= self.last
    }

    /// Shortens the range to the remaining members.
    fn shrink(&mut self) {
        // the slope is relative to the start, so the start does not change
        self.last = self.members.last().map_or(self.start, |at| at as u8);
    }
}

/// A point: the index of a page in its group, and the place of the page on flash.
pub(crate) type Point = (u8, u32);

/// The segments of a group, newest level first.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentGroup {
    levels: Vec<Vec<Segment>>,
}

impl SegmentGroup {
    /// Learns points in ascending order of their places. A prediction may have an error of at most
    /// `gamma`.
    pub fn learn(&mut self, points: &[Point], gamma: u32) {
        let mut rest = points;
        // segments of one batch do not overlap and come in order, so no segment has to move down
        let mut first: Option<Vec<Segment>> = self.levels.is_empty().then(Vec::new);
        while !rest.is_empty() {
            let (segment, used) = longest(rest, gamma);
            match &mut first {
                Some(level) => level.push(segment),
                None => self.add(segment),
            }
            rest = &rest[used..];
        }
        self.levels.extend(first);
        self.levels.retain(|level| !level.is_empty());
    }

    fn add(&mut self, segment: Segment) {
        for level in &mut self.levels {
            for old in level.iter_mut().filter(|old| old.overlaps(&segment)) {
                old.members.remove_all(&segment.members);
                old.shrink();
            }
            level.retain(|old| !old.members.is_empty());
        }
        if self.levels.is_empty() {
            self.levels.push(Vec::new());
        }
        self.insert(0, segment);
    }

    /// Puts a segment into a level. Segments that it overlaps there move down to the next level.
    fn insert(&mut self, level: usize, segment: Segment) {
        if level == self.levels.len() {
            self.levels.push(Vec::new());
        }
        let (sinking, mut staying): (Vec<Segment>, Vec<Segment>) =
            std::mem::take(&mut self.levels[level])
                .into_iter()
                .partition(|old| old.overlaps(&segment));
        staying.push(segment);
        self.levels[level] = staying;
        for old in sinking {
            self.insert(level + 1, old);
        }
    }

    /// Removes a page that no longer has a place.
    pub fn forget(&mut self, at: u8) {
        let mut gone = Members::default();
        gone.insert(at);
        for level in &mut self.levels {
            for segment in level.iter_mut().filter(|s| s.members.contains(at)) {
                segment.members.remove_all(&gone);
                segment.shrink();
            }
            level.retain(|s| !s.members.is_empty());
        }
        self.levels.retain(|level| !level.is_empty());
    }

    /// Returns the predicted place of a page and the number of levels that were searched. Returns
    /// `None` if no segment covers the page.
    pub fn predict(&self, at: u8) -> Option<(u32, u32)> {
        let knows = |s: &&Segment| s.start <= at && at <= s.last && s.members.contains(at);
        (1..)
            .zip(&self.levels)
            .find_map(|(depth, level)| level.iter().find(knows).map(|s| (s.predict(at), depth)))
    }

    /// Returns the number of segments of all levels.
    pub fn segments(&self) -> u64 {
        self.levels.iter().map(|l| l.len() as u64).sum()
    }

    /// Returns the number of bytes of the segments and of the conflict resolution buffer.
    pub fn bytes(&self) -> u64 {
        let listed = |s: &Segment| if s.approximate { u64::from(s.members.len()) + 1 } else { 0 };
        self.levels.iter().flatten().map(|s| SEGMENT_BYTES + listed(s)).sum()
    }
}

/// Rounds a number to the 11 significant bits of a half-precision float. Slopes lie between 2^-8
/// and 2^8.
fn half(x: f64) -> f64 {
    if x == 0.0 {
        return 0.0;
    }
    let unit = 2f64.powi(x.abs().log2().floor() as i32 - 10);
    (x / unit).round() * unit
}

/// Returns the longest line through the first points, and the number of points on it.
fn longest(points: &[Point], gamma: u32) -> (Segment, usize) {
    let (start, base) = points[0];
    // the range of slopes that predict every point so far well enough: ceil(slope * dx) is within
    // gamma of dy
    let (mut low, mut high) = (0.0f64, 256.0f64);
    let (mut used, mut slope) = (1, 1.0);
    for &(at, place) in &points[1..] {
        if place < base {
            break;
        }
        let (dx, dy) = (f64::from(at - start), f64::from(place - base));
        low = low.max((dy - f64::from(gamma) - 1.0) / dx);
        high = high.min((dy + f64::from(gamma)) / dx);
        // the range excludes `low`: a slope just above `low` is rounded up to the point
        let within = |s: f64| s > low && s <= high;
        let candidates =
            [half(dy / dx), half((low + high) / 2.0), half(high), half(high) - half(high) / 2048.0];
        match candidates.into_iter().find(|&s| s >= 0.0 && within(s)) {
            Some(found) => (slope, used) = (found, used + 1),
            None => break,
        }
    }
    let mut members = Members::default();
    points[..used].iter().for_each(|&(at, _)| members.insert(at));
    let last = points[used - 1].0;
    let mut segment = Segment { start, last, slope, base, members, approximate: false };
    let exact = points[..used].iter().all(|&(at, place)| segment.predict(at) == place);
    // on a grid, the distance between pages is always `stride`, so no list of members is needed
    let stride = if used > 1 { points[1].0 - start } else { 1 };
    let grid = points[..used].windows(2).all(|pair| pair[1].0 - pair[0].0 == stride);
    segment.approximate = !(exact && grid);
    (segment, used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{Rng, Seed};
    use std::collections::BTreeMap;

    #[test]
    fn a_sequential_group_is_one_segment_and_a_stride_another() {
        let mut group = SegmentGroup::default();
        group.learn(&(0..=255).map(|i| (i, 1000 + u32::from(i))).collect::<Vec<_>>(), 0);
        assert_eq!((group.segments(), group.bytes()), (1, 8));
        assert_eq!(group.predict(77), Some((1077, 1)));
        // every fourth page was written again, to consecutive places elsewhere
        group.learn(&(0..64).map(|i| (i * 4, 5000 + u32::from(i))).collect::<Vec<_>>(), 0);
        assert_eq!(
            (group.segments(), group.bytes()),
            (2, 16),
            "slope 1/4 is exact in half precision"
        );
        assert_eq!((group.predict(8), group.predict(9)), (Some((5002, 1)), Some((1009, 2))));
        group.forget(8);
        assert_eq!(group.predict(8), None);
    }

    #[test]
    fn predictions_keep_within_gamma_and_membership_is_exact() {
        for gamma in [0, 1, 4, 16] {
            let mut rng = Rng::stream(Seed(u64::from(gamma)), "learned");
            let (mut group, mut truth) = (SegmentGroup::default(), BTreeMap::new());
            let mut next = 1u32;
            for _ in 0..if cfg!(miri) { 3 } else { 600 } {
                let mut places: Vec<u8> =
                    (0..1 + rng.below(40)).map(|_| rng.below(256) as u8).collect();
                places.sort_unstable();
                places.dedup();
                let points: Vec<Point> = places
                    .iter()
                    .map(|&at| {
                        next += 1 + rng.below(2) as u32;
                        (at, next)
                    })
                    .collect();
                group.learn(&points, gamma);
                truth.extend(points);
                if rng.below(4) == 0 {
                    let at = rng.below(256) as u8;
                    group.forget(at);
                    truth.remove(&at);
                }
                for at in 0..=255u8 {
                    let predicted = group.predict(at).map(|(place, _)| place);
                    match (predicted, truth.get(&at)) {
                        (None, None) => {}
                        (Some(p), Some(&t)) => {
                            assert!(p.abs_diff(t) <= gamma, "{at}: {p} for {t}, gamma {gamma}")
                        }
                        other => panic!("{at}: {other:?}"),
                    }
                }
            }
        }
    }

    #[test]
    fn more_tolerance_takes_fewer_segments() {
        let mut rng = Rng::stream(Seed(3), "learned");
        let mut next = 0;
        let points: Vec<Point> = (0..=255u8)
            .filter(|_| rng.below(3) > 0)
            .collect::<Vec<_>>()
            .into_iter()
            .map(|at| {
                next += 1;
                (at, next)
            })
            .collect();
        let segments = |gamma| {
            let mut group = SegmentGroup::default();
            group.learn(&points, gamma);
            group.segments()
        };
        assert!(
            segments(0) > segments(1) && segments(1) > segments(4),
            "{} {} {}",
            segments(0),
            segments(1),
            segments(4)
        );
    }
}
