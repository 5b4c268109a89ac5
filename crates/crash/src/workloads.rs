//! Workloads: the commands that a host sends to a small drive before the power fails.
//!
//! A workload is one function and one entry in [`WORKLOADS`].

use crate::model::Step;
use flashatlas_types::{Rng, Seed};

/// Size of the drive for which a workload is made, and length of the workload.
pub struct WorkloadShape {
    /// Number of logical units of the drive.
    pub units: u32,
    /// Number of sectors of a unit.
    pub unit_sectors: u32,
    /// Approximate number of steps.
    pub steps: u32,
}

/// One workload of the registry.
pub struct Workload {
    /// Name in the identity of a failure.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// `true` if every unit is written before the first step; the power does not fail during this
    /// fill.
    pub filled: bool,
    /// `true` if the drive has the smallest over-provisioning that its scheme accepts, at least 3
    /// %.
    pub tight: bool,
    make: fn(&WorkloadShape, &mut Rng) -> Vec<Step>,
}

/// All workloads except the exhaustive workload ([`exhaustive`]).
pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "sequential",
        summary: "sequential writes from one end of the drive to the other, again and again, with \
                  FLUSHes in between",
        filled: false,
        tight: false,
        make: sequential,
    },
    Workload {
        name: "random",
        summary: "writes of one to three units anywhere, some in part, some FUA; now and then a \
                  FLUSH or a read",
        filled: false,
        tight: false,
        make: random,
    },
    Workload {
        name: "hot-cold",
        summary: "nine of ten writes go to a tenth of the drive; a FLUSH after every fourth write; \
                  idle time",
        filled: true,
        tight: false,
        make: hot_cold,
    },
    Workload {
        name: "trim",
        summary: "more trims than writes, with FLUSHes in between",
        filled: true,
        tight: false,
        make: trim,
    },
    Workload {
        name: "collect",
        summary: "random writes to a full drive at 3 % over-provisioning, or at the least \
                  over-provisioning above 3 % that the scheme accepts",
        filled: true,
        tight: true,
        make: collect,
    },
    Workload {
        name: "map-pages",
        summary: "writes and trims far apart, each in another map page, most of them durable \
                  immediately",
        filled: true,
        tight: false,
        make: map_pages,
    },
];

impl Workload {
    /// Returns the steps for a seed.
    pub fn steps(&self, shape: &WorkloadShape, seed: u64) -> Vec<Step> {
        (self.make)(shape, &mut Rng::stream(Seed(seed), self.name))
    }
}

impl WorkloadShape {
    fn write(&self, first: u32, units: u32) -> Step {
        let units = units.min(self.units - first);
        Step::Write {
            lba: first * self.unit_sectors,
            sectors: units * self.unit_sectors,
            fua: false,
        }
    }

    fn trim(&self, first: u32, units: u32) -> Step {
        let units = units.min(self.units - first);
        Step::Trim { lba: first * self.unit_sectors, sectors: units * self.unit_sectors }
    }

    fn any(&self, rng: &mut Rng) -> u32 {
        rng.below(self.units.into()) as u32
    }
}

fn sequential(shape: &WorkloadShape, rng: &mut Rng) -> Vec<Step> {
    let mut at = 0;
    let mut steps = Vec::new();
    while (steps.len() as u32) < shape.steps / 2 {
        let units = 1 + rng.below(6) as u32;
        steps.push(shape.write(at, units));
        at += units;
        if at >= shape.units {
            at = 0;
        }
        if rng.below(4) == 0 {
            steps.push(Step::Flush);
        }
    }
    steps
}

fn random(shape: &WorkloadShape, rng: &mut Rng) -> Vec<Step> {
    let sectors = shape.units * shape.unit_sectors;
    let one = |_| match rng.below(16) {
        0 | 1 => Step::Flush,
        2 => Step::Read { lba: shape.any(rng) * shape.unit_sectors, sectors: shape.unit_sectors },
        3 => Step::Write {
            lba: shape.any(rng) * shape.unit_sectors,
            sectors: shape.unit_sectors,
            fua: true,
        },
        4..7 => {
            let lba = rng.below(sectors.into()) as u32;
            let most = u64::from((sectors - lba).min(2 * shape.unit_sectors + 1));
            Step::Write { lba, sectors: 1 + rng.below(most) as u32, fua: rng.below(4) == 0 }
        }
        _ => shape.write(shape.any(rng), 1 + rng.below(3) as u32),
    };
    (0..shape.steps).map(one).collect()
}

