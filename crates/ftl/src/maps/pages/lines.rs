//! The model of a map page in LearnedFTL (section III-B): a few lines that predict the places of
//! pages, and a bit for each page that is set if the prediction is right. A new model replaces the
//! old model, so a model does not grow and has no older levels.

use super::bits::Bits;

/// Bytes of a line: start (2), slope (2), base (4).
const LINE_BYTES: u64 = 8;

/// A point: the index of a page in its map page, and the place of the page on flash.
pub(crate) type Point = (u16, u32);

#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    /// The first page that the line covers. The line ends where the next line begins.
    start: u16,
    slope: f32,
    base: u32,
}

impl Line {
    fn predict(&self, at: u16) -> u32 {
        let step = f64::from(self.slope) * f64::from(at - self.start);
        self.base.wrapping_add_signed(step.round() as i32)
    }
}

/// The model of one map page.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    lines: Vec<Line>,
    right: Bits<Vec<u64>>,
}

impl Lines {
    /// Returns a model of `pages` pages without a right prediction.
    pub fn new(pages: u32) -> Lines {
        Lines { lines: Vec::new(), right: Bits::new(pages) }
    }

    /// Returns the place of a page, or `None` if the model has no right prediction for the page.
    #[inline]
    pub fn predict(&self, at: u16) -> Option<u32> {
        self.right.contains(at).then(|| self.line_of(at).predict(at))
    }

    fn line_of(&self, at: u16) -> &Line {
        let after = self.lines.partition_point(|line| line.start <= at);
        &self.lines[after - 1]
    }

    /// Clears the bit of a page that has moved.
    #[inline]
    pub fn forget(&mut self, at: u16) {
        self.right.remove(at);
    }

    /// Fits new lines, and keeps at most `most` of them: the lines with the most right predictions.
    /// The lines run through `points`, which are in ascending order. For a page without a point,
    /// they run through the place that the old model predicted, if this prediction was right.
    pub fn train(&mut self, points: &[Point], most: usize) {
        let mut all: Vec<Point> = Vec::with_capacity(points.len());
        let mut new = points.iter().copied().peekable();
        for at in 0..self.right.bound() as u16 {
            match new.next_if(|point| point.0 == at) {
                Some(point) => all.push(point),
                None => all.extend(self.predict(at).map(|place| (at, place))),
            }
        }
        let (mut lines, mut rest) = (Vec::new(), &all[..]);
        while !rest.is_empty() {
            let (line, used) = longest(rest);
            lines.push((line, used));
            rest = &rest[used..];
        }
        if lines.len() > most {
            let mut sizes: Vec<usize> = lines.iter().map(|&(_, used)| used).collect();
            sizes.sort_unstable_by(|a, b| b.cmp(a));
            let (least, mut ties) = (sizes[most - 1], 0);
            ties += sizes[..most].iter().filter(|&&size| size == least).count();
            lines.retain(|&(_, used)| {
                let tie = used == least && ties > 0;
                ties -= usize::from(tie);
                used > least || tie
            });
        }
        self.lines = lines.into_iter().map(|(line, _)| line).collect();
        self.right.clear();
        for &(at, place) in
            all.iter().filter(|point| self.lines.first().is_some_and(|line| line.start <= point.0))
        {
            if self.line_of(at).predict(at) == place {
                self.right.insert(at);
            }
        }
    }

    /// Returns the number of lines in use.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns the number of pages with a right prediction.
    pub fn right(&self) -> u32 {
        self.right.len()
    }

    /// Returns the number of bytes of a model with up to `most` lines for `pages` pages.
    pub fn bytes(most: usize, pages: u32) -> u64 {
        most as u64 * LINE_BYTES + u64::from(pages.div_ceil(8))
    }
}

