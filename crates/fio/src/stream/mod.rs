//! The requests of one job in the order in which fio makes them, independent of time.
//!
//! A *pass* goes through the job's files until one of them is used up. Random jobs with a map use
//! every block once; sequential jobs go to the end. Passes follow each other until `loops` times
//! `size` (or `io_size`) bytes are issued. The rules follow the behaviour of fio 3.33, and
//! `tests/suite/reference.rs` compares the requests with the requests of fio.

mod back;

use super::cursor::{Cursor, Draw};
use super::layout::Job;
use super::options::FileService;
use super::replay::Turn;
use super::request::{Direction, JobRequest};
use super::written::Written;
use flashatlas_types::{Dur, Rng, Seed};

/// Next step of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobStep {
    /// A request for data.
    Request(JobRequest),
    /// A sync of written data.
    Sync {
        /// `true` for `fdatasync`, `false` for `fsync`.
        data_only: bool,
    },
    /// A line of a replayed log without a request.
    Pass,
    /// A sync of one file at the end of a pass (`end_fsync`). All requests of the pass must be
    /// complete before the sync.
    EndSync,
    /// A read of written data (`verify`), to which pauses and rates do not apply.
    Check(JobRequest),
    /// The end of a pass. All requests so far must be complete before the next pass begins, or
    /// before written data is read back.
    PassEnd,
}

/// Kind of the next step, before a rate limit is applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextIssue {
    /// A request in this direction. The caller may ask a mixed job for the other direction.
    Direction(Direction),
    /// No request for data, and no rate limit applies.
    Other,
    /// A line of a replayed log, which is not issued before this time after the previous line.
    After(Dur),
    /// A line of a replayed log, which is not issued before this time after the start of all jobs.
    NotBefore(Dur),
}

/// Random numbers that belong to the job, not to one file.
struct Draws {
    mix: Rng,
    file: Rng,
}

