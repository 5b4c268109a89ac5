//! The record of a controller in an image: saved features, and totals over the life of the drive.
//!
//! Two slots are written alternately ([`slots`]). After a torn write, the record before it is still
//! there.

use crate::disk::Disk;
use crate::header::{VERSION, VERSION_AT};
use crate::places::{PAGE, Places};
use flashatlas_nvme::slots;
use std::io;

/// Largest number of bytes of a record.
pub const RECORD_MAX: usize = PAGE as usize - slots::HEAD;

/// Returns the content of both slots.
fn content(disk: &impl Disk, places: &Places) -> io::Result<Vec<[u8; PAGE as usize]>> {
    let read = |slot| {
        let mut bytes = [0; PAGE as usize];
        disk.read_at(&mut bytes, places.slot(slot)).map(|()| bytes)
    };
    (0..slots::SLOTS).map(read).collect()
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
        let content = content(self.disk, self.places)?;
        let newest = slots::newest(content.iter().map(|slot| &slot[..]));
        Ok(newest.map(|newest| newest.record.to_vec()))
    }

    /// Writes a record over the older record, and makes it durable. An image of the previous
    /// version first gets a home.
    ///
    /// # Errors
    /// Returns the error of the host. The previous record is then still there.
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
        let content = content(self.disk, self.places)?;
        let (number, slot) = slots::next(slots::newest(content.iter().map(|slot| &slot[..])));
        self.disk.write_at(&slots::encode(number, record), self.places.slot(slot))?;
        self.disk.sync()
    }
}
