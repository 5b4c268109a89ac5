//! Commands in flight.

use flashatlas_types::{HostOp, Ps};

/// A command that was handed to the drive.
#[derive(Clone, Copy)]
pub(super) struct Flight {
    pub op: HostOp,
    pub bytes: u64,
    /// Time at which the request reached the host.
    pub arrived: Ps,
    /// Time at which the drive accepted the command.
    pub submitted: Ps,
    /// `true` if the command belongs to the measured part.
    pub measured: bool,
    pub complete: bool,
}

/// Commands in flight, by their tags.
#[derive(Default)]
pub(super) struct Flights {
    of_tag: Vec<Flight>,
    /// Tags that no command uses.
    vacant: Vec<u32>,
    /// Number of commands that the drive has accepted and not completed.
    pub count: usize,
    /// Completion time of the last command.
    pub last_done: Ps,
}

impl Flights {
    /// Gives a command a tag, before the command is handed to the drive.
    pub fn tag(&mut self, flight: Flight) -> u32 {
        let tag = match self.vacant.pop() {
            Some(tag) => tag,
            None => {
                self.of_tag.push(flight);
                (self.of_tag.len() - 1) as u32
            }
        };
        self.of_tag[tag as usize] = flight;
        tag
    }

    /// Counts a command that the drive has accepted and will complete later.
    pub fn taken(&mut self) {
        self.count += 1;
    }

    /// Frees the tag of a command that the drive has completed in no simulated time.
    pub fn completed_at_once(&mut self, tag: u32) {
        self.vacant.push(tag);
    }

    /// Completes a command that was in flight, and frees its tag.
    pub fn complete(&mut self, tag: u32, at: Ps) -> Flight {
        let flight = &mut self.of_tag[tag as usize];
        flight.complete = true;
        self.vacant.push(tag);
        self.count -= 1;
        self.last_done = at;
        *flight
    }

    /// Marks the commands in flight as not belonging to the measured part.
    pub fn forget_measured(&mut self) {
        self.of_tag.iter_mut().for_each(|flight| flight.measured = false);
    }

    /// Returns the time at which the oldest command in flight was submitted.
    pub fn oldest(&self) -> Option<Ps> {
        self.of_tag.iter().filter(|f| !f.complete).map(|f| f.submitted).min()
    }
}
