//! The reference model: the versions that each logical unit may hold after a power failure.
//!
//! For each unit, the model has an ordered list of versions: the version that was flushed last, and
//! then every later version. The last versions may belong to a command that is still under way.
//! After a cut, any version of the list is correct (promise R2). A FLUSH leaves only the last
//! version (R1, R3). A FUA write does the same for the units that it covers.

use flashatlas_device::Cmd;
use flashatlas_types::{Lba, Stamp};

/// One command of a workload, in sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Write.
    Write {
        /// First sector.
        lba: u32,
        /// Number of sectors.
        sectors: u32,
        /// `true` if the data is durable when the command is complete.
        fua: bool,
    },
    /// Trim.
    Trim {
        /// First sector.
        lba: u32,
        /// Number of sectors.
        sectors: u32,
    },
    /// Read.
    Read {
        /// First sector.
        lba: u32,
        /// Number of sectors.
        sectors: u32,
    },
    /// FLUSH.
    Flush,
    /// Idle time: the host sends no command for a while.
    Idle,
}

impl Step {
    /// Returns the command, or `None` for idle time; `content` is the content number of a write.
    pub fn command(self, content: u64) -> Option<Cmd<'static>> {
        let at = |lba: u32| Lba(lba.into());
        Some(match self {
            Step::Write { lba, sectors, fua } => {
                Cmd::Write { lba: at(lba), sectors, fua, content, data: None }
            }
            Step::Trim { lba, sectors } => Cmd::Trim { lba: at(lba), sectors },
            Step::Read { lba, sectors } => Cmd::Read { lba: at(lba), sectors },
            Step::Flush => Cmd::Flush,
            Step::Idle => return None,
        })
    }

    /// Returns the units that a write touches, or that a trim covers whole; empty for other steps.
    pub fn units(self, unit_sectors: u32) -> std::ops::Range<u32> {
        match self {
            Step::Write { lba, sectors, .. } => {
                lba / unit_sectors..(lba + sectors).div_ceil(unit_sectors)
            }
            Step::Trim { lba, sectors } => {
                lba.div_ceil(unit_sectors)..(lba + sectors) / unit_sectors
            }
            Step::Read { .. } | Step::Flush | Step::Idle => 0..0,
        }
    }

    /// Returns the units that a read touches; empty for other steps.
    pub fn reads(self, unit_sectors: u32) -> std::ops::Range<u32> {
        match self {
            Step::Read { lba, sectors } => {
                lba / unit_sectors..(lba + sectors).div_ceil(unit_sectors)
            }
            _ => 0..0,
        }
    }

    /// Returns the stamp of one of the step's units after the step, if the unit held `old` before.
    #[inline]
    pub fn stamp(self, unit: u32, unit_sectors: u32, content: u64, old: Stamp) -> Stamp {
        let Step::Write { lba, sectors, .. } = self else { return Stamp::ZERO };
        let start = unit * unit_sectors;
        let (from, to) = (lba.max(start), (lba + sectors).min(start + unit_sectors));
        if to - from == unit_sectors {
            Stamp::whole(content, from - lba)
        } else {
            old.overwritten(content, from - start, to - from)
        }
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Write { lba, sectors, fua: false } => write!(f, "write {lba}+{sectors}"),
            Step::Write { lba, sectors, fua: true } => write!(f, "write {lba}+{sectors} fua"),
            Step::Trim { lba, sectors } => write!(f, "trim {lba}+{sectors}"),
            Step::Read { lba, sectors } => write!(f, "read {lba}+{sectors}"),
            Step::Flush => write!(f, "flush"),
            Step::Idle => write!(f, "idle"),
        }
    }
}

/// Versions of every unit.
#[derive(Clone, Debug)]
pub struct Model {
    versions: Vec<Vec<Stamp>>,
    /// Versions of each unit that were replaced before the last FLUSH.
    older: Vec<Vec<Stamp>>,
    /// `true` if trims do not survive a mount.
    forgets_trims: bool,
    unit_sectors: u32,
    /// Content number of the next write.
    content: u64,
    /// Number of units with more than one possible version.
    open: u32,
}

