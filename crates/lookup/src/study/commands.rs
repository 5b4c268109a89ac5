//! The commands that a study issued to its DRAM. Other programs can check these commands.

use flashatlas_dram::queue::ServedBurst;
use flashatlas_dram::{Command, Dram, Queue, Served, Transitions};
use flashatlas_types::DramAccess;

/// Commands so far, if they are recorded.
#[derive(Default)]
pub(super) struct CommandLog(Option<Vec<Command>>);

impl CommandLog {
    pub fn keep(&mut self) {
        self.0.get_or_insert_default();
    }

    /// Returns the number of commands.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, Vec::len)
    }

    /// Serves accesses as [`Dram::serve_all`] does. If commands are not recorded, the table of
    /// transitions is used, which gives times without commands.
    #[inline]
    pub fn serve_all(
        &mut self,
        dram: &mut Transitions,
        accesses: &[DramAccess],
        from: i64,
    ) -> Served {
        match &mut self.0 {
            None => dram.serve_all(accesses, from),
            Some(commands) => dram.dram().serve_all(accesses, from, &mut |c| commands.push(c)),
        }
    }

    /// Serves one burst as [`Queue::serve_one`] does.
    #[inline]
    pub fn serve_one(&mut self, queue: &mut Queue, dram: &mut Dram) -> Option<ServedBurst> {
        match &mut self.0 {
            None => queue.serve_one(dram, &mut |_| {}),
            Some(commands) => queue.serve_one(dram, &mut |c| commands.push(c)),
        }
    }

    /// Returns all commands, in the order of their clocks.
    ///
    /// The order in which the engine issues commands is not always their order on the bus, because
    /// it opens a row while earlier reads are not finished.
    pub fn in_order(self) -> Vec<Command> {
        let mut commands = self.0.unwrap_or_default();
        commands.sort_by_key(|command| command.at);
        commands
    }
}
