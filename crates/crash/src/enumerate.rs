//! Enumeration of every cut of a recording.
//!
//! The changes are carried out again one by one on a copy of the media. At each change, the power
//! fails for a further copy of these media.

use crate::Failure;
use crate::cut::{Cut, CutKind};
use crate::examine::{Examine, Lost, Mounted, Remains};
use crate::faults::Faults;
use crate::media::{DriveChange, Media};
use crate::model::Step;
use crate::recording::Recording;
use crate::sample::Sample;
use crate::verify::Verifier;
use flashatlas_device::DriveConfig;
use flashatlas_nand::{Change, Torn};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ops::Range;

/// Depth of an enumeration of cuts.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// Number of cuts in a row: with 1 the workload is cut, with 2 also the mount after it, and so
    /// on.
    pub cuts: u32,
    /// Faults that are injected in addition to the cut itself.
    pub faults: Faults,
}

/// Counts of the states that were tried, and the results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// States that were mounted after the power had failed between two operations.
    pub between: u64,
    /// States that were mounted after the power had failed in an operation.
    pub torn: u64,
    /// States that were mounted after the acknowledgement of a FLUSH or a FUA write.
    pub acknowledged: u64,
    /// States in which a change was under way, or acknowledged and not flushed.
    pub dirty: u64,
    /// States that were left by a cut during a mount.
    pub deeper: u64,
    /// States in which another subset of the operations in flight was carried out
    /// (`crate::in_flight`).
    pub reordered: u64,
    /// Parts that failed while the power was on (`crate::failing_runs`).
    pub failed_parts: u64,
    /// Planned failures that did not happen. A drive with one more block did not reach the erase,
    /// or a mount had moved the page.
    pub not_reached: u64,
    /// Mounts that ended in an error because a program had failed and no spare block was left.
    pub refused_mounts: u64,
    /// Commands after which there were too many subsets, so that only a random sample was tried.
    pub sampled: u64,
    /// Units that read as an error after a cut, because wrong bits had taken their newest data.
    pub lost_units: u64,
    /// Mounts, including the mounts after the verifier's own writes.
    pub mounts: u64,
    /// Programs and erases of the longest mount.
    pub longest_mount: u64,
    /// Failures.
    pub violations: u64,
}

impl Tally {
    /// Returns the number of states that were mounted and compared.
    pub fn cuts(&self) -> u64 {
        self.between + self.torn + self.acknowledged + self.reordered
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Tally) {
        self.between += other.between;
        self.torn += other.torn;
        self.acknowledged += other.acknowledged;
        self.dirty += other.dirty;
        self.deeper += other.deeper;
        self.reordered += other.reordered;
        self.sampled += other.sampled;
        self.failed_parts += other.failed_parts;
        self.not_reached += other.not_reached;
        self.refused_mounts += other.refused_mounts;
        self.lost_units += other.lost_units;
        self.mounts += other.mounts;
        self.longest_mount = self.longest_mount.max(other.longest_mount);
        self.violations += other.violations;
    }
}

/// Number of failures of a recording after which the rest of the recording is skipped.
pub(crate) const ENOUGH: u64 = 3;

/// Enumerator of the cuts of one drive.
pub struct Enumerator<'f, E> {
    pub(crate) examiner: E,
    pub(crate) depth: Depth,
    /// The only path of cuts to examine, if one failure is run again.
    only: Option<&'f [Cut]>,
    /// Path to the present state: the failure of a part, if a part failed, and the cuts.
    path: Vec<Cut>,
    /// Number of entries of `path` that are failures of parts.
    parts: usize,
    /// `true` if a program failed and no spare block took its block's place.
    broken: bool,
    /// Content of the pages that were lost in the cuts so far, and the drives that lost pages.
    lost: Lost,
    damaged: BTreeSet<usize>,
    /// `true` if the lowest layer combines several drives, so that it makes up for the loss of one
    /// drive.
    redundant: bool,
    /// `true` if the scheme defends lower pages: a torn program then loses no page with durable
    /// data.
    defended: bool,
    /// Range of the workload's operations that are cut.
    window: Range<u32>,
    /// Sample of the workload's cuts. All cuts of a mount are tried.
    pub(crate) sample: Sample,
    pub(crate) tally: Tally,
    on_failure: &'f mut dyn FnMut(&[Cut], Failure),
}

