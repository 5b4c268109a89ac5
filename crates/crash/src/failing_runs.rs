//! Parts that fail while the power is on.
//!
//! Such a part is a program or an erase that the flash reports as failed, a block that was bad from
//! the beginning, or a page that cannot be read any more. [`flashatlas_nand::faults`] describes the
//! effects of each failure.
//!
//! For each failure the workload runs once more, with the failure at one place. After a failed
//! program or erase, the power fails at each of the next operations. For each kind of failure, at
//! most [`TRIES`] places are tried, which are spread over the workload.

use crate::cut::{Cut, CutKind};
use crate::enumerate::{Depth, Enumerator, Tally};
use crate::examine::{Examine, Lost, Remains};
use crate::failing_part::{FAILING_PARTS, FailingPart, LostPages};
use crate::model::Model;
use crate::recording::{FAILING, Recording, SEED};
use crate::sample::Sample;
use crate::verify::Verifier;
use crate::{CrashError, Failure};
use flashatlas_device::params::BLOCKS;
use flashatlas_device::{DriveConfig, Ssd};
use flashatlas_ftl::Place;
use flashatlas_nand::{Change, FrameState, Medium};
use flashatlas_types::{FrameId, LaneId, Lpn};
use std::collections::BTreeSet;

/// Maximum number of failures of one kind that are tried in one workload.
pub const TRIES: u32 = 4;

/// Number of operations, from the failed operation on, at which the power fails.
const WINDOW: u32 = 12;

/// Returns the drive on which a failure is tried.
///
/// If the failure requires it, the drive has a spare block or additional blocks.
fn drive_for(part: FailingPart, config: &DriveConfig) -> Result<DriveConfig, CrashError> {
    let blocks =
        |more: u64| format!("drive.blocks={}", u64::from(config.params.get(BLOCKS)) + more);
    let drive = match part {
        FailingPart::Program | FailingPart::Erase => config.with(&["nand.spare_blocks=1".into()]),
        FailingPart::EraseWithoutSpare => config.with(&[blocks(1)]),
        FailingPart::FactoryBlocks => {
            let whole = config.layout()?;
            let rates =
                |rates: [u32; 4]| (2..9).flat_map(move |more| rates.map(|rate| (more, rate)));
            // stacks of several large drives need lower rates
            let tries = rates([50_000, 100_000, 200_000, 300_000])
                .chain(rates([5_000, 10_000, 20_000, 30_000]));
            for (more, rate) in tries {
                let settings = [blocks(more), format!("nand.factory_bad={rate}")];
                let config = config.with(&settings)?;
                let drives = (0..config.drives()).map(|drive| config.build(SEED.of_drive(drive)));
                let Ok(drives) = drives.collect::<Result<Vec<_>, _>>() else { continue };
                let enough = |drive: &Ssd| {
                    let (medium, layout) = (drive.medium(), drive.layout());
                    let good = |lane| {
                        layout.lane_blocks(LaneId::new(lane)).filter(|&b| !medium.is_bad(b)).count()
                    };
                    (0..layout.lanes).all(|lane| good(lane) >= whole.blocks_per_lane as usize)
                };
                let some_bad = |drive: &Ssd| drive.medium().good_blocks() < drive.layout().blocks();
                if drives.iter().all(enough) && drives.iter().any(some_bad) {
                    return Ok(config);
                }
            }
            return Err(CrashError::FactoryBlocks);
        }
        FailingPart::ProgramWithoutSpare | FailingPart::Page | FailingPart::PageBeforeMount => {
            return Ok(config.clone());
        }
    };
    Ok(drive?)
}

/// Returns at most `most` numbers below `of`, spread evenly.
fn spread(of: u32, most: u32) -> impl Iterator<Item = u32> {
    let count = of.min(most);
    (0..count).map(move |i| (u64::from(of) * u64::from(2 * i + 1) / u64::from(2 * count)) as u32)
}

/// One workload, with every kind of failure that `depth` switches on.
pub struct Workload<'a> {
    /// The drive of the workload without failures.
    pub config: &'a DriveConfig,
    /// The workload without failures.
    pub clean: &'a Recording,
    /// `true` if every unit is written before the workload begins.
    pub filled: bool,
    /// Depth of the enumeration after each failure.
    pub depth: Depth,
    /// `true` to try a drive with factory-bad blocks.
    pub factory: bool,
    /// `true` if the drive cannot go on with one block less.
    pub tight: bool,
    /// Rate of the sample: one failure in `one_in` is tried, but at least one in [`TRIES`]. Of the
    /// cuts after a failure, one in `one_in` is tried.
    pub one_in: u32,
    /// Name of the workload; the sampling depends on it.
    pub name: &'a str,
}