/// Returns the longest line through the first points, and the number of its right predictions.
fn longest(points: &[Point]) -> (Line, usize) {
    let (start, base) = points[0];
    let mut best = (Line { start, slope: 0.0, base }, 1);
    // the range of slopes that predict the place of every point so far exactly, after rounding
    let (mut low, mut high) = (f64::MIN, f64::MAX);
    for (used, &(at, place)) in points.iter().enumerate().skip(1) {
        let dx = f64::from(at - start);
        let dy = f64::from(place) - f64::from(base);
        low = low.max((dy - 0.5) / dx);
        high = high.min((dy + 0.5) / dx);
        if low >= high {
            break;
        }
        let kept = f64::from(best.0.slope);
        let line = if used > 1 && low < kept && kept < high && best.0.predict(at) == place {
            best.0
        } else {
            // the slope is a number that 16 bits can represent, if the range has such a number
            let line = Line { start, slope: half_precision(dy / dx, low, high), base };
            if !points[..=used].iter().all(|&(at, place)| line.predict(at) == place) {
                break;
            }
            line
        };
        best = (line, used + 1);
    }
    best
}

/// Returns `wanted` rounded to the eleven significant bits of a half-precision number. If the
/// rounded number is not in the range, returns the rounded middle of the range.
fn half_precision(wanted: f64, low: f64, high: f64) -> f32 {
    let half = |x: f64| {
        if x == 0.0 {
            return 0.0;
        }
        let unit = 2f64.powi(x.abs().log2().floor() as i32 - 10);
        (x / unit).round() * unit
    };
    let middle = half((low + high) / 2.0);
    let fits = |slope: f64| slope > low && slope < high;
    (if fits(half(wanted)) { half(wanted) } else { middle }) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{Rng, Seed};
    use std::collections::BTreeMap;

    #[test]
    fn a_run_is_one_line_and_what_moves_is_forgotten() {
        let mut model = Lines::new(512);
        model.train(&(0..512).map(|at| (at, 9000 + u32::from(at))).collect::<Vec<_>>(), 8);
        assert_eq!((model.len(), model.right()), (1, 512));
        assert_eq!(model.predict(77), Some(9077));
        model.forget(77);
        assert_eq!((model.predict(77), model.predict(78)), (None, Some(9078)));
        // half of the pages moved to every second place elsewhere; the predictions of the other
        // pages stay right
        model.train(&(0..256).map(|at| (at, 100 + 2 * u32::from(at))).collect::<Vec<_>>(), 8);
        assert_eq!((model.len(), model.right()), (2, 512));
        assert_eq!((model.predict(255), model.predict(256)), (Some(610), Some(9256)));
    }

    #[test]
    fn the_lines_that_get_the_most_pages_right_are_kept() {
        let mut model = Lines::new(64);
        // runs of 1, 2, 3 … pages, far apart from each other and in descending order of their
        // places
        let mut points = Vec::new();
        let mut at = 0;
        for run in 1..=10u32 {
            for page in 0..run {
                points.push((at, 100_000 - run * 5000 + page));
                at += 1;
            }
        }
        model.train(&points, 3);
        assert_eq!((model.len(), model.right()), (3, 8 + 9 + 10));
        assert_eq!((model.predict(0), model.predict(54)), (None, Some(50_009)));
    }

    #[test]
    fn a_prediction_is_right_or_none() {
        let mut rng = Rng::stream(Seed(3), "lines");
        let (mut model, mut truth) = (Lines::new(128), BTreeMap::new());
        for _ in 0..if cfg!(miri) { 5 } else { 3000 } {
            let start = rng.below(128) as u16;
            let count = (1 + rng.below(40) as u16).min(128 - start);
            let (first, step) = (rng.below(1 << 20) as u32, 1 + rng.below(4) as u32);
            let mut points = Vec::new();
            for i in (0..count).filter(|_| rng.below(5) > 0) {
                let place = first + u32::from(i) * step;
                truth.insert(start + i, place);
                points.push((start + i, place));
            }
            model.train(&points, 8);
            let moved = rng.below(128) as u16;
            truth.remove(&moved);
            model.forget(moved);
            assert!(model.len() <= 8);
            for at in 0..128u16 {
                let said = model.predict(at);
                assert!(said.is_none() || said.as_ref() == truth.get(&at), "{at}: {said:?}");
            }
        }
        assert!(model.right() > 0);
    }
}