impl<'c, 'f> Enumerator<'f, Verifier<'c>> {
    /// Returns an enumerator for drives of `config`.
    ///
    /// `on_failure` is called for each failure, with the cuts that led to the failure.
    pub fn new(
        config: &'c DriveConfig,
        depth: Depth,
        only: Option<&'f [Cut]>,
        on_failure: &'f mut dyn FnMut(&[Cut], Failure),
    ) -> Self {
        Enumerator::with(Verifier::new(config), config, (depth, only), on_failure)
    }

    /// Declares that a part fails in the recording, at `part`.
    #[must_use]
    pub fn after(mut self, part: Cut) -> Self {
        self.path.push(part);
        self.parts += 1;
        self
    }

    /// Cuts only the workload's operations in `window`. The state at the end of the workload is
    /// always examined.
    #[must_use]
    pub fn within(self, window: Range<u32>) -> Self {
        Enumerator { window, ..self }
    }

    /// Tries every cut of a recording, or the cuts of the sample, and returns the tally.
    pub fn run(mut self, recording: &Recording) -> Tally {
        self.examiner.knows(recording.contents.clone());
        let (mut media, mut model) = (recording.base.clone(), recording.model.clone());
        let (mut at, mut operations) = (0, 0);
        for (&step, &end) in recording.steps.iter().zip(&recording.ends) {
            model.begin(step);
            for change in &recording.changes[at..end] {
                if change.change.is_operation() {
                    if self.window.contains(&operations) {
                        self.cut_at(&media, change, operations, &model);
                    }
                    operations += 1;
                }
                media.redo(change);
                if let Change::ProgramFailed(frame) = change.change {
                    let medium = media.that_of(change);
                    let lane = medium.layout().lane_of(medium.layout().block_of_frame(frame));
                    self.broken |= recording.broken && medium.spares(lane) == 0;
                }
                if self.tally.violations >= ENOUGH {
                    return self.finish();
                }
            }
            at = end;
            if recording.refused && end == recording.changes.len() {
                break; // the last command was not acknowledged
            }
            model.end(step);
            if matches!(step, Step::Flush | Step::Write { fua: true, .. })
                && self.window.contains(&operations)
                && self.sample.takes()
            {
                self.examine(
                    &media,
                    Cut { after: operations, how: CutKind::Acknowledged },
                    &model,
                    None,
                );
            }
        }
        self.examine(&media, Cut { after: operations, how: CutKind::Before }, &model, None);
        self.finish()
    }
}

