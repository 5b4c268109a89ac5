//! Workloads that go through an NVMe controller.
//!
//! A workload is one function and one entry in [`WORKLOADS`].

use super::step::{Blocks, Step};
use super::units::WRITE_MAX;
use crate::workloads::WorkloadShape;
use flashatlas_types::{Rng, Seed};

/// One workload of the registry.
pub struct Workload {
    /// Name in the identity of a failure.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// `true` if every block is written before the first step; the power does not fail during this
    /// fill.
    pub filled: bool,
    one: fn(&Drawn, &mut Rng) -> Step,
}

/// All workloads.
pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "nvme-cache",
        summary: "writes, FUA, FLUSH, reads and compares with the write cache on; now and then a \
                  shutdown or a reset",
        filled: false,
        one: cache,
    },
    Workload {
        name: "nvme-switch",
        summary: "the write cache is switched off and on while changes are in flight; few FLUSHes",
        filled: true,
        one: switch,
    },
    Workload {
        name: "nvme-zeroes",
        summary: "Write Zeroes with Deallocate and without, Dataset Management, writes and FLUSHes \
                  on a full drive",
        filled: true,
        one: zeroes,
    },
    Workload {
        name: "nvme-record",
        summary: "saved features, SMART logs, shutdowns and resets between a few writes",
        filled: false,
        one: record,
    },
];

impl Workload {
    /// Returns the steps for a seed. About half of the steps are commands. After each command, the
    /// media carry out none, one or several of the commands in flight.
    pub fn steps(&self, shape: &WorkloadShape, seed: u64) -> Vec<Step> {
        let mut rng = Rng::stream(Seed(seed), self.name);
        let drawn = Drawn { shape, blocks: shape.units * shape.unit_sectors };
        let mut steps = Vec::new();
        while (steps.len() as u32) < shape.steps {
            steps.push((self.one)(&drawn, &mut rng));
            let progress = [0, 1, 1, 2][rng.below(4) as usize];
            steps.extend((0..progress).map(|_| Step::CarryOut(rng.below(4) as u8)));
        }
        steps
    }
}

/// The drive whose blocks are drawn.
struct Drawn<'a> {
    shape: &'a WorkloadShape,
    blocks: u32,
}

impl Drawn<'_> {
    /// Returns one to three whole units. Three of four draws begin in the first four units, so that
    /// commands meet data that other commands have left in the cache.
    fn units(&self, rng: &mut Rng) -> Blocks {
        let unit = self.shape.unit_sectors;
        let from = if rng.below(4) == 0 { self.shape.units } else { self.shape.units.min(4) };
        let first = rng.below(from.into()) as u32;
        let count = (1 + rng.below(3) as u32).min(self.shape.units - first);
        Blocks { first: first * unit, count: (count * unit).min(WRITE_MAX) }
    }

    /// Returns a range of blocks, often with parts of units.
    fn part(&self, rng: &mut Rng) -> Blocks {
        let first = rng.below(self.blocks.into()) as u32;
        let most = (2 * self.shape.unit_sectors + 1).min(self.blocks - first).min(WRITE_MAX);
        Blocks { first, count: 1 + rng.below(most.into()) as u32 }
    }

    fn any(&self, rng: &mut Rng) -> Blocks {
        if rng.below(3) == 0 { self.part(rng) } else { self.units(rng) }
    }

    fn write(&self, rng: &mut Rng) -> Step {
        Step::Write { blocks: self.any(rng), fua: false }
    }

    fn deallocate(&self, rng: &mut Rng) -> Step {
        Step::Deallocate { ranges: [self.any(rng), self.units(rng)] }
    }
}

fn cache(drawn: &Drawn<'_>, rng: &mut Rng) -> Step {
    let fua = rng.below(3) == 0;
    match rng.below(24) {
        0..12 => Step::Write { blocks: drawn.any(rng), fua },
        12..15 => Step::Flush,
        15..19 => Step::Read { blocks: drawn.any(rng), fua },
        19..22 => Step::Compare { blocks: drawn.any(rng), fua, differs: rng.below(2) == 0 },
        22 => Step::Shutdown,
        _ => Step::Reset,
    }
}

fn switch(drawn: &Drawn<'_>, rng: &mut Rng) -> Step {
    match rng.below(20) {
        0..3 => Step::Cache { on: false, save: rng.below(4) == 0 },
        3..5 => Step::Cache { on: true, save: rng.below(4) == 0 },
        5 => drawn.deallocate(rng),
        6 | 7 => {
            let deallocate = rng.below(2) == 0;
            Step::Zeroes { blocks: drawn.any(rng), fua: false, deallocate }
        }
        8 => Step::Read { blocks: drawn.any(rng), fua: false },
        9 if rng.below(4) == 0 => Step::Reset,
        10 if rng.below(4) == 0 => Step::Flush,
        _ => drawn.write(rng),
    }
}

fn zeroes(drawn: &Drawn<'_>, rng: &mut Rng) -> Step {
    let fua = rng.below(3) == 0;
    match rng.below(16) {
        0..6 => {
            let deallocate = rng.below(2) == 0;
            Step::Zeroes { blocks: drawn.any(rng), fua, deallocate }
        }
        6..9 => drawn.deallocate(rng),
        9..13 => Step::Write { blocks: drawn.any(rng), fua: false },
        13 => Step::Compare { blocks: drawn.any(rng), fua: false, differs: false },
        _ => Step::Flush,
    }
}

fn record(drawn: &Drawn<'_>, rng: &mut Rng) -> Step {
    match rng.below(16) {
        0..3 => Step::Threshold(300 + rng.below(60) as u16),
        3..6 => Step::Cache { on: rng.below(2) == 0, save: rng.below(4) > 0 },
        6..9 => Step::Smart,
        9 => Step::Shutdown,
        10 => Step::Reset,
        11 => Step::Compare { blocks: drawn.any(rng), fua: false, differs: true },
        12 => Step::Read { blocks: drawn.any(rng), fua: false },
        _ => drawn.write(rng),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_stay_on_the_drive() {
        for workload in WORKLOADS {
            for (units, unit_sectors) in [(8, 4), (50, 1), (333, 8), (9, 200)] {
                let shape = WorkloadShape { units, unit_sectors, steps: 400 };
                let steps = workload.steps(&shape, 3);
                for blocks in steps.iter().flat_map(|step| step.ranges()) {
                    let end = blocks.first + blocks.count;
                    assert!(end <= units * unit_sectors, "{}: {blocks}", workload.name);
                    assert!((1..=WRITE_MAX).contains(&blocks.count), "{blocks}");
                }
            }
        }
    }
}
