//! Reading a file as a stream.

use super::block::{BLOCK_HEADER_BYTES, BlockHeader, Codec, decode};
use super::end::{END_HEADER_BYTES, End, Position, TRAILER_BYTES, trailer};
use super::{BLOCK, END, HEADER_BYTES, header};
use crate::error::{Place, TraceError, excerpt};
use crate::gate::Gate;
use crate::raw::{Extent, Raw, Time};
use crate::source::{Account, ReadOptions, Record, RecordSource};
use std::io::{self, Read};

/// Returns the records of a whole file from its start.
///
/// # Errors
/// Returns an error if [`header::check`] refuses the header.
pub(crate) fn stream(
    mut input: Box<dyn Read + Send>,
    options: &ReadOptions,
) -> Result<Box<dyn RecordSource>, TraceError> {
    let mut head = Vec::new();
    let read = input.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut head);
    read.map_err(|e| TraceError::new(Place::Byte(0), e.to_string(), ""))?;
    header::check(&head)?;
    Ok(Box::new(Atlas::new(input, HEADER_BYTES as u64, 0, options)))
}

/// Returns the records of a file from `position` on. [`seek`](super::seek) moved `input` there.
/// Times count from the first record of the trace, wherever reading begins.
pub fn resume(
    input: Box<dyn Read + Send>,
    position: &Position,
    options: &ReadOptions,
) -> Box<dyn RecordSource> {
    let mut atlas = Atlas::new(input, position.offset, position.records_before, options);
    atlas.device_names.clone_from(&position.origin.device_names);
    Box::new(atlas)
}

struct Atlas {
    input: Box<dyn Read + Send>,
    /// Bytes before the next block.
    offset: u64,
    /// Bytes before the block in `records`.
    block: u64,
    /// Records of the block that was read last.
    records: Vec<Record>,
    /// Number of these records that were taken.
    taken: usize,
    /// Number of records in all blocks up to the end of this block.
    count: u64,
    stored: Vec<u8>,
    content: Vec<u8>,
    device_names: Vec<String>,
    gate: Gate,
}

/// Part of a file.
enum FilePart {
    Block,
    End,
}

impl Atlas {
    fn new(input: Box<dyn Read + Send>, offset: u64, count: u64, options: &ReadOptions) -> Atlas {
        Atlas {
            input,
            offset,
            block: offset,
            records: Vec::new(),
            taken: 0,
            count,
            stored: Vec::new(),
            content: Vec::new(),
            device_names: Vec::new(),
            gate: Gate::new(options).counting_from(0),
        }
    }

    fn fault(&self, why: &'static str, expected: &'static str) -> TraceError {
        TraceError::new(Place::Byte(self.block), why, expected)
    }

