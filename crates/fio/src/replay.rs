//! `read_iolog`: replay of a log by a job, at the same times as in fio 3.33.
//!
//! In version 3, each line has a time. The distance between two lines counts from the submission of
//! the first line, so a job that falls behind does not catch up. The line after a line at time 0
//! does not wait. In version 2, a line `wait` makes the job wait until the given number of
//! milliseconds after the start of all jobs (`iolog.c`: `delay_since_ttime`, `iolog_delay`,
//! `read_iolog_get`).

use super::error::{JobError, Position};
use super::request::Direction;
use flashatlas_types::{Dur, HostOp};
use flashatlas_workload::formats::iolog::{
    Action, Entry, Fault, Field, HEADER, Version, entry, excerpt, version,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of lines of a log. Each line takes 32 bytes of memory.
const MAX_LINES: usize = 1 << 24;
/// Largest length of a request in a line that fio accepts, in bytes.
const MAX_BYTES: u64 = u32::MAX as u64;

/// Options of a replay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayOptions {
    /// `read_iolog`, split at its colons; clones replay the logs in turn. The list is empty if the
    /// job replays no log.
    pub logs: Vec<String>,
    /// `replay_no_stall`: the times of the log are ignored.
    pub no_stall: bool,
    /// `replay_redirect`: the file to which all requests go.
    pub redirect: Option<String>,
    /// `replay_scale`: the divisor of offsets; 0 counts as 1.
    pub scale: u64,
    /// `replay_align`: offsets are rounded down to a multiple of this power of two; with 0 they are
    /// not rounded.
    pub align: u64,
    /// `replay_time_scale`: the speed of a log of version 3 in percent.
    pub speed_percent: u64,
}

impl Default for ReplayOptions {
    fn default() -> ReplayOptions {
        ReplayOptions {
            logs: Vec::new(),
            no_stall: false,
            redirect: None,
            scale: 1,
            align: 0,
            speed_percent: 100,
        }
    }
}

/// Options that fio accepts but ignores for a job that replays a log.
pub(super) const WITHOUT_INFLUENCE: &[&str] = &[
    "rw",
    "rw_sequencer",
    "rwmixread",
    "rwmixwrite",
    "bs",
    "bsrange",
    "bssplit",
    "bs_unaligned",
    "bs_is_seq_rand",
    "ba",
    "size",
    "io_size",
    "filesize",
    "offset",
    "offset_increment",
    "offset_align",
    "number_ios",
    "filename",
    "zonemode",
    "zonesize",
    "zonerange",
    "zoneskip",
    "nrfiles",
    "file_service_type",
    "fsync",
    "fdatasync",
    "rate",
    "rate_iops",
    "rate_ignore_thinktime",
    "rate_process",
    "random_distribution",
    "random_generator",
    "norandommap",
    "percentage_random",
    "randrepeat",
    "allrandrepeat",
    "randseed",
    "time_based",
    "loops",
];

/// Step of a job that replays a line of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReplayStep {
    /// A request in the file with the number `file`.
    Data { direction: Direction, file: u32, offset: u64, bytes: u32 },
    /// An fsync or fdatasync.
    Sync { data_only: bool },
    /// No request, because a file is opened or closed, or the job waits.
    Pass,
}

/// Time at which a line is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// Time after the previous line.
    After(Dur),
    /// Time after the start of all jobs.
    NotBefore(Dur),
}

/// A log that was read.
#[derive(Clone, Debug)]
pub(super) struct Replay {
    /// The names of the log's files, in order of first appearance.
    pub files: Vec<String>,
    /// End of the farthest request in each file.
    pub ends: Vec<u64>,
    /// `true` if the log contains a write.
    pub writes: bool,
    /// Lines of the log.
    pub steps: Vec<(Turn, ReplayStep)>,
}

struct Reader<'a> {
    o: &'a ReplayOptions,
    numbers: HashMap<String, u32>,
    replay: Replay,
    last_us: u64,
}

impl Replay {
    /// Reads the text of the log `name`.
    ///
    /// # Errors
    /// Returns an error for a line that cannot be replayed. Returns an error for a log without a
    /// header, with too many lines, or without a read, write or trim.
    pub fn read(o: &ReplayOptions, name: &str, text: &str) -> Result<Replay, JobError> {
        let mut lines = (1u32..).zip(text.lines());
        let file: Arc<str> = Arc::from(name);
        let place =
            |line, column: usize| Position { file: file.clone(), line, column: column as u32 + 1 };
        let head = lines.next().map_or("", |(_, line)| line.trim_start_matches('\u{feff}'));
        let Some(version) = version(head.as_bytes()) else {
            let why = format!(
                "not an iolog header: `{}`; the reader expects {HEADER} (run a recording of \
                 blktrace with `--trace FILE`)",
                super::lines::quoted(head)
            );
            return Err(JobError::new(&place(1, 0), why));
        };
        let replay =
            Replay { files: Vec::new(), ends: Vec::new(), writes: false, steps: Vec::new() };
        let mut reader = Reader { o, numbers: HashMap::new(), replay, last_us: 0 };
        for (number, line) in lines {
            if line.trim().is_empty() {
                continue;
            }
            if reader.replay.steps.len() == MAX_LINES {
                let why =
                    format!("the log has more than {MAX_LINES} lines; run it with `--trace FILE`");
                return Err(JobError::new(&place(number, 0), why));
            }
            let read = entry(version, line.as_bytes());
            read.and_then(|entry| reader.line(version, &entry)).map_err(|fault| {
                let (from, to) = (fault.span.0, fault.span.1.min(line.len()));
                let excerpt = excerpt(&line.as_bytes()[from.min(to)..to]);
                let why =
                    format!("{} `{excerpt}`; the reader expects {}", fault.why, fault.expected);
                JobError::new(&place(number, from), why)
            })?;
        }
        let replay = reader.replay;
        if replay.steps.iter().any(|(_, step)| matches!(step, ReplayStep::Data { .. })) {
            Ok(replay)
        } else {
            Err(JobError::new(&place(1, 0), "the log holds no read, write or trim"))
        }
    }
}

