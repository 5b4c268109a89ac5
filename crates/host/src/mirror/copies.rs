//! The drives of a mirror, with the commands to each drive, and the record of which drives are
//! current and alike.

use super::superblock::{BYTES, Found, Superblock};
use crate::completion::CompletionTracker;
use flashatlas_device::{Cmd, Contents, Reply, Storage, Submission, SubmitError};
use flashatlas_types::{FtlError, Lba, MediumError, Ps, SECTOR_BYTES, Tag};
use smallvec::SmallVec;

/// Greatest number of drives of a mirror.
pub(super) const MOST: usize = 8;

/// Commands to the drives for which a command from above waits.
pub(super) type Sent = SmallVec<[Tag; 4]>;

/// Drives that failed, each with its error.
pub(super) type Failed = SmallVec<[(usize, SubmitError); 2]>;

/// State of a drive in the mirror.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The drive holds every write.
    Current,
    /// The drive missed writes, and gets copies of all units. Only units that are alike may be read
    /// from it.
    Behind,
    /// The drive is not used any more.
    Out,
}

/// The drives.
pub(super) struct Copies {
    pub devices: Vec<Box<dyn Storage>>,
    pub states: Vec<State>,
    /// Drive whose content is used where drives differ, as long as this drive is current.
    pub first: usize,
    /// `true` for each drive on which the last mount found damage.
    ///
    /// Where drives may differ, such a drive is not read if another drive fails.
    pub damaged: Vec<bool>,
    /// `true` if all drives have had the same content at some time since they were mounted.
    pub alike: bool,
    pub completions: CompletionTracker,
    pub instant: bool,
    pub contents: Contents,
    /// Number of commands in flight on each drive.
    pub in_flight: Vec<u32>,
    /// Number of the last change of members.
    events: u64,
    /// Number of sectors that the mirror exports. The superblock follows them.
    sectors: u64,
    keep_bytes: bool,
    /// Superblock writes in flight, for which the completion of every change waits.
    barrier: Sent,
    /// Number that, together with the number of the drive, determined the last tag.
    round: u64,
    /// Number of superblocks written.
    pub superblocks: u64,
    /// Number of drives that were taken out so far.
    pub dropped: u64,
}

/// Returns `true` if a command ended because the power of all drives failed.
pub(super) fn is_power_lost(error: &SubmitError) -> bool {
    matches!(error, SubmitError::Ftl(FtlError::Medium(MediumError::PowerLost)))
}

impl Copies {
    pub fn new(devices: Vec<Box<dyn Storage>>, sectors: u64, keep_bytes: bool) -> Copies {
        Copies {
            states: vec![State::Current; devices.len()],
            first: 0,
            alike: false,
            in_flight: vec![0; devices.len()],
            damaged: vec![false; devices.len()],
            devices,
            completions: CompletionTracker::default(),
            instant: true,
            contents: Contents::default(),
            events: 0,
            sectors,
            keep_bytes,
            barrier: Sent::new(),
            round: 0,
            superblocks: 0,
            dropped: 0,
        }
    }

    /// Removes the commands that were in flight when the power failed.
    pub fn forget_flights(&mut self) {
        self.completions = CompletionTracker::default();
        self.in_flight.fill(0);
        self.barrier.clear();
    }

    /// Returns the drive to which a command was sent.
    pub fn drive_of(&self, tag: Tag) -> usize {
        (tag.0 % self.devices.len() as u64) as usize
    }

    /// Returns `true` if commands to a drive are in flight.
    pub fn is_busy(&self) -> bool {
        self.in_flight.iter().any(|&count| count > 0)
    }

    /// Returns the drives in a state, in order.
    pub fn those(&self, wanted: impl Fn(State) -> bool) -> SmallVec<[usize; MOST]> {
        (0..self.devices.len()).filter(|&drive| wanted(self.states[drive])).collect()
    }

    /// Returns the drive whose content is used where drives differ, or `None` if no drive is
    /// current.
    pub fn first(&self) -> Option<usize> {
        let current = |drive: usize| self.states[drive] == State::Current;
        Some(self.first).filter(|&first| current(first)).or_else(|| {
            // another current drive replaces a first drive that failed
            (0..self.states.len()).find(|&drive| current(drive))
        })
    }

    /// Sends a command to a drive.
    ///
    /// The command waits for those commands of `after` that were sent to the same drive.
    pub fn send(
        &mut self,
        drive: usize,
        now: Ps,
        cmd: Cmd<'_>,
        after: &[Tag],
        reply: &mut Reply,
    ) -> Result<Tag, SubmitError> {
        self.round += 1;
        let tag = Tag(self.round * self.devices.len() as u64 + drive as u64);
        let after: Sent =
            after.iter().copied().filter(|&tag| self.drive_of(tag) == drive).collect();
        let submission = Submission { now, tag, cmd, after: &after };
        self.devices[drive].submit_after(submission, reply)?;
        if !self.instant {
            self.completions.sent(tag);
            self.in_flight[drive] += 1;
        }
        Ok(tag)
    }

