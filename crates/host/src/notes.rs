//! Notes about the parts that layers leave out or simplify.

use flashatlas_types::{RANK_MIDDLE, notes};

notes! {
    /// The layer `hard`.
    pub(crate) HARD_LOOKUPS = "hard-lookups", RANK_MIDDLE,
        "hard: the host's lookups take time only if the command sends nothing to the drive \
         (hard.lookup_time)",
        "Otherwise the time of the command in the drive hides the lookup.";

    /// The layer `hard`.
    pub(crate) HARD_PAGE_ENTRIES = "hard-page-entries", RANK_MIDDLE,
        "hard: every page has its own entry; the paper's mixed mapping, which has one entry for a \
         superpage that was written whole, is not implemented (mixed mapping saves host memory and \
         lookups; the paper does not state its cost)",
        "The host's memory is an upper bound of the memory in the paper.";

    /// The layer `hpb-host`.
    pub(crate) HPB_HOST_LOOKS = "hpb-host-looks", RANK_MIDDLE,
        "hpb-host: the host looks up its entries in no time, and checks its timers only when a \
         command comes",
        "A region whose timer has expired becomes inactive at the next command.";

    /// The layer `hpb-host` with reads of several pages.
    pub(crate) HPB_ONE_COMMAND = "hpb-one-command", RANK_MIDDLE,
        "hpb-host: a read of several pages takes the time of one command, but the format of \
         hpb.wire sends one command for each page",
        "Compare the bytes on the wire of such reads, not their latencies.";

    /// The layer `hpb-host` with `hpb.protect = plain`.
    pub(crate) HPB_PLAIN = "hpb-plain", RANK_MIDDLE,
        "hpb-host: with hpb.protect = plain, a host that forges entries can read the old content \
         of pages",
        "Set `hpb.protect` for hosts that are not trusted.";

    /// The layer `mirror`.
    pub(crate) MIRROR_FREE = "mirror-free", RANK_MIDDLE,
        "mirror: the host sends a command to all drives at the same time and at no cost; a command \
         that waits for another one waits on each drive only for the part on that drive",
        "The host's own time is not included in latencies.";

    /// The layer `mirror` whose drives may differ.
    pub(crate) MIRROR_UNSURE = "mirror-unsure", RANK_MIDDLE,
        "mirror: {units} units were read from the first drive only: the drives were switched off \
         and on, and may differ in these units until the units are copied in idle time \
         (mirror.resync) or written",
        "Leave the drives idle before the measurement, or write these units.";
}