impl Model {
    /// Returns a model of units that hold exactly these stamps.
    ///
    /// Writes get content numbers from `content` on; the numbers stay below 2^40.
    pub fn holding(stamps: impl Iterator<Item = Stamp>, unit_sectors: u32, content: u64) -> Model {
        let model = Model::allowing(stamps.map(|s| vec![s]).collect(), unit_sectors);
        Model { content, ..model }
    }

    /// Returns the same model, with the content number `content` for its next write.
    #[must_use]
    pub fn numbered_from(&self, content: u64) -> Model {
        Model { content, ..self.clone() }
    }

    /// Returns a model of units that may hold any of these stamps, the oldest first.
    pub fn allowing(versions: Vec<Vec<Stamp>>, unit_sectors: u32) -> Model {
        let open = versions.iter().filter(|v| v.len() > 1).count() as u32;
        let older = vec![Vec::new(); versions.len()];
        Model { versions, older, forgets_trims: false, unit_sectors, content: 0, open }
    }

    /// Adds the earlier versions of each unit, for a drive whose trims do not survive a mount.
    #[must_use]
    pub fn with_older(self, older: Vec<Vec<Stamp>>) -> Model {
        Model { older, forgets_trims: true, ..self }
    }

    /// Notes the earlier versions of each unit, which may come back if pages are lost.
    #[must_use]
    pub(crate) fn remembering(self, older: Vec<Vec<Stamp>>) -> Model {
        Model { older, ..self }
    }

    /// Allows that trims do not survive a mount.
    ///
    /// A unit that was trimmed at the last FLUSH, or since then, may hold any version that it ever
    /// held.
    #[must_use]
    pub fn forgetting_trims(mut self) -> Model {
        self.forgets_trims = true;
        self
    }

    /// Returns `true` if a unit may hold `stamp`.
    #[inline]
    pub fn allows(&self, unit: u32, stamp: Stamp) -> bool {
        let versions = self.versions(unit);
        versions.contains(&stamp)
            || self.forgets_trims
                && versions.contains(&Stamp::ZERO)
                && self.older[unit as usize].contains(&stamp)
    }

    /// Returns `true` if a unit ever held `stamp`, or if `stamp` means an empty unit.
    ///
    /// If pages are lost, the unit may hold such a stamp again.
    pub fn ever_held(&self, unit: u32, stamp: Stamp) -> bool {
        stamp == Stamp::ZERO
            || self.versions(unit).contains(&stamp)
            || self.older[unit as usize].contains(&stamp)
    }

    /// Returns the number of units.
    pub fn len(&self) -> u32 {
        self.versions.len() as u32
    }

    /// Returns `true` if there are no units.
    pub fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// Returns the versions that a unit may hold, the oldest first.
    #[inline]
    pub fn versions(&self, unit: u32) -> &[Stamp] {
        &self.versions[unit as usize]
    }

    /// Returns the version that a unit holds while the power is on.
    pub fn newest(&self, unit: u32) -> Stamp {
        *self.versions[unit as usize].last().expect("a unit has a version")
    }

    /// Returns `true` if a cut may leave one of several versions of a unit.
    ///
    /// In this case, a change of the unit is under way, or is acknowledged and not flushed.
    pub fn is_dirty(&self) -> bool {
        self.open > 0
    }

    fn push(&mut self, unit: u32, stamp: Stamp) {
        let versions = &mut self.versions[unit as usize];
        self.open += u32::from(versions.len() == 1);
        versions.push(stamp);
    }

    fn settle(&mut self, unit: u32) {
        let versions = &mut self.versions[unit as usize];
        if versions.len() > 1 {
            let gone = versions.drain(..versions.len() - 1);
            self.older[unit as usize].extend(gone);
            self.open -= 1;
        }
    }

