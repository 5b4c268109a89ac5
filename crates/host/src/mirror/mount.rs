//! The mount, which finds the current drives and records them in the superblocks.

use super::alike::Alike;
use super::copies::{State, is_power_lost};
use super::superblock::{Found, Superblock};
use super::{DEF, Mirror};
use flashatlas_device::{Cmd, LayerError, Reply, SubmitError};
use flashatlas_types::{Lba, Ps, SeededBug, Stamp};
use smallvec::SmallVec;

impl Mirror {
    /// Determines from the superblocks which drives are current, and which of them is the first.
    ///
    /// Before the call, drives that could not be mounted must be `Out`, and they stay `Out`. Drives
    /// whose mount found damage must be `Behind`.
    pub(super) fn load(&mut self) -> Result<(), SubmitError> {
        let drives = self.copies.devices.len();
        let mut newest: Option<Superblock> = None;
        let mut found: Vec<Option<Found>> = vec![None; drives];
        for drive in self.copies.those(|state| state != State::Out) {
            match self.copies.superblock_of(drive) {
                Ok(Found::Foreign) if self.copies.states[drive] == State::Current => {
                    return Err(foreign(
                        drive,
                        "its sectors hold other data than the superblock of a mirror",
                    ));
                }
                Ok(superblock) => found[drive] = Some(superblock),
                Err(error) if is_power_lost(&error) => return Err(error),
                Err(_) => {} // the drive gets copies of all units
            }
            if let Some(Found::Superblock(own)) = found[drive] {
                self.knows(drive, &own)?;
                if newest.is_none_or(|n| n.events < own.events) {
                    newest = Some(own);
                }
            }
        }
        for drive in self.copies.those(|state| state != State::Out) {
            // if the mount of a drive found damage, its superblock may have been damaged, too
            let intact = self.copies.states[drive] == State::Current;
            if (found[drive] == Some(Found::Blank) && intact || newest.is_none())
                && let Some(sector) = self.first_used(drive)?
            {
                return Err(foreign(drive, &format!("sector {sector} holds data")));
            }
        }
        let readable = |drive: usize| found[drive].is_some();
        let Some(newest) = newest else {
            if !(0..drives).all(readable) {
                let what = "no drive that can be mounted and read has a superblock, but one of the \
                            other drives may have one";
                return Err(LayerError::Damaged { layer: DEF.name, what: what.into() }.into());
            }
            self.alike = Alike::new(self.shape.units(), true);
            self.copies.are_alike();
            return self.tell();
        };
        let taken_for_alike = SeededBug::TakenForAlike.is_active();
        self.alike = Alike::new(self.shape.units(), taken_for_alike);
        self.copies.continue_from(newest.events);
        // the newest superblock names the current drives; if a drive missed a write, a superblock
        // that does not name this drive was written before the write completed
        let knows = |drive: usize| {
            let one_of_ours = matches!(found[drive], Some(Found::Superblock(_)));
            one_of_ours && newest.members >> drive & 1 == 1
        };
        let intact = self.copies.those(|state| state == State::Current);
        for drive in self.copies.those(|state| state != State::Out) {
            self.copies.states[drive] = if knows(drive) { State::Current } else { State::Behind };
        }
        // drives may differ from now on. The first drive stays the same at this and at later mounts
        // until all drives are alike again. If drives were alike when the power failed, a drive
        // without damage replaces a damaged first drive
        let current = self.copies.those(|state| state == State::Current);
        let last = usize::from(newest.first).min(drives - 1);
        let other = current.iter().copied().find(|drive| intact.contains(drive));
        let stays = current.contains(&last) && (intact.contains(&last) || !newest.alike);
        self.copies.first = if stays { last } else { other.unwrap_or(last) };
        self.copies.alike = false;
        self.copies.damaged = (0..drives).map(|drive| !intact.contains(&drive)).collect();
        if self.copies.first().is_none() {
            let what = "each drive that had all writes is missing".into();
            return Err(LayerError::Damaged { layer: DEF.name, what }.into());
        }
        // a blank drive gets a superblock of the mirror before units are copied to it
        for drive in (0..drives).filter(|&drive| found[drive] == Some(Found::Blank)) {
            match self.copies.write_superblock(Ps::ZERO, drive, 0, 0) {
                Err(error) if is_power_lost(&error) => return Err(error),
                Err(error) => {
                    self.copies.drop_drives(Ps::ZERO, SmallVec::from_iter([(drive, error)]))?;
                }
                Ok(_) => {}
            }
        }
        let missing = |drive: usize| {
            newest.members >> drive & 1 == 1 && self.copies.states[drive] != State::Current
        };
        // the superblock of every current drive must contain the last change
        let knows_last = |own: Superblock| own.events == newest.events;
        let behind_in_events = |drive: usize| match found[drive] {
            Some(Found::Superblock(own)) => !knows_last(own),
            _ => true,
        };
        let untold = current.into_iter().any(behind_in_events);
        let changed = newest.alike || self.copies.first != last;
        if changed || untold || (0..drives).any(missing) { self.tell() } else { Ok(()) }
    }

    /// Writes superblocks that name the current drives. Takes drives out on which this fails.
    pub(super) fn tell(&mut self) -> Result<(), SubmitError> {
        let failed = self.copies.write_superblocks(Ps::ZERO)?;
        self.copies.drop_drives(Ps::ZERO, failed)
    }

    /// Returns an error if a superblock does not belong to this mirror.
    pub(super) fn knows(&self, drive: usize, own: &Superblock) -> Result<(), SubmitError> {
        let drives = self.copies.devices.len() as u64;
        let fields = [
            ("mirror.drives", u64::from(own.drives), drives),
            ("mirror.reserve", own.sectors, self.shape.sectors),
            ("the number of a drive", own.index.into(), drive as u64),
        ];
        match fields.into_iter().find(|(_, found, expected)| found != expected) {
            Some((key, found, expected)) => {
                Err(LayerError::Mismatch { layer: DEF.name, key, found, expected }.into())
            }
            None => Ok(()),
        }
    }

    /// Returns the first sector of the first unit that holds data, or `None` if the drive is blank.
    pub(super) fn first_used(&mut self, drive: usize) -> Result<Option<u64>, SubmitError> {
        let (unit, mut reply) = (self.shape.unit_sectors, Reply::default());
        for lba in (0..self.copies.devices[drive].sectors()).step_by(unit as usize) {
            let read = Cmd::Read { lba: Lba(lba), sectors: unit };
            self.copies.send(drive, Ps::ZERO, read, &[], &mut reply)?;
            if reply.stamps.iter().any(|&stamp| stamp != Stamp::ZERO) {
                return Ok(Some(lba));
            }
        }
        Ok(None)
    }
}

fn foreign(drive: usize, what: &str) -> SubmitError {
    LayerError::Foreign { layer: DEF.name, what: format!("drive {drive}: {what}") }.into()
}
