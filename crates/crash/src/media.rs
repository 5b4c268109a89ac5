//! The media of a stack: one medium for each of its drives.
//!
//! The power fails for all drives at the same time. While a command is under way, changes of
//! different drives may happen in any order. To cover both orders, the changes of the first drive
//! come first for every second command, and the changes of the last drive come first for the other
//! commands.

use flashatlas_device::{Ssd, Stack};
use flashatlas_nand::{Change, Counters, Medium, Torn};
use flashatlas_types::Layout;

/// One medium for each drive.
#[derive(Clone)]
pub struct Media(Vec<Medium>);

/// A change of one of the media.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveChange {
    /// Index of the drive.
    pub drive: usize,
    /// The change of the drive's medium.
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
    /// Returns the media of a stack as they are now.
    pub fn of(stack: &Stack) -> Media {
        Media(stack.drives().into_iter().map(|drive| drive.medium().clone()).collect())
    }

    /// Returns the media of drives.
    pub fn of_drives(drives: &[Ssd]) -> Media {
        Media(drives.iter().map(|drive| drive.medium().clone()).collect())
    }

    /// Returns the medium of a stack with one drive.
    pub fn only(self) -> Medium {
        let mut media = self.0.into_iter();
        media.next().filter(|_| media.next().is_none()).expect("a stack with one drive")
    }

    /// Returns the medium of the first drive.
    pub fn first(&self) -> &Medium {
        &self.0[0]
    }

    /// Repeats a change that was made on other media in the same state.
    pub fn redo(&mut self, done: &DriveChange) {
        self.0[done.drive].redo(&done.change);
    }

    /// Leaves a change half done.
    pub fn begin(&mut self, begun: &DriveChange, torn: Torn) {
        self.0[begun.drive].begin(&begun.change, torn);
    }

    /// Switches the power off ([`Medium::power_off_drawing`]).
    pub fn power_off_drawing(&mut self, draw: u8) {
        self.0.iter_mut().for_each(|medium| medium.power_off_drawing(draw));
    }

    /// Makes all pages unreadable that can be read only once.
    pub fn fade(&mut self) {
        self.0.iter_mut().for_each(Medium::fade);
    }

    /// Begins to record every change in a journal.
    pub fn keep_journals(&mut self) {
        self.0.iter_mut().for_each(Medium::keep_journal);
    }

    /// Returns the sum of the counters of all media.
    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        self.0.iter().for_each(|medium| sum.add(&medium.counters));
        sum
    }

    /// Returns the medium that a change was made on.
    pub fn that_of(&self, done: &DriveChange) -> &Medium {
        &self.0[done.drive]
    }

    /// Returns the layout of each drive.
    pub fn layout(&self) -> &Layout {
        self.0[0].layout()
    }
}

/// Appends the changes since the last call to `changes`, taking one change of each drive in turn.
///
/// If all drives made the same changes, this is the order in which the changes were made.
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

/// Appends the changes since the last call to `changes`, drive by drive.
///
/// If `backwards` is set, the last drive comes first.
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