impl Replay {
    /// Returns the number of bytes of the longest request, or `None` if the log has no request.
    pub fn longest(&self) -> Option<u64> {
        let bytes = |step: &(Turn, ReplayStep)| match step.1 {
            ReplayStep::Data { bytes, .. } => Some(u64::from(bytes)),
            _ => None,
        };
        self.steps.iter().filter_map(bytes).max()
    }
}

impl Reader<'_> {
    fn line(&mut self, version: Version, entry: &Entry<'_>) -> Result<(), Fault> {
        let mut turn = match version {
            Version::Two => Turn::After(Dur::ZERO),
            Version::Three => {
                let now = entry.time.number("a timestamp in microseconds")?;
                let last = std::mem::replace(&mut self.last_us, now);
                Turn::After(self.gap(last, now).ok_or_else(|| too_late(entry.time))?)
            }
        };
        let step = match entry.action {
            Action::File => {
                self.number(entry.file)?;
                ReplayStep::Pass
            }
            Action::Wait(ms) => {
                if !self.o.no_stall {
                    turn = Turn::NotBefore(micros(ms, 1000).ok_or_else(|| too_late(entry.file))?);
                }
                ReplayStep::Pass
            }
            Action::Sync { data_only } => ReplayStep::Sync { data_only },
            Action::Data(op, offset, length) => self.data(entry.file, op, offset, length)?,
        };
        self.replay.steps.push((turn, step));
        Ok(())
    }

    /// Returns the distance that fio keeps between lines at `last` and `now`.
    ///
    /// Returns `None` if the distance is too long for simulated time.
    fn gap(&self, last: u64, now: u64) -> Option<Dur> {
        if last == 0 || now < last || self.o.no_stall {
            return Some(Dur::ZERO);
        }
        micros(now - last, 1).and_then(|_| {
            let scaled = u128::from(now - last) * 100 / u128::from(self.o.speed_percent);
            micros(u64::try_from(scaled).ok()?, 1)
        })
    }

    fn data(
        &mut self,
        file: Field<'_>,
        op: HostOp,
        offset: Field<'_>,
        length: Field<'_>,
    ) -> Result<ReplayStep, Fault> {
        let at = offset.number("an offset in bytes")? / self.o.scale.max(1);
        let at = if self.o.align > 0 { at & !(self.o.align - 1) } else { at };
        let bytes = length.number("a length in bytes")?;
        if bytes == 0 || bytes > MAX_BYTES {
            return Err(length.fault("fio cannot send the length", "1 to 4294967295 bytes"));
        }
        let end = at.checked_add(bytes);
        let end =
            end.ok_or_else(|| offset.fault("no drive has the address", "an end below 2^64"))?;
        let file = self.number(file)?;
        let ends = &mut self.replay.ends[file as usize];
        *ends = end.max(*ends);
        let direction = match op {
            HostOp::Read => Direction::Read,
            HostOp::Write => Direction::Write,
            _ => Direction::Trim,
        };
        self.replay.writes |= direction == Direction::Write;
        Ok(ReplayStep::Data { direction, file, offset: at, bytes: bytes as u32 })
    }

    /// Returns the number of a file, and adds the file if it is new.
    fn number(&mut self, field: Field<'_>) -> Result<u32, Fault> {
        let name = match &self.o.redirect {
            Some(name) => Cow::Borrowed(name.as_str()),
            None => String::from_utf8_lossy(field.text),
        };
        if let Some(&number) = self.numbers.get(&*name) {
            return Ok(number);
        }
        let number = self.replay.files.len() as u32;
        self.replay.files.push(name.clone().into_owned());
        self.replay.ends.push(0);
        self.numbers.insert(name.into_owned(), number);
        Ok(number)
    }
}

/// Returns `count` times `unit` microseconds, or `None` if this is too long for simulated time.
fn micros(count: u64, unit: u64) -> Option<Dur> {
    let us = count.checked_mul(unit)?;
    (us <= super::value::MAX_TIME_US).then(|| Dur::from_us(us))
}

fn too_late(field: Field<'_>) -> Fault {
    field.fault("simulated time ends before the time", "at most 200 days after the line before")
}
