//! Through a binary trace of records of one size, in constant memory.

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

    /// What the records of several files are put in order by.
    fn time(&self, _record: &[u8]) -> u64 {
        0
    }

    /// Whether `record` begins as one does: if not, nothing behind it can be found.
    fn in_step(&self, _record: &[u8]) -> bool {
        true
    }
}

/// That a trace ended at `offset` without a request.
pub(crate) fn nothing(offset: u64) -> TraceError {
    TraceError::new(Place::Byte(offset), "the trace holds no request", "at least one")
}

/// The `N` bytes of `record` at `at`.
pub(crate) fn bytes_at<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&record[at..at + N]);
    bytes
}

/// The records of a file as bytes.
pub(crate) struct Records {
    input: Box<dyn BufRead + Send>,
    record: [u8; LONGEST],
    /// Bytes of it that were there.
    have: usize,
    /// Bytes before the next record.
    offset: u64,
}

impl Records {
    pub fn of(input: Box<dyn BufRead + Send>) -> Records {
        Records { input, record: [0; LONGEST], have: 0, offset: 0 }
    }

    /// Bring the next record of `bytes`; how many of them there are.
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

    /// The record that was brought last, as far as it was there.
    pub fn record(&self) -> &[u8] {
        &self.record[..self.have]
    }

    /// Bytes before the next record, or before what follows the one that was brought last.
    pub fn offset(&self) -> u64 {
        self.offset
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

    /// Read what was brought last: the raw record, `None` when it holds no request.
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
                "as many bytes as it says",
            )),
        })
    }
}

/// Take a record that was decoded at `offset`: what `gate` makes of it.
///
/// # Errors
/// A fault that nothing forgives.
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
    /// Count the records behind that of `error` which have the same kind of fault: the source is at
    /// its end.
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
