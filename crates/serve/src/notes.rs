//! The notes of served drives.

use flashatlas_types::{RANK_MIDDLE, notes};

notes! {
    /// Every served drive.
    pub(crate) SERVED_AT_ARRIVAL = "served-at-arrival", RANK_MIDDLE,
        "served: a request is decided when it arrives, in the order in which the drive's lock was \
         had; a client that waits for one before it sends the next is a depth of 1",
        "See docs/howto/serve-a-drive.md.";

    /// A served drive that takes no FLUSH.
    pub(crate) FLUSH_IGNORED = "flush-ignored", RANK_MIDDLE,
        "FLUSH and FUA were answered and not carried out (ignore_flush)",
        "This is for tests that have to lose data.";

    /// A served drive that takes no FUA.
    pub(crate) FUA_IGNORED = "fua-ignored", RANK_MIDDLE,
        "FUA was answered and not carried out (ignore_fua)",
        "This is for tests that have to lose data.";
}
