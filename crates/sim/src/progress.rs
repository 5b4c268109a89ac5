//! Progress of a run, as its caller is told.

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// `precondition`, `scan`, `settle` (passes before the measured one), `run` or `check`.
    pub phase: &'static str,
    /// Requests so far.
    pub requests: u64,
    /// Share done, 0 to 1, if it is known.
    pub share: Option<f64>,
}

/// Requests between two calls of the progress function.
pub(crate) const PROGRESS_EVERY: u64 = 8192;