    /// Reads `bytes` and counts them.
    fn fetch(&mut self, bytes: &mut [u8], what: &'static str) -> Result<(), TraceError> {
        let start = self.offset;
        self.input.read_exact(bytes).map_err(|error| {
            let why = match error.kind() {
                // the decoder of a compressed stream that ends too early returns its own error
                io::ErrorKind::UnexpectedEof if error.get_ref().is_none() => {
                    format!("the trace is truncated in {what}")
                }
                _ => error.to_string(),
            };
            TraceError::new(Place::Byte(start), why, "a complete file, which ends with an index")
        })?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Reads the next block or the end record, and returns its kind.
    fn advance(&mut self) -> Result<FilePart, TraceError> {
        self.block = self.offset;
        let mut kind = [0];
        self.fetch(&mut kind, "front of a block or the end record")?;
        match kind[0] {
            BLOCK => self.read_block().map(|()| FilePart::Block),
            END => self.read_end().map(|()| FilePart::End),
            _ => Err(TraceError {
                excerpt: excerpt(&kind),
                ..self.fault("neither a block nor the end record:", "`B` or `E`")
            }),
        }
    }

    fn read_block(&mut self) -> Result<(), TraceError> {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        bytes[0] = BLOCK;
        self.fetch(&mut bytes[1..], "a block header")?;
        let header =
            BlockHeader::decode(&bytes).map_err(|(why, expected)| self.fault(why, expected))?;
        let mut stored = std::mem::take(&mut self.stored);
        stored.resize(header.stored_bytes, 0);
        let fetched = self.fetch(&mut stored, "a block");
        self.stored = stored;
        fetched?;
        if crc32c::crc32c(&self.stored) != header.crc {
            return Err(self.fault("a damaged block", "bytes that match the CRC in its header"));
        }
        self.records.clear();
        self.taken = 0;
        let content = match header.codec {
            Codec::Plain => &self.stored,
            Codec::Zstd => {
                self.content.resize(header.content_bytes, 0);
                let size = zstd::bulk::decompress_to_buffer(&self.stored, &mut self.content)
                    .unwrap_or(usize::MAX);
                if size != header.content_bytes {
                    return Err(self.fault(
                        "a block that does not decompress to the size in its header",
                        "a block of this size",
                    ));
                }
                &self.content
            }
        };
        decode(&header, content, &mut self.records).map_err(|(why, expected)| {
            self.records.clear();
            TraceError::new(Place::Byte(self.block), why, expected)
        })?;
        self.count += header.records as u64;
        Ok(())
    }

    fn read_end(&mut self) -> Result<(), TraceError> {
        const WHAT: &str = "the end record";
        let mut head = [0; END_HEADER_BYTES];
        head[0] = END;
        self.fetch(&mut head[1..], WHAT)?;
        let damaged =
            |atlas: &Atlas| atlas.fault("a damaged end record", "bytes that match its CRC");
        let body_bytes = End::body_bytes(&head).ok_or_else(|| damaged(self))?;
        let mut body = Vec::new();
        let start = self.offset;
        let read = self.input.by_ref().take(body_bytes).read_to_end(&mut body);
        read.map_err(|e| TraceError::new(Place::Byte(start), e.to_string(), ""))?;
        if (body.len() as u64) < body_bytes {
            return Err(TraceError::new(
                Place::Byte(start),
                "the trace is truncated in the end record",
                "its index",
            ));
        }
        self.offset += body_bytes;
        let end = End::decode(&head, &body).ok_or_else(|| damaged(self))?;
        if end.records != self.count {
            return Err(self.fault(
                "the end record counts a different number of records than the blocks contain",
                "equal numbers",
            ));
        }
        self.device_names = end.origin.device_names;
        let mut last = [0; TRAILER_BYTES];
        let start = self.offset;
        self.fetch(&mut last, "the trailer")?;
        if last != trailer(self.block) {
            return Err(TraceError::new(
                Place::Byte(start),
                "a damaged trailer",
                "the offset of the end record",
            ));
        }
        self.nothing_more()
    }

    /// Refuses bytes after the end, because they are damage or belong to another file.
    fn nothing_more(&mut self) -> Result<(), TraceError> {
        let offset = self.offset;
        let mut more = Vec::new();
        let read = self.input.by_ref().take(1).read_to_end(&mut more);
        read.map_err(|e| TraceError::new(Place::Byte(offset), e.to_string(), ""))?;
        if more.is_empty() {
            return Ok(());
        }
        Err(TraceError::new(
            Place::Byte(offset),
            "bytes after the end of the trace",
            "one trace in a file",
        ))
    }
}

impl RecordSource for Atlas {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        while !self.gate.ended() {
            while let Some(record) = self.records.get(self.taken) {
                self.taken += 1;
                let place = Place::Byte(self.block);
                match self.gate.admit(&raw(record), place) {
                    Ok(Some(record)) => return Ok(Some(record)),
                    Ok(None) => {}
                    Err(fault) => self.gate.reject(fault.at(&[], |_| place))?,
                }
            }
            match self.advance() {
                Ok(FilePart::Block) => {}
                Ok(FilePart::End) => {
                    let place = Place::Byte(self.offset);
                    return self.gate.finish(|| {
                        TraceError::new(place, "the trace holds no request", "at least one")
                    });
                }
                Err(error) => return Err(self.gate.fail(error)),
            }
        }
        Ok(None)
    }

    fn account(&self) -> Account {
        Account { device_names: self.device_names.clone(), ..self.gate.account() }
    }

    fn bytes_read(&self) -> u64 {
        self.offset
    }

    fn expected(&self) -> Option<u64> {
        None
    }
}

#[inline]
fn raw(record: &Record) -> Raw {
    let request = &record.request;
    let extent = Extent { first: request.lba.0, sectors: request.sectors };
    let time = Time::whole(request.at.0.into());
    Raw { time, device: record.device, op: request.op, extent, fua: request.fua, preflush: false }
}
