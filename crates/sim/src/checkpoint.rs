//! Checkpoints: a preconditioned drive in a file, to start many runs from.
//!
//! A checkpoint holds what is on the flash and what every page must read as. Loading it is
//! switching the drive on: the scheme mounts the medium. So a run from a checkpoint does exactly
//! what a run does that preconditions the drive itself, and a checkpoint serves every drive that
//! differs in nothing that decides the places of pages on flash. The bytes are described in
//! `docs/FORMATS.md`.

use crate::fit::{LARGEST_EXTENT, LEAST_EXTENT};
use crate::needed::NeededPart;
use crate::parts::AddedPart;
use flashatlas_device::{DriveConfig, Stack, SubmitError};
use flashatlas_nand::Image;
use flashatlas_nand::params::NVM_BYTES;
use flashatlas_types::{Lpn, Seed, Stamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::io::{self, Read, Write};

const MAGIC: [u8; 8] = *b"FACHKPT\n";
const VERSION: u32 = 4;
const SCHEMA: &str = "flashatlas.checkpoint/4";
const END: [u8; 4] = *b"DONE";
/// Bytes of the header at most.
const HEADER_BYTES_MAX: usize = 1 << 20;
/// Bytes of a chunk before compression.
const CHUNK_BYTES: usize = 4 << 20;
/// The fastest: most of a checkpoint is as good as random.
const ZSTD_LEVEL: i32 = 1;

/// What a checkpoint is of.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub schema: String,
    /// Version of the program that wrote it.
    pub version: String,
    pub drive: String,
    /// The parameters that decide the places of pages on flash.
    pub on_flash: Map<String, Value>,
    pub logical_units: u32,
    pub precondition: Value,
    pub fit: Value,
    /// Sectors of the extents that were packed; not there in checkpoints of before it was a choice.
    #[serde(default = "largest_extent")]
    pub extent_sectors: u64,
    pub seed: u64,
    pub sequence: u64,
    /// Parts that did not come with the project and that the drive was made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<NeededPart>,
}

/// A drive that is switched off, and what it must read as.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Checkpoint {
    pub header: Header,
    pub image: Image,
    pub expected: Vec<Stamp>,
    /// Where extents of the preconditioning trace went, if it was packed: address space and extent,
    /// in order of place.
    pub extents: Vec<(u32, u64)>,
}

/// Why a file is no checkpoint for this drive.
#[derive(Debug)]
pub enum CheckpointError {
    /// The file cannot be read.
    Io(io::Error),
    /// It is something else.
    Foreign,
    /// It was written in another layout than this program reads.
    Version(u32),
    /// It ends before it should.
    Truncated {
        /// Bytes that there are.
        at: u64,
    },
    /// Bytes are not those that were written.
    Damaged {
        /// Where the damaged part begins.
        at: u64,
        /// What is wrong.
        why: String,
    },
    /// It needs a part that is not there, or is another; in words.
    Part(String),
    /// It is of another drive.
    OtherDrive {
        /// The first parameter that differs.
        key: String,
        /// Its value in the checkpoint.
        has: String,
        /// Its value here.
        expected: String,
    },
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckpointError::Io(error) => error.fmt(f),
            CheckpointError::Foreign => {
                write!(f, "byte 0: not a checkpoint; expected the bytes `FACHKPT` and a line end")
            }
            CheckpointError::Version(found) => {
                write!(
                    f,
                    "byte 8: a checkpoint of layout {found}; this program reads layout {VERSION}: \
                     make it again"
                )
            }
            CheckpointError::Truncated { at } => {
                write!(f, "byte {at}: the checkpoint is truncated")
            }
            CheckpointError::Damaged { at, why } => {
                write!(f, "byte {at}: the checkpoint is damaged: {why}")
            }
            CheckpointError::Part(why) => f.write_str(why),
            CheckpointError::OtherDrive { key, has, expected } => write!(
                f,
                "the checkpoint is of another drive: its {key} is {has}, here it is {expected}; \
                 what stands on flash depends on it"
            ),
        }
    }
}

