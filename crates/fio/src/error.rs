//! Errors of job files, and their places.

use flashatlas_types::error::nearest;
use std::fmt;
use std::sync::Arc;

/// A place in a job file or in a file that it includes. Displays as `file:line:column`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Position {
    /// Name of the file.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A job file that cannot be used; it displays as `file:line:column: why`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobError {
    /// Place of the fault.
    pub at: Position,
    /// Cause of the error and expected text, without a full stop.
    pub why: String,
    /// Existing name that is most similar to the given name.
    pub nearest: Option<String>,
}

impl JobError {
    pub(crate) fn new(at: &Position, why: impl Into<String>) -> JobError {
        JobError { at: at.clone(), why: why.into(), nearest: None }
    }

    /// Returns the error of an option `got` that is not in `names`.
    ///
    /// fio has some 300 options, so the error names only the most similar option.
    pub(crate) fn unknown(at: &Position, got: &str, names: &[&str]) -> JobError {
        let why = format!("option `{got}` is not known to fio");
        JobError { nearest: nearest(got, names).map(str::to_owned), ..JobError::new(at, why) }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.why)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for JobError {}

/// Part of a job file that is not simulated. Displays as `file:line:column: option: why`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// Place of the first occurrence of the option.
    pub at: Position,
    /// Name of the option; there is at most one warning for each option.
    pub option: String,
    /// Part that is left out, and the reason.
    pub why: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.at, self.option, self.why)
    }
}
