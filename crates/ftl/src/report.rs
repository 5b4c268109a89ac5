//! What a scheme counted, and what its tables occupy.

use flashatlas_nand::{Counters, Medium};
use flashatlas_types::{BlockId, Cause, Layout, MemoryKind, Note, SeededBug, beat};

/// Size of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// What the table is.
    pub table: &'static str,
    /// Where it is in the drive.
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
    /// Changes for the host whose entry was in memory.
    pub update_hits: u64,
    /// Changes for the host whose entry was not.
    pub update_misses: u64,
}

/// What a mount did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountReport {
    /// Spare areas read, by lane.
    pub spare_reads: Vec<u64>,
    /// Map pages read whole.
    pub map_page_reads: u64,
    /// Map pages written.
    pub map_page_writes: u64,
    /// Frames programmed for data that stood in two places.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Blocks that were not erased and of which no page can be read: erased.
    pub unreadable_blocks: u64,
    /// Frames that were programmed and cannot be read, of those that were looked at: torn by power
    /// failures, or decayed. Of what stood there an older version may have come back.
    pub unreadable_frames: u64,
    /// Bytes loaded from NVM.
    pub nvm_bytes: u64,
    /// Entries that were newer in spare areas than in the map that survived; those of which two
    /// newer versions were met, the older one first, count twice.
    pub rolled_forward: u64,
    /// Entries of the map that survived whose page is gone, and that no spare area names elsewhere.
    pub lost: u64,
    /// Map pages on flash that do not match their checksum.
    pub damaged_map_pages: u64,
    /// Slots of NVM that do not match their checksums: damaged, or being written when the power
    /// failed.
    pub damaged_nvm_slots: u64,
}

impl MountReport {
    /// Whether pages were found that could not be read, or entries that lead nowhere: torn by the
    /// power failure, or lost with what had been durable; a mount cannot tell.
    pub fn found_damage(&self) -> bool {
        let found =
            [self.unreadable_frames, self.unreadable_blocks, self.lost, self.damaged_map_pages];
        found.into_iter().any(|count| count > 0)
    }

    /// Nothing was read yet on a drive of this layout.
    pub fn new(layout: &Layout) -> MountReport {
        MountReport { spare_reads: vec![0; layout.lanes as usize], ..MountReport::default() }
    }

    /// For mounts that read every spare area: what of them cannot be read.
    pub fn count_unreadable(&mut self, medium: &Medium) {
        let good = (0..medium.layout().blocks()).map(BlockId).filter(|&b| !medium.is_bad(b));
        self.unreadable_frames = good.map(|b| u64::from(medium.unreadable_frames(b))).sum();
    }

    /// Spare areas of a block were read.
    pub fn read_spare_areas(&mut self, layout: &Layout, block: BlockId, count: u32) {
        beat(count);
        self.spare_reads[layout.lane_of(block).0 as usize] += u64::from(count);
    }

    /// The mount is over: what it programmed and erased by itself since the counters were `before`.
    pub fn finish(&mut self, before: &Counters, medium: &Medium) {
        let per_frame = u64::from(medium.layout().pages_per_frame);
        let done = |table: fn(&Counters) -> &[u64; Cause::ALL.len()]| {
            (table(&medium.counters)[Cause::Recovery as usize]
                - table(before)[Cause::Recovery as usize])
                / per_frame
        };
        (self.programs, self.erases) = (done(|c| &c.programs), done(|c| &c.erases));
        if SeededBug::HideDamage.is_active() {
            (self.unreadable_frames, self.lost) = (0, 0);
        }
    }
}

/// What a mount takes at most (promise R4), in units of the FTL: frames and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountLimit {
    /// Spare areas read, as [`MountReport::spare_reads`] counts them.
    pub spare_reads: u64,
    /// Frames read whole.
    pub reads: u64,
    /// Frames programmed.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
}

impl MountLimit {
    /// For schemes whose mounts end merges that were cut, of logical blocks of `pages`: each of
    /// these is merged once at most, for after that nothing of it is elsewhere; and what is
    /// left of any block is erased once.
    pub fn of_merges(layout: &Layout, pages: u32) -> MountLimit {
        let (blocks, frames) = (u64::from(layout.blocks()), u64::from(layout.frames_per_block));
        let merges = u64::from(layout.logical_units.div_ceil(pages)).min(blocks);
        // a block in which programs fail may be replaced in each lane
        let lanes = u64::from(layout.lanes);
        MountLimit {
            spare_reads: blocks * (frames + 2),
            reads: (merges + lanes) * frames,
            // the last page of each block seals it
            programs: (merges + lanes) * (frames + 1),
            erases: blocks + merges,
        }
    }
}