impl std::error::Error for CheckpointError {}

impl From<io::Error> for CheckpointError {
    fn from(error: io::Error) -> CheckpointError {
        CheckpointError::Io(error)
    }
}

/// The parameters of `config` that decide what is on flash, the capacity as one of them.
pub(crate) fn on_flash(config: &DriveConfig) -> Map<String, Value> {
    let capacity = ["drive.logical_pages", "drive.over_provisioning"];
    let pairs = config.on_flash().filter(|(key, _)| !capacity.contains(key));
    pairs.map(|(key, value)| (key.to_owned(), crate::record::param(value))).collect()
}

fn largest_extent() -> u64 {
    LARGEST_EXTENT
}

impl Header {
    /// A header for a drive of `config`.
    pub fn new(config: &DriveConfig, logical_units: u32, version: &str) -> Header {
        Header {
            schema: SCHEMA.into(),
            version: version.into(),
            drive: config.name.clone(),
            on_flash: on_flash(config),
            logical_units,
            precondition: Value::Null,
            fit: Value::Null,
            extent_sectors: largest_extent(),
            seed: 0,
            sequence: 0,
            parts: Vec::new(),
        }
    }

    /// Whether a drive of `config` can mount what the checkpoint holds.
    fn must_suit(&self, config: &DriveConfig, logical_units: u32) -> Result<(), CheckpointError> {
        let here = on_flash(config);
        let text = |value: Option<&Value>| value.map_or("not set".into(), Value::to_string);
        // the scheme first: what else is set depends on it
        let scheme = "ftl.scheme".to_owned();
        for key in [&scheme].into_iter().chain(self.on_flash.keys()).chain(here.keys()) {
            if self.on_flash.get(key) != here.get(key) {
                let (has, expected) = (text(self.on_flash.get(key)), text(here.get(key)));
                return Err(CheckpointError::OtherDrive { key: key.clone(), has, expected });
            }
        }
        if self.logical_units != logical_units {
            let (has, expected) = (self.logical_units.to_string(), logical_units.to_string());
            return Err(CheckpointError::OtherDrive {
                key: "number of logical pages".into(),
                has,
                expected,
            });
        }
        Ok(())
    }
}

impl Checkpoint {
    /// Whether the parts that it needs are among these.
    pub fn must_have(&self, added: &[AddedPart]) -> Result<(), CheckpointError> {
        let missing = self.header.parts.iter().find_map(|part| part.missing(added));
        missing.map_or(Ok(()), |why| Err(CheckpointError::Part(why)))
    }

