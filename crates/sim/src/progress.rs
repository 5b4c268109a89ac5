//! Progress of a run, as it is reported to the caller.

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Phase of the run: `precondition`, `scan`, `settle` (passes before the measured pass), `run`
    /// or `check`.
    pub phase: &'static str,
    /// Number of requests so far.
    pub requests: u64,
    /// Share of the phase that is done, from 0 to 1, if it is known.
    pub share: Option<f64>,
}

/// Number of requests between two calls of the progress function.
pub(crate) const PROGRESS_EVERY: u64 = 8192;
