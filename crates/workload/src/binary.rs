//! Through a binary trace of records of one size, in constant memory.

use crate::devices::Devices;
use crate::error::{Place, TraceError};
use crate::gate::Gate;
use crate::lines::fill;
use crate::raw::{Fault, Raw};
use crate::source::{Account, ReadOptions, Record, RecordSource};
use std::io::{self, BufRead};

/// The longest record of any format.
const LONGEST: usize = 64;

/// What a format makes of its records.
pub(crate) trait Fixed: Send {
    /// Bytes of a record, at most [`LONGEST`].
    fn bytes(&self) -> usize;

    /// What was expected where a record is cut short.
    fn truncated(&self) -> &'static str;

    /// Decode a record; `None` when it holds no request.
    fn decode(&mut self, record: &[u8]) -> Result<Option<Raw>, Fault>;

    /// Bytes that follow `record` and belong to it, to be passed over.
    fn payload(&self, _record: &[u8]) -> u64 {
        0
    }

    /// The devices named so far, in formats that name any.
    fn devices(&self) -> Option<&Devices> {
        None
    }

    /// Whether `record` begins as one does: if not, nothing behind it can be found.
    fn in_step(&self, _record: &[u8]) -> bool {
        true
    }
}

/// The `N` bytes of `record` at `at`.
pub(crate) fn bytes_at<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&record[at..at + N]);
    bytes
}

/// A binary trace.
pub(crate) struct FixedSource<F> {
    input: Box<dyn BufRead + Send>,
    format: F,
    record: [u8; LONGEST],
    /// Bytes before the next record.
    offset: u64,
    gate: Gate,
}

impl<F: Fixed + 'static> FixedSource<F> {
    pub fn open(
        input: Box<dyn BufRead + Send>,
        format: F,
        options: &ReadOptions,
    ) -> Box<dyn RecordSource> {
        Box::new(FixedSource {
            input,
            format,
            record: [0; LONGEST],
            offset: 0,
            gate: Gate::new(options),
        })
    }

    /// Bring the next record into `self.record`; how many of its bytes there are.
    fn fetch(&mut self) -> io::Result<usize> {
        let mut have = 0;
        while have < self.format.bytes() {
            let part = fill(&mut *self.input)?.min(self.format.bytes() - have);
            if part == 0 {
                break;
            }
            self.record[have..have + part].copy_from_slice(&self.input.fill_buf()?[..part]);
            self.input.consume(part);
            have += part;
        }
        self.offset += have as u64;
        Ok(have)
    }

    /// Pass over `bytes`; how many of them are missing.
    fn pass(&mut self, bytes: u64) -> io::Result<u64> {
        let mut left = bytes;
        while left > 0 {
            let part = (fill(&mut *self.input)? as u64).min(left);
            if part == 0 {
                break;
            }
            self.input.consume(part as usize);
            left -= part;
        }
        self.offset += bytes - left;
        Ok(left)
    }

    /// Read the record at `start`: the raw record, `None` when it holds no request.
    fn decode(&mut self, have: usize) -> io::Result<Result<Option<Raw>, Fault>> {
        if have < self.format.bytes() {
            return Ok(Err(Fault::whole("a truncated record", self.format.truncated())));
        }
        let decoded = self.format.decode(&self.record[..have]);
        let payload = self.format.payload(&self.record[..have]);
        Ok(match self.pass(payload)? {
            0 => decoded,
            _ => Err(Fault::whole(
                "a record whose payload is truncated,",
                "as many bytes as it says",
            )),
        })
    }
}

impl<F: Fixed + 'static> RecordSource for FixedSource<F> {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        if let Some(record) = self.gate.pending() {
            return Ok(Some(record));
        }
        while !self.gate.ended() {
            let offset = self.offset;
            let place = |within: usize| Place::Byte(offset + within as u64);
            let failed = |e: io::Error| TraceError::new(place(0), e.to_string(), "");
            let have = self.fetch().map_err(|e| self.gate.fail(failed(e)))?;
            if have == 0 {
                return self.gate.finish(|| {
                    TraceError::new(place(0), "the trace holds no request", "at least one")
                });
            }
            let decoded = self.decode(have).map_err(|e| self.gate.fail(failed(e)))?;
            let admitted = match decoded {
                Ok(None) => continue,
                Ok(Some(raw)) => self.gate.admit(&raw, place(0)),
                Err(fault) => Err(fault),
            };
            let record = &self.record[..have];
            match admitted {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) => {}
                Err(fault) if have == self.format.bytes() && !self.format.in_step(record) => {
                    return Err(self.gate.fail(fault.at(record, place)));
                }
                Err(fault) => self.gate.reject(fault.at(record, place))?,
            }
        }
        Ok(None)
    }

    fn account(&self) -> Account {
        let device_names = self.format.devices().map(Devices::names).unwrap_or_default();
        Account { device_names, ..self.gate.account() }
    }

    fn bytes_read(&self) -> u64 {
        self.offset
    }

    fn expected(&self) -> Option<u64> {
        None
    }

    fn origin_ps(&self) -> Option<u128> {
        self.gate.origin_ps()
    }
}
