//! Copies of map pages that may be unfinished. One command may write thousands of map pages. So the
//! time to add a copy, or to wait for all copies, must not grow with the number of copies.

use crate::in_flight::{InFlight, forget_complete};
use flashatlas_types::{OpId, Plan};
use std::collections::VecDeque;

/// Copies of map pages that may be unfinished, and the changes that only these copies have.
#[derive(Default)]
pub(super) struct Copies {
    all: InFlight,
    /// The newest copy.
    newest: OpId,
    /// For each copy, the number of the first program whose change no complete copy has. A copy is
    /// omitted if a later copy has the same or a smaller number, so that both columns ascend.
    since: VecDeque<(OpId, u64)>,
}

impl Copies {
    /// Adds a copy that is complete once `op` is complete and has the changes from program `since`
    /// on. Operations before `oldest` are complete.
    pub fn push(&mut self, plan: &mut Plan, oldest: OpId, op: OpId, since: u64) {
        debug_assert!(self.newest <= op);
        self.all.push(plan, oldest, op);
        self.newest = op;
        while self.since.back().is_some_and(|&(_, before)| before >= since) {
            self.since.pop_back();
        }
        self.since.push_back((op, since));
    }

    /// Returns at most 65 operations that are all complete once every copy is complete.
    pub fn unfinished(&mut self, oldest: OpId) -> Vec<OpId> {
        self.all.up_to(self.newest).filter(|&op| op >= oldest).collect()
    }

    /// Returns the number of the first program whose change is only in unfinished copies.
    pub fn oldest_change(&mut self, oldest: OpId) -> Option<u64> {
        forget_complete(&mut self.since, oldest, |&(op, _)| op);
        self.since.front().map(|&(_, since)| since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{Class, OpKind, Rng, Seed};

    /// Compares the result with a scan of a list of all copies.
    #[test]
    fn the_oldest_change_is_the_smallest_of_all_that_is_under_way() {
        let mut rng = Rng::stream(Seed(1), "copies");
        let (mut plan, mut copies) = (Plan::default(), Copies::default());
        let mut all: Vec<(OpId, u64)> = Vec::new();
        let (mut oldest, mut waited) = (OpId::NONE, 0);
        for _ in 0..20_000 {
            let op = plan.push(OpKind::Join, Class::Map, &[]);
            let since = 1 + rng.below(1 << 20);
            copies.push(&mut plan, oldest, op, since);
            all.push((op, since));
            if rng.below(50) == 0 {
                oldest = all[rng.below(all.len() as u64) as usize].0;
                all.retain(|&(op, _)| op >= oldest);
            }
            assert_eq!(copies.oldest_change(oldest), all.iter().map(|&(_, since)| since).min());
            let waits = copies.unfinished(oldest);
            waited = waits.len().max(waited);
        }
        assert!((1..=65).contains(&waited), "{waited}");
    }
}
