//! Checkpoints: files with a preconditioned drive, from which many runs can start.
//!
//! A checkpoint holds the content of the flash, and the stamp that each page must have. A run that
//! loads a checkpoint switches the drive on, and the scheme mounts the medium. Such a run does
//! exactly the same as a run that preconditions the drive itself. Some parameters decide the places
//! of pages on flash. A checkpoint fits every drive with the same values of these parameters.
//! `docs/FORMATS.md` describes the bytes.
//!
//! If the content of the drive is a base, the checkpoint holds the numbers of which the base is
//! made, a few for each block. The map on flash follows from the base, so it is left out, and
//! written again when the checkpoint is loaded. Otherwise it holds tables, with an entry for each
//! frame, slot and page.

mod sections;

use crate::fit::{LARGEST_EXTENT, LEAST_EXTENT};
use crate::needed::NeededPart;
use crate::oracle::Oracle;
use crate::parts::AddedPart;
use flashatlas_device::{DriveConfig, Stack, SubmitError};
use flashatlas_nand::errors::Aged;
use flashatlas_nand::params::NVM_BYTES;
use flashatlas_nand::{ErrorRules, Image, Medium};
use flashatlas_types::base::BaseParts;
use flashatlas_types::{FrameId, Lpn, Seed, Stamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io::{self, Read, Write};

use sections::{Input, Values};

pub use crate::error::CheckpointError;
use crate::error::{OVER_BASE, TABLES};

const MAGIC: [u8; 8] = *b"FACHKPT\n";
const SCHEMA: &str = "flashatlas.checkpoint/";
const END: [u8; 4] = *b"DONE";
/// Sections that only checkpoints of drives with blocks in SLC mode have.
const MODES: &[u8; 4] = b"MODE";
const SLC_ERASES: &[u8; 4] = b"SLCE";
/// Sections that only checkpoints of drives with copybacks have.
const COPIED: &[u8; 4] = b"COPB";
const CARRIED: &[u8; 4] = b"CARR";
/// Section that only checkpoints of drives with lost parts of frames have: pairs of frame and die.
const LOST_PARTS: &[u8; 4] = b"LPRT";
/// Maximum size of the header, in bytes.
const HEADER_BYTES_MAX: usize = 1 << 20;
/// Maximum number of words of the keys of a base.
const KEY_WORDS_MAX: usize = 64;

/// Header of a checkpoint: its drive, and how the checkpoint was made.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub schema: String,
    /// Version of the program that wrote the checkpoint.
    pub version: String,
    pub drive: String,
    /// The parameters that decide the places of pages on flash.
    pub on_flash: Map<String, Value>,
    pub logical_units: u32,
    pub precondition: Value,
    pub fit: Value,
    /// Size of an extent in sectors, if extents were packed. Old checkpoints lack this field,
    /// because their extents always have the largest size.
    #[serde(default = "largest_extent")]
    pub extent_sectors: u64,
    pub seed: u64,
    pub sequence: u64,
    /// Seed and clock of the errors of the flash, if operations may fail by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<Age>,
    /// Parts of the drive that did not come with the project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<NeededPart>,
}

/// Seed and clock of the errors of the flash.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Age {
    pub seed: u64,
    pub clock_s: u32,
}

impl Age {
    /// Returns the seed and the clock in an image, if it has them.
    pub fn of(image: &Image) -> Option<Age> {
        image.aged.as_ref().map(|aged| Age { seed: aged.seed, clock_s: aged.clock_s })
    }
}

/// A drive that is switched off, and the stamps that its pages must have. Over a base, the arrays
/// of frames, slots and pages are empty.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Checkpoint {
    pub header: Header,
    pub image: Image,
    pub expected: Vec<Stamp>,
    /// The numbers of the base, if the drive is as a base says.
    pub base: Option<BaseParts>,
    /// Extents of the preconditioning trace in the order of their places, if the trace was packed.
    /// An extent is named by its address space and its number.
    pub extents: Vec<(u32, u64)>,
}

/// Returns the parameters of `config` that decide what is on flash, without the capacity.
pub(crate) fn on_flash(config: &DriveConfig) -> Map<String, Value> {
    let capacity = ["drive.logical_pages", "drive.over_provisioning"];
    let pairs = config.on_flash().filter(|(key, _)| !capacity.contains(key));
    pairs.map(|(key, value)| (key.to_owned(), crate::record::param(value))).collect()
}

