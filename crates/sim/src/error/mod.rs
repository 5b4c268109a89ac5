//! Reasons why a run ended early.

mod checkpoint;

pub use checkpoint::CheckpointError;
pub(crate) use checkpoint::{OVER_BASE, TABLES};

use flashatlas_fio::JobError;
use flashatlas_lookup::study::StudyError;
use flashatlas_types::spelling::{spell, spell_name};
use flashatlas_types::{ConfigError, FtlError, PartFault, Violation};
use flashatlas_workload::{OpenError, TraceError};
use std::borrow::Cow;
use std::fmt;

/// Reason why a run produced no record.
#[non_exhaustive]
#[derive(Debug)]
pub enum RunError {
    /// The configuration cannot be used.
    Config(Box<ConfigError>),
    /// A file cannot be opened or read.
    Io {
        /// The file.
        path: String,
        /// The error of the system.
        error: std::io::Error,
    },
    /// A trace cannot be recognised.
    Open {
        /// The file.
        path: String,
        /// The reason.
        error: Box<OpenError>,
    },
    /// A trace cannot be read.
    Trace {
        /// The file.
        path: String,
        /// The place and the reason.
        error: Box<TraceError>,
    },
    /// A checkpoint cannot be used.
    Checkpoint {
        /// The file.
        path: String,
        /// The reason.
        error: Box<CheckpointError>,
    },
    /// A job file cannot be used.
    Job(Box<JobError>),
    /// An option of the run cannot be used, alone or beside the others.
    Option {
        /// The option (see [`crate::OPTIONS`]).
        option: Cow<'static, str>,
        /// The reason. Names of other options in this text stand in angle quotes
        /// ([`flashatlas_types::spelling`]).
        why: String,
    },
    /// The workload does not fit the drive.
    Fit(String),
    /// The input is well formed, but cannot be used.
    Unusable(String),
    /// The drive could not go on.
    Drive {
        /// The request on which the drive failed, counted from 1.
        request: u64,
        /// The reason.
        error: FtlError,
    },
    /// The data has no room any more, because blocks went bad.
    WornOut {
        /// The request, counted from 1.
        request: u64,
        /// Number of blocks that went bad.
        retired: u64,
        /// The error of the drive.
        error: FtlError,
    },
    /// The drive refused a command, although the replay had checked its addresses.
    Refused {
        /// The request, counted from 1.
        request: u64,
        /// The reason.
        why: String,
    },
    /// The simulation makes no progress.
    Stalled {
        /// Number of commands submitted.
        submitted: u64,
        /// Number of commands completed.
        completed: u64,
        /// The things that wait, and what each waits for.
        waiting: String,
    },
    /// A rule does not hold at the end of the run.
    Broken(Violation),
    /// A part broke its contract.
    Part(PartFault),
    /// The user stopped the run.
    Interrupted,
}

impl RunError {
    /// Returns the error that an option cannot be used.
    ///
    /// In the reason `why`, the names of other options stand in angle quotes.
    pub fn option(option: impl Into<Cow<'static, str>>, why: impl Into<String>) -> RunError {
        RunError::Option { option: option.into(), why: why.into() }
    }

    /// Returns a word for the kind of error.
    ///
    /// The words are `input` (the user can correct it), `drive` (the simulated drive cannot go on),
    /// `part` (a bug of a part), `internal` (a bug of the simulator) and `interrupted`.
    pub fn kind(&self) -> &'static str {
        match self {
            RunError::Config(_)
            | RunError::Io { .. }
            | RunError::Open { .. }
            | RunError::Trace { .. }
            | RunError::Checkpoint { .. }
            | RunError::Job(_)
            | RunError::Option { .. }
            | RunError::Fit(_)
            | RunError::Unusable(_) => "input",
            RunError::Drive { error: FtlError::NoSpace { .. } | FtlError::Medium(_), .. } => {
                "drive"
            }
            RunError::WornOut { .. } => "drive",
            // the spare area contradicts the map, which is a bug unless faults were injected
            RunError::Drive { .. } => "internal",
            RunError::Refused { .. } | RunError::Stalled { .. } | RunError::Broken(_) => "internal",
            RunError::Part(_) => "part",
            RunError::Interrupted => "interrupted",
        }
    }
}

