//! What an image is kept on.

use crate::error::ImageError;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What an image is kept on. Writes become durable in any order, and none is for certain before
/// [`Disk::sync`] has returned.
pub trait Disk: Send {
    /// Bytes of it.
    ///
    /// # Errors
    /// As the host says.
    fn length(&self) -> io::Result<u64>;

    /// Make it so long; what is added reads as zeros.
    ///
    /// # Errors
    /// As the host says.
    fn set_length(&mut self, length: u64) -> io::Result<()>;

    /// Read from `at` on.
    ///
    /// # Errors
    /// As the host says; where it ends before.
    fn read_at(&self, out: &mut [u8], at: u64) -> io::Result<()>;

    /// Write from `at` on.
    ///
    /// # Errors
    /// As the host says.
    fn write_at(&mut self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Make everything durable that was written.
    ///
    /// # Errors
    /// As the host says: nothing is known then of what was written.
    fn sync(&mut self) -> io::Result<()>;
}

impl Disk for File {
    fn length(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn read_at(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        self.read_exact_at(out, at)
    }

    fn write_at(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// The file at `path`, locked; made where there is none.
///
/// # Errors
/// As the host says; [`ImageError::InUse`].
pub fn locked(path: &Path) -> Result<File, ImageError> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
    unless_in_use(file.try_lock(), file)
}

/// The file at `path`, to look at: nobody may change it meanwhile.
///
/// # Errors
/// As the host says; [`ImageError::InUse`].
pub fn to_look_at(path: &Path) -> Result<File, ImageError> {
    let file = File::open(path)?;
    unless_in_use(file.try_lock_shared(), file)
}

fn unless_in_use(lock: Result<(), std::fs::TryLockError>, file: File) -> Result<File, ImageError> {
    match lock {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(ImageError::InUse),
        Err(std::fs::TryLockError::Error(error)) => Err(error.into()),
    }
}