impl<'f, E: Examine> Enumerator<'f, E> {
    /// Returns an enumerator whose states `examiner` examines.
    pub(crate) fn with(
        examiner: E,
        config: &DriveConfig,
        (depth, only): (Depth, Option<&'f [Cut]>),
        on_failure: &'f mut dyn FnMut(&[Cut], Failure),
    ) -> Self {
        Enumerator {
            examiner,
            depth,
            only,
            path: Vec::new(),
            parts: 0,
            broken: false,
            lost: Lost::default(),
            damaged: BTreeSet::new(),
            defended: is_defended(config),
            redundant: config
                .layers()
                .last()
                .is_some_and(|layer| layer.build.count(&config.params) > 1),
            window: 0..u32::MAX,
            sample: Sample::all(),
            tally: Tally::default(),
            on_failure,
        }
    }

    /// Tries only a sample of the workload's cuts; the state at the end is always examined.
    #[must_use]
    pub fn sampled(self, sample: Sample) -> Self {
        Enumerator { sample, ..self }
    }

    pub(crate) fn finish(mut self) -> Tally {
        (self.tally.mounts, self.tally.longest_mount) = self.examiner.mounts();
        self.tally.lost_units = self.examiner.lost_units();
        self.tally
    }

    /// Lets the power fail before `change`, and during `change`.
    pub(crate) fn cut_at(
        &mut self,
        media: &Media,
        change: &DriveChange,
        after: u32,
        model: &E::Model,
    ) {
        if self.sample.takes() {
            self.examine(media, Cut { after, how: CutKind::Before }, model, None);
        }
        for torn in self.torn(media, change) {
            if self.sample.takes() {
                let cut = Cut { after, how: CutKind::Torn(torn) };
                self.examine(media, cut, model, Some((change, torn)));
            }
        }
    }

    /// Returns the ways in which a change may be left half done.
    fn torn(&self, media: &Media, change: &DriveChange) -> Vec<Torn> {
        let mut ways: Vec<Torn> =
            self.depth.faults.torn(media.that_of(change), &change.change).collect();
        // the promises about lost pages apply only to drives on which all blocks work
        ways.retain(|&torn| !(self.broken && torn == Torn::Paired));
        ways
    }

    /// Returns the damage that the verifier must expect after the cuts so far.
    fn remains(&self) -> Remains {
        let made_up_for = self.redundant && self.damaged.len() < 2;
        if self.broken {
            Remains::Broken
        } else if self.lost.is_nothing() || made_up_for {
            Remains::Sound
        } else {
            Remains::Damaged(self.lost.clone())
        }
    }

    /// Examines one state by mounting it.
    ///
    /// If the depth allows further cuts, the mount is cut at each of its operations.
    pub(crate) fn examine(
        &mut self,
        media: &Media,
        cut: Cut,
        model: &E::Model,
        torn: Option<(&DriveChange, Torn)>,
    ) {
        let level = self.path.len();
        if self.only.is_some_and(|only| only.get(level) != Some(&cut)) {
            return;
        }
        self.examiner.begin_again();
        let mut left = media.clone();
        let lost = (self.lost.clone(), self.damaged.clone());
        if let Some((change, torn)) = torn {
            if let (Torn::Paired, Change::Program { frame, .. }) = (torn, &change.change)
                && !self.defended
            {
                let medium = media.that_of(change);
                self.damaged.insert(change.drive);
                medium.paired_before(*frame).for_each(|frame| self.lost.add(medium, frame));
            }
            left.begin(change, torn);
        }
        let draw = if let Some((_, Torn::Lines(draw))) = torn { draw } else { 0 };
        left.power_off_drawing(draw);
        match cut.how {
            CutKind::Torn(_) => self.tally.torn += 1,
            CutKind::Acknowledged => self.tally.acknowledged += 1,
            _ => self.tally.between += 1,
        }
        self.tally.dirty += u64::from(torn.is_some() || E::is_dirty(model) || level > 0);
        self.tally.deeper += u64::from(level > self.parts);
        self.path.push(cut);
        let depth = self.depth.cuts as usize + self.parts;
        // if the power fails in a mount that found damage, the next mount does not report this
        // damage
        let untold = self.redundant && !self.lost.is_nothing();
        let deeper = !untold && self.path.len() < depth
            || self.only.is_some_and(|only| only.len() > level + 1);
        let number = number(&self.path);
        match self.examiner.examine(left, model, number, deeper, &self.remains()) {
            Err(failure) => {
                self.tally.violations += 1;
                (self.on_failure)(&self.path, failure);
            }
            Ok(Some(mounted)) if deeper => self.cut_mount(mounted, model),
            Ok(mounted) => self.tally.refused_mounts += u64::from(mounted.is_none()),
        }
        self.path.pop();
        (self.lost, self.damaged) = lost;
    }

    fn cut_mount(&mut self, mounted: Mounted, model: &E::Model) {
        let known = self.examiner.knows_more(mounted.contents);
        let mut media = mounted.before.expect("the media before the mount were asked for");
        // before its first change, the mount has already read the pages that can be read only once
        media.fade();
        let operations = mounted.changes.iter().filter(|c| c.change.is_operation()).count();
        let mut after = 0;
        for change in &mounted.changes {
            // a cut before the mount's first operation leaves the same state as the previous cut
            if change.change.is_operation() {
                if after > 0 {
                    self.examine(&media, Cut { after, how: CutKind::Before }, model, None);
                }
                for torn in self.torn(&media, change) {
                    self.examine(
                        &media,
                        Cut { after, how: CutKind::Torn(torn) },
                        model,
                        Some((change, torn)),
                    );
                }
                after += 1;
            }
            media.redo(change);
            if self.tally.violations >= ENOUGH {
                break;
            }
        }
        self.examiner.knows_more(known);
        assert!(after as usize == operations || self.tally.violations >= ENOUGH);
    }
}

/// Returns `true` if the scheme of a configuration defends lower pages.
pub(crate) fn is_defended(config: &DriveConfig) -> bool {
    config.params.value("ftl.lower_pages").is_some_and(|value| value.to_string() != "none")
}

/// Returns a number for a cut, from the FNV-1a hash of its path, so that a rerun gets the same
/// number.
///
/// The number decides how much the verifier writes after the mount.
fn number(path: &[Cut]) -> u64 {
    let text = path.iter().flat_map(|cut| format!("{cut}.").into_bytes());
    let mixed = text.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mixed >> 32
}