    /// Write all of it.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let header = serde_json::to_vec(&self.header)?;
        let mut head = MAGIC.to_vec();
        head.extend(VERSION.to_le_bytes());
        head.extend((header.len() as u32).to_le_bytes());
        head.extend(header);
        let checksum = crc32c::crc32c(&head);
        out.write_all(&head)?;
        out.write_all(&checksum.to_le_bytes())?;
        let image = &self.image;
        let expected: Vec<u32> = self.expected.iter().map(|s| s.0).collect();
        let extents: Vec<u32> = self
            .extents
            .iter()
            .flat_map(|&(device, e)| [device, e as u32, (e >> 32) as u32])
            .collect();
        for (tag, values) in [
            (b"ERAS", Values::Words(&image.erases)),
            (b"NEXT", Values::Words(&image.next)),
            (b"HLTH", Values::Bytes(&image.health)),
            (b"SPAR", Values::Words(&image.spares)),
            (b"ROLE", Values::Bytes(&image.roles)),
            (b"STAT", Values::Bytes(&image.state)),
            (b"SEQL", Values::Words(&image.sequence_low)),
            (b"SEQH", Values::Bytes(&image.sequence_high)),
            (b"LPNS", Values::Words(&image.lpns)),
            (b"STMP", Values::Words(&image.stamps)),
            (b"MAPS", Values::Words(&image.map_slots)),
            (b"MAPB", Values::Bytes(&image.map_bytes)),
            (b"NVMB", Values::Bytes(&image.nvm)),
            (b"NVMW", Values::Words(&image.nvm_wear)),
            (b"EXPT", Values::Words(&expected)),
            (b"EXTN", Values::Words(&extents)),
        ] {
            values.write(tag, out)?;
        }
        out.write_all(&END)
    }

    /// Read a checkpoint that a drive of `config` can mount. Nothing that the file claims is
    /// allocated before it is known to be what this drive needs.
    pub fn read(input: &mut dyn Read, config: &DriveConfig) -> Result<Checkpoint, CheckpointError> {
        let layout = config.layout().expect("the configuration is checked");
        let mut input = Input { input, at: 0 };
        let mut head = vec![0; 16];
        input.exact(&mut head)?;
        if head[..8] != MAGIC {
            return Err(CheckpointError::Foreign);
        }
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        if word(8) != VERSION {
            return Err(CheckpointError::Version(word(8)));
        }
        let length = word(12) as usize;
        if length > HEADER_BYTES_MAX {
            return Err(CheckpointError::Damaged {
                at: 12,
                why: format!("a header of {length} bytes"),
            });
        }
        head.resize(16 + length, 0);
        input.exact(&mut head[16..])?;
        if input.word()? != crc32c::crc32c(&head) {
            return Err(CheckpointError::Damaged {
                at: 0,
                why: "the checksum of its header does not match".into(),
            });
        }
        let header: Header = serde_json::from_slice(&head[16..])
            .map_err(|e| CheckpointError::Damaged { at: 16, why: format!("its header: {e}") })?;
        if header.schema != SCHEMA {
            return Err(CheckpointError::Damaged {
                at: 16,
                why: format!("schema {}, expected {SCHEMA}", header.schema),
            });
        }
        header.must_suit(config, layout.logical_units)?;
        let (blocks, frames, slots) =
            (layout.blocks() as usize, layout.frames() as usize, layout.slots() as usize);
        let nvm = config.params.get(NVM_BYTES) as usize;
        let image = Image {
            erases: input.words(b"ERAS", blocks)?,
            next: input.words(b"NEXT", blocks)?,
            health: input.bytes(b"HLTH", blocks)?,
            spares: input.words(b"SPAR", layout.lanes as usize)?,
            roles: input.bytes(b"ROLE", blocks)?,
            state: input.bytes(b"STAT", frames)?,
            sequence_low: input.words(b"SEQL", frames)?,
            sequence_high: input.bytes(b"SEQH", frames)?,
            lpns: input.words(b"LPNS", slots)?,
            stamps: input.words(b"STMP", slots)?,
            map_slots: input.words_up_to(b"MAPS", slots)?,
            map_bytes: Vec::new(),
            nvm: Vec::new(),
            nvm_wear: Vec::new(),
            sequence: header.sequence,
        };
        // a map page and its header fill no more than a frame and a sector
        let map_bytes = image.map_slots.len() * (layout.frame_bytes() as usize + 512);
        let image = Image {
            map_bytes: input.bytes_up_to(b"MAPB", map_bytes)?,
            nvm: input.bytes(b"NVMB", nvm)?,
            nvm_wear: input.words_up_to(b"NVMW", nvm)?,
            ..image
        };
        let expected =
            input.words(b"EXPT", layout.logical_units as usize)?.into_iter().map(Stamp).collect();
        let extents = input.words_up_to(b"EXTN", 3 * (layout.sectors() / LEAST_EXTENT) as usize)?;
        let extents = extents
            .chunks_exact(3)
            .map(|e| (e[0], u64::from(e[1]) | u64::from(e[2]) << 32))
            .collect();
        let mut end = [0; 4];
        let at = input.at;
        input.exact(&mut end)?;
        if end != END || input.input.read(&mut [0])? != 0 {
            return Err(CheckpointError::Damaged {
                at,
                why: "more bytes than were written".into(),
            });
        }
        Ok(Checkpoint { header, image, expected, extents })
    }
}

