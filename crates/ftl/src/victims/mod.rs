//! Victim policies: which closed block of a lane is collected next.
//!
//! A policy hears of every block that closes, loses a valid page or leaves, and keeps what it needs to answer
//! [`VictimPolicy::pick`] fast. Blocks are numbered within their lane. No policy ever picks a block whose slots are all
//! valid: collecting it would free nothing.

mod cost_benefit;
mod dchoices;
mod fifo;
mod greedy;
mod random;
mod tournament;
mod windowed;

use flashatlas_types::{ConfigError, ParamDef, ParamKind, Params, Rng};

/// What a policy may know of its lane when it picks.
pub struct Candidates<'a> {
    /// Valid slots by block of the lane; meaningful for closed blocks.
    pub valid: &'a [u32],
    /// Slots of a block.
    pub slots: u32,
    /// A logical clock: the number of slots programmed on the drive so far.
    pub clock: u64,
}

/// Picks blocks to collect.
pub trait VictimPolicy: Send {
    /// A block was filled (or closed early) with `valid` valid slots.
    fn closed(&mut self, block: u32, valid: u32, clock: u64);

    /// A closed block lost a valid slot; `valid` are left.
    fn invalidated(&mut self, block: u32, valid: u32, clock: u64);

    /// A closed block is no candidate any more.
    fn removed(&mut self, block: u32);

    /// The next block to collect, or `None` when no closed block has an invalid slot.
    fn pick(&mut self, lane: &Candidates<'_>) -> Option<u32>;
}

/// One policy of the registry.
pub struct VictimDef {
    /// Name in `ftl.victim`.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Where it is described.
    pub paper: &'static str,
    /// Its own parameters.
    pub params: &'static [ParamDef],
    /// Build one for a lane of `blocks` blocks; `rng` is its own stream.
    pub build: fn(&Params, blocks: u32, rng: Rng) -> Box<dyn VictimPolicy>,
}

/// All policies.
pub const VICTIMS: &[VictimDef] =
    &[greedy::DEF, fifo::DEF, random::DEF, dchoices::DEF, windowed::DEF, cost_benefit::DEF];

/// Parameters that select a policy.
pub const PARAMS: &[ParamDef] = &[ParamDef {
    key: "ftl.victim",
    kind: ParamKind::Name(|| VICTIMS.iter().map(|v| v.name).collect()),
    default: Some("greedy"),
    doc: "which full block is collected next",
}];

/// The policy called `name`.
///
/// # Errors
/// Unknown names, with those that exist.
pub fn victim_by_name(name: &str) -> Result<&'static VictimDef, ConfigError> {
    crate::schemes::by_name(VICTIMS, |v| v.name, "ftl.victim", "victim policy", name)
}

/// Closed blocks in no order, with their places: uniform draws and O(1) removal.
#[derive(Debug, Default)]
struct ClosedList {
    blocks: Vec<u32>,
    place: Vec<u32>,
}

impl ClosedList {
    fn new(blocks: u32) -> ClosedList {
        ClosedList { blocks: Vec::with_capacity(blocks as usize), place: vec![u32::MAX; blocks as usize] }
    }

    fn add(&mut self, block: u32) {
        self.place[block as usize] = self.blocks.len() as u32;
        self.blocks.push(block);
    }

    fn remove(&mut self, block: u32) {
        let at = std::mem::replace(&mut self.place[block as usize], u32::MAX) as usize;
        self.blocks.swap_remove(at);
        if let Some(&moved) = self.blocks.get(at) {
            self.place[moved as usize] = at as u32;
        }
    }

    /// Best of `d` uniform draws with replacement (the first of equals), among draws that have an invalid slot. When
    /// [`ClosedList::DRAWS`] draws find none, the emptiest of all, so that an almost full lane still makes progress.
    fn draw(&self, d: u32, rng: &mut Rng, lane: &Candidates<'_>) -> Option<u32> {
        if self.blocks.is_empty() {
            return None;
        }
        let valid = |block: u32| lane.valid[block as usize];
        for _ in 0..ClosedList::DRAWS {
            let best = (0..d)
                .map(|_| self.blocks[rng.below(self.blocks.len() as u64) as usize])
                .min_by_key(|&block| valid(block))?;
            if valid(best) < lane.slots {
                return Some(best);
            }
        }
        self.blocks.iter().copied().min_by_key(|&b| (valid(b), b)).filter(|&b| valid(b) < lane.slots)
    }

