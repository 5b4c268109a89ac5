//! Notes of layers: what the layers leave out or simplify.

use flashatlas_types::{RANK_MIDDLE, notes};

notes! {
    /// The layer `hard`.
    pub(crate) HARD_LOOKUPS = "hard-lookups", RANK_MIDDLE,
        "hard: the host's lookups take time only if a command asks nothing of the drive \
         (hard.lookup_time)",
        "A lookup beside a command of the drive is hidden behind it.";

    /// The layer `hard`.
    pub(crate) HARD_PAGE_ENTRIES = "hard-page-entries", RANK_MIDDLE,
        "hard: every page has an entry of its own; the paper's mixed mapping, with one entry for \
         a superpage that was written whole, is not built (it saves host memory and lookups; its \
         cost is not stated)",
        "The host's memory here is an upper bound of the paper's.";

    /// The layer `hpb-host`.
    pub(crate) HPB_HOST_LOOKS = "hpb-host-looks", RANK_MIDDLE,
        "hpb-host: the host's look at its entries takes no time; its clocks are looked at when a \
         command comes",
        "A region becomes inactive at the next command, not on its own.";

    /// The layer `hpb-host` with reads of several pages.
    pub(crate) HPB_ONE_COMMAND = "hpb-one-command", RANK_MIDDLE,
        "hpb-host: a read of several pages takes the time of one command, and in the format of \
         hpb.wire one command for each page",
        "Compare bytes on the wire, not latencies, of such reads.";

    /// The layer `hpb-host` with `hpb.protect = plain`.
    pub(crate) HPB_PLAIN = "hpb-plain", RANK_MIDDLE,
        "hpb-host: with hpb.protect = plain a host that forges entries may read what a page held \
         before",
        "Set `hpb.protect` for hosts that are not trusted.";

    /// The layer `mirror`.
    pub(crate) MIRROR_FREE = "mirror-free", RANK_MIDDLE,
        "mirror: the host sends to all drives at once and at no cost; a command that waits for \
         another waits for its part on the same drive",
        "The host's own time is not part of a latency.";

    /// The layer `mirror` whose drives may differ.
    pub(crate) MIRROR_UNSURE = "mirror-unsure", RANK_MIDDLE,
        "mirror: {units} units were read from the first drive alone: the drives were switched off \
         and on, and may differ there until idle time has copied them (mirror.resync) or they are \
         written",
        "Leave the drives idle before the measurement, or write those units.";
}