/// Write a drive that is switched off, and what it must read as; hands both back. `added` are the
/// parts that did not come with the project.
pub fn save(
    config: &DriveConfig,
    off: (Image, Vec<Stamp>),
    seed: Seed,
    (version, added): (&str, &[AddedPart]),
    out: &mut dyn Write,
) -> (Image, Vec<Stamp>, io::Result<()>) {
    let (image, expected) = off;
    let header = Header {
        seed: seed.0,
        sequence: image.sequence,
        parts: NeededPart::of(config, added),
        ..Header::new(config, expected.len() as u32, version)
    };
    let checkpoint = Checkpoint { header, image, expected, extents: Vec::new() };
    let written = checkpoint.write(out);
    (checkpoint.image, checkpoint.expected, written)
}

/// Read a drive that is switched off, and what it must read as.
///
/// # Errors
/// It is no checkpoint, is damaged, is of a drive other than `config`'s, or needs a part that is
/// not among `added`.
pub fn load(
    config: &DriveConfig,
    added: &[AddedPart],
    input: &mut dyn Read,
) -> Result<(Image, Vec<Stamp>), CheckpointError> {
    let checkpoint = Checkpoint::read(input, config)?;
    checkpoint.must_have(added)?;
    Ok((checkpoint.image, checkpoint.expected))
}

/// A drive was switched on. Not every scheme keeps trims across a mount (docs/RELIABILITY.md, R3):
/// pages that are known to be empty are trimmed again. Counters begin anew.
///
/// # Errors
/// When there is no space.
pub fn forget_empty(
    drive: &mut Stack,
    empty: impl Iterator<Item = Lpn>,
) -> Result<(), SubmitError> {
    for lpn in empty {
        if drive.peek_stamp(lpn)? != Stamp::ZERO {
            drive.forget(lpn)?;
        }
    }
    drive.reset_counters();
    Ok(())
}

/// The values of a section, on their way out.
enum Values<'a> {
    Bytes(&'a [u8]),
    Words(&'a [u32]),
}

impl Values<'_> {
    /// Tag, length in bytes, and chunks: each with its lengths before and after compression, and a
    /// checksum.
    fn write(&self, tag: &[u8; 4], out: &mut dyn Write) -> io::Result<()> {
        let length = match self {
            Values::Bytes(values) => values.len(),
            Values::Words(values) => values.len() * 4,
        };
        out.write_all(tag)?;
        out.write_all(&(length as u64).to_le_bytes())?;
        match self {
            Values::Bytes(values) => {
                values.chunks(CHUNK_BYTES).try_for_each(|chunk| write_chunk(chunk, out))
            }
            Values::Words(values) => values.chunks(CHUNK_BYTES / 4).try_for_each(|chunk| {
                let bytes: Vec<u8> = chunk.iter().flat_map(|w| w.to_le_bytes()).collect();
                write_chunk(&bytes, out)
            }),
        }
    }
}

fn write_chunk(bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let stored = zstd::bulk::compress(bytes, ZSTD_LEVEL)?;
    out.write_all(&(bytes.len() as u32).to_le_bytes())?;
    out.write_all(&(stored.len() as u32).to_le_bytes())?;
    out.write_all(&crc32c::crc32c(&stored).to_le_bytes())?;
    out.write_all(&stored)
}

/// A file on its way in, and how many bytes of it were read.
struct Input<'a> {
    input: &'a mut dyn Read,
    at: u64,
}

