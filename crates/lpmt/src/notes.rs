//! Notes about the parts of a drive that the store leaves out or simplifies.

use flashatlas_types::{RANK_MIDDLE, notes};

notes! {
    /// Data buffers also use the DRAM of a real drive.
    pub(crate) DRAM_FOR_MAP_ALONE = "dram-for-map-alone", RANK_MIDDLE,
        "the DRAM serves only the map: data buffers do not compete for its banks, and comparing \
         entries takes no time",
        "Lookups are as fast as this DRAM allows at best.";

    /// A refresh does not change the order in which a lookup visits banks.
    pub(crate) BANKS_BY_SUBMISSION = "banks-by-submission", RANK_MIDDLE,
        "the order in which a lookup visits banks is chosen at submission; refreshes do not \
         change it",
        "See docs/adr/0016-the-recurrence-is-the-lookup-engine.md.";
}
