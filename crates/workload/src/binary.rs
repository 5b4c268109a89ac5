//! Reader of binary traces with records of one size, in constant memory.

use crate::bad::Alike;
use crate::devices::Devices;
use crate::error::{Place, TraceError};
use crate::gate::Gate;
use crate::lines::fill;
use crate::raw::{Fault, Raw};
use crate::source::{Account, ReadOptions, Record, RecordSource};
use std::io::{self, BufRead};

/// The longest record of any format.
const LONGEST: usize = 64;

/// Decoder of a format with records of one size.
pub(crate) trait Fixed: Send {
    /// Returns the number of bytes of a record, at most [`LONGEST`].
    fn bytes(&self) -> usize;

    /// Returns the bytes to expect, for the error of a record that is cut short.
    fn truncated(&self) -> &'static str;

    /// Decodes a record; returns `Ok(None)` if it holds no request.
    fn decode(&mut self, record: &[u8]) -> Result<Option<Raw>, Fault>;

    /// Returns the number of bytes that follow `record` and belong to it; the reader skips these
    /// bytes.
    fn payload(&self, _record: &[u8]) -> u64 {
        0
    }

    /// Returns the devices named so far, or `None` in formats that name none.
    fn devices(&self) -> Option<&Devices> {
        None
    }

    /// Returns the key by which the records of several files are put in order.
    fn time(&self, _record: &[u8]) -> u64 {
        0
    }

    /// Returns `true` if `record` begins like a record. Otherwise the reader cannot find the
    /// records behind it.
    fn in_step(&self, _record: &[u8]) -> bool {
        true
    }
}

/// Returns the error of a trace that ended at `offset` without a request.
pub(crate) fn nothing(offset: u64) -> TraceError {
    TraceError::new(Place::Byte(offset), "the trace holds no request", "at least one")
}

/// Returns the `N` bytes of `record` at `at`.
pub(crate) fn bytes_at<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&record[at..at + N]);
    bytes
}

/// The records of a file as bytes.
pub(crate) struct Records {
    input: Box<dyn BufRead + Send>,
    record: [u8; LONGEST],
    /// Number of bytes of the record that the input had.
    have: usize,
    /// Bytes before the next record.
    offset: u64,
}

impl Records {
    pub fn of(input: Box<dyn BufRead + Send>) -> Records {
        Records { input, record: [0; LONGEST], have: 0, offset: 0 }
    }

    /// Reads the next record of `bytes` bytes, and returns the number of bytes that the input had.
    pub fn fetch(&mut self, bytes: usize) -> io::Result<usize> {
        self.have = 0;
        while self.have < bytes {
            let part = fill(&mut *self.input)?.min(bytes - self.have);
            if part == 0 {
                break;
            }
            self.record[self.have..self.have + part]
                .copy_from_slice(&self.input.fill_buf()?[..part]);
            self.input.consume(part);
            self.have += part;
        }
        self.offset += self.have as u64;
        Ok(self.have)
    }

    /// Returns the record that was read last. It is cut short if the input ended within it.
    pub fn record(&self) -> &[u8] {
        &self.record[..self.have]
    }

    /// Returns the number of bytes before the next record, or before the payload of the record that
    /// was read last.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Skips `bytes` bytes, and returns the number of bytes that are missing.
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

    /// Decodes the record that was read last, and skips its payload. Returns `Ok(Ok(None))` if the
    /// record holds no request.
    pub fn decode<F: Fixed>(&mut self, format: &mut F) -> io::Result<Result<Option<Raw>, Fault>> {
        if self.have < format.bytes() {
            return Ok(Err(Fault::whole("a truncated record", format.truncated())));
        }
        let decoded = format.decode(&self.record[..self.have]);
        let payload = format.payload(&self.record[..self.have]);
        Ok(match self.pass(payload)? {
            0 => decoded,
            _ => Err(Fault::whole(
                "a record whose payload is truncated,",
                "the number of bytes that it states",
            )),
        })
    }
}

/// Hands a record that was decoded at `offset` to `gate`, and returns the record that `gate`
/// admits.
///
/// # Errors
/// Returns an error for a fault that the allowance for bad records does not cover. Also returns an
/// error for a record that is not [`Fixed::in_step`], because no record behind it can be found.
pub(crate) fn admitted<F: Fixed>(
    gate: &mut Gate,
    format: &F,
    record: &[u8],
    offset: u64,
    decoded: Result<Option<Raw>, Fault>,
) -> Result<Option<Record>, TraceError> {
    let place = |within: usize| Place::Byte(offset + within as u64);
    let admitted = match decoded {
        Ok(None) => return Ok(None),
        Ok(Some(raw)) => gate.admit(&raw, place(0)),
        Err(fault) => Err(fault),
    };
    match admitted {
        Ok(record) => Ok(record),
        Err(fault) if record.len() == format.bytes() && !format.in_step(record) => {
            Err(gate.fail(fault.at(record, place)))
        }
        Err(fault) => gate.reject(fault.at(record, place)).map(|()| None),
    }
}

/// A binary trace.
pub(crate) struct FixedSource<F> {
    records: Records,
    format: F,
    gate: Gate,
}

impl<F: Fixed + 'static> FixedSource<F> {
    pub fn open(
        input: Box<dyn BufRead + Send>,
        format: F,
        options: &ReadOptions,
    ) -> Box<dyn RecordSource> {
        Box::new(FixedSource { records: Records::of(input), format, gate: Gate::new(options) })
    }
}

impl<F: Fixed> FixedSource<F> {
    /// Adds to `error` the number of records from there on with the same kind of fault. The source
    /// is at its end afterwards.
    fn with_alike(&mut self, error: TraceError) -> TraceError {
        let alike = error.kind.map(|kind| {
            Alike::to(kind, || {
                if self.records.fetch(self.format.bytes())? == 0 {
                    return Ok(None);
                }
                let decoded = self.records.decode(&mut self.format)?;
                Ok::<_, io::Error>(Some(decoded.err().and_then(|fault| fault.kind)))
            })
        });
        TraceError { alike, ..error }
    }
}

impl<F: Fixed + 'static> RecordSource for FixedSource<F> {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        if let Some(record) = self.gate.pending() {
            return Ok(Some(record));
        }
        while !self.gate.ended() {
            let offset = self.records.offset();
            let failed = |e: io::Error| TraceError::new(Place::Byte(offset), e.to_string(), "");
            let fetched = self.records.fetch(self.format.bytes());
            if fetched.map_err(|e| self.gate.fail(failed(e)))? == 0 {
                return self.gate.finish(|| nothing(offset));
            }
            let decoded = self.records.decode(&mut self.format);
            let decoded = decoded.map_err(|e| self.gate.fail(failed(e)))?;
            let (gate, record) = (&mut self.gate, self.records.record());
            let admitted = admitted(gate, &self.format, record, offset, decoded);
            if let Some(record) = admitted.map_err(|error| self.with_alike(error))? {
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
        self.records.offset()
    }

    fn expected(&self) -> Option<u64> {
        None
    }

    fn origin_ps(&self) -> Option<u128> {
        self.gate.origin_ps()
    }
}