    /// Returns the superblock writes in flight. Every change must wait for them.
    pub fn barrier(&mut self) -> &[Tag] {
        let completions = &self.completions;
        self.barrier.retain(|tag| completions.is_in_flight(*tag));
        &self.barrier
    }

    /// Takes drives out. If one of them was current, writes new superblocks to the other drives.
    ///
    /// # Errors
    /// Returns the error of the last drive if no drive is left. Returns an error if the power
    /// fails.
    pub fn drop_drives(&mut self, now: Ps, mut failed: Failed) -> Result<(), SubmitError> {
        let mut members = false;
        while let Some((drive, error)) = failed.pop() {
            if self.states[drive] == State::Out {
                continue;
            }
            members |= self.states[drive] == State::Current;
            self.states[drive] = State::Out;
            self.dropped += 1;
            self.abandon(drive, now);
            if self.first().is_none() {
                return Err(error);
            }
            // a drive to which the superblock cannot be written is taken out as well
            if failed.is_empty() && std::mem::take(&mut members) {
                failed = self.write_superblocks(now)?;
            }
        }
        Ok(())
    }

    /// Notes that all drives in use have the same content, so that each drive is current.
    pub fn are_alike(&mut self) {
        self.alike = true;
        self.damaged.fill(false);
        for state in self.states.iter_mut().filter(|state| **state == State::Behind) {
            *state = State::Current;
        }
    }

    /// Ends the commands that a failed drive will never complete.
    pub fn abandon(&mut self, drive: usize, now: Ps) {
        if self.devices[drive].next_event().is_none() {
            let drives = self.devices.len() as u64;
            self.completions.abandon(|tag| tag.0 % drives == drive as u64, now);
            self.in_flight[drive] = 0;
        }
    }

    /// Writes a superblock that names the current drives to each of them. Returns the drives that
    /// failed.
    ///
    /// # Errors
    /// Returns an error if the power fails.
    pub fn write_superblocks(&mut self, now: Ps) -> Result<Failed, SubmitError> {
        self.events += 1;
        let current = self.those(|state| state == State::Current);
        let members = current.iter().fold(0, |bits, &drive| bits | 1 << drive);
        let mut failed = Failed::new();
        for drive in current {
            match self.write_superblock(now, drive, members, self.events) {
                Ok(tag) => self.barrier.push(tag),
                Err(error) if is_power_lost(&error) => return Err(error),
                Err(error) => failed.push((drive, error)),
            }
        }
        Ok(failed)
    }

    /// Writes the superblock of one drive.
    pub fn write_superblock(
        &mut self,
        now: Ps,
        drive: usize,
        members: u32,
        events: u64,
    ) -> Result<Tag, SubmitError> {
        let superblock = Superblock {
            drives: self.devices.len() as u8,
            index: drive as u8,
            members,
            first: self.first().unwrap_or_default() as u8,
            alike: self.alike,
            events,
            sectors: self.sectors,
        };
        let unit_bytes = self.devices[drive].unit_sectors() * SECTOR_BYTES;
        let mut bytes = superblock.encode().to_vec();
        bytes.resize(unit_bytes as usize, 0);
        let stamps = self.contents.compose_record(&bytes, unit_bytes);
        let data = self.keep_bytes.then_some(&*bytes);
        let cmd = Cmd::WriteUnits { lba: Lba(self.sectors), fua: true, stamps: &stamps, data };
        self.superblocks += 1;
        self.send(drive, now, cmd, &[], &mut Reply::default())
    }

    /// Returns the content at the place of a drive's superblock.
    pub fn superblock_of(&mut self, drive: usize) -> Result<Found, SubmitError> {
        let unit_sectors = self.devices[drive].unit_sectors();
        let mut reply = Reply::default();
        let read = Cmd::Read { lba: Lba(self.sectors), sectors: unit_sectors };
        self.send(drive, Ps::ZERO, read, &[], &mut reply)?;
        if self.keep_bytes {
            return Ok(Superblock::decode(&reply.bytes));
        }
        let bytes = self.contents.record(&reply.stamps, unit_sectors * SECTOR_BYTES);
        Ok(bytes.map_or(Found::Foreign, |bytes| Superblock::decode(&bytes[..BYTES])))
    }

    /// Sets the number of the last change of members. The newest superblock has this number.
    pub fn continue_from(&mut self, events: u64) {
        self.events = events;
    }
}
