//! The mount, which reads the superblock, the newest checkpoint, and the records after it.
//!
//! A mount writes only the superblock of a blank device. So the power may fail at any point of a
//! mount, and the next mount finds the same content.

use super::buffer::Buffer;
use super::format::{Change, Kind, NoRecord, Record, changes, superblock};
use super::log::Log;
use super::map::{Map, NONE};
use super::{DEF, Hard};
use flashatlas_device::{LayerError, SubmitError};
use flashatlas_types::{Ps, SeededBug};

impl Hard {
    /// Loads the layer's state from the lower device.
    pub(super) fn load(&mut self) -> Result<(), SubmitError> {
        self.buffer =
            Buffer::new(self.areas.pages, self.areas.page_sectors, self.settings.keep_bytes);
        match self.record_at(0)? {
            Ok(record) => self.known(&record)?,
            Err(NoRecord::Blank) => return self.format(),
            Err(_) => return Err(foreign("sector 0 holds no superblock")),
        }
        let (start, generation, mut forward) = self.newest_checkpoint()?;
        let next = self.replay(start, &mut forward)?;
        self.map = Map::loaded(&self.areas, self.victim, forward);
        self.log = Log::after(start, next, generation);
        Ok(())
    }

    /// Returns the record in a superpage of the lower device.
    fn record_at(&mut self, superpage: u32) -> Result<Result<Record, NoRecord>, SubmitError> {
        let bytes = self.lower.read_record(Ps::ZERO, superpage)?;
        Ok(bytes.map_or(Err(NoRecord::Foreign), |bytes| Record::decode(&bytes)))
    }

    /// Returns an error if a superblock was written with another configuration.
    fn known(&self, record: &Record) -> Result<(), SubmitError> {
        if record.kind != Kind::Superblock {
            return Err(foreign("sector 0 holds no superblock"));
        }
        for (at, (key, expected)) in superblock(&self.areas).into_iter().enumerate() {
            let found = record.words.get(at).copied().unwrap_or(0);
            if found != expected {
                let (found, expected) = (found.into(), expected.into());
                return Err(LayerError::Mismatch { layer: DEF.name, key, found, expected }.into());
            }
        }
        Ok(())
    }

    /// Writes a superblock to a blank device, or returns an error if the device holds data.
    fn format(&mut self) -> Result<(), SubmitError> {
        if let Some(sector) = self.lower.first_used(Ps::ZERO)? {
            return Err(foreign(&format!("sector {sector} holds data")));
        }
        let words = superblock(&self.areas).into_iter().map(|(_, value)| value).collect();
        let record = Record { kind: Kind::Superblock, sequence: 0, words }
            .encode(self.areas.superpage_bytes());
        self.lower.write_record(Ps::ZERO, 0, &record, true, &[])?;
        self.map = Map::new(&self.areas, self.victim);
        self.log = Log::after(1, 1, 0);
        Ok(())
    }

    /// Returns the first record after the newest checkpoint, and the checkpoint's generation and
    /// map.
    ///
    /// The map is empty if there is no checkpoint yet.
    fn newest_checkpoint(&mut self) -> Result<(u64, u64, Vec<u32>), SubmitError> {
        let mut newest: Option<Record> = None;
        for which in 0..2 {
            if let Ok(record) = self.record_at(self.areas.checkpoint(which))?
                && record.kind == Kind::Checkpoint
                && newest.as_ref().is_none_or(|n| n.sequence < record.sequence)
            {
                newest = Some(record);
            }
        }
        let mut forward = Vec::with_capacity(self.areas.exported as usize);
        let Some(header) = newest else {
            forward.resize(self.areas.exported as usize, NONE);
            return Ok((1, 0, forward));
        };
        let generation = header.sequence;
        let [low, high, chunks] = header.words[..] else {
            return Err(damaged("the header of a checkpoint"));
        };
        let first = self.areas.checkpoint((generation % 2) as u32) + 1;
        for chunk in 0..chunks.min(self.areas.chunks) {
            match self.record_at(first + chunk)? {
                Ok(record) if record.kind == Kind::Chunk && record.sequence == generation => {
                    forward.extend_from_slice(&record.words);
                }
                _ => return Err(damaged(&format!("chunk {chunk} of checkpoint {generation}"))),
            }
        }
        let virtual_pages = self.areas.data * self.areas.pages;
        if forward.len() != self.areas.exported as usize
            || forward.iter().any(|&vpn| vpn != NONE && vpn >= virtual_pages)
        {
            return Err(damaged(&format!("the map of checkpoint {generation}")));
        }
        Ok((u64::from(low) | u64::from(high) << 32, generation, forward))
    }

    /// Applies the records from `start` on to the map. Returns the number of the next record.
    fn replay(&mut self, start: u64, forward: &mut [u32]) -> Result<u64, SubmitError> {
        let (mut next, mut ended) = (start, false);
        for sequence in start..start + u64::from(self.areas.ring) {
            let place = self.areas.record(sequence);
            let found = self.record_at(place)?;
            let log = |record: &Record| matches!(record.kind, Kind::Summary | Kind::Journal);
            match found {
                Ok(record) if log(&record) && record.sequence == sequence && !ended => {
                    for change in changes(&record.words, &self.areas) {
                        let change =
                            change.ok_or_else(|| damaged(&format!("log record {sequence}")))?;
                        carry_out(change, self.areas.pages, forward);
                    }
                    next = sequence + 1;
                }
                // records become durable in order, so a record after a gap proves that the missing
                // record was damaged
                Ok(record) if log(&record) && record.sequence > next => {
                    return Err(damaged(&format!(
                        "log record {next} is missing, but the later record {} is there",
                        record.sequence
                    )));
                }
                _ => ended = true,
            }
        }
        Ok(next)
    }
}

/// Applies a change to the map.
fn carry_out(change: Change<'_>, pages: u32, forward: &mut [u32]) {
    match change {
        Change::Written(superpage, lpns) => {
            for (vpn, &lpn) in (superpage * pages..).zip(lpns).filter(|(_, lpn)| **lpn != NONE) {
                forward[lpn as usize] = vpn;
            }
        }
        Change::Trimmed(first, count) if !SeededBug::DropTrims.is_active() => {
            forward[first as usize..(first + count) as usize].fill(NONE);
        }
        Change::Trimmed(..) => {}
    }
}

fn foreign(what: &str) -> SubmitError {
    LayerError::Foreign { layer: DEF.name, what: what.to_owned() }.into()
}

fn damaged(what: &str) -> SubmitError {
    LayerError::Damaged { layer: DEF.name, what: what.to_owned() }.into()
}
