//! The record of a controller in an image: saved features, and totals over the life of the drive.
//!
//! Two slots are written alternately. A write that is torn leaves the record before it.

use crate::disk::Disk;
use crate::frame::{long, word};
use crate::header::{VERSION, VERSION_AT};
use crate::places::{PAGE, Places, SLOTS};
use std::io;

/// Bytes of a slot before the record: the checksum of the rest, the length of the record, and its
/// number.
const HEAD: usize = 16;
/// Largest number of bytes of a record.
pub const RECORD_MAX: usize = PAGE as usize - HEAD;

/// Returns the number and the record of a slot, unless the slot is blank or torn.
fn decode(slot: &[u8]) -> Option<(u64, &[u8])> {
    let length = word(slot, 4) as usize;
    let end = HEAD + (1..=RECORD_MAX).contains(&length).then_some(length)?;
    let is_whole = word(slot, 0) == crc32c::crc32c(&slot[4..end]);
    is_whole.then(|| (long(slot, 8), &slot[HEAD..end]))
}

/// Returns the newest record and its number.
fn newest(disk: &impl Disk, places: &Places) -> io::Result<Option<(u64, Vec<u8>)>> {
    let mut newest: Option<(u64, Vec<u8>)> = None;
    let mut bytes = [0; PAGE as usize];
    for slot in 0..SLOTS {
        disk.read_at(&mut bytes, places.slot(slot))?;
        if let Some((number, record)) = decode(&bytes)
            && newest.as_ref().is_none_or(|(other, _)| *other < number)
        {
            newest = Some((number, record.to_vec()));
        }
    }
    Ok(newest)
}

/// Home of the record in an open image.
pub struct Home<'a, D> {
    /// The disk of the image.
    pub disk: &'a D,
    /// The places in the image.
    pub places: &'a Places,
    /// The version of the image.
    pub version: &'a mut u32,
}

impl<D: Disk> Home<'_, D> {
    /// Returns the newest record, or `None` if none was written.
    ///
    /// # Errors
    /// Returns the error of the host.
    pub fn read(&self) -> io::Result<Option<Vec<u8>>> {
        if *self.version < VERSION {
            return Ok(None);
        }
        Ok(newest(self.disk, self.places)?.map(|(_, record)| record))
    }

    /// Writes a record over the older one, and makes it durable. An image of the version before
    /// gets a home first.
    ///
    /// # Errors
    /// Returns the error of the host. The record from before is still there.
    ///
    /// # Panics
    /// Panics if the record is empty or longer than [`RECORD_MAX`].
    pub fn write(&mut self, record: &[u8]) -> io::Result<()> {
        assert!(
            (1..=RECORD_MAX).contains(&record.len()),
            "the record has {} bytes, which is too large",
            record.len()
        );
        if *self.version < VERSION {
            self.disk.set_length(self.places.end)?;
            self.disk.sync()?;
            self.disk.write_at(&VERSION.to_le_bytes(), VERSION_AT)?;
            self.disk.sync()?;
            *self.version = VERSION;
        }
        let number = newest(self.disk, self.places)?.map_or(0, |(number, _)| number) + 1;
        let mut slot = vec![0; 4];
        slot.extend((record.len() as u32).to_le_bytes());
        slot.extend(number.to_le_bytes());
        slot.extend(record);
        let sum = crc32c::crc32c(&slot[4..]);
        slot[..4].copy_from_slice(&sum.to_le_bytes());
        self.disk.write_at(&slot, self.places.slot(number % SLOTS))?;
        self.disk.sync()
    }
}