fn largest_extent() -> u64 {
    LARGEST_EXTENT
}

impl Header {
    /// Returns a header for a drive of `config`.
    pub fn new(config: &DriveConfig, logical_units: u32, version: &str) -> Header {
        Header {
            schema: format!("{SCHEMA}{TABLES}"),
            version: version.into(),
            drive: config.name.clone(),
            on_flash: on_flash(config),
            logical_units,
            precondition: Value::Null,
            fit: Value::Null,
            extent_sectors: largest_extent(),
            seed: 0,
            sequence: 0,
            age: None,
            parts: Vec::new(),
        }
    }

    /// Returns an error unless a drive of `config` can mount the checkpoint.
    fn must_suit(&self, config: &DriveConfig, logical_units: u32) -> Result<(), CheckpointError> {
        let here = on_flash(config);
        let text = |value: Option<&Value>| value.map_or("not set".into(), Value::to_string);
        // the scheme comes first, because the other parameters depend on it
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
    /// Returns an error unless `added` has all parts that the checkpoint needs.
    pub fn must_have(&self, added: &[AddedPart]) -> Result<(), CheckpointError> {
        let missing = self.header.parts.iter().find_map(|part| part.missing(added));
        missing.map_or(Ok(()), |why| Err(CheckpointError::Part(why)))
    }

    /// Writes the whole checkpoint.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let number = if self.base.is_some() { OVER_BASE } else { TABLES };
        let schema = format!("{SCHEMA}{number}");
        let header = serde_json::to_vec(&Header { schema, ..self.header.clone() })?;
        let mut head = MAGIC.to_vec();
        head.extend(number.to_le_bytes());
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
        ] {
            values.write(tag, out)?;
        }
        if let Some(BaseParts { order, valid, keys }) = &self.base {
            for (tag, words) in [(b"BORD", order), (b"BVAL", valid), (b"BKEY", keys)] {
                Values::Words(words).write(tag, out)?;
            }
            Values::Bytes(&image.nvm).write(b"NVMB", out)?;
            Values::Words(&image.nvm_wear).write(b"NVMW", out)?;
            return out.write_all(&END);
        }
        for (tag, values) in [
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
        for (tag, values, any) in [
            (MODES, Values::Bytes(&image.modes), !image.modes.is_empty()),
            (SLC_ERASES, Values::Words(&image.slc_erases), !image.slc_erases.is_empty()),
            (COPIED, Values::Bytes(&image.copied), !image.copied.is_empty()),
        ] {
            if any {
                values.write(tag, out)?;
            }
        }
        if let Some(aged) = &image.aged {
            Values::Words(&aged.programmed_at).write(b"PROG", out)?;
            Values::Words(&aged.reads).write(b"READ", out)?;
            if !aged.carried.is_empty() {
                Values::Words(&words_of(&aged.carried)).write(CARRIED, out)?;
            }
            if !aged.lost_parts.is_empty() {
                let parts = aged.lost_parts.iter().flat_map(|&(frame, die)| [frame.0, die]);
                Values::Words(&parts.collect::<Vec<u32>>()).write(LOST_PARTS, out)?;
            }
        }
        out.write_all(&END)
    }

