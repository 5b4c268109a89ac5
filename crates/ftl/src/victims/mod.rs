//! Victim policies. A policy decides which closed block of a lane is collected next.
//!
//! A policy is notified of every block that is closed, loses a valid page or is removed. It
//! maintains the tables that it needs to answer [`VictimPolicy::pick`] fast. Blocks are numbered
//! within their lane. A policy picks no block if no closed block has an invalid slot. Policies that
//! draw at random may draw a block without an invalid slot, as their models do. They draw such a
//! block at most [`FRUITLESS_MAX`] times in a row, so that collection always ends.

mod cat;
mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;
mod random;
mod tournament;
mod windowed;

use crate::steady::Steady;
use flashatlas_types::{
    Entry, Index, LocalBlock, Param, ParamDef, Params, Ps, Rng, Text, TiSlice, TiVec, ti_vec,
};

/// The state of a lane that a policy may use for a pick.
pub struct Candidates<'a> {
    /// The number of valid slots of each block of the lane. It is meaningful only for closed
    /// blocks.
    pub valid: &'a TiSlice<LocalBlock, u32>,
    /// The number of slots of a block.
    pub slots: u32,
    /// The number of erases of each block of the lane, including bad blocks.
    pub erases: &'a TiSlice<LocalBlock, u32>,
    /// The time of the pick.
    pub at: Moment,
}

/// The time of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// A logical clock: the number of slots programmed on the drive so far.
    pub clock: u64,
    /// The simulated time at which the command of the event was submitted.
    pub now: Ps,
}

/// The size of a lane.
#[derive(Clone, Copy, Debug)]
pub struct LaneShape {
    /// The number of blocks of the lane.
    pub blocks: u32,
    /// The number of slots of a block.
    pub slots: u32,
}

impl LaneShape {
    /// Returns a table with the same entry for each block of the lane.
    pub fn per_block<T: Clone>(&self, entry: T) -> TiVec<LocalBlock, T> {
        ti_vec![entry; self.blocks.index()]
    }
}

/// A policy that picks blocks to collect.
pub trait VictimPolicy: Send {
    /// Notes that a block was filled (or closed early) with `valid` valid slots.
    fn closed(&mut self, block: LocalBlock, valid: u32, at: Moment);

    /// Notes that a closed block lost a valid slot, and that `valid` slots are left.
    fn invalidated(&mut self, block: LocalBlock, valid: u32, at: Moment);

    /// Notes that a closed block is no longer a candidate.
    fn removed(&mut self, block: LocalBlock);

    /// Returns the next block to collect, or `None` if no closed block has an invalid slot.
    fn pick(&mut self, lane: &Candidates<'_>) -> Option<LocalBlock>;
}

/// A function that builds a policy for a lane, with the policy's own stream of random numbers.
pub type Builder = dyn Fn(&Params, LaneShape, Rng) -> Box<dyn VictimPolicy> + Send + Sync;

/// One policy of the registry.
pub struct VictimDef {
    /// Name in `ftl.victim`.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// The paper that describes the policy.
    pub paper: &'static str,
    /// Parameters of the policy itself.
    pub params: &'static [ParamDef],
    /// Builds a policy for a lane with its own stream of random numbers.
    pub build: &'static Builder,
    /// Steady state of the policy under uniform random writes; `None` if there is no model.
    pub steady: Option<Steady>,
}

flashatlas_types::entry!(VictimDef, "victim policy", "ftl.victim");

/// All policies.
pub const VICTIMS: &[VictimDef] = &[
    greedy::DEF,
    fifo::DEF,
    random::DEF,
    d_choices::DEF,
    windowed::DEF,
    cost_benefit::DEF,
    cat::DEF,
];

pub(crate) const VICTIM: Param<Text> =
    Param::part("ftl.victim", VictimDef::KIND, "which full block is collected next").or("greedy");

/// Parameters that select a policy.
pub const PARAMS: &[ParamDef] = &[VICTIM.def];

/// The largest number of blocks without an invalid slot that a policy may pick in a row.
pub const FRUITLESS_MAX: u32 = 64;

/// Closed blocks in any order, with the index of each block, for uniform draws and O(1) removal.
#[derive(Debug, Default)]
struct ClosedList {
    blocks: Vec<LocalBlock>,
    place: TiVec<LocalBlock, usize>,
    /// For each block, `true` if it is closed and has an invalid slot. Then the number of such
    /// blocks.
    frees: TiVec<LocalBlock, bool>,
    freeing: u32,
    fruitless: u32,
}

impl ClosedList {
    fn new(lane: LaneShape) -> ClosedList {
        let (place, frees) = (lane.per_block(usize::MAX), lane.per_block(false));
        let blocks = Vec::with_capacity(place.len());
        ClosedList { blocks, place, frees, ..ClosedList::default() }
    }

