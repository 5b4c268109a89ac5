//! A whole study: every request, in batches.

use super::{LookupRequest, Study, StudyError};

/// Number of requests that are handed to the engine together.
const BATCH: usize = 4096;

/// Maximum number of commands that are kept: 4 GB of them, sorted.
const MOST_COMMANDS: usize = 100_000_000;

impl Study {
    /// Serves all requests of a study, and checks the tables at the end. `progress` is called with
    /// the number of requests that are done, and stops the study by returning `false`.
    ///
    /// # Errors
    /// Returns an error if there is no request, if the tables or the memory for commands are too
    /// small, if `progress` stopped the study, and if a rule of the tables does not hold.
    pub fn run(
        &mut self,
        asks: &[LookupRequest],
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), StudyError> {
        if asks.is_empty() {
            return Err(StudyError::NoRequests);
        }
        self.expect(asks.len() as u64);
        for (i, batch) in asks.chunks(BATCH).enumerate() {
            self.ask_all(batch).map_err(StudyError::Tables)?;
            if self.commands_kept() > MOST_COMMANDS {
                return Err(StudyError::ManyCommands { most: MOST_COMMANDS });
            }
            let done = ((i + 1) * BATCH).min(asks.len());
            if !progress(done as u64) {
                return Err(StudyError::Interrupted);
            }
        }
        self.tables().check().map_err(StudyError::Broken)
    }
}
