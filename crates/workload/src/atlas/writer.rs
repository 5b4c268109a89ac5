//! Writing a file.

use super::block::{BlockHeader, Codec, encode};
use super::end::{BlockEntry, End};
use super::{HEADER_BYTES, MAX_BLOCK_RECORDS, header};
use crate::compress::Finish;
use crate::source::Record;
use crate::write::{Create, Fitting, Holds, Origin, RecordSink, WriteError, Written};
use flashatlas_types::Ps;
use std::io;

/// Sink that writes blocks as they fill up, and the index at the end.
pub(crate) struct Writer {
    output: Box<dyn Finish>,
    /// Level of compression; 0 is none.
    level: i32,
    fitting: Fitting,
    records: Vec<Record>,
    /// Bytes before the next block.
    offset: u64,
    end: End,
}

impl Writer {
    /// Returns a writer that compresses blocks by Zstandard at `level`, or does not compress them
    /// if `level` is 0.
    pub fn new(create: Create, level: i32) -> Writer {
        Writer {
            output: create.output,
            level,
            fitting: Fitting::new(Holds::everything("atlas"), &create.options),
            records: Vec::with_capacity(MAX_BLOCK_RECORDS),
            offset: 0,
            end: End::default(),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.write_all(bytes)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Writes the records gathered so far.
    fn write_block(&mut self) -> io::Result<()> {
        if self.offset == 0 {
            self.write(&header::encode())?;
            assert!(self.offset == HEADER_BYTES as u64, "the header is whole");
        }
        if self.records.is_empty() {
            return Ok(());
        }
        let content = encode(&self.records);
        let packed =
            if self.level == 0 { None } else { Some(zstd::bulk::compress(&content, self.level)?) };
        let (codec, stored) = match packed.as_deref().filter(|packed| packed.len() < content.len())
        {
            Some(packed) => (Codec::Zstd, packed),
            None => (Codec::Plain, &content[..]),
        };
        let times = || self.records.iter().map(|record| record.request.at);
        let (earliest, latest) =
            (times().min().unwrap_or(Ps::ZERO), times().max().unwrap_or(Ps::ZERO));
        let block = BlockHeader {
            codec,
            records: self.records.len(),
            earliest,
            latest,
            stored_bytes: stored.len(),
            content_bytes: content.len(),
            crc: crc32c::crc32c(stored),
        };
        let entry =
            BlockEntry { offset: self.offset, records_before: self.end.records, earliest, latest };
        self.end.blocks.push(entry);
        self.end.records += self.records.len() as u64;
        self.write(&block.encode())?;
        self.write(stored)?;
        self.records.clear();
        Ok(())
    }
}

impl RecordSink for Writer {
    fn put(&mut self, record: &Record) -> Result<(), WriteError> {
        if let Some(record) = self.fitting.fit(record)? {
            self.records.push(record);
            if self.records.len() == MAX_BLOCK_RECORDS {
                self.write_block()?;
            }
        }
        Ok(())
    }

    fn describe(&mut self, origin: &Origin) {
        self.end.origin = origin.clone();
    }

    fn finish(mut self: Box<Self>) -> Result<Written, WriteError> {
        self.write_block()?;
        let end = self.end.encode(self.offset);
        self.write(&end)?;
        self.output.finish()?;
        self.fitting.written.bytes = self.offset;
        self.fitting.finish()
    }
}
