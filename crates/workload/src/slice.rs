//! A part of a trace, by time and by number.

use crate::error::{Place, TraceError};
use crate::source::{Account, Record, RecordSource};
use flashatlas_types::Ps;

/// Bounds on the records of a source. The default admits all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bounds {
    /// Start: records before this time of the source are left out.
    pub from: Ps,
    /// End: records from this time on are left out; `None` is the end of the source. Because
    /// records may be out of order, reading does not stop at this time.
    pub to: Option<Ps>,
    /// Number of records within these times that are left out at the start.
    pub skip: u64,
    /// Maximum number of records that are taken after the skipped records; then reading stops.
    /// `None` takes all.
    pub count: Option<u64>,
}

/// Records of a source that are within bounds. Their times count from the first of these records; a
/// record with an earlier time is at 0.
pub struct Slice {
    source: Box<dyn RecordSource>,
    bounds: Bounds,
    origin: Option<Ps>,
    skipped: u64,
    delivered: u64,
    ended: bool,
}

impl Slice {
    /// Returns the part of `source` within `bounds`.
    pub fn new(source: Box<dyn RecordSource>, bounds: Bounds) -> Slice {
        Slice { source, bounds, origin: None, skipped: 0, delivered: 0, ended: false }
    }

    /// Returns `true` if `at` is within the times that are wanted.
    fn includes(&self, at: Ps) -> bool {
        at >= self.bounds.from && self.bounds.to.is_none_or(|to| at < to)
    }

    /// Returns the next record that is wanted, with its time in the source, or `Ok(None)` after the
    /// last.
    fn wanted(&mut self) -> Result<Option<Record>, TraceError> {
        if self.bounds.count.is_some_and(|count| self.delivered >= count) {
            return Ok(None);
        }
        while let Some(record) = self.source.next()? {
            if !self.includes(record.request.at) {
                continue;
            }
            if self.skipped == self.bounds.skip {
                return Ok(Some(record));
            }
            self.skipped += 1;
        }
        Ok(None)
    }
}

impl RecordSource for Slice {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        if self.ended {
            return Ok(None);
        }
        let found = self.wanted();
        let Ok(Some(mut record)) = found else {
            self.ended = true;
            if found.is_ok() && self.delivered == 0 {
                let place = Place::Byte(self.source.bytes_read());
                let expected = "bounds that hold at least one request of the trace";
                let why = match self.skipped {
                    0 => "the slice holds no request: no request of the trace has a time within \
                          the slice"
                        .to_owned(),
                    n => format!(
                        "the slice holds no request: {n} requests have times within the slice, but \
                         the first {} are left out",
                        self.bounds.skip
                    ),
                };
                return Err(TraceError::new(place, why, expected));
            }
            return found;
        };
        let at = record.request.at;
        record.request.at = Ps(at.since(*self.origin.get_or_insert(at)).0);
        self.delivered += 1;
        Ok(Some(record))
    }

    fn account(&self) -> Account {
        self.source.account()
    }

    fn bytes_read(&self) -> u64 {
        self.source.bytes_read()
    }

    fn expected(&self) -> Option<u64> {
        let by_time = self.bounds.from > Ps::ZERO || self.bounds.to.is_some();
        let all = self.source.expected().filter(|_| !by_time)?;
        let left = all.saturating_sub(self.bounds.skip);
        Some(self.bounds.count.map_or(left, |count| count.min(left)))
    }
}
