//! Notes about the parts of a drive that schemes and map stores leave out or simplify.

use flashatlas_types::{RANK_MIDDLE, notes};

notes! {
    /// Changes of the map in memory are not charged.
    pub FREE_CHANGES = "map-changes-free", 91,
        "changes of the map in memory take no time; lookups for the host are charged",
        "Write latencies do not include the DRAM accesses of map changes.";

    /// The map exists only in memory.
    pub NO_MAP_ON_FLASH = "no-map-on-flash", RANK_MIDDLE,
        "no map is written to flash ({setting}): a mount reads every spare area, and trims are \
         undone by a mount",
        "Compare mounts and write amplification with a store that writes its map. Use another \
         `map.flush` or `map.store` if trimmed pages must stay trimmed.";

    /// Programs in several steps.
    pub(crate) PROGRAM_STEPS = "program-steps", RANK_MIDDLE,
        "a word line is programmed in {steps} steps and can be read after the last one; the order \
         of the steps is fixed, each transfers all pages, and a FLUSH follows ftl.flush = {flush}",
        "`scheme.steps_empty` counts word lines without data; `nand.programs` and the WAF count a \
         word line once, at its first step.";

    /// The store `leaftl`.
    pub LEAFTL_PLAIN_ENTRIES = "leaftl-plain-entries", RANK_MIDDLE,
        "leaftl: map pages on flash hold plain entries; segments are learned when a page is \
         loaded, in no time",
        "Map pages are read from flash as with DFTL. The memory size is that of LeaFTL.";

    /// The store `learnedftl`.
    pub LEARNEDFTL_FREE_TRAINING = "learnedftl-free-training", RANK_MIDDLE,
        "learnedftl: training takes no time; it needs the logical page numbers of open blocks, \
         which are not counted as memory",
        "A real controller needs this time and this memory.";

    /// The store `learnedftl`.
    pub LEARNEDFTL_SORTS_A_BLOCK = "learnedftl-sorts-a-block", RANK_MIDDLE,
        "learnedftl: collection sorts the pages of one block of a lane; in the paper, collection \
         sorts a group of map pages over all chips",
        "Models are right less often than in the paper; docs/VALIDATION.md has the numbers.";

    /// Log-block schemes.
    pub LOG_BLOCK_LOOKUPS = "log-block-lookups", RANK_MIDDLE,
        "log-block schemes: a lookup costs two accesses to SRAM in every kind of table; the scheme \
         knows at no cost which pages of a data block are written and valid; no map is written to \
         flash, so a mount reads every spare area",
        "See docs/adr/0011-log-block-schemes-keep-no-map-on-flash.md.";

    /// The scheme `superblock`.
    pub(crate) SUPERBLOCK_PAGE_MAPS = "superblock-page-maps", RANK_MIDDLE,
        "superblock: page maps are in spare areas; a lookup reads them in no time",
        "Read latencies are lower than on a drive without a cache of page maps.";

    /// The scheme `block`.
    pub(crate) BLOCK_VALID_PAGES = "block-valid-pages", RANK_MIDDLE,
        "block: the scheme knows at no cost which pages of a block are valid; a drive would read \
         spare areas or keep a bitmap",
        "The reported memory of the map does not include such a bitmap.";

    /// Classifiers use the history of a page.
    pub(crate) LAST_WRITE_KNOWN = "last-write-known", RANK_MIDDLE,
        "ftl.classifier: the time of a page's last host write is known at no cost; a drive would \
         write this time into the spare area and read it there, or keep a queue of pages that the \
         host writes",
        "The memory of that history is listed in `memory_bytes`.";

    /// `ftl.gc_mode = single` fills the reserved block.
    pub(crate) RESERVE_FILLED = "reserve-filled", RANK_MIDDLE,
        "ftl.gc_mode = single: the victim policy drew a block without an invalid page, as its \
         model does, and the pages of this block filled the one reserved block; after a power \
         failure at that time, the mount might have found no room",
        "This mode is for comparisons with theory. Use another `ftl.gc_mode` to simulate a drive.";

    /// Streams keep too many blocks open.
    pub(crate) STREAMS_CROWD = "streams-crowd", RANK_MIDDLE,
        "the open blocks of the streams are more than a quarter of a lane's spare blocks: streams \
         may cost more than they save here (ftl.streams)",
        "Use fewer `ftl.streams`, smaller blocks, or more spare blocks.";
}
