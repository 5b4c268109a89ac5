//! The files of one binary recording, merged in order of time. The merge holds one record of each
//! file.
//!
//! Devices and times belong to the whole recording, so they are treated after the merge. If records
//! have the same time, the record of the earlier file comes first.

use crate::binary::{Fixed, Records, admitted, nothing};
use crate::devices::Devices;
use crate::error::{Place, TraceError};
use crate::gate::Gate;
use crate::source::{Account, ReadOptions, Record, RecordSource};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufRead};

/// A file of a recording: its name, for errors, and its content.
pub(crate) type Piece = (String, Box<dyn BufRead + Send>);

/// The records of several files.
pub(crate) struct Together<F> {
    files: Vec<(String, Records)>,
    format: F,
    gate: Gate,
    /// Times and numbers of the files that have a record.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    /// File of the record, or of the error, that was yielded last.
    last: usize,
    /// Files whose next record is to be read.
    empty: Vec<usize>,
}

impl<F: Fixed + 'static> Together<F> {
    pub fn open(pieces: Vec<Piece>, format: F, options: &ReadOptions) -> Box<dyn RecordSource> {
        let files: Vec<_> =
            pieces.into_iter().map(|(name, input)| (name, Records::of(input))).collect();
        let (gate, due) = (Gate::new(options), BinaryHeap::new());
        let mut source = Together { files, format, gate, due, last: 0, empty: Vec::new() };
        source.empty = (0..source.files.len()).rev().collect();
        Box::new(source)
    }

    /// Reads the next record of a file.
    fn advance(&mut self, number: usize) -> Result<(), TraceError> {
        let bytes = self.format.bytes();
        let records = &mut self.files[number].1;
        let offset = records.offset();
        let fetched = records.fetch(bytes).map_err(|error| {
            self.last = number;
            self.gate.fail(failed(offset, &error))
        })?;
        if fetched > 0 {
            // a record that is cut short comes first, and so fails immediately
            let record = records.record();
            let time = if fetched == bytes { self.format.time(record) } else { 0 };
            self.due.push(Reverse((time, number)));
        }
        Ok(())
    }
}

fn failed(offset: u64, error: &io::Error) -> TraceError {
    TraceError::new(Place::Byte(offset), error.to_string(), "")
}

impl<F: Fixed + 'static> RecordSource for Together<F> {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        if let Some(record) = self.gate.pending() {
            return Ok(Some(record));
        }
        while !self.gate.ended() {
            while let Some(number) = self.empty.pop() {
                self.advance(number)?;
            }
            let Some(Reverse((_, number))) = self.due.pop() else {
                return self.gate.finish(|| nothing(0));
            };
            self.last = number;
            let records = &mut self.files[number].1;
            let offset = records.offset() - records.record().len() as u64;
            let decoded = records.decode(&mut self.format);
            let decoded = decoded.map_err(|error| self.gate.fail(failed(offset, &error)))?;
            let (gate, record) = (&mut self.gate, records.record());
            self.empty.push(number);
            if let Some(record) = admitted(gate, &self.format, record, offset, decoded)? {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    fn account(&self) -> Account {
        let device_names = self.format.devices().map(Devices::names).unwrap_or_default();
        Account { device_names, ..self.gate.account() }
    }

    fn bytes_read(&self) -> u64 {
        self.files.iter().map(|(_, records)| records.offset()).sum()
    }

    fn expected(&self) -> Option<u64> {
        None
    }

    fn origin_ps(&self) -> Option<u128> {
        self.gate.origin_ps()
    }

    fn file(&self) -> Option<&str> {
        self.files.get(self.last).map(|(name, _)| name.as_str())
    }
}
