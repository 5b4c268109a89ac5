//! The sections of a checkpoint: tag, length, and compressed chunks with checksums.

use super::{CheckpointError, MAGIC};
use std::io::{self, Read, Write};

/// The fastest level, because most of a checkpoint is nearly random.
const ZSTD_LEVEL: i32 = 1;
/// Bytes of a chunk before compression.
const CHUNK_BYTES: usize = 4 << 20;
/// The values of a section that is written.
pub(super) enum Values<'a> {
    Bytes(&'a [u8]),
    Words(&'a [u32]),
}

impl Values<'_> {
    /// Writes the tag, the length in bytes, and the chunks of a section.
    ///
    /// Each chunk has its lengths before and after compression, and a checksum.
    pub(super) fn write(&self, tag: &[u8; 4], out: &mut dyn Write) -> io::Result<()> {
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

/// A file that is read, and the number of bytes read so far.
pub(super) struct Input<'a> {
    pub(super) input: &'a mut dyn Read,
    pub(super) at: u64,
    /// A tag that was read to see which section comes next.
    peeked: Option<[u8; 4]>,
}

impl<'a> Input<'a> {
    pub(super) fn new(input: &'a mut dyn Read) -> Input<'a> {
        Input { input, at: 0, peeked: None }
    }

    /// Returns whether section `tag` comes next.
    pub(super) fn next_is(&mut self, tag: &[u8; 4]) -> Result<bool, CheckpointError> {
        let next = self.tag()?.1;
        self.peeked = Some(next);
        Ok(next == *tag)
    }

    /// Reads a tag, and returns its place.
    pub(super) fn tag(&mut self) -> Result<(u64, [u8; 4]), CheckpointError> {
        if let Some(next) = self.peeked.take() {
            return Ok((self.at - 4, next));
        }
        let (at, mut next) = (self.at, [0; 4]);
        self.exact(&mut next)?;
        Ok((at, next))
    }

    pub(super) fn exact(&mut self, buffer: &mut [u8]) -> Result<(), CheckpointError> {
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

    pub(super) fn word(&mut self) -> Result<u32, CheckpointError> {
        let mut bytes = [0; 4];
        self.exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    pub(super) fn damaged<T>(&self, at: u64, why: String) -> Result<T, CheckpointError> {
        Err(CheckpointError::Damaged { at, why })
    }

    /// Reads the head of section `tag`, and returns the section's length in bytes, at most `most`.
    pub(super) fn begin(&mut self, tag: &[u8; 4], most: usize) -> Result<usize, CheckpointError> {
        let (at, found) = self.tag()?;
        if found != *tag {
            let names =
                [&found, tag].map(|t| String::from_utf8_lossy(t).escape_default().to_string());
            return self.damaged(
                at,
                format!("found section `{}` where section `{}` belongs", names[0], names[1]),
            );
        }
        let length = u64::from(self.word()?) | u64::from(self.word()?) << 32;
        if length > most as u64 {
            return self.damaged(
                at + 4,
                format!("a section has {length} bytes, but can have at most {most}"),
            );
        }
        Ok(length as usize)
    }

    /// Passes the chunks of a section of `length` bytes to `take`, one after the other.
    pub(super) fn chunks(
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
                return self.damaged(
                    at,
                    format!(
                        "a chunk has impossible sizes: {raw} bytes, and {packed} bytes as stored"
                    ),
                );
            }
            stored.resize(packed, 0);
            self.exact(&mut stored)?;
            if crc32c::crc32c(&stored) != checksum {
                return self.damaged(at, "the checksum of a chunk does not match".into());
            }
            match unpacker.decompress(&stored, raw) {
                Ok(bytes) if bytes.len() == raw => take(&bytes),
                Ok(bytes) => {
                    return self.damaged(
                        at,
                        format!("a chunk has {} bytes instead of {raw}", bytes.len()),
                    );
                }
                Err(error) => {
                    return self.damaged(at, format!("a chunk cannot be unpacked: {error}"));
                }
            }
            left -= raw;
        }
        Ok(())
    }

    /// Reads the last tag. Nothing may follow it.
    pub(super) fn end(&mut self, end: [u8; 4]) -> Result<(), CheckpointError> {
        let (at, tag) = self.tag()?;
        if tag != end || self.input.read(&mut [0])? != 0 {
            return self.damaged(at, "the file has more bytes than were written".into());
        }
        Ok(())
    }

    pub(super) fn bytes(
        &mut self,
        tag: &[u8; 4],
        count: usize,
    ) -> Result<Vec<u8>, CheckpointError> {
        let at = self.at;
        let values = self.bytes_up_to(tag, count)?;
        if values.len() != count {
            return self.damaged(
                at + 4,
                format!("a section has {} bytes instead of {count}", values.len()),
            );
        }
        Ok(values)
    }

    pub(super) fn bytes_up_to(
        &mut self,
        tag: &[u8; 4],
        most: usize,
    ) -> Result<Vec<u8>, CheckpointError> {
        let length = self.begin(tag, most)?;
        let mut values = Vec::with_capacity(length);
        self.chunks(length, |bytes| values.extend_from_slice(bytes))?;
        Ok(values)
    }

    pub(super) fn words(
        &mut self,
        tag: &[u8; 4],
        count: usize,
    ) -> Result<Vec<u32>, CheckpointError> {
        let at = self.at;
        let values = self.words_up_to(tag, count)?;
        if values.len() != count {
            return self.damaged(
                at + 4,
                format!("a section has {} bytes instead of {}", values.len() * 4, count * 4),
            );
        }
        Ok(values)
    }

    pub(super) fn words_up_to(
        &mut self,
        tag: &[u8; 4],
        most: usize,
    ) -> Result<Vec<u32>, CheckpointError> {
        let at = self.at;
        let length = self.begin(tag, most * 4)?;
        if length % 4 != 0 {
            return self.damaged(
                at + 4,
                format!("a section has {length} bytes, which is not a whole number of words"),
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
