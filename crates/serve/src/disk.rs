//! Storage of an image.

use crate::error::ImageError;
use crate::spec::{ServeError, ServeSpec};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Storage of an image. Writes may become durable in any order. All earlier writes are certain to
/// be durable only after [`Disk::sync`] has returned.
pub trait Disk: Send + Sync {
    /// Returns the length of the disk in bytes.
    ///
    /// # Errors
    /// Returns the error of the host.
    fn length(&self) -> io::Result<u64>;

    /// Sets the length of the disk to `length` bytes; added bytes read as zeros.
    ///
    /// # Errors
    /// Returns the error of the host.
    fn set_length(&self, length: u64) -> io::Result<()>;

    /// Reads `out.len()` bytes from `at` on.
    ///
    /// # Errors
    /// Returns the error of the host, and an error if the disk ends within the range.
    fn read_at(&self, out: &mut [u8], at: u64) -> io::Result<()>;

    /// Writes `bytes` from `at` on.
    ///
    /// # Errors
    /// Returns the error of the host.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Makes all writes durable.
    ///
    /// # Errors
    /// Returns the error of the host. After an error it is unknown which of the writes are durable.
    fn sync(&self) -> io::Result<()>;
}

impl Disk for File {
    fn length(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn read_at(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        self.read_exact_at(out, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

impl<D: Disk + ?Sized> Disk for Box<D> {
    fn length(&self) -> io::Result<u64> {
        (**self).length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        (**self).set_length(length)
    }

    fn read_at(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        (**self).read_at(out, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        (**self).write_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        (**self).sync()
    }
}

/// A disk in memory. All clones share one content, so a test can still use the disk after a drive
/// on it has ended.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    /// Returns another disk with the same content.
    #[must_use]
    pub fn copied(&self) -> Memory {
        Memory(Arc::new(Mutex::new(self.with(|bytes| bytes.clone()))))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Disk for Memory {
    fn length(&self) -> io::Result<u64> {
        Ok(self.with(|bytes| bytes.len() as u64))
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.with(|bytes| bytes.resize(length as usize, 0));
        Ok(())
    }

    fn read_at(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        self.with(|bytes| {
            let there = bytes.get(at as usize..at as usize + out.len());
            out.copy_from_slice(there.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.with(|all| {
            let there = all.get_mut(at as usize..at as usize + bytes.len());
            there.ok_or(io::ErrorKind::UnexpectedEof)?.copy_from_slice(bytes);
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Function that opens the disk of an image. The function is called after the drive was found to be
/// valid.
pub type Open<'a> = Box<dyn FnOnce() -> Result<Box<dyn Disk>, ServeError> + 'a>;

/// Returns a function that opens and locks the image of a plan, or creates the file if there is
/// none.
///
/// Returns `None` if the plan has no image in a file.
pub fn on_file(plan: &ServeSpec) -> Option<Open<'_>> {
    plan.image.as_deref().map(|path| opening(path, locked))
}

/// Returns a function that opens the file at `path` with `open`, as the disk of an image.
pub fn opening(path: &Path, open: fn(&Path) -> Result<File, ImageError>) -> Open<'_> {
    Box::new(move || {
        let file = open(path).map_err(|error| ServeError::Image(path.to_path_buf(), error))?;
        Ok(Box::new(file) as Box<dyn Disk>)
    })
}

/// Opens the file at `path` and locks it. Creates the file if there is none.
///
/// # Errors
/// Returns the error of the host, and [`ImageError::InUse`].
pub fn locked(path: &Path) -> Result<File, ImageError> {
    let is_new = !path.exists();
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
    if is_new {
        // the name of the file must be durable before its content
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    unless_in_use(file.try_lock(), file)
}

/// Opens the file at `path` for reading, and locks it so that no server changes it.
///
/// # Errors
/// Returns the error of the host, and [`ImageError::InUse`].
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