impl RunError {
    /// Returns the option, the key or the file that is wrong, or `None` if the error names none.
    pub fn field(&self) -> Option<&str> {
        match self {
            RunError::Option { option, .. } => Some(option),
            RunError::Config(error) => Some(error.option().unwrap_or(&error.key)),
            RunError::Io { path, .. }
            | RunError::Open { path, .. }
            | RunError::Trace { path, .. }
            | RunError::Checkpoint { path, .. } => Some(path),
            _ => None,
        }
    }
}

impl From<PartFault> for RunError {
    fn from(fault: PartFault) -> RunError {
        RunError::Part(fault)
    }
}

impl From<ConfigError> for RunError {
    fn from(error: ConfigError) -> RunError {
        RunError::Config(Box::new(error))
    }
}

impl From<JobError> for RunError {
    fn from(error: JobError) -> RunError {
        RunError::Job(Box::new(error))
    }
}

impl From<StudyError> for RunError {
    fn from(error: StudyError) -> RunError {
        match error {
            StudyError::Interrupted => RunError::Interrupted,
            StudyError::Broken(violation) => RunError::Broken(violation),
            error => RunError::Unusable(error.to_string()),
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Config(error) => error.fmt(f),
            RunError::Io { path, error } => write!(f, "{path}: {error}"),
            RunError::Open { path, error } => {
                write!(f, "{path}: ")?;
                error.fmt(f)
            }
            RunError::Trace { path, error } => {
                write!(f, "{path}:")?;
                error.fmt(f)
            }
            RunError::Checkpoint { path, error } => write!(f, "{path}: {error}"),
            RunError::Job(error) => error.fmt(f),
            RunError::Option { option, why } => {
                spell_name(f, option)?;
                f.write_str(": ")?;
                spell(f, why)
            }
            RunError::Fit(why) | RunError::Unusable(why) => spell(f, why),
            RunError::Drive { request, error } => write!(f, "request {request}: {error}"),
            RunError::WornOut { request, retired, error } => {
                write!(
                    f,
                    "request {request}: the drive is worn out ({retired} blocks went bad): {error}"
                )
            }
            RunError::Refused { request, why } => write!(f, "request {request} was refused: {why}"),
            RunError::Stalled { submitted, completed, waiting } => write!(
                f,
                "the simulation makes no progress: {submitted} commands were submitted, and \
                 {completed} are complete; {waiting}"
            ),
            RunError::Broken(violation) => violation.fmt(f),
            RunError::Part(fault) => fault.fmt(f),
            RunError::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Config(error) => Some(&**error),
            RunError::Io { error, .. } => Some(error),
            RunError::Open { error, .. } => Some(&**error),
            RunError::Trace { error, .. } => Some(&**error),
            RunError::Checkpoint { error, .. } => Some(&**error),
            RunError::Job(error) => Some(&**error),
            RunError::Drive { error, .. } | RunError::WornOut { error, .. } => Some(error),
            RunError::Broken(violation) => Some(violation),
            RunError::Part(fault) => Some(fault),
            RunError::Option { .. }
            | RunError::Fit(_)
            | RunError::Unusable(_)
            | RunError::Refused { .. }
            | RunError::Stalled { .. }
            | RunError::Interrupted => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashatlas_types::{FrameId, MediumError};
    use std::error::Error;

    #[test]
    fn the_first_reason_is_found_behind_the_others() {
        let error = FtlError::Medium(MediumError::Unreadable(FrameId(7)));
        let error = RunError::Drive { request: 3, error };
        let (mut reasons, mut next) = (Vec::new(), error.source());
        while let Some(reason) = next {
            reasons.push(reason.to_string());
            next = reason.source();
        }
        assert_eq!(reasons, ["frame 7 cannot be read (erased or torn)"; 2]);
        assert!(RunError::Interrupted.source().is_none());
    }
}