    fn add(&mut self, block: LocalBlock) {
        self.place[block] = self.blocks.len();
        self.blocks.push(block);
    }

    /// Notes that a closed block has an invalid slot.
    #[inline]
    fn mark(&mut self, block: LocalBlock) {
        self.freeing += u32::from(!std::mem::replace(&mut self.frees[block], true));
    }

    fn remove(&mut self, block: LocalBlock) {
        self.freeing -= u32::from(std::mem::replace(&mut self.frees[block], false));
        let at = std::mem::replace(&mut self.place[block], usize::MAX);
        self.blocks.swap_remove(at);
        if let Some(&moved) = self.blocks.get(at) {
            self.place[moved] = at;
        }
    }

    /// Returns the block with the fewest valid slots among `d` uniform draws with replacement.
    /// Among equals, the block that was drawn first is returned. Returns `None` if no block has an
    /// invalid slot.
    ///
    /// If [`FRUITLESS_MAX`] calls in a row have drawn a block without an invalid slot, the next
    /// call returns the closed block with the fewest valid slots.
    fn draw(
        &mut self,
        d: u32,
        rng: &mut Rng,
        valid: &TiSlice<LocalBlock, u32>,
    ) -> Option<LocalBlock> {
        if self.freeing == 0 {
            return None;
        }
        let drawn = (0..d).map(|_| self.blocks[rng.place(self.blocks.len())]);
        let mut best = drawn.min_by_key(|&block| valid[block])?;
        self.fruitless = if self.frees[best] { 0 } else { self.fruitless + 1 };
        if self.fruitless > FRUITLESS_MAX {
            self.fruitless = 0;
            best = self.blocks.iter().copied().min_by_key(|&b| (valid[b], b))?;
        }
        Some(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{Entries, RawConfig, Seed};

    fn at(clock: u64) -> Moment {
        Moment { clock, now: Ps(clock * 1000) }
    }

    /// Picks from a lane of five closed blocks with these valid counts. The blocks were closed in
    /// the order 3, 1, 0, 2, 4.
    fn pick(name: &str, set: &[(&str, &str)], valid: [u32; 5]) -> Option<u32> {
        let def = Entries::of(VICTIMS).named(name).unwrap();
        let mut raw = RawConfig::default();
        set.iter().for_each(|(k, v)| raw.set(k, v, ""));
        let params = raw.resolve(&def.params.iter().collect::<Vec<_>>(), |_| None).unwrap();
        let mut policy =
            (def.build)(&params, LaneShape { blocks: 5, slots: 8 }, Rng::stream(Seed(1), "test"));
        for (clock, block) in [3, 1, 0, 2, 4].into_iter().enumerate() {
            policy.closed(LocalBlock::new(block), 8, at(clock as u64 * 8));
        }
        let valid: TiVec<LocalBlock, u32> = valid.to_vec().into();
        for (block, &left) in valid.iter_enumerated() {
            let at = at(50 + u64::from(block.number()));
            (left..8).rev().for_each(|v| policy.invalidated(block, v, at));
        }
        let erases: TiVec<LocalBlock, u32> = vec![9, 0, 1, 0, 0].into();
        let lane = Candidates { valid: &valid, slots: 8, erases: &erases, at: at(100) };
        policy.pick(&lane).map(LocalBlock::number)
    }

    #[test]
    fn greedy_takes_the_fewest_valid_and_of_equals_the_oldest() {
        assert_eq!(pick("greedy", &[], [5, 3, 6, 4, 7]), Some(1));
        assert_eq!(pick("greedy", &[], [3, 3, 3, 4, 7]), Some(1), "1 was closed before 0 and 2");
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
        // (1-u)*age/2u: block 0 has u=.5 and age 50, block 1 has u=.25 and age 49, so three times
        // the benefit
        assert_eq!(pick("cost-benefit", &[], [4, 2, 8, 8, 8]), Some(1));
        // a block without valid pages is collected first
        assert_eq!(pick("cost-benefit", &[], [4, 2, 0, 8, 8]), Some(2));
    }

    #[test]
    fn cat_spares_blocks_that_were_erased_often() {
        // (1-u)*age/(u*(erases+1)) with 9 erases of block 0 and one of block 2; ages 85, 93, 77
        assert_eq!(pick("cost-benefit", &[("ftl.age", "program")], [4, 5, 8, 8, 8]), Some(0));
        assert_eq!(pick("cat", &[], [4, 5, 8, 8, 8]), Some(1), "85*4/(4*10) < 93*3/5");
        assert_eq!(pick("cat", &[], [8, 5, 4, 8, 8]), Some(1), "93*3/5 > 77*4/(4*2)");
        assert_eq!(pick("cat", &[("ftl.age", "invalidation")], [8, 5, 4, 8, 8]), Some(1));
    }

    #[test]
    fn nobody_collects_a_lane_of_valid_pages() {
        for def in VICTIMS {
            assert_eq!(pick(def.name, &[], [8; 5]), None, "{}", def.name);
            if matches!(def.name, "random" | "d-choices") {
                continue;
            }
            for block in 0..5 {
                let mut valid = [8; 5];
                valid[block] = 7;
                assert_eq!(
                    pick(def.name, &[], valid),
                    Some(block as u32),
                    "{}: only this block has an invalid slot",
                    def.name
                );
            }
        }
    }

    /// Returns a list of `blocks` closed blocks.
    fn list_of(blocks: u32) -> ClosedList {
        let mut list = ClosedList::new(LaneShape { blocks, slots: 8 });
        (0..blocks).for_each(|block| list.add(LocalBlock::new(block)));
        list
    }

    #[test]
    fn fruitless_draws_end() {
        let (mut list, block) = (list_of(1000), LocalBlock::new(700));
        let mut valid = ti_vec![8; 1000];
        let mut rng = Rng::stream(Seed(2), "test");
        assert_eq!(list.draw(1, &mut rng, &valid), None);
        valid[block] = 7;
        list.mark(block);
        let draws: Vec<LocalBlock> =
            (0..=FRUITLESS_MAX).map(|_| list.draw(1, &mut rng, &valid).unwrap()).collect();
        assert!(
            draws.contains(&block),
            "the block with the fewest valid slots is picked after at most {FRUITLESS_MAX} draws"
        );
        assert!(draws[0] != block, "the first pick is a random draw");
        list.remove(block);
        assert_eq!(list.draw(1, &mut rng, &valid), None);
    }

    #[test]
    fn more_choices_come_nearer_to_greedy() {
        let valid: TiVec<LocalBlock, u32> = (0..8).collect();
        for d in [1, 2, 5] {
            let mut list = list_of(8);
            valid.keys().for_each(|block| list.mark(block));
            let mut rng = Rng::stream(Seed(5), "test");
            let mut draw = || valid[list.draw(d, &mut rng, &valid).unwrap()];
            let sum: f64 = (0..4000).map(|_| f64::from(draw())).sum();
            // the mean of the smallest of d uniform draws from 0..8 is the sum over k = 1..8 of
            // P(all draws are at least k)
            let expected: f64 = (1..8).map(|k| (1.0 - f64::from(k) / 8.0).powi(d as i32)).sum();
            assert!(
                (sum / 4000.0 - expected).abs() < 0.15,
                "d={d}: {}, expected {expected}",
                sum / 4000.0
            );
        }
    }

    #[test]
    fn removal_keeps_every_other_block() {
        let mut list = list_of(4);
        list.remove(LocalBlock::new(0));
        list.remove(LocalBlock::new(3));
        let mut left = list.blocks.clone();
        left.sort_unstable();
        assert_eq!(left, [1, 2].map(LocalBlock::new));
        list.remove(LocalBlock::new(2));
        list.remove(LocalBlock::new(1));
        assert!(list.blocks.is_empty());
    }
}
