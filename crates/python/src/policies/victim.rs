//! A victim policy in Python.
//!
//! Events are written to arrays, and the policy is called only to pick a block.

use super::arrays::{Longs, PyArray, Words};
use super::{Described, leaked, raised, values};
use flashatlas_ftl::victims::{Candidates, LaneShape, Moment, VictimDef, VictimPolicy};
use flashatlas_types::{Dur, LocalBlock, ParamDef, Params, PartFault, Rng};
use pyo3::prelude::*;
use std::collections::VecDeque;

/// Value of `closed_at` for blocks that are not candidates.
const NEVER: u64 = u64::MAX;

/// A lane, for the policy in Python.
#[pyclass(frozen, name = "Lane")]
pub struct PyLane {
    /// Number of slots of a block.
    #[pyo3(get)]
    slots: u32,
    valid: Words,
    erases: Words,
    closed_at: Longs,
    changed_at: Longs,
    /// Two numbers: the clock and the simulated time.
    now: Longs,
}

#[pymethods]
impl PyLane {
    /// Returns the arrays: valid, erases, closed_at, changed_at.
    #[getter]
    fn arrays(&self) -> [PyArray; 4] {
        let PyLane { valid, erases, closed_at, changed_at, .. } = self;
        [valid.shared(), erases.shared(), closed_at.shared(), changed_at.shared()]
    }

    /// Returns the number of slots programmed on the drive so far.
    #[getter]
    fn clock(&self) -> u64 {
        self.now.get(0)
    }

    /// Returns the simulated time, in picoseconds.
    #[getter]
    fn now_ps(&self) -> u64 {
        self.now.get(1)
    }
}

struct Victim {
    who: &'static str,
    policy: Py<PyAny>,
    /// Number of valid slots, by block. The policy's `PyLane` shares the arrays of this struct.
    valid: Words,
    erases: Words,
    closed_at: Longs,
    changed_at: Longs,
    now: Longs,
    slots: u32,
    /// Blocks that were closed since the last pick, whose erases are not in the array yet.
    fresh: Vec<LocalBlock>,
    /// Blocks that the policy has picked and that were not returned yet.
    chosen: VecDeque<LocalBlock>,
}

/// Returns the definition of a policy that is written in Python.
pub fn definition(described: Described, params: &'static [ParamDef]) -> VictimDef {
    let who = leaked(&format!("victim policy `{}` ({})", described.name, described.origin.0));
    let make = described.make;
    let build = move |set: &Params, lane: LaneShape, mut rng: Rng| {
        let (blocks, slots) = (lane.blocks as usize, lane.slots);
        let victim = |policy| Victim {
            who,
            policy,
            valid: Words::of(0, blocks),
            erases: Words::of(0, blocks),
            closed_at: Longs::of(NEVER, blocks),
            changed_at: Longs::of(0, blocks),
            now: Longs::of(0, 2),
            slots,
            fresh: Vec::new(),
            chosen: VecDeque::new(),
        };
        let seed = rng.below(1 << 63);
        Python::attach(|py| {
            let mut victim = victim(py.None());
            let seen = PyLane {
                slots,
                valid: victim.valid.clone(),
                erases: victim.erases.clone(),
                closed_at: victim.closed_at.clone(),
                changed_at: victim.changed_at.clone(),
                now: victim.now.clone(),
            };
            let made = values(py, set, params).and_then(|set| make.call1(py, (set, seen, seed)));
            victim.policy = made.unwrap_or_else(|e| raised(who, "__init__", None, py, e));
            Box::new(victim) as Box<dyn VictimPolicy>
        })
    };
    VictimDef {
        name: leaked(&described.name),
        summary: leaked(&described.summary),
        paper: leaked(&described.paper),
        params,
        build: Box::leak(Box::new(build)),
        steady: None,
    }
}

impl VictimPolicy for Victim {
    fn closed(&mut self, block: LocalBlock, valid: u32, at: Moment) {
        let block_at = block.into();
        self.valid.set(block_at, valid);
        self.closed_at.set(block_at, at.clock);
        self.changed_at.set(block_at, at.clock);
        self.fresh.push(block);
    }

    fn invalidated(&mut self, block: LocalBlock, valid: u32, at: Moment) {
        self.valid.set(block.into(), valid);
        self.changed_at.set(block.into(), at.clock);
    }

    fn removed(&mut self, block: LocalBlock) {
        self.closed_at.set(block.into(), NEVER);
    }

    fn pick(&mut self, lane: &Candidates<'_>) -> Option<LocalBlock> {
        for block in self.fresh.drain(..) {
            self.erases.set(block.into(), lane.erases[block]);
        }
        while let Some(block) = self.chosen.pop_front() {
            if self.frees(block) {
                return Some(block);
            }
        }
        self.now.set(0, lane.at.clock);
        self.now.set(1, lane.at.now.0);
        let now = Some(lane.at.now);
        Python::attach(|py| {
            let picked = self.policy.call_method0(py, "_pick");
            let picked = picked.and_then(|picked| picked.extract::<Vec<u32>>(py));
            let picked = picked.unwrap_or_else(|e: PyErr| raised(self.who, "pick", now, py, e));
            for &block in &picked {
                if self.closed_at.len() <= block as usize
                    || self.closed_at.get(block as usize) == NEVER
                {
                    PartFault::raise(
                        self.who,
                        format!(
                            "`pick` at {} returned block {block}, which is not one of the closed \
                             blocks",
                            Dur(lane.at.now.0)
                        ),
                    );
                }
            }
            self.chosen.extend(picked.into_iter().map(LocalBlock::new));
        });
        // a policy may pick a block without an invalid slot, for example if it picks at random
        self.chosen.pop_front()
    }
}

impl Victim {
    /// Returns `true` if a block is closed and has an invalid slot.
    fn frees(&self, block: LocalBlock) -> bool {
        let at = block.into();
        self.closed_at.get(at) != NEVER && self.valid.get(at) < self.slots
    }
}
