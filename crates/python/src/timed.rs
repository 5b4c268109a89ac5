//! A drive that a host in Python measures in simulated time (`python/flashatlas/probing/host.py`).
//!
//! The host sees what it sees of a real drive: its size, and the times at which commands are
//! complete.

use crate::environment::environment;
use crate::{DriveError, InputError, guarded, to_python};
use flashatlas_device::params::QUEUE_DEPTH;
use flashatlas_device::{Cmd, Done, Reply, Stack, SubmitError};
use flashatlas_sim::RunError;
use flashatlas_types::{Lba, Ps, SECTOR_BYTES, Seed, Tag};
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard};

/// A command of the host: kind, first sector, number of sectors, and earliest time.
///
/// The kinds are 0 read, 1 write, 2 flush, 3 trim. The time counts in picoseconds from the start of
/// the batch.
type Wanted = (u8, u64, u32, u64);

/// Commands that are sent in order, and the largest number of them in flight.
type Stream = (Vec<Wanted>, u32);

/// The kind of a trim, which is the last kind.
const TRIM: u8 = 3;

/// A drive that was blank when it was made, for a host in Python.
#[pyclass]
pub struct TimedDrive {
    host: Mutex<Host>,
}

/// A drive with its layers, and the clock of its host.
struct Host {
    stack: Stack,
    clock: Ps,
    /// Number of writes so far, which names their contents.
    writes: u64,
    queue_depth: u32,
    /// A buffer of zeros as long as the longest write, if the drive keeps bytes.
    zeros: Option<Vec<u8>>,
    reply: Reply,
}

fn refused(error: &SubmitError) -> PyErr {
    DriveError::new_err(error.to_string())
}

impl Host {
    /// Returns an error if a command is of no kind or lies outside the drive.
    fn check(&self, streams: &[Stream]) -> PyResult<()> {
        let depth: u64 = streams.iter().map(|&(_, depth)| u64::from(depth)).sum();
        if streams.iter().any(|&(_, depth)| depth == 0) || depth > self.queue_depth.into() {
            return Err(InputError::new_err(format!(
                "depth: {depth} commands in flight are not possible: give 1 to {} \
                 (host.queue_depth)",
                self.queue_depth
            )));
        }
        let sectors = self.stack.shape().sectors;
        for &(kind, first, count, _) in streams.iter().flat_map(|(commands, _)| commands) {
            let inside = first.checked_add(count.into()).is_some_and(|end| end <= sectors);
            if kind > TRIM || !inside || (count == 0) != (kind == 2) {
                return Err(InputError::new_err(format!(
                    "kind {kind} at sector {first} with {count} sectors is no command for a drive \
                     of {sectors} sectors"
                )));
            }
        }
        Ok(())
    }

    fn play_all(&mut self, streams: &[Stream]) -> Result<Vec<Vec<(u64, u64)>>, SubmitError> {
        let begin = self.clock;
        let mut times: Vec<_> =
            streams.iter().map(|(commands, _)| vec![(0, 0); commands.len()]).collect();
        let mut sent = vec![0; streams.len()];
        let mut in_flight = vec![0; streams.len()];
        let mut done: Vec<Done> = Vec::new();
        // each round submits a command or reaches a completion, so the loop ends
        loop {
            let due = (0..streams.len())
                .filter(|&s| in_flight[s] < streams[s].1)
                .filter_map(|s| {
                    let after = streams[s].0.get(sent[s])?.3;
                    Some((Ps(begin.0.saturating_add(after)).max(self.clock), s))
                })
                .min();
            let busy = in_flight.iter().any(|&count| count > 0);
            match due {
                Some((at, _)) => {
                    if !busy && at > self.clock {
                        self.stack.idle(self.clock, at)?;
                    }
                    self.stack.advance_to_completion(at, &mut done);
                }
                None if busy => {
                    self.stack.advance_to_completion(Ps::MAX, &mut done);
                    assert!(!done.is_empty(), "commands in flight complete");
                }
                None => return Ok(times),
            }
            if let Some((at, stream)) = due.filter(|_| done.is_empty()) {
                let number = sent[stream];
                self.clock = at;
                times[stream][number].0 = at.0;
                let tag = Tag((stream as u64) << 32 | number as u64);
                self.submit(tag, streams[stream].0[number])?;
                sent[stream] += 1;
                in_flight[stream] += 1;
            }
            for Done { tag, at } in done.drain(..) {
                let stream = (tag.0 >> 32) as usize;
                times[stream][tag.0 as u32 as usize].1 = at.0;
                self.clock = self.clock.max(at);
                in_flight[stream] -= 1;
            }
        }
    }

