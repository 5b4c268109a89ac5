//! Job files of fio: the options of a job, and the requests that it makes.
//!
//! [`parse`] reads a job file into sections with [`Options`]. [`JobFile::layout`] turns each clone
//! into a job, places the files side by side on a drive, and checks every size. A [`JobStream`]
//! then yields the requests of one job, independent of time. The player controls depth, rates,
//! pauses and the order of jobs.
//!
//! `docs/howto/run-a-fio-job.md` lists the options that are modelled, the options that cause a
//! warning, and the options that are errors. The reference is fio 3.33.

mod catalogue;
mod cursor;
mod definitions;
mod distribution;
mod error;
mod job;
mod layout;
mod left_out;
mod lines;
mod map;
mod options;
mod refused;
mod replay;
mod request;
mod sampler;
mod settling;
mod stream;
mod value;
mod written;
mod zoning;

pub use catalogue::{KnownOption, OptionClass, known_options, options_table};
pub use distribution::{Distribution, Share, Zone};
pub use error::{JobError, Position, Warning};
pub use job::{JobFile, MAX_JOBS, Section, parse};
pub use layout::{Job, JobSpan, Layout};
pub use lines::MAX_TEXT_BYTES;
pub use options::{
    Batching, Engine, ExitWhat, FileService, FlowOptions, Generator, Options, Pattern, Sequencer,
};
pub use replay::ReplayOptions;
pub use request::{Direction, JobRequest};
pub use settling::{Criterion, Measured, Settling};
pub use stream::{JobStep, JobStream, NextIssue};
pub use value::Amount;
pub use zoning::Zoning;
