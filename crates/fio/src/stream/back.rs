//! Requests that do not come from the pattern: lines of a log, and reads of written data.

use super::{Direction, JobRequest, JobStep, JobStream};
use crate::replay::ReplayStep;

impl JobStream {
    /// Returns the next step of a replay.
    ///
    /// The step is a read of `verify_backlog`, if one is due, or the next line of the log. After
    /// the last line, the pass is over.
    pub(super) fn replay(&mut self) -> JobStep {
        if let Some(read) = self.read_back() {
            self.checked_bytes = self.checked_bytes.saturating_add(read.bytes);
            return JobStep::Request(read);
        }
        let replay = self.job.replay.as_ref().expect("the job has a log");
        let Some(&(_, step)) = replay.steps.get(self.replayed) else { return self.pass_over() };
        self.replayed += 1;
        match step {
            ReplayStep::Data { direction, file, offset, bytes } => {
                self.issue(JobRequest { direction, file, offset, bytes: bytes.into() })
            }
            ReplayStep::Sync { data_only } => {
                self.last_was_sync = true;
                JobStep::Sync { data_only }
            }
            ReplayStep::Pass => JobStep::Pass,
        }
    }

    /// Returns the next read of `verify_backlog`, if a read is due.
    ///
    /// Reads are due if the number of writes not yet read back is a multiple of `verify_backlog`,
    /// unless the last request that completed was a read (fio 3.33, `io_u.c`: `check_get_verify`).
    pub(super) fn read_back(&mut self) -> Option<JobRequest> {
        let o = &self.job.options;
        let waiting = self.written.len() as u64;
        if o.verify_backlog == 0 || waiting == 0 {
            return None;
        }
        if self.backs_left == 0 {
            if waiting % o.verify_backlog != 0 || self.last_done == Some(Direction::Read) {
                return None;
            }
            self.backs_left = if o.verify_batch == 0 { o.verify_backlog } else { o.verify_batch };
        }
        let read = self.written.take_landed()?;
        self.backs_left -= 1;
        Some(read)
    }

    /// Notes that a request of the job is complete.
    pub fn complete(&mut self, direction: Direction, file: u32, offset: u64) {
        self.last_done = Some(direction);
        if direction == Direction::Write {
            self.written.land(file, offset);
        }
    }
}