    fn pass(&mut self, until: Ps) -> Result<(), SubmitError> {
        self.stack.idle(self.clock, until)?;
        let mut done = Vec::new();
        self.stack.advance(until, &mut done);
        assert!(done.is_empty(), "no command was in flight");
        self.clock = until;
        Ok(())
    }

    fn submit(&mut self, tag: Tag, (kind, first, count, _): Wanted) -> Result<(), SubmitError> {
        let (lba, sectors) = (Lba(first), count);
        let cmd = match kind {
            0 => Cmd::Read { lba, sectors },
            1 => {
                self.writes += 1;
                let data = self.zeros.as_mut().map(|zeros| {
                    let bytes = sectors as usize * SECTOR_BYTES as usize;
                    zeros.resize(bytes.max(zeros.len()), 0);
                    &zeros[..bytes]
                });
                Cmd::Write { lba, sectors, fua: false, content: self.writes, data }
            }
            2 => Cmd::Flush,
            _ => Cmd::Trim { lba, sectors },
        };
        self.stack.submit(self.clock, tag, cmd, &mut self.reply)
    }
}

#[pymethods]
impl TimedDrive {
    /// Returns a blank drive at time zero.
    #[new]
    fn new(
        drive: &str,
        drive_toml: Option<&str>,
        settings: Vec<String>,
        seed: u64,
    ) -> PyResult<TimedDrive> {
        let built = environment().registry.load(drive, drive_toml, &settings).and_then(|config| {
            Ok((config.params.get(QUEUE_DEPTH), config.build_stack(Seed(seed))?))
        });
        let (queue_depth, stack) = built.map_err(|error| to_python(&RunError::from(error)))?;
        let zeros = stack.ssd().keeps_bytes().then(Vec::new);
        let reply = Reply::default();
        let host = Host { stack, clock: Ps::ZERO, writes: 0, queue_depth, zeros, reply };
        Ok(TimedDrive { host: Mutex::new(host) })
    }

    /// Returns the bytes that the drive exports, and the bytes of a sector.
    fn sizes(&self) -> (u64, u32) {
        (self.host().stack.shape().sectors * u64::from(SECTOR_BYTES), SECTOR_BYTES)
    }

    /// Returns the largest number of commands that the drive takes at the same time.
    fn queue_depth(&self) -> u32 {
        self.host().queue_depth
    }

    /// Returns the time of the host's clock, in picoseconds.
    fn clock(&self) -> u64 {
        self.host().clock.0
    }

    /// Sends streams of commands side by side, and waits for all commands.
    ///
    /// A stream is a list of commands that are sent in order, and the largest number of them in
    /// flight. Returns, for each stream, the times in picoseconds at which each command was sent
    /// and was complete. Releases the interpreter's lock.
    fn play(&self, py: Python<'_>, streams: Vec<Stream>) -> PyResult<Vec<Vec<(u64, u64)>>> {
        self.host().check(&streams)?;
        guarded(py, None, |_| Ok(self.host().play_all(&streams)))?.map_err(|error| refused(&error))
    }

    /// Lets time pass without a command. The drive may use it for work of its own.
    fn pause(&self, py: Python<'_>, ps: u64) -> PyResult<()> {
        let until = self.clock().checked_add(ps).map(Ps).filter(|until| *until < Ps::MAX);
        let until = until.ok_or_else(|| InputError::new_err("the pause ends after all time"))?;
        guarded(py, None, |_| Ok(self.host().pass(until)))?.map_err(|error| refused(&error))
    }
}

impl TimedDrive {
    fn host(&self) -> MutexGuard<'_, Host> {
        self.host.lock().expect("no call panicked while it held the drive")
    }
}
