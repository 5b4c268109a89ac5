//! Access of the library to the machine, as the caller provides it.

use std::io::{self, Read};

/// A byte stream with its length, if the length is known.
pub type Stream = (Box<dyn Read + Send>, Option<u64>);

/// Access to the machine: files by path, environment variables, free memory.
pub trait Opener: Sync {
    /// Opens `path` for reading from its start.
    ///
    /// # Errors
    /// Returns the error of the system.
    fn open(&self, path: &str) -> io::Result<Stream>;

    /// Returns the value of an environment variable, or `None` if it is not set.
    ///
    /// Job files may name variables.
    fn variable(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// Returns the names of the files in the folder of `path`, or no names if it cannot be listed.
    fn names_beside(&self, path: &str) -> Vec<String> {
        let _ = path;
        Vec::new()
    }

    /// Returns the bytes of memory that a run may take, or `None` if they are unknown.
    ///
    /// See [`crate::free_memory`].
    fn free_memory(&self) -> Option<u64> {
        None
    }

    /// Returns `true` if the user asked to stop.
    ///
    /// The method is called from time to time while a file is read in advance.
    fn stopped(&self) -> bool {
        false
    }
}

impl<F: Fn(&str) -> io::Result<Stream> + Sync> Opener for F {
    fn open(&self, path: &str) -> io::Result<Stream> {
        self(path)
    }
}
