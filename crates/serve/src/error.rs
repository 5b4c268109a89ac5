//! Reasons why an image cannot be used.

use std::io;

/// Reason why a file cannot be used as the image of this drive.
#[derive(Debug)]
pub enum ImageError {
    /// The file cannot be read or written.
    Io(io::Error),
    /// The file is not an image, or has another version. The text gives the reason.
    Foreign(String),
    /// The image belongs to another drive.
    OtherDrive {
        /// The first parameter that differs.
        key: String,
        /// The value in the image.
        has: String,
        /// The value of this drive.
        expected: String,
    },
    /// Another process has the image open.
    InUse,
    /// The image already holds a drive, although the plan starts from a checkpoint.
    Holds,
}

impl std::fmt::Display for ImageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ImageError::Io(error) => error.fmt(f),
            ImageError::Foreign(why) => f.write_str(why),
            ImageError::OtherDrive { key, has, expected } => write!(
                f,
                "the image is of another drive: {key} is {has} there, but {expected} here; nothing \
                 was changed"
            ),
            ImageError::Holds => f.write_str(
                "the image already holds a drive, whose state is kept: give a precondition only \
                 for a new image; nothing was changed",
            ),
            ImageError::InUse => f.write_str("another process has the image open"),
        }
    }
}

impl std::error::Error for ImageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ImageError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for ImageError {
    fn from(error: io::Error) -> ImageError {
        ImageError::Io(error)
    }
}
