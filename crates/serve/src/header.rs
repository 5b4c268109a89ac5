//! The beginning of an image. It names the drive of the image.

use crate::disk::Disk;
use crate::error::ImageError;
use crate::frame::word;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io;

const MAGIC: [u8; 8] = *b"FAIMAGE\n";
/// First bytes of an image that is being created. They stay in the file if the process ends before
/// the image is complete.
pub const MAKING: [u8; 8] = *b"FAMAKING";
/// Version of new images.
pub const VERSION: u32 = 3;
/// Version of images without the region of the controller's record ([`crate::kept`]).
pub const WITHOUT_RECORD: u32 = 2;
/// Place of the version.
pub const VERSION_AT: u64 = 8;
/// Bytes of the header before its text.
pub const HEADER_BYTES: usize = 24;
/// Largest number of bytes in the text of a header.
const TEXT_MAX: usize = 1 << 20;

/// The only key of a header that is not a setting of a drive.
pub const CAPACITY: &str = "capacity in sectors";

/// Header of an image. It describes the drive to which the image belongs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Name of the drive's preset, or name of its file.
    pub drive: String,
    /// The parameters that decide the places of pages on flash.
    pub on_flash: Map<String, Value>,
}

impl Header {
    /// Reads the header of the image on `disk`.
    ///
    /// # Errors
    /// Returns an error if the disk does not hold an image.
    pub fn read(disk: &impl Disk) -> Result<Header, ImageError> {
        Header::parse(&read_text(disk)?.0)
    }

    fn parse(text: &[u8]) -> Result<Header, ImageError> {
        serde_json::from_slice(text).map_err(|error| {
            ImageError::Foreign(format!("byte 24: the header cannot be read: {error}"))
        })
    }

    /// Returns the text of the header.
    pub fn text(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain")
    }

    /// Returns an error unless an image with the header `text` is of this drive.
    ///
    /// # Errors
    /// Returns an error that names the first parameter that differs.
    pub fn must_suit(&self, text: &[u8]) -> Result<(), ImageError> {
        let (there, here) = (Header::parse(text)?.on_flash, &self.on_flash);
        let show = |value: Option<&Value>| value.map_or("nothing".into(), Value::to_string);
        match there.keys().chain(here.keys()).find(|&key| there.get(key) != here.get(key)) {
            None => Ok(()),
            Some(key) => Err(ImageError::OtherDrive {
                key: key.clone(),
                has: show(there.get(key)),
                expected: show(here.get(key)),
            }),
        }
    }
}

/// Returns the bytes at the beginning of an image with the header `text`.
pub fn header_bytes(text: &[u8]) -> Vec<u8> {
    let mut head = MAGIC.to_vec();
    head.extend(VERSION.to_le_bytes());
    head.extend((text.len() as u32).to_le_bytes());
    head.extend(crc32c::crc32c(text).to_le_bytes());
    head.extend([0; 4]);
    head.extend(text);
    head
}

/// Returns `true` if the creation of the image on `disk` was interrupted. Such an image is empty.
///
/// # Errors
/// Returns the error of the host.
pub fn is_unfinished(disk: &impl Disk) -> io::Result<bool> {
    let mut head = [0; MAKING.len()];
    Ok(disk.length()? >= MAKING.len() as u64 && {
        disk.read_at(&mut head, 0)?;
        head == MAKING
    })
}

/// Reads the text of the header on `disk`, and the version of the image.
///
/// # Errors
/// Returns an error if the disk does not hold an image.
pub fn read_text(disk: &impl Disk) -> Result<(Vec<u8>, u32), ImageError> {
    let foreign = |why: &str| ImageError::Foreign(why.to_owned());
    let mut head = [0; HEADER_BYTES];
    disk.read_at(&mut head, 0).map_err(|_| {
        foreign(
            "byte 0: the file is not an image; an image begins with the bytes `FAIMAGE` and a line \
             end",
        )
    })?;
    if head[..8] != MAGIC {
        return Err(foreign(
            "byte 0: the file is not an image; an image begins with the bytes `FAIMAGE` and a line \
             end",
        ));
    }
    let version = word(&head, VERSION_AT as usize);
    if !(WITHOUT_RECORD..=VERSION).contains(&version) {
        let why = format!(
            "the image has version {version}, but this program reads versions {WITHOUT_RECORD} and \
             {VERSION}"
        );
        return Err(ImageError::Foreign(why));
    }
    let length = word(&head, 12) as usize;
    if length > TEXT_MAX {
        return Err(foreign("byte 12: the header is longer than the header of any image"));
    }
    let mut text = vec![0; length];
    disk.read_at(&mut text, HEADER_BYTES as u64)?;
    if crc32c::crc32c(&text) == word(&head, 16) {
        Ok((text, version))
    } else {
        Err(foreign("byte 16: the header does not match its checksum"))
    }
}