    const DRAWS: u32 = 64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{RawConfig, Seed};

    /// Lane of five closed blocks with these valid counts, closed in the order 3, 1, 0, 2, 4.
    fn pick(name: &str, set: &[(&str, &str)], valid: [u32; 5]) -> Option<u32> {
        let def = victim_by_name(name).unwrap();
        let mut raw = RawConfig::default();
        set.iter().for_each(|(k, v)| raw.set(k, v, ""));
        let params = raw.resolve(&def.params.iter().collect::<Vec<_>>(), |_| None).unwrap();
        let mut policy = (def.build)(&params, 5, Rng::stream(Seed(1), "test"));
        for (clock, block) in [3, 1, 0, 2, 4].into_iter().enumerate() {
            policy.closed(block, 8, clock as u64 * 8);
        }
        for (block, &left) in valid.iter().enumerate() {
            (left..8).rev().for_each(|v| policy.invalidated(block as u32, v, 50 + block as u64));
        }
        policy.pick(&Candidates { valid: &valid, slots: 8, clock: 100 })
    }

    #[test]
    fn greedy_takes_the_fewest_valid_and_of_equals_the_oldest() {
        assert_eq!(pick("greedy", &[], [5, 3, 6, 4, 7]), Some(1));
        assert_eq!(pick("greedy", &[], [3, 3, 3, 4, 7]), Some(1), "1 closed before 0 and 2");
        assert_eq!(pick("greedy", &[("ftl.greedy_tie", "index")], [3, 3, 3, 4, 7]), Some(0));
    }

    #[test]
    fn fifo_takes_the_oldest_that_frees_anything() {
        assert_eq!(pick("fifo", &[], [5, 3, 6, 4, 7]), Some(3));
        assert_eq!(pick("fifo", &[], [5, 8, 6, 8, 7]), Some(0));
    }

    #[test]
    fn windowed_is_greedy_among_the_oldest() {
        assert_eq!(pick("windowed", &[("ftl.window", "2")], [1, 5, 6, 4, 0]), Some(3));
        assert_eq!(pick("windowed", &[("ftl.window", "5")], [1, 5, 6, 4, 0]), Some(4));
    }

    #[test]
    fn cost_benefit_weighs_age_against_copies() {
        // (1-u)*age/2u: block 0: u=.5, age 50; block 1: u=.25, age 49: three times the benefit
        assert_eq!(pick("cost-benefit", &[], [4, 2, 8, 8, 8]), Some(1));
        // an empty block goes at once
        assert_eq!(pick("cost-benefit", &[], [4, 2, 0, 8, 8]), Some(2));
    }

    #[test]
    fn nobody_picks_a_block_of_valid_pages() {
        for def in VICTIMS {
            assert_eq!(pick(def.name, &[], [8; 5]), None, "{}", def.name);
            for block in 0..5 {
                let mut valid = [8; 5];
                valid[block] = 7;
                assert_eq!(pick(def.name, &[], valid), Some(block as u32), "{}: the only one that frees anything", def.name);
            }
        }
    }

    #[test]
    fn more_choices_come_nearer_to_greedy() {
        let lane = Candidates { valid: &[0, 1, 2, 3, 4, 5, 6, 7], slots: 8, clock: 0 };
        let mean = |d| {
            let mut list = ClosedList::new(8);
            (0..8).for_each(|b| list.add(b));
            let mut rng = Rng::stream(Seed(5), "test");
            (0..4000).map(|_| f64::from(list.draw(d, &mut rng, &lane).unwrap())).sum::<f64>() / 4000.0
        };
        // the mean of the least of d uniform draws from 0..8: 3.5, 2.1875 (sum over k of (1-k/8)^2), .906 for d=5
        for (d, expected) in [(1, 3.5), (2, 2.1875), (5, 0.8623)] {
            assert!((mean(d) - expected).abs() < 0.15, "d={d}: {}", mean(d));
        }
    }

    #[test]
    fn removal_keeps_every_other_block() {
        let mut list = ClosedList::new(4);
        (0..4).for_each(|b| list.add(b));
        list.remove(0);
        list.remove(3);
        let mut left = list.blocks.clone();
        left.sort_unstable();
        assert_eq!(left, [1, 2]);
        list.remove(2);
        list.remove(1);
        assert!(list.blocks.is_empty());
    }
}
