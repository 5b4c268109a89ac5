//! Test of whether a reading of a trace is plausible: its first records are compared with what
//! drives and hosts do.

use crate::format::{FormatDef, Start};
use crate::source::{ReadOptions, Record};
use flashatlas_types::{HostOp, Params};
use std::io::Cursor;

/// Maximum number of records that are looked at.
const RECORDS: u64 = 1000;

/// Maximum number of sectors of a read or write: 256 MiB are the 65,536 blocks of 4 KiB that one
/// command of NVMe may name (NVM Command Set Specification, Read: the number of logical blocks has
/// 16 bits).
const LARGEST: u64 = 1 << 19;

/// Maximum number of sectors of a drive: 256 TiB; the largest drives on sale hold 245.76 TB.
const FARTHEST: u64 = 1 << 39;

/// Maximum number of requests a second: a drive of PCIe 6.0 is sold with 5.5 million reads of 4 KiB
/// a second.
const FASTEST: f64 = 1e7;

/// Minimum number of records from which a rate is computed: fewer records may be a burst.
const ENOUGH: u64 = 32;

/// Measures of the first records in a reading.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Looks {
    records: u64,
    /// Number of records that cannot be read.
    pub unfit: u64,
    largest: u64,
    farthest: u64,
    span_ps: u64,
}

impl Looks {
    /// Reads the start of a trace as `format`. Returns `None` if no record of it can be read.
    pub fn of(format: &FormatDef, params: &Params, head: &[u8]) -> Option<Looks> {
        // the end of the head may have cut a line
        let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..=end]);
        let options = ReadOptions { skip_bad: u64::MAX, ..ReadOptions::default() };
        let start = Start { head: whole, params, options: &options };
        let content = Box::new(Cursor::new(whole.to_vec()));
        let mut source = (format.open)(content, &start).ok()?.source;
        let mut looks = Looks::default();
        while looks.records < RECORDS
            && let Ok(Some(record)) = source.next()
        {
            looks.add(&record);
        }
        looks.unfit = source.account().skipped_bad;
        (looks.records > 0).then_some(looks)
    }

    fn add(&mut self, record: &Record) {
        let request = &record.request;
        self.records += 1;
        self.span_ps = self.span_ps.max(request.at.0);
        self.farthest = self.farthest.max(request.lba.0 + u64::from(request.sectors));
        if request.op != HostOp::Trim {
            self.largest = self.largest.max(request.sectors.into());
        }
    }

    /// Returns the reason for which the reading is implausible, or `None` if it is plausible.
    /// `least` is the smallest `unfit` among the readings of the same start.
    pub fn implausible(&self, least: u64) -> Option<String> {
        let seconds = self.span_ps as f64 / 1e12;
        let rate = (self.records - 1) as f64 / seconds;
        if self.unfit > least {
            Some(format!("{} records that do not fit near the start", self.unfit))
        } else if self.largest > LARGEST {
            Some(format!("a request of {} MiB", self.largest / 2048))
        } else if self.farthest > FARTHEST {
            Some(format!("an address of {} TiB", self.farthest >> 31))
        } else if self.records >= ENOUGH && seconds > 0.0 && rate > FASTEST {
            Some(format!("{:.0} million requests a second", rate / 1e6))
        } else {
            None
        }
    }
}
