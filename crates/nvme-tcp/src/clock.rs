//! The clock of the machine. It measures bounds of time.

use tokio::time::Instant;

/// Returns the time now.
#[allow(clippy::disallowed_methods, reason = "hosts that fall silent are cut off")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
