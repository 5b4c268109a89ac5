//! The notes of parts from shared libraries.

use flashatlas_types::{RANK_MIDDLE, notes};

notes! {
    /// Map stores of plug-ins.
    pub(crate) PLUGIN_MAP_IN_MEMORY = "plugin-map-in-memory", RANK_MIDDLE,
        "the plug-in's map is in memory alone: a mount reads every spare area, and trims come back",
        "Write a firmware (`fa_firmware`) where the map has to be on flash.";

    /// Firmware of plug-ins.
    pub(crate) PLUGIN_FREE_COMPUTATION = "plugin-free-computation", RANK_MIDDLE,
        "firmware of a plug-in: what it computes takes no time; what it reads, programs, erases \
         and declares as accesses to memory does",
        "Declare the accesses to tables, so that lookups take time.";

    /// Firmware of plug-ins.
    pub(crate) PLUGIN_LOOKUPS_AFTER_MOUNT = "plugin-lookups-after-mount", RANK_MIDDLE,
        "firmware of a plug-in: after a mount every page is looked up once at no cost, which may \
         warm its caches",
        "Use `--warmup` where a cold cache is to be measured.";
}