/// Why a map page is written; the run record tells them apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Its place in the cache is needed.
    Evict,
    /// A FLUSH.
    Flush,
    /// Pages were moved by the collection of data.
    Moved,
    /// An entry was trimmed, and a FLUSH or the erase of its block must not forget it.
    Trim,
    /// Idle time.
    Idle,
    /// A mount found newer entries in spare areas.
    Mount,
    /// Pages of the directory, after the map pages of a FLUSH.
    Directory,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Reason; 7] = [
        Reason::Evict,
        Reason::Flush,
        Reason::Moved,
        Reason::Trim,
        Reason::Idle,
        Reason::Mount,
        Reason::Directory,
    ];

    /// The name in the run record.
    pub const fn name(self) -> &'static str {
        ["evict", "flush", "moved", "trim", "idle", "mount", "directory"][self as usize]
    }
}

/// Map pages read and written, but for copies of collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounters {
    /// Map pages read to look entries up.
    pub loads: u64,
    /// Map pages read because a change to a part of them had to be merged in before they were
    /// written.
    pub merges: u64,
    /// Map pages read because the host asked for their entries.
    pub exported_pages: u64,
    /// Map pages written, by [`Reason`].
    pub writes: [u64; Reason::ALL.len()],
    /// Map pages copied by the collection of map blocks.
    pub copies: u64,
}

/// How a merge brings a data block up to date, or what became of a log block that was reclaimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MergeClass {
    /// The log block holds the whole logical block in order, all of it newest: it becomes the data
    /// block.
    Switch,
    /// The log block holds the newest versions of some pages at their offsets: the others are
    /// copied in, and it becomes the data block.
    Partial,
    /// The newest versions are copied to a new block.
    Full,
    /// No page of the log block was valid: it is erased. No data block is merged.
    Dead,
    /// The valid pages were copied to another log block. No data block is merged.
    Moved,
}

impl MergeClass {
    /// All classes, in the order of their numbers (`class as usize`); the first three merge data
    /// blocks.
    pub const ALL: [MergeClass; 5] = [
        MergeClass::Switch,
        MergeClass::Partial,
        MergeClass::Full,
        MergeClass::Dead,
        MergeClass::Moved,
    ];

    /// The name in the run record.
    pub const fn name(self) -> &'static str {
        ["switch", "partial", "full", "dead", "moved"][self as usize]
    }
}

/// Merges, as log-block and block-mapped schemes count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeCounters {
    /// Data blocks brought up to date, by [`MergeClass`].
    pub data_blocks: [u64; 3],
    /// Log blocks reclaimed, by [`MergeClass`]; `None` for schemes without log blocks.
    pub log_blocks: Option<[u64; 5]>,
    /// Of the log blocks that took full merges, those that were opened for sequential writes.
    pub sequential_full: u64,
    /// Pages copied into data blocks.
    pub copies: u64,
    /// Pages copied from log block to log block.
    pub moved_pages: u64,
    /// Log blocks that went to another area as they were, without a copy.
    pub migrated_blocks: u64,
    /// Logical blocks with a valid page in a log block when its reclamation began, summed over
    /// reclaimed log blocks.
    pub associated: u64,
    /// The largest of those.
    pub associated_max: u64,
    /// Host pages that were written in place, into their data block.
    pub in_place: u64,
    /// Times that the order of programs forbade what the scheme would have done: a page went to the
    /// log instead of its place, or a full merge was made of a partial one.
    pub order_detours: u64,
}

impl MergeCounters {
    /// A data block was merged.
    pub fn merged(&mut self, class: MergeClass) {
        self.data_blocks[class as usize] += 1;
    }

    /// A log block was reclaimed.
    pub fn reclaimed(&mut self, class: MergeClass) {
        self.log_blocks.get_or_insert_default()[class as usize] += 1;
    }
}

/// One area of the log: blocks that take pages of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AreaUse {
    /// Its name.
    pub name: &'static str,
    /// Log blocks that it may have.
    pub budget: u32,
    /// Log blocks that it has.
    pub blocks: u32,
    /// Pages of them.
    pub pages: u64,
    /// Pages of them that are valid.
    pub valid: u64,
}

/// Counters since the last reset, and tables.
#[derive(Clone, Debug, Default)]
pub struct FtlReport {
    /// Whether trims do not outlive a mount: after one, a trimmed page may hold any version that it
    /// ever had.
    pub forgets_trims: bool,
    /// Whether mounts take nothing of the map from the spare areas of data: where a page of the map
    /// is lost, an older one takes its place, and is reported.
    pub trusts_its_map: bool,
    /// Map accesses.
    pub map: MapCounters,
    /// Map pages on flash, read and written.
    pub map_pages: PageCounters,
    /// Further counters of the map store, by name.
    pub map_details: Vec<(&'static str, u64)>,
    /// Further counters of the scheme, by name.
    pub scheme_details: Vec<(&'static str, u64)>,
    /// The last mount.
    pub mount: MountReport,
    /// Merges; `None` for schemes that have none.
    pub merges: Option<MergeCounters>,
    /// Areas of the log, for schemes that have one.
    pub areas: Vec<AreaUse>,
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
    /// Notes on what the scheme leaves out or simplifies.
    pub approximations: Vec<Note>,
}