    /// Records that a unit was seen to hold `stamp`, which becomes the unit's newest version.
    ///
    /// The other versions stay possible.
    pub fn seen(&mut self, unit: u32, stamp: Stamp) {
        if self.newest(unit) != stamp {
            self.push(unit, stamp);
        }
    }

    /// Begins a step, and returns the content number of its write.
    pub fn begin(&mut self, step: Step) -> u64 {
        let content = self.content;
        self.content += u64::from(matches!(step, Step::Write { .. }));
        for unit in step.units(self.unit_sectors) {
            let stamp = step.stamp(unit, self.unit_sectors, content, self.newest(unit));
            self.push(unit, stamp);
        }
        content
    }

    /// Ends a step that was acknowledged.
    pub fn end(&mut self, step: Step) {
        self.end_where(step, |_| true);
    }

    /// Ends a step like [`Model::end`], but only for the units for which `holds` returns `true`.
    ///
    /// The other units keep all their versions.
    pub fn end_where(&mut self, step: Step, holds: impl Fn(u32) -> bool) {
        let units = match step {
            Step::Flush => 0..self.len(),
            Step::Write { fua: true, .. } => step.units(self.unit_sectors),
            _ => return,
        };
        units.filter(|&unit| holds(unit)).for_each(|unit| self.settle(unit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        Model::holding((1..=3).map(Stamp), 4, 100)
    }

    #[test]
    fn a_flush_leaves_the_newest_version_and_a_fua_write_that_of_its_units() {
        let mut model = model();
        let write = Step::Write { lba: 0, sectors: 8, fua: false };
        model.begin(write);
        assert_eq!(model.versions(0), [Stamp(1), Stamp::whole(100, 0)]);
        assert_eq!(model.versions(1), [Stamp(2), Stamp::whole(100, 4)]);
        model.end(write);
        assert!(model.is_dirty(), "an acknowledged write is not yet flushed");
        let fua = Step::Write { lba: 4, sectors: 4, fua: true };
        model.begin(fua);
        assert_eq!(model.versions(1).len(), 3, "the FUA write is not complete");
        model.end(fua);
        assert_eq!(model.versions(1), [Stamp::whole(101, 0)]);
        assert_eq!(model.versions(0).len(), 2);
        model.begin(Step::Flush);
        assert_eq!(model.versions(0).len(), 2, "a FLUSH that is under way promises nothing");
        model.end(Step::Flush);
        assert_eq!(model.versions(0), [Stamp::whole(100, 0)]);
        assert!(!model.is_dirty());
    }

    #[test]
    fn what_was_trimmed_may_come_back_where_the_drive_says_so() {
        let mut model = model().forgetting_trims();
        let write = Step::Write { lba: 0, sectors: 4, fua: false };
        for step in [write, Step::Flush, Step::Trim { lba: 0, sectors: 8 }, Step::Flush] {
            model.begin(step);
            model.end(step);
        }
        for stamp in [Stamp(1), Stamp::whole(100, 0), Stamp::ZERO] {
            assert!(model.allows(0, stamp), "{stamp:?}");
        }
        assert!(
            !model.allows(0, Stamp(2))
                && !model.allows(2, Stamp::ZERO)
                && model.allows(2, Stamp(3))
        );
        model.begin(write);
        model.end(write);
        assert!(model.allows(0, Stamp(1)), "the write is not flushed yet");
        model.end(Step::Flush);
        assert!(!model.allows(0, Stamp(1)) && !model.allows(0, Stamp::ZERO));
    }

    #[test]
    fn parts_of_units_are_written_over_and_never_trimmed() {
        let mut model = model();
        model.begin(Step::Write { lba: 3, sectors: 2, fua: false });
        assert_eq!(model.newest(0), Stamp(1).overwritten(100, 3, 1));
        assert_eq!(model.newest(1), Stamp(2).overwritten(100, 0, 1));
        model.begin(Step::Trim { lba: 1, sectors: 10 });
        assert_eq!([0, 1, 2].map(|u| model.versions(u).len()), [2, 3, 1]);
        assert_eq!(model.newest(1), Stamp::ZERO);
    }
}
