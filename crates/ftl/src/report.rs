//! What a scheme counted, and what its tables occupy.

use flashatlas_types::MemoryKind;

/// Size of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// What the table is.
    pub table: &'static str,
    /// Where it stands in the drive.
    pub memory: MemoryKind,
    /// Bytes in the drive (not in the simulator).
    pub bytes: u64,
}

/// Work of a map store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapCounters {
    /// Lookups for host requests.
    pub lookups: u64,
    /// Entries changed.
    pub updates: u64,
    /// Lookups answered from memory.
    pub hits: u64,
    /// Lookups that needed a map page from flash.
    pub misses: u64,
}

/// Merges, as log-block and block-mapped schemes count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeCounters {
    /// Data blocks rewritten into a new block.
    pub full: u64,
    /// Pages copied by merges.
    pub copies: u64,
}

/// Counters since the last reset, and tables.
#[derive(Clone, Debug, Default)]
pub struct FtlReport {
    /// Map accesses.
    pub map: MapCounters,
    /// Merges; `None` for schemes that have none.
    pub merges: Option<MergeCounters>,
    /// Blocks collected in the foreground, in idle time, and for wear.
    pub collected: [u64; 3],
    /// Valid units found in collected blocks.
    pub collected_valid_units: u64,
    /// Erased blocks that are ready for use now.
    pub free_blocks: u64,
    /// Lookups answered from the page buffer.
    pub buffer_hits: u64,
    /// Blocks that went bad during the run.
    pub retired_blocks: u64,
    /// Tables of the scheme.
    pub memory: Vec<MemoryUse>,
    /// What the scheme approximates, in words.
    pub approximations: Vec<&'static str>,
}