fn hot_cold(shape: &WorkloadShape, rng: &mut Rng) -> Vec<Step> {
    let hot = u64::from(shape.units.div_ceil(10));
    let one = |i| match i % 5 {
        4 if rng.below(8) == 0 => Step::Idle,
        4 => Step::Flush,
        _ if rng.below(10) < 9 => shape.write(rng.below(hot) as u32, 1),
        _ => shape.write(shape.any(rng), 2),
    };
    (0..shape.steps).map(one).collect()
}

fn trim(shape: &WorkloadShape, rng: &mut Rng) -> Vec<Step> {
    let one = |_| match rng.below(10) {
        0..4 => shape.trim(shape.any(rng), 1 + rng.below(5) as u32),
        4..7 => shape.write(shape.any(rng), 1 + rng.below(4) as u32),
        7 => Step::Trim {
            lba: shape.any(rng) * shape.unit_sectors,
            sectors: shape.unit_sectors.div_ceil(2),
        },
        _ => Step::Flush,
    };
    (0..shape.steps).map(one).collect()
}

fn collect(shape: &WorkloadShape, rng: &mut Rng) -> Vec<Step> {
    let one = |_| match rng.below(12) {
        0 => Step::Flush,
        _ => shape.write(shape.any(rng), 1),
    };
    (0..shape.steps).map(one).collect()
}

fn map_pages(shape: &WorkloadShape, rng: &mut Rng) -> Vec<Step> {
    let mut at = 0;
    let mut steps = Vec::new();
    while (steps.len() as u32) < shape.steps {
        // a stride that does not divide the drive's size visits another map page each time
        at = (at + shape.units * 3 / 8 + rng.below(3) as u32) % shape.units;
        match rng.below(6) {
            0 => steps.extend([shape.trim(at, 1), Step::Flush]),
            1 => {
                let lba = at * shape.unit_sectors;
                steps.push(Step::Write { lba, sectors: shape.unit_sectors, fua: true });
            }
            2 => steps.extend([shape.write(at, 1), Step::Idle]),
            _ => steps.extend([shape.write(at, 1), Step::Flush]),
        }
    }
    steps
}

/// Number of sequences that [`exhaustive`] can return.
pub const SEQUENCES: u64 = {
    let n = ALPHABET as u64;
    n + n * n + n * n * n + n * n * n * n
};

const ALPHABET: usize = 7;

/// Returns the sequence with this number, which must be below [`SEQUENCES`]. A sequence has one to
/// four operations on a blank drive.
///
/// The operations are a write of unit 0, a write of units 0 and 1, a FUA write of the last unit, a
/// write over parts of units 0 and 1, a trim of unit 0, a FLUSH, and idle time.
pub fn exhaustive(shape: &WorkloadShape, number: u64) -> Vec<Step> {
    let unit = shape.unit_sectors;
    let far = shape.units - 1;
    let alphabet: [Step; ALPHABET] = [
        shape.write(0, 1),
        shape.write(0, 2),
        Step::Write { lba: far * unit, sectors: unit, fua: true },
        Step::Write { lba: unit / 2, sectors: unit, fua: false },
        shape.trim(0, 1),
        Step::Flush,
        Step::Idle,
    ];
    let (mut length, mut rest, mut of_length) = (1, number, ALPHABET as u64);
    while rest >= of_length {
        rest -= of_length;
        of_length *= ALPHABET as u64;
        length += 1;
    }
    (0..length)
        .map(|_| {
            let step = alphabet[(rest % ALPHABET as u64) as usize];
            rest /= ALPHABET as u64;
            step
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exhaustive_workload_has_every_sequence_once() {
        let shape = WorkloadShape { units: 20, unit_sectors: 4, steps: 0 };
        let mut all: Vec<String> =
            (0..SEQUENCES).map(|n| format!("{:?}", exhaustive(&shape, n))).collect();
        assert_eq!(exhaustive(&shape, SEQUENCES - 1).len(), 4);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 7 + 49 + 343 + 2401);
    }

    #[test]
    fn steps_stay_on_the_drive() {
        for workload in WORKLOADS {
            for units in [8, 50, 333] {
                let steps =
                    workload.steps(&WorkloadShape { units, unit_sectors: 4, steps: 400 }, 3);
                for step in &steps {
                    if let Step::Write { lba, sectors, .. }
                    | Step::Trim { lba, sectors }
                    | Step::Read { lba, sectors } = step
                    {
                        assert!(
                            *sectors > 0 && lba + sectors <= units * 4,
                            "{}: {step}",
                            workload.name
                        );
                    }
                }
                assert!(steps.contains(&Step::Flush), "{}", workload.name);
            }
        }
    }
}