impl Workload<'_> {
    /// Tries every failure with the cuts after it, or only the failure and the cuts in `only`.
    pub fn run(&self, only: Option<&[Cut]>, on_failure: &mut dyn FnMut(&[Cut], Failure)) -> Tally {
        let mut tally = Tally::default();
        let count = |of: fn(&Change) -> bool| {
            self.clean.changes.iter().filter(|c| c.drive == FAILING && of(&c.change)).count() as u32
        };
        let programs = count(|c| matches!(c, Change::Program { .. } | Change::Step { .. }));
        let erases = count(|c| matches!(c, Change::Erase(_)));
        let (media, model) = self.clean.end();
        let single = self.config.layers().is_empty().then(|| media.only());
        let relied_on = single
            .as_ref()
            .map_or(Vec::new(), |medium| LostPages::of(&self.relied_on(medium), medium));
        for (part, _, _) in FAILING_PARTS.into_iter().filter(|&(part, _, fault)| {
            let asked = only.is_none_or(|only| only[0].how == CutKind::FailingPart(part));
            let fits = match part {
                FailingPart::FactoryBlocks => self.factory,
                FailingPart::EraseWithoutSpare => !self.tight,
                // below layers, it is unknown which page of a layer is in a page of the drive
                FailingPart::Page | FailingPart::PageBeforeMount => self.config.layers().is_empty(),
                _ => true,
            };
            asked && fits && self.depth.faults.has(fault)
        }) {
            let there_are = match part {
                FailingPart::Program | FailingPart::ProgramWithoutSpare => programs,
                FailingPart::Erase | FailingPart::EraseWithoutSpare => erases,
                FailingPart::Page | FailingPart::PageBeforeMount => relied_on.len() as u32,
                FailingPart::FactoryBlocks => 1,
            };
            let places: Vec<u32> = match only {
                Some(only) => {
                    Some(only[0].after).filter(|&after| after < there_are).into_iter().collect()
                }
                None => {
                    let name = format!("{}:{}", self.name, part.letters());
                    let mut sample = Sample::new(self.one_in.min(TRIES), &name);
                    spread(there_are, TRIES).filter(|_| sample.takes()).collect()
                }
            };
            for after in places {
                let cut = Cut { after, how: CutKind::FailingPart(part) };
                let found = match part {
                    FailingPart::Page | FailingPart::PageBeforeMount => {
                        let medium = single.as_ref().expect("only a bare drive loses pages");
                        self.without_a_page(part, relied_on[after as usize], medium, &model)
                    }
                    _ => self.with_a_failure(part, cut, only, on_failure),
                };
                match found {
                    Ok(found) => tally.add(&found),
                    Err(failure) => {
                        tally.violations += 1;
                        on_failure(&[cut], failure);
                    }
                }
            }
        }
        tally
    }

    /// Returns the programmed frames with the newest version of a unit or with a map page.
    fn relied_on(&self, medium: &Medium) -> Vec<FrameId> {
        let mut left = medium.clone();
        left.power_off();
        let drive = self
            .config
            .build_on(left, SEED)
            .expect("the workload ran, and every cut of it was mounted");
        let layout = medium.layout();
        let newest = (0..layout.logical_units).filter_map(|unit| match drive.place(Lpn(unit)) {
            Place::Flash(ppn) => Some(layout.frame_of(ppn)),
            _ => None,
        });
        let map = (0..layout.frames()).map(FrameId);
        let map = map.filter(|&f| medium.holds_map(f));
        let frames: BTreeSet<FrameId> = newest.chain(map).collect();
        frames.into_iter().filter(|&f| medium.state(f) == FrameState::Programmed).collect()
    }

    fn with_a_failure(
        &self,
        part: FailingPart,
        cut: Cut,
        only: Option<&[Cut]>,
        on_failure: &mut dyn FnMut(&[Cut], Failure),
    ) -> Result<Tally, Failure> {
        let config =
            drive_for(part, self.config).map_err(|error| Failure::new("R5", error.to_string()))?;
        let recording =
            Recording::make(&config, &self.clean.steps, self.filled, Some((part, cut.after)))?;
        let failed = |c: &Change| matches!(c, Change::ProgramFailed(_) | Change::EraseFailed(_));
        let mut at = recording.changes.iter().filter(|c| c.change.is_operation());
        let at = at.position(|c| failed(&c.change));
        let window = match (part, at) {
            (FailingPart::FactoryBlocks, _) => 0..u32::MAX,
            (_, Some(at)) => at as u32..at as u32 + WINDOW,
            // a drive with one more block erases less often, so the erase may not be reached
            (FailingPart::EraseWithoutSpare, None) => {
                return Ok(Tally { not_reached: 1, ..Tally::default() });
            }
            (_, None) => {
                return Err(Failure::new(
                    "R5",
                    "the failure that was injected did not happen".into(),
                ));
            }
        };
        let mut tally = Enumerator::new(&config, self.depth, only, on_failure)
            .after(cut)
            .within(window)
            .sampled(Sample::new(self.one_in, &format!("{}:{cut}", self.name)))
            .run(&recording);
        tally.failed_parts += 1;
        Ok(tally)
    }

    fn without_a_page(
        &self,
        part: FailingPart,
        lost: LostPages,
        medium: &Medium,
        model: &Model,
    ) -> Result<Tally, Failure> {
        let mut verifier = Verifier::new(self.config);
        let mut left = medium.clone();
        left.power_off();
        let mut reached = true;
        if part == FailingPart::PageBeforeMount {
            lost.take_from(&mut left);
            let remains = if left.state(lost.frame) == FrameState::Torn {
                let mut content = Lost::default();
                content.add(medium, lost.frame);
                Remains::Damaged(content)
            } else {
                Remains::Sound // what wrong bits take is named by its spare area
            };
            verifier.examine(left.into(), model, 0, false, &remains)?;
            Failure::unless(!lost.is_rebuilt || verifier.lost_units() == 0, "R6", || {
                format!("a mount without a part of frame {} loses units", lost.frame)
            })?;
        } else {
            reached = verifier.run_without(left, model, lost)?;
        }
        let (failed_parts, not_reached) = (u64::from(reached), u64::from(!reached));
        Ok(Tally {
            failed_parts,
            not_reached,
            between: 1,
            mounts: verifier.mounts,
            ..Tally::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_stands_at_its_number() {
        assert!(FAILING_PARTS.iter().enumerate().all(|(i, part)| part.0 as usize == i));
    }

    #[test]
    fn failures_are_spread() {
        assert_eq!(spread(3, 4).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(spread(100, 4).collect::<Vec<_>>(), [12, 37, 62, 87]);
        assert_eq!(spread(0, 4).count(), 0);
    }
}
