//! Programs that may be unfinished, and joins that stand for many programs.

use flashatlas_types::{Class, OpId, Plan};
use std::collections::VecDeque;

/// The number of programs from one join to the next.
const TOGETHER: usize = 64;

/// Programs of data that may be unfinished, oldest first.
/// With thousands of programs in flight, a map page that waits for all of them would need one edge
/// for each program. The number of edges in a run would grow with the square of the number of
/// programs. So every 64th program gets a join, which waits for this program and all programs
/// before it. Adding a program then takes constant time on average, and [`InFlight::up_to`] returns
/// at most 64 operations.
#[derive(Default)]
pub(crate) struct InFlight {
    programs: VecDeque<OpId>,
    /// Each join, with the last program that it waits for.
    joins: VecDeque<(OpId, OpId)>,
    /// The number of programs after the last program with a join.
    alone: usize,
}

impl InFlight {
    /// Adds a program. Programs before `oldest` are complete and are removed.
    pub fn push(&mut self, plan: &mut Plan, oldest: OpId, op: OpId) {
        forget_complete(&mut self.programs, oldest, |&program| program);
        forget_complete(&mut self.joins, oldest, |&(_, join)| join);
        if op == OpId::NONE {
            return;
        }
        self.programs.push_back(op);
        self.alone = (self.alone + 1).min(self.programs.len());
        if self.alone >= TOGETHER {
            let before: Vec<OpId> = self.up_to(op).collect();
            self.joins.push_back((op, plan.join(Class::Map, &before)));
            self.alone = 0;
        }
    }

    /// Returns operations that are all complete exactly when every program up to `newest` is
    /// complete.
    pub fn up_to(&self, newest: OpId) -> impl Iterator<Item = OpId> + '_ {
        let joined = self.joins.partition_point(|&(last, _)| last <= newest);
        let join = joined.checked_sub(1).map(|at| self.joins[at]);
        let first = join.map_or(0, |(last, _)| self.programs.partition_point(|&op| op <= last));
        let alone = self.programs.range(first..).copied().take_while(move |&op| op <= newest);
        join.map(|(_, join)| join).into_iter().chain(alone)
    }
}

/// Removes complete entries from the old end of a queue. An entry is complete when the operation
/// that `op` returns is complete.
pub(crate) fn forget_complete<T>(queue: &mut VecDeque<T>, oldest: OpId, op: impl Fn(&T) -> OpId) {
    while queue.front().is_some_and(|entry| op(entry) < oldest) {
        queue.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{OpKind, Rng, Seed};
    use std::collections::BTreeSet;

    /// Finds the programs that an operation waits for, directly or through joins. The operation
    /// itself is included.
    fn programs_of(plan: &Plan, op: OpId, joins: &BTreeSet<OpId>, found: &mut BTreeSet<OpId>) {
        if !joins.contains(&op) {
            found.insert(op);
            return;
        }
        let (_, _, after) = plan.iter().find(|&(id, ..)| id == op).expect("a join of this plan");
        for &one in after {
            programs_of(plan, one, joins, found);
        }
    }

    #[test]
    fn joins_stand_for_every_unfinished_program_and_no_later_one() {
        let mut rng = Rng::stream(Seed(5), "in flight");
        let mut plan = Plan::default();
        plan.set_recording(true);
        let mut in_flight = InFlight::default();
        let (mut issued, mut oldest) = (Vec::new(), OpId(1));
        for step in 0..4000 {
            let op = plan.push(OpKind::Join, Class::Map, &[]);
            issued.push(op);
            // for long stretches no program completes, then many complete together
            if step % 700 == 699 {
                oldest = issued[issued.len() - 1 - rng.place(300)];
            }
            in_flight.push(&mut plan, oldest, op);
            if step % 37 != 0 {
                continue;
            }
            let joins: BTreeSet<OpId> = in_flight.joins.iter().map(|&(_, join)| join).collect();
            let newest = issued[issued.len() - 1 - rng.place(issued.len().min(500))];
            let named: Vec<OpId> = in_flight.up_to(newest).collect();
            assert!(named.len() <= TOGETHER, "{} operations are named", named.len());
            let mut found = BTreeSet::new();
            named.iter().for_each(|&op| programs_of(&plan, op, &joins, &mut found));
            found.retain(|&op| op >= oldest);
            let expected: BTreeSet<OpId> =
                issued.iter().copied().filter(|&op| (oldest..=newest).contains(&op)).collect();
            assert_eq!(found, expected, "up to {newest} at step {step}");
        }
        let edges: usize = plan.iter().map(|(_, _, after)| after.len()).sum();
        assert!(edges <= 2 * issued.len(), "there are {edges} edges for {} programs", issued.len());
    }
}
