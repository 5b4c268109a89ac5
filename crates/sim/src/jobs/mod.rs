//! Job files of fio as the workload of a run.
//!
//! The jobs run in a closed loop. Each job has its own depth, rates and pauses.
//!
//! [`pacer`] decides when a job may issue; [`scheduler`] lets all jobs of the file act on one
//! drive; [`settling`] ends jobs whose rates have settled; [`stats`] collects the statistics that
//! fio would report for each job. Requests come from [`flashatlas_fio::JobStream`].

mod batch;
mod filesystem;
mod flow;
mod pacer;
mod report;
mod request;
mod scheduler;
mod sending;
mod settling;
mod stats;
mod thread;
mod together;

use self::filesystem::FileSystem;
use crate::Opener;
use crate::config_hash::hex;
use crate::notes::JOB_OPTION;
use crate::player::Player;
use crate::{Progress, RunError};
use flashatlas_fio::{self as fio, JobError, Layout, Position};
use flashatlas_types::{Note, SECTOR_BYTES, Seed};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::io::{ErrorKind, Read as _};
use std::path::Path;
use std::sync::Arc;

/// Maximum size of a log that a job replays, in bytes.
const MAX_LOG_BYTES: u64 = 1 << 30;

/// A file that a job file names: the path that it was read from, and its SHA-256.
pub(crate) struct NamedFile {
    pub path: String,
    pub digest: String,
}

/// A job file that was read and laid out on the drive.
pub(crate) struct Jobs {
    /// Path of the job file.
    pub path: String,
    /// Text of the job file.
    pub text: String,
    /// SHA-256 of everything that was read for the job file: its text, the files that it names, and
    /// environment variables.
    pub digest: String,
    /// Files that the job file names, in order: included files, and logs that are replayed.
    pub named: Vec<NamedFile>,
    /// Jobs of the file, laid out on the drive.
    pub layout: Layout,
    /// Text of the file system, if the jobs run on a file system.
    filesystem: Option<String>,
    /// Number of sectors of the drive.
    capacity: u64,
}

impl Jobs {
    /// Reads a job file for a drive of `capacity` sectors.
    ///
    /// If `filesystem` is given, the jobs run on this file system over the drive.
    ///
    /// # Errors
    /// Returns an error for faults in the files or in the text of the file system.
    pub fn read(
        path: &str,
        filesystem: Option<&str>,
        opener: &dyn Opener,
        capacity: u64,
    ) -> Result<Jobs, RunError> {
        let text = read_text(opener, path, fio::MAX_TEXT_BYTES)
            .map_err(|error| RunError::Io { path: path.to_owned(), error })?;
        let named: RefCell<Vec<NamedFile>> = RefCell::default();
        let hash = RefCell::new(Sha256::new_with_prefix(&text));
        let file = fio::parse(
            &text,
            path,
            &|name| {
                let value = opener.variable(name);
                hash.borrow_mut().update(format!("\0{name}={value:?}"));
                value
            },
            &|named_path| {
                let (from, text) = read_named(opener, path, named_path)?;
                let digest = hex(&Sha256::digest(&text));
                let file = NamedFile { path: from, digest };
                let mut named = named.borrow_mut();
                if named.iter().all(|other| other.path != file.path) {
                    named.push(file);
                }
                let path = named_path;
                hash.borrow_mut().update(format!("\0{path}\0{text}"));
                Ok(text)
            },
        )?;
        let mut layout = file.layout(capacity * u64::from(SECTOR_BYTES))?;
        if let Some(text) = filesystem {
            // the journal takes a part of the drive, so the files are laid out anew; their number
            // stays the same
            let data_bytes = FileSystem::new(text, &layout, capacity)?.data_bytes();
            layout = file.layout(data_bytes)?;
        }
        let depth: u64 =
            layout.jobs.iter().map(|job| u64::from(job.options.effective_depth())).sum();
        if depth > scheduler::MAX_IN_FLIGHT {
            let at = Position { file: Arc::from(path), line: 1, column: 1 };
            let why = format!(
                "iodepth: all jobs together have {depth} requests in flight; give at most {}",
                scheduler::MAX_IN_FLIGHT
            );
            return Err(RunError::Job(Box::new(JobError { at, why, nearest: None })));
        }
        layout.warnings.splice(0..0, file.warnings);
        Ok(Jobs {
            path: path.to_owned(),
            text,
            digest: hex(&hash.into_inner().finalize()),
            named: named.into_inner(),
            layout,
            filesystem: filesystem.map(str::to_owned),
            capacity,
        })
    }

    /// Returns `true` if some jobs start only after other jobs have ended.
    pub fn in_stages(&self) -> bool {
        self.layout.jobs.iter().any(|job| job.stonewall)
    }

    /// Returns a note for each option that is not simulated as it is written.
    pub fn warnings(&self) -> impl Iterator<Item = Note> {
        self.layout.warnings.iter().map(|warning| {
            JOB_OPTION.with([
                ("place", warning.at.to_string().into()),
                ("option", warning.option.as_str().into()),
                ("why", warning.why.as_str().into()),
            ])
        })
    }
}

/// Plays all jobs to their ends; returns their statistics, and notes of approximations.
///
/// # Errors
/// Returns the errors of [`crate::run`].
pub(crate) fn play(
    player: &mut Player,
    jobs: &Jobs,
    seed: Seed,
    queue_depth: usize,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<(Value, Vec<Note>), RunError> {
    let new = |text: &String| FileSystem::new(text, &jobs.layout, jobs.capacity);
    let mut filesystem = jobs.filesystem.as_ref().map(new).transpose()?;
    let (stats, watches) =
        scheduler::play(player, jobs, &mut filesystem, seed, queue_depth, progress)?;
    let unsettled = watches.iter().filter_map(|watch| watch.complaint(&jobs.layout.jobs));
    let said = filesystem.iter().map(FileSystem::summary).chain(unsettled).collect();
    Ok((report::jobs_json(jobs, &stats, &watches), said))
}

/// Reads a file that the job file `job` names, and returns the file's path and text.
///
/// As fio does, the function looks for the file beside the job file, and then in the current
/// folder.
fn read_named(opener: &dyn Opener, job: &str, path: &str) -> std::io::Result<(String, String)> {
    let beside = Path::new(job).parent().unwrap_or(Path::new("")).join(path);
    let beside = beside.to_string_lossy().into_owned();
    match read_text(opener, &beside, MAX_LOG_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound && beside != path => {
            let text = read_text(opener, path, MAX_LOG_BYTES).map_err(|error| match error.kind() {
                ErrorKind::NotFound => std::io::Error::other(
                    "there is no such file beside the job file or in the current folder",
                ),
                _ => error,
            });
            Ok((path.to_owned(), text?))
        }
        text => Ok((beside, text?)),
    }
}

fn read_text(opener: &dyn Opener, path: &str, largest: u64) -> std::io::Result<String> {
    let (reader, _) = opener.open(path)?;
    let mut bytes = Vec::new();
    reader.take(largest + 1).read_to_end(&mut bytes)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let what = match largest {
            fio::MAX_TEXT_BYTES => "job files are UTF-8 text",
            _ => "logs are UTF-8 text (run a recording of blktrace with `--trace FILE`)",
        };
        std::io::Error::other(format!("not UTF-8 at byte {at}; {what}"))
    })?;
    if text.len() as u64 > largest {
        Err(std::io::Error::other(format!(
            "the file has more than {largest} bytes, so it is not a job file"
        )))
    } else {
        Ok(text)
    }
}
