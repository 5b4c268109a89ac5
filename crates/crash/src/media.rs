//! The media of a stack: of its drive, or of each of them, where a layer is over several. The power
//! fails for all at once. Drives order nothing between them while a command is under way: of the
//! changes that it makes, those of the first drive come first in every other command, those of the
//! last one in the others.

use flashatlas_device::{Ssd, Stack};
use flashatlas_nand::{Change, Counters, Medium, Torn};
use flashatlas_types::Layout;

/// One medium for each drive.
#[derive(Clone)]
pub struct Media(Vec<Medium>);

/// A change of one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveChange {
    /// Which drive.
    pub drive: usize,
    /// What was done to its medium.
    pub change: Change,
}

impl From<Medium> for Media {
    fn from(medium: Medium) -> Media {
        Media(vec![medium])
    }
}

impl IntoIterator for Media {
    type Item = Medium;
    type IntoIter = std::vec::IntoIter<Medium>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Media {
    /// Those of a stack as they are now.
    pub fn of(stack: &Stack) -> Media {
        Media(stack.drives().into_iter().map(|drive| drive.medium().clone()).collect())
    }

    /// Those of drives.
    pub fn of_drives(drives: &[Ssd]) -> Media {
        Media(drives.iter().map(|drive| drive.medium().clone()).collect())
    }

    /// The medium of a stack with one drive.
    pub fn only(self) -> Medium {
        let mut media = self.0.into_iter();
        media.next().filter(|_| media.next().is_none()).expect("a stack with one drive")
    }

    /// Do again what was done to others that were in the same state.
    pub fn redo(&mut self, done: &DriveChange) {
        self.0[done.drive].redo(&done.change);
    }

    /// Leave a change half done.
    pub fn begin(&mut self, begun: &DriveChange, torn: Torn) {
        self.0[begun.drive].begin(&begun.change, torn);
    }

    /// The power fails ([`Medium::power_off_drawing`]).
    pub fn power_off_drawing(&mut self, draw: u8) {
        self.0.iter_mut().for_each(|medium| medium.power_off_drawing(draw));
    }

    /// What can be read once has been.
    pub fn fade(&mut self) {
        self.0.iter_mut().for_each(Medium::fade);
    }

    /// Every change is noted from now on.
    pub fn keep_journals(&mut self) {
        self.0.iter_mut().for_each(Medium::keep_journal);
    }

    /// What was done to the cells of all.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.0.iter().for_each(|medium| sum.add(&medium.counters));
        sum
    }

    /// The medium that a change is of.
    pub fn that_of(&self, done: &DriveChange) -> &Medium {
        &self.0[done.drive]
    }

    /// The layout of each drive.
    pub fn layout(&self) -> &Layout {
        self.0[0].layout()
    }
}

/// Append what was noted since the last call to `changes`, in turn: where every drive did the same,
/// that is the order in which it was done.
pub fn take_journals_in_turn(stack: &mut Stack, changes: &mut Vec<DriveChange>) {
    let drives = stack.drives_mut().into_iter().enumerate();
    let mut noted: Vec<_> =
        drives.map(|(drive, ssd)| (drive, ssd.faults().take_journal().into_iter())).collect();
    loop {
        let before = changes.len();
        for (drive, noted) in &mut noted {
            changes.extend(noted.next().map(|change| DriveChange { drive: *drive, change }));
        }
        if changes.len() == before {
            return;
        }
    }
}

/// Append what was noted since the last call to `changes`, drive by drive, from the last one on if
/// `backwards`.
pub fn take_journals(stack: &mut Stack, backwards: bool, changes: &mut Vec<DriveChange>) {
    let mut drives: Vec<_> = stack.drives_mut().into_iter().enumerate().collect();
    if backwards {
        drives.reverse();
    }
    for (drive, ssd) in drives {
        let noted = ssd.faults().take_journal();
        changes.extend(noted.into_iter().map(|change| DriveChange { drive, change }));
    }
}