impl Input<'_> {
    fn exact(&mut self, buffer: &mut [u8]) -> Result<(), CheckpointError> {
        let mut have = 0;
        while have < buffer.len() {
            match self.input.read(&mut buffer[have..]) {
                Ok(0) if self.at == 0 && !MAGIC.starts_with(&buffer[..have.min(MAGIC.len())]) => {
                    return Err(CheckpointError::Foreign);
                }
                Ok(0) => return Err(CheckpointError::Truncated { at: self.at + have as u64 }),
                Ok(n) => have += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.at += have as u64;
        Ok(())
    }

    fn word(&mut self) -> Result<u32, CheckpointError> {
        let mut bytes = [0; 4];
        self.exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn damaged<T>(&self, at: u64, why: String) -> Result<T, CheckpointError> {
        Err(CheckpointError::Damaged { at, why })
    }

    /// A section's length in bytes, of which there may be at most `most`.
    fn begin(&mut self, tag: &[u8; 4], most: usize) -> Result<usize, CheckpointError> {
        let at = self.at;
        let mut found = [0; 4];
        self.exact(&mut found)?;
        if found != *tag {
            let names =
                [&found, tag].map(|t| String::from_utf8_lossy(t).escape_default().to_string());
            return self.damaged(at, format!("section `{}`, expected `{}`", names[0], names[1]));
        }
        let length = u64::from(self.word()?) | u64::from(self.word()?) << 32;
        if length > most as u64 {
            return self
                .damaged(at + 4, format!("a section of {length} bytes, expected at most {most}"));
        }
        Ok(length as usize)
    }

    /// The chunks of a section of `length` bytes, each in its turn.
    fn chunks(
        &mut self,
        length: usize,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), CheckpointError> {
        let (mut left, mut stored) = (length, Vec::new());
        let mut unpacker = zstd::bulk::Decompressor::new()?;
        while left > 0 {
            let at = self.at;
            let (raw, packed, checksum) =
                (self.word()? as usize, self.word()? as usize, self.word()?);
            if raw != left.min(CHUNK_BYTES) || packed > zstd::zstd_safe::compress_bound(CHUNK_BYTES)
            {
                return self.damaged(at, format!("a chunk of {raw} bytes, {packed} as stored"));
            }
            stored.resize(packed, 0);
            self.exact(&mut stored)?;
            if crc32c::crc32c(&stored) != checksum {
                return self.damaged(at, "the checksum of a chunk does not match".into());
            }
            match unpacker.decompress(&stored, raw) {
                Ok(bytes) if bytes.len() == raw => take(&bytes),
                Ok(bytes) => {
                    return self
                        .damaged(at, format!("a chunk of {} bytes, expected {raw}", bytes.len()));
                }
                Err(error) => return self.damaged(at, format!("a chunk: {error}")),
            }
            left -= raw;
        }
        Ok(())
    }

    fn bytes(&mut self, tag: &[u8; 4], count: usize) -> Result<Vec<u8>, CheckpointError> {
        let at = self.at;
        let values = self.bytes_up_to(tag, count)?;
        if values.len() != count {
            return self
                .damaged(at + 4, format!("a section of {} bytes, expected {count}", values.len()));
        }
        Ok(values)
    }

    fn bytes_up_to(&mut self, tag: &[u8; 4], most: usize) -> Result<Vec<u8>, CheckpointError> {
        let length = self.begin(tag, most)?;
        let mut values = Vec::with_capacity(length);
        self.chunks(length, |bytes| values.extend_from_slice(bytes))?;
        Ok(values)
    }

    fn words(&mut self, tag: &[u8; 4], count: usize) -> Result<Vec<u32>, CheckpointError> {
        let at = self.at;
        let values = self.words_up_to(tag, count)?;
        if values.len() != count {
            return self.damaged(
                at + 4,
                format!("a section of {} bytes, expected {}", values.len() * 4, count * 4),
            );
        }
        Ok(values)
    }

    fn words_up_to(&mut self, tag: &[u8; 4], most: usize) -> Result<Vec<u32>, CheckpointError> {
        let at = self.at;
        let length = self.begin(tag, most * 4)?;
        if length % 4 != 0 {
            return self.damaged(
                at + 4,
                format!("a section of {length} bytes, which is no whole number of words"),
            );
        }
        let mut values = Vec::with_capacity(length / 4);
        self.chunks(length, |bytes| {
            values.extend(
                bytes
                    .chunks_exact(4)
                    .map(|b| u32::from_le_bytes(b.try_into().expect("four bytes"))),
            );
        })?;
        Ok(values)
    }
}
