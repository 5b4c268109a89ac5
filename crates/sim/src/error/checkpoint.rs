//! The reasons why a file is no checkpoint for a drive.

use flashatlas_types::ConfigError;
use std::fmt;
use std::io;

/// The layout of checkpoints that hold tables.
pub(crate) const TABLES: u32 = 4;

/// The layout of checkpoints that hold a base: a few numbers for each block.
pub(crate) const OVER_BASE: u32 = 5;

/// Reason why a file is no checkpoint for this drive.
#[derive(Debug)]
pub enum CheckpointError {
    /// The file cannot be read.
    Io(io::Error),
    /// The file is no checkpoint.
    Foreign,
    /// The file was written in a layout that this program does not read.
    Version(u32),
    /// The file ends too early.
    Truncated {
        /// Length of the file, in bytes.
        at: u64,
    },
    /// Some bytes of the file differ from the bytes that were written.
    Damaged {
        /// Offset of the damaged part, in bytes.
        at: u64,
        /// Description of the damage.
        why: String,
    },
    /// The system has no memory for the tables of the drive.
    Memory(ConfigError),
    /// The checkpoint needs a part that is missing or differs; the text names the part.
    Part(String),
    /// The checkpoint is of another drive.
    OtherDrive {
        /// The first parameter that differs.
        key: String,
        /// Value of the parameter in the checkpoint.
        has: String,
        /// Value of the parameter in the drive that loads the checkpoint.
        expected: String,
    },
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckpointError::Io(error) => error.fmt(f),
            CheckpointError::Foreign => {
                write!(
                    f,
                    "byte 0: the file is not a checkpoint; a checkpoint begins with the bytes \
                     `FACHKPT` and a line end"
                )
            }
            CheckpointError::Version(found) => {
                write!(
                    f,
                    "byte 8: the checkpoint has layout {found}, but this program reads the layouts \
                     {TABLES} and {OVER_BASE}: make the checkpoint again"
                )
            }
            CheckpointError::Truncated { at } => {
                write!(f, "byte {at}: the checkpoint is truncated")
            }
            CheckpointError::Damaged { at, why } => {
                write!(f, "byte {at}: the checkpoint is damaged: {why}")
            }
            CheckpointError::Memory(why) => why.fmt(f),
            CheckpointError::Part(why) => f.write_str(why),
            CheckpointError::OtherDrive { key, has, expected } => write!(
                f,
                "the checkpoint is of another drive: its {key} is {has}, but here it is \
                 {expected}; the content of the flash depends on this key"
            ),
        }
    }
}

impl std::error::Error for CheckpointError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CheckpointError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for CheckpointError {
    fn from(error: io::Error) -> CheckpointError {
        CheckpointError::Io(error)
    }
}
