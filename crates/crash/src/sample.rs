//! A sample of one in N cuts, drawn so that every part of a workload is still cut.

use flashatlas_types::{Rng, Seed};

/// Random choice of one candidate from each run of `one_in` consecutive candidates.
///
/// So every part of a workload is cut somewhere. If the candidates repeat with a period, as the
/// ways to tear a program do, different candidates are chosen in different runs.
#[derive(Clone, Debug)]
pub struct Sample {
    one_in: u32,
    /// Places in the run of the next candidate and of the candidate that is drawn.
    at: u32,
    drawn: u32,
    rng: Rng,
}

impl Sample {
    /// Returns a sample of one in `one_in` candidates; the choice depends on `name` alone.
    pub fn new(one_in: u32, name: &str) -> Sample {
        let mut rng = Rng::stream(Seed(0), name);
        let drawn = rng.below(u64::from(one_in.max(1))) as u32;
        Sample { one_in: one_in.max(1), at: 0, drawn, rng }
    }

    /// Returns a sample of every candidate.
    pub fn all() -> Sample {
        Sample::new(1, "")
    }

    /// Returns `true` if the next candidate is drawn.
    #[inline]
    pub fn takes(&mut self) -> bool {
        if self.one_in == 1 {
            return true;
        }
        let takes = self.at == self.drawn;
        self.at += 1;
        if self.at == self.one_in {
            self.at = 0;
            self.drawn = self.rng.below(u64::from(self.one_in)) as u32;
        }
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_each_run_is_drawn_at_every_place_of_it() {
        let mut sample = Sample::new(10, "a name");
        let mut places = [0; 10];
        for _ in 0..1000 {
            let taken: Vec<usize> = (0..10).filter(|_| sample.takes()).collect();
            assert_eq!(taken.len(), 1);
            places[taken[0]] += 1;
        }
        assert!(places.iter().all(|&n| n > 50), "{places:?}");
        assert!((0..100).all(|_| Sample::all().takes()));
    }
}
