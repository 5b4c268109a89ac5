//! Notes in the records of runs with parts from shared libraries.

use flashatlas_types::{RANK_MIDDLE, notes};

notes! {
    /// Note for map stores of plug-ins.
    pub(crate) PLUGIN_MAP_IN_MEMORY = "plugin-map-in-memory", RANK_MIDDLE,
        "the plug-in's map is only in memory: a mount reads every spare area and undoes trims",
        "Write a whole FTL (`fa_ftl`) if the map must be on flash.";

    /// Firmware of plug-ins.
    pub(crate) PLUGIN_FREE_COMPUTATION = "plugin-free-computation", RANK_MIDDLE,
        "firmware of a plug-in: computation takes no time; reads, programs, erases and declared \
         accesses to memory take time",
        "Declare the accesses to tables, so that lookups take time.";

    /// Firmware of plug-ins.
    pub(crate) PLUGIN_LOOKUPS_AFTER_MOUNT = "plugin-lookups-after-mount", RANK_MIDDLE,
        "firmware of a plug-in: after a mount every page is looked up once at no cost, which may \
         warm its caches",
        "Use `--warmup`, so that the workload decides what the caches hold.";
}