    /// Reads a checkpoint that a drive of `config` can mount.
    ///
    /// Memory for a section is allocated only if the section's length in the file suits this drive.
    pub fn read(input: &mut dyn Read, config: &DriveConfig) -> Result<Checkpoint, CheckpointError> {
        let layout = config.layout().expect("the configuration is checked");
        let mut input = Input::new(input);
        let mut head = vec![0; 16];
        input.exact(&mut head)?;
        if head[..8] != MAGIC {
            return Err(CheckpointError::Foreign);
        }
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let number = word(8);
        if ![TABLES, OVER_BASE].contains(&number) {
            return Err(CheckpointError::Version(number));
        }
        let length = word(12) as usize;
        if length > HEADER_BYTES_MAX {
            return Err(CheckpointError::Damaged {
                at: 12,
                why: format!("the header has {length} bytes, which no checkpoint has"),
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
        let schema = format!("{SCHEMA}{number}");
        if header.schema != schema {
            return Err(CheckpointError::Damaged {
                at: 16,
                why: format!("the schema is {}, but the layout needs {schema}", header.schema),
            });
        }
        header.must_suit(config, layout.logical_units)?;
        if number == TABLES {
            config.must_have_room(1, None).map_err(CheckpointError::Memory)?;
        }
        let (blocks, frames, slots) =
            (layout.blocks() as usize, layout.frames() as usize, layout.slots() as usize);
        let nvm = config.params.get(NVM_BYTES) as usize;
        let image = Image {
            erases: input.words(b"ERAS", blocks)?,
            next: input.words(b"NEXT", blocks)?,
            health: input.bytes(b"HLTH", blocks)?,
            spares: input.words(b"SPAR", layout.lanes as usize)?,
            roles: input.bytes(b"ROLE", blocks)?,
            sequence: header.sequence,
            ..Image::default()
        };
        if number == OVER_BASE {
            return Checkpoint::read_base(input, header, image, nvm);
        }
        let image = Image {
            state: input.bytes(b"STAT", frames)?,
            sequence_low: input.words(b"SEQL", frames)?,
            sequence_high: input.bytes(b"SEQH", frames)?,
            lpns: input.words(b"LPNS", slots)?,
            stamps: input.words(b"STMP", slots)?,
            map_slots: input.words_up_to(b"MAPS", slots)?,
            ..image
        };
        // a map page together with its header takes at most a frame and a sector
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
        let mut image = image;
        if input.next_is(MODES)? {
            image.modes = input.bytes(MODES, blocks)?;
        }
        if input.next_is(SLC_ERASES)? {
            image.slc_erases = input.words(SLC_ERASES, blocks)?;
        }
        if input.next_is(COPIED)? {
            image.copied = input.bytes(COPIED, frames)?;
        }
        if let Some(Age { seed, clock_s }) = header.age {
            image.aged = Some(Aged {
                seed,
                clock_s,
                programmed_at: input.words(b"PROG", blocks)?,
                reads: input.words(b"READ", blocks)?,
                carried: Vec::new(),
                lost_parts: Vec::new(),
            });
        }
        if let Some(aged) = &mut image.aged
            && input.next_is(CARRIED)?
        {
            let bits = ErrorRules::from_params(&config.params).and_then(|errors| errors.bits);
            let codewords = bits.map_or(0, |bits| {
                layout.frame_bytes() as usize / bits.correction.codeword as usize
            });
            let most = frames * (2 + codewords);
            let at = input.at;
            let words = input.words_up_to(CARRIED, most)?;
            let why = "the wrong bits of its copybacks do not end with a frame";
            aged.carried =
                carried_of(&words).ok_or(CheckpointError::Damaged { at, why: why.to_owned() })?;
        }
        if let Some(aged) = &mut image.aged
            && input.next_is(LOST_PARTS)?
        {
            let at = input.at;
            let words = input.words_up_to(LOST_PARTS, 2 * frames)?;
            if words.len() % 2 != 0 {
                let why = "its lost parts of frames do not end with a die".to_owned();
                return Err(CheckpointError::Damaged { at, why });
            }
            aged.lost_parts = words.chunks_exact(2).map(|w| (FrameId(w[0]), w[1])).collect();
        }
        input.end(END)?;
        Ok(Checkpoint { header, image, expected, base: None, extents })
    }

    /// Reads the sections after the arrays of lanes and blocks, which `image` has, of a checkpoint
    /// that holds a base. `nvm` is the number of bytes of the byte-addressable memory.
    fn read_base(
        mut input: Input<'_>,
        header: Header,
        image: Image,
        nvm: usize,
    ) -> Result<Checkpoint, CheckpointError> {
        let blocks = image.erases.len();
        let order = input.words_up_to(b"BORD", blocks)?;
        let valid = input.words_up_to(b"BVAL", order.len())?;
        let keys = input.words_up_to(b"BKEY", KEY_WORDS_MAX)?;
        let image = Image {
            nvm: input.bytes(b"NVMB", nvm)?,
            nvm_wear: input.words_up_to(b"NVMW", nvm)?,
            ..image
        };
        input.end(END)?;
        let base = Some(BaseParts { order, valid, keys });
        Ok(Checkpoint { header, image, expected: Vec::new(), base, extents: Vec::new() })
    }

    /// Returns the content of the flash, and the stamps that the pages must have. A base is written
    /// down.
    ///
    /// # Errors
    /// Returns an error if the system has no memory for the tables of the drive, or if no drive can
    /// have the base.
    pub fn written_down(
        self,
        config: &DriveConfig,
    ) -> Result<(Image, Vec<Stamp>), CheckpointError> {
        let Some(parts) = self.base else { return Ok((self.image, self.expected)) };
        config.must_have_room(1, None).map_err(CheckpointError::Memory)?;
        let damaged = |why| CheckpointError::Damaged { at: 0, why };
        let medium = config.medium_over_base(self.image, &parts, Oracle::filled);
        let mut medium = medium.map_err(damaged)?;
        let written = config.write_map(&mut medium, Seed(self.header.seed));
        written.map_err(|e| damaged(format!("the map cannot be written: {e}")))?;
        let units = medium.layout().logical_units;
        Ok((medium.into_image(), (0..units).map(|unit| Oracle::filled(Lpn(unit))).collect()))
    }

    /// Returns the medium of the checkpoint.
    pub fn medium(
        image: Image,
        base: Option<&BaseParts>,
        config: &DriveConfig,
    ) -> Result<Medium, String> {
        match base {
            Some(parts) => config.medium_over_base(image, parts, Oracle::filled),
            None => config.medium_from(image),
        }
    }
}

/// Returns the wrong bits of copybacks as words: for each frame its number, the number of its
/// codewords, and the wrong bits of each.
fn words_of(carried: &[(FrameId, Vec<u16>)]) -> Vec<u32> {
    let of_frame = |(frame, wrong): &(FrameId, Vec<u16>)| {
        let bits = wrong.iter().map(|&bits| u32::from(bits));
        [frame.0, wrong.len() as u32].into_iter().chain(bits).collect::<Vec<u32>>()
    };
    carried.iter().flat_map(of_frame).collect()
}

/// Returns the wrong bits that [`words_of`] has written, or `None` if the words are not such bits.
fn carried_of(words: &[u32]) -> Option<Vec<(FrameId, Vec<u16>)>> {
    let (mut carried, mut rest) = (Vec::new(), words);
    while let [frame, count, after @ ..] = rest {
        let (bits, left) = after.split_at_checked(*count as usize)?;
        let bits = bits.iter().map(|&bits| u16::try_from(bits).ok()).collect::<Option<_>>()?;
        carried.push((FrameId(*frame), bits));
        rest = left;
    }
    rest.is_empty().then_some(carried)
}

/// Writes a checkpoint of a drive that is switched off.
///
/// `off` has the content of the flash, and the stamps that the pages must have; both are returned.
/// `added` lists the parts that did not come with the project.
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
        age: Age::of(&image),
        parts: NeededPart::of(config, added),
        ..Header::new(config, expected.len() as u32, version)
    };
    let checkpoint = Checkpoint { header, image, expected, base: None, extents: Vec::new() };
    let written = checkpoint.write(out);
    (checkpoint.image, checkpoint.expected, written)
}

/// Reads the content of the flash from a checkpoint, and the stamps that the pages must have.
///
/// # Errors
/// Returns an error if the file is not a checkpoint, is damaged, or needs a part that is not in
/// `added`. Returns an error if the system has no memory for the tables of the drive, or if the
/// checkpoint belongs to a drive that does not match `config`.
pub fn load(
    config: &DriveConfig,
    added: &[AddedPart],
    input: &mut dyn Read,
) -> Result<(Image, Vec<Stamp>), CheckpointError> {
    let checkpoint = Checkpoint::read(input, config)?;
    checkpoint.must_have(added)?;
    checkpoint.written_down(config)
}

/// Trims the `empty` pages of a drive after a mount, and resets the drive's counters.
///
/// Not every scheme keeps trims across a mount (docs/RELIABILITY.md, R3).
///
/// # Errors
/// Returns an error if there is no space.
pub fn forget_empty(
    drive: &mut Stack,
    empty: impl Iterator<Item = Lpn>,
) -> Result<(), SubmitError> {
    for lpn in empty {
        // a lost page is not empty either
        if drive.top().peek_stamp(lpn).ok() != Some(Stamp::ZERO) {
            drive.forget(lpn)?;
        }
    }
    drive.top_mut().reset_counters();
    Ok(())
}