/// The requests of one job.
pub struct JobStream {
    job: Job,
    seed: Seed,
    files: Vec<Cursor>,
    draws: Draws,
    draw: Draw,
    /// Number of requests issued since the statistics began, by direction.
    issues: [u64; 3],
    issued_bytes: [u64; 3],
    /// Number of bytes that were read back. fio counts them as issued when it decides whether
    /// another pass follows.
    checked_bytes: u64,
    loops_left: u64,
    number_limit: Option<u64>,
    mix: usize,
    mix_until: u64,
    last: Option<Direction>,
    last_was_sync: bool,
    /// Current file.
    current: Option<usize>,
    /// Number of requests left in the turn of the current file.
    turns_left: u32,
    next_file: usize,
    files_done: usize,
    /// Number of requests in this pass.
    in_pass: u64,
    state: PassState,
    written: Written,
    /// Number of writes that are still to be read back in this batch.
    backs_left: u64,
    /// Direction of the last request that completed.
    last_done: Option<Direction>,
    /// Number of lines of the replayed log that are done.
    replayed: usize,
    /// Number of files that are still to be synced at the end of the pass.
    end_syncs: usize,
    ready: Option<(usize, PendingIssue)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PassState {
    Before,
    Pass,
    /// The pass is over, but its last fsyncs may still follow.
    Ending,
    /// Written data is read back.
    Checking,
    Over,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PendingIssue {
    Data(Direction),
    Sync {
        data_only: bool,
    },
    /// A read of written data, in the middle of the pass.
    Back(JobRequest),
}

impl JobStream {
    /// Returns the requests of `job`; `seed` is the seed of the run.
    pub fn new(job: &Job, seed: Seed) -> JobStream {
        let o = &job.options;
        let seed = Seed(seed.0 ^ o.seed.unwrap_or(0).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let files = job
            .files
            .iter()
            .enumerate()
            .map(|(i, f)| Cursor::new(o, f, seed, job.number, i))
            .collect();
        JobStream {
            files,
            draws: Draws::new(seed, job.number),
            draw: Draw::new(seed, job.number),
            issues: [0; 3],
            issued_bytes: [0; 3],
            checked_bytes: 0,
            loops_left: o.loops,
            number_limit: o.number_ios,
            mix: 0,
            mix_until: 0,
            last: None,
            last_was_sync: false,
            current: None,
            turns_left: 0,
            next_file: 0,
            files_done: 0,
            in_pass: 0,
            state: if job.replay.is_some() { PassState::Pass } else { PassState::Before },
            written: Written::default(),
            backs_left: 0,
            last_done: None,
            replayed: 0,
            end_syncs: 0,
            ready: None,
            job: job.clone(),
            seed,
        }
    }

    /// Returns the job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Restarts the statistics at the end of `ramp_time`.
    ///
    /// From this point, fio counts writes for `fsync=N` anew.
    pub fn restart_counts(&mut self) {
        self.issues = [0; 3];
        self.mix_until = 0;
        self.last_was_sync = false;
    }

    /// Returns the kind of the next step, and draws the direction of a mixed job.
    pub fn wish(&mut self) -> NextIssue {
        if let Some(replay) = &self.job.replay {
            return match replay.steps.get(self.replayed) {
                Some((Turn::After(gap), _)) => NextIssue::After(*gap),
                Some((Turn::NotBefore(time), _)) => NextIssue::NotBefore(*time),
                None => NextIssue::Other,
            };
        }
        if self.state == PassState::Pass && self.ready.is_none() && !self.exceeded() {
            self.choose();
        }
        match self.ready {
            Some((_, PendingIssue::Data(direction))) => NextIssue::Direction(direction),
            _ => NextIssue::Other,
        }
    }

    /// Returns the next step as [`JobStream::next_step`] does, in `direction` if
    /// [`JobStream::wish`] returned a direction.
    pub fn next_towards(&mut self, direction: Direction) -> Option<JobStep> {
        if let Some((file, PendingIssue::Data(_))) = self.ready {
            if self.job.options.pattern.mixed() {
                self.mix = direction as usize;
            }
            self.ready = Some((file, PendingIssue::Data(direction)));
        }
        self.next_step()
    }

    /// Returns the next step, or `None` if the job has made all its requests.
    ///
    /// A job with `time_based` always has another pass.
    pub fn next_step(&mut self) -> Option<JobStep> {
        match self.state {
            PassState::Before => self.begin_pass(),
            PassState::Pass if self.job.replay.is_some() => Some(self.replay()),
            PassState::Pass => Some(self.in_pass()),
            PassState::Ending => Some(self.end_pass()),
            PassState::Checking => Some(self.check()),
            PassState::Over => None,
        }
    }

    fn begin_pass(&mut self) -> Option<JobStep> {
        if !self.keeps_running() {
            self.state = PassState::Over;
            return None;
        }
        if !self.job.options.time_based {
            self.loops_left = self.loops_left.saturating_sub(1);
        }
        self.rewind();
        self.draw.zone_bytes = 0;
        if self.job.options.pattern.trim_then_write() {
            // a trim and the write of its range count as two requests
            self.number_limit = self.number_limit.map(|n| n.saturating_mul(2));
        }
        self.state = PassState::Pass;
        self.in_pass = 0;
        Some(self.in_pass())
    }

    /// Returns `true` if a request or a sync may follow before the end of the pass.
    pub fn goes_on(&self) -> bool {
        match self.state {
            PassState::Before => self.keeps_running(),
            PassState::Pass => match &self.job.replay {
                Some(replay) => self.replayed < replay.steps.len(),
                None => self.ready.is_some() || !self.exceeded(),
            },
            PassState::Checking => !self.written.is_empty(),
            PassState::Ending | PassState::Over => false,
        }
    }

    /// Returns `true` if there is another pass.
    fn keeps_running(&self) -> bool {
        let o = &self.job.options;
        if o.time_based || self.loops_left > 0 {
            return true;
        }
        let done =
            self.issued_bytes.iter().fold(self.checked_bytes, |sum, n| sum.saturating_add(*n));
        let limit = self.job.io_size.unwrap_or(self.job.size);
        let rest = limit.saturating_sub(done);
        let files_done = self.files_done == self.files.len() && self.job.io_size.is_none();
        !self.numbers_exceeded() && rest > 0 && rest >= o.largest() && !files_done
    }

    fn numbers_exceeded(&self) -> bool {
        let requests: u64 = self.issues.iter().sum();
        self.number_limit.is_some_and(|n| requests >= n.saturating_mul(self.job.options.loops))
    }

    /// Returns `true` if all bytes or requests of all loops were issued.
    fn exceeded(&self) -> bool {
        let o = &self.job.options;
        let [read, write, trim] = self.issued_bytes;
        let bytes = match () {
            () if o.pattern.mixed() => read + write,
            () if o.pattern.write => write,
            () if o.pattern.read => read,
            () => trim,
        };
        let limit = self.job.io_size.unwrap_or(self.job.size).saturating_mul(o.loops);
        !o.time_based && (bytes >= limit || self.numbers_exceeded())
    }

    fn in_pass(&mut self) -> JobStep {
        if self.ready.is_none() && self.exceeded() {
            return self.pass_over();
        }
        // each iteration except the last finishes a file
        for _ in 0..=self.files.len() {
            if self.ready.is_none() {
                self.choose();
            }
            match self.ready.take() {
                None => break,
                Some((_, PendingIssue::Sync { data_only })) => {
                    self.last_was_sync = true;
                    return JobStep::Sync { data_only };
                }
                Some((_, PendingIssue::Back(read))) => {
                    self.checked_bytes = self.checked_bytes.saturating_add(read.bytes);
                    return JobStep::Request(read);
                }
                Some((file, PendingIssue::Data(direction))) => {
                    let o = &self.job.options;
                    if let Some((offset, bytes)) =
                        self.files[file].next(o, direction as usize, &mut self.draw)
                    {
                        return self.issue(JobRequest {
                            direction,
                            file: file as u32,
                            offset,
                            bytes,
                        });
                    }
                    self.finish_file(file);
                }
            }
        }
        self.pass_over()
    }

    fn issue(&mut self, request: JobRequest) -> JobStep {
        let dir = request.direction as usize;
        self.issues[dir] += 1;
        self.issued_bytes[dir] = self.issued_bytes[dir].saturating_add(request.bytes);
        self.last = Some(request.direction);
        self.last_was_sync = false;
        self.in_pass += 1;
        if request.direction == Direction::Write && self.job.options.reads_back() {
            self.written.add(self.job.keeps_map(), request);
            if self.job.options.verify_backlog > 0 {
                self.written.fly(request);
            }
        }
        JobStep::Request(request)
    }

    /// Marks a file as done for this pass.
    fn finish_file(&mut self, file: usize) {
        self.current = None;
        self.files[file].done = true;
        self.files_done += 1;
    }

    fn pass_over(&mut self) -> JobStep {
        self.state = PassState::Ending;
        let writes = self.job.writes();
        if self.job.options.end_fsync && writes && !self.last_was_sync {
            self.end_syncs = self.files.len();
        }
        self.end_pass()
    }

    fn end_pass(&mut self) -> JobStep {
        if self.end_syncs > 0 {
            self.end_syncs -= 1;
            return JobStep::EndSync;
        }
        if !self.written.is_empty() {
            self.state = PassState::Checking;
            return JobStep::PassEnd;
        }
        self.leave_pass()
    }

    fn check(&mut self) -> JobStep {
        let Some(read) = self.written.take() else { return self.leave_pass() };
        self.checked_bytes = self.checked_bytes.saturating_add(read.bytes);
        JobStep::Check(read)
    }

    fn leave_pass(&mut self) -> JobStep {
        // a job whose pass made no request ends, because it would repeat empty passes for ever; as
        // in fio, a job that replays a log has one pass
        let over = self.in_pass == 0 || self.job.replay.is_some();
        self.state = if over { PassState::Over } else { PassState::Before };
        JobStep::PassEnd
    }

    /// Begins the next pass at the start of the files.
    ///
    /// The pass draws the same random numbers again, unless `randrepeat=0` is given.
    fn rewind(&mut self) {
        self.last_was_sync = false;
        self.mix_until = 0;
        (self.current, self.turns_left) = (None, 0);
        if self.job.options.repeat {
            self.draws = Draws::new(self.seed, self.job.number);
            self.draw.repeat(self.seed, self.job.number);
        }
        self.files_done = 0;
        for cursor in &mut self.files {
            cursor.rewind();
        }
    }

    /// Chooses the file and the direction of the next request.
    fn choose(&mut self) {
        if let Some(read) = self.read_back() {
            self.ready = Some((0, PendingIssue::Back(read)));
            return;
        }
        let Some(file) = self.choose_file() else { return };
        let want = self.choose_direction(file);
        self.ready = Some((file, want));
    }

    fn choose_file(&mut self) -> Option<usize> {
        let count = self.files.len();
        if self.files_done == count {
            return None;
        }
        let service = self.job.options.service;
        if let Some(current) = self.current {
            match service {
                FileService::Sequential => return Some(current),
                _ if self.turns_left > 0 => {
                    self.turns_left -= 1;
                    return Some(current);
                }
                _ => {}
            }
        }
        let (file, turns) = match service {
            FileService::Random(turns) => {
                let drawn = self.draws.file.below(count as u64) as usize;
                // if the drawn file is done, take the next file that is not done
                ((0..count).map(|i| (drawn + i) % count).find(|&i| !self.files[i].done)?, turns)
            }
            FileService::RoundRobin(turns) => (self.next_open()?, turns),
            FileService::Sequential => (self.next_open()?, 1),
        };
        self.current = Some(file);
        self.turns_left = turns - 1;
        Some(file)
    }

    /// Returns the next file in turn that is not done, or `None` if all files are done.
    fn next_open(&mut self) -> Option<usize> {
        let count = self.files.len();
        let file =
            (0..count).map(|i| (self.next_file + i) % count).find(|&i| !self.files[i].done)?;
        self.next_file = (file + 1) % count;
        Some(file)
    }

    fn choose_direction(&mut self, file: usize) -> PendingIssue {
        let o = &self.job.options;
        if o.pattern.trim_then_write() {
            // fio 3.33 ignores `fsync` here
            let pair_done = self.files[file].pair_done();
            return PendingIssue::Data(if pair_done { Direction::Trim } else { Direction::Write });
        }
        let writes = self.issues[1];
        if !self.last_was_sync
            && o.pattern.write
            && self.last == Some(Direction::Write)
            && writes > 0
        {
            if o.fsync > 0 && writes % o.fsync == 0 {
                return PendingIssue::Sync { data_only: false };
            }
            if o.fdatasync > 0 && writes % o.fdatasync == 0 {
                return PendingIssue::Sync { data_only: true };
            }
        }
        if o.pattern.mixed() {
            return PendingIssue::Data(self.mixed_direction());
        }
        PendingIssue::Data(match () {
            () if o.pattern.read => Direction::Read,
            () if o.pattern.write => Direction::Write,
            () => Direction::Trim,
        })
    }

    /// Returns the direction by fio's rule for `rwmixread`.
    ///
    /// After a change, the new direction is kept until its share of the requests is reached.
    fn mixed_direction(&mut self) -> Direction {
        let read_percent = self.job.options.read_percent;
        if self.issues[self.mix] >= self.mix_until {
            let drawn = usize::from(self.draws.mix.below(100) >= u64::from(read_percent));
            if drawn != self.mix {
                let other = if self.mix == 0 { 100 - read_percent } else { read_percent };
                self.mix_until =
                    (u128::from(self.issues[self.mix]) * u128::from(other) / 100) as u64;
            }
            self.mix = drawn;
        }
        Direction::ALL[self.mix]
    }
}

impl Draws {
    fn new(seed: Seed, number: u32) -> Draws {
        Draws {
            mix: Rng::stream(seed, &format!("fio.{number}.mix")),
            file: Rng::stream(seed, &format!("fio.{number}.file")),
        }
    }
}
