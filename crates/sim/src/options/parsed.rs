//! Options that are texts, parsed into the values that the parts of a run use.

use super::{Reading, RunSpec};
use crate::RunError;
use crate::spec::duration;
use flashatlas_types::{Dur, HostOp};
use flashatlas_workload::ReadOptions;

impl Reading {
    /// Returns the options in the form that a reader uses.
    ///
    /// # Errors
    /// Returns an error for texts that have no meaning.
    pub fn options(&self) -> Result<ReadOptions, RunError> {
        let time = |key, text: &Option<String>| {
            text.as_deref().map(|text| duration(key, text)).transpose()
        };
        let op = |text: &str| {
            let allowed = [HostOp::Read, HostOp::Write, HostOp::Trim];
            allowed.into_iter().find(|op| op.name() == text).ok_or_else(|| {
                let why = format!("`{text}` is not known (allowed: read, write, trim)");
                RunError::option("assume_op", why)
            })
        };
        Ok(ReadOptions {
            skip_bad: self.skip_bad.count(),
            skip_kinds: self.skip_bad.kinds()?,
            shift_sectors: self.shift,
            device_map: self.device_map.as_deref().unwrap_or("separate").parse()?,
            drop_duplicates: time("drop_duplicates", &self.drop_duplicates)?,
            time_gap_max: time("time_gap_max", &self.time_gap_max)?,
            assume_op: self.assume_op.as_deref().map(op).transpose()?,
        })
    }
}

impl RunSpec {
    /// Returns the format of the preconditioning trace, if the user named one.
    ///
    /// If there is a trace to replay, the named format belongs to that trace.
    pub(crate) fn before_format(&self) -> Option<&str> {
        self.reading.format.as_deref().filter(|_| self.trace.is_none())
    }

    /// Returns the length of a row in time series, if it was given.
    ///
    /// # Errors
    /// Returns an error if the text is no time, or zero.
    pub(crate) fn interval(&self) -> Result<Option<Dur>, RunError> {
        self.interval.as_deref().map(|text| duration("interval", text)).transpose()
    }
}
