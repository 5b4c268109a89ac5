//! Counters of a scheme, and the sizes of its tables.

use flashatlas_nand::{Counters, Medium};
use flashatlas_types::{
    BlockId, BlockMode, Cause, LaneId, Layout, MemoryKind, Note, SeededBug, TiVec, beat,
};

/// The size of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// The name of the table.
    pub table: &'static str,
    /// The memory in which the drive stores the table.
    pub memory: MemoryKind,
    /// Bytes in the drive (not in the simulator).
    pub bytes: u64,
}

/// Counters of a map store's accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapCounters {
    /// The number of lookups for host requests.
    pub lookups: u64,
    /// The number of entries changed.
    pub updates: u64,
    /// The number of lookups answered from memory.
    pub hits: u64,
    /// The number of lookups that needed a map page from flash.
    pub misses: u64,
    /// The number of changes for the host that found their entry in memory.
    pub update_hits: u64,
    /// The number of changes for the host that did not find their entry in memory.
    pub update_misses: u64,
}

/// The work and the results of a mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountReport {
    /// The number of spare areas read, by lane.
    pub spare_reads: TiVec<LaneId, u64>,
    /// The number of map pages read whole.
    pub map_page_reads: u64,
    /// The number of map pages written.
    pub map_page_writes: u64,
    /// The number of frames programmed for data that was in two places.
    pub programs: u64,
    /// The number of blocks erased.
    pub erases: u64,
    /// The number of programmed blocks that the mount erased, because no page of them could be
    /// read.
    pub unreadable_blocks: u64,
    /// The number of programmed frames that the mount could not read. They were torn by power
    /// failures, or their data decayed. Older versions of their data may have come back.
    pub unreadable_frames: u64,
    /// The number of bytes loaded from NVM.
    pub nvm_bytes: u64,
    /// The number of entries that were newer in spare areas than in the surviving map. An entry
    /// counts twice if the mount found two newer versions of it, the older version first.
    pub rolled_forward: u64,
    /// The number of entries of the surviving map that point to a lost page. No spare area names
    /// the page of such an entry elsewhere.
    pub lost: u64,
    /// The number of map pages on flash that do not match their checksum.
    pub damaged_map_pages: u64,
    /// The number of NVM slots that do not match their checksums. They are damaged, or were being
    /// written when the power failed.
    pub damaged_nvm_slots: u64,
}

impl MountReport {
    /// Returns `true` if the mount found unreadable or damaged pages, or entries without a page.
    /// The power failure may have torn these pages, or durable data may be lost. A mount cannot
    /// distinguish the two cases.
    pub fn found_damage(&self) -> bool {
        let found =
            [self.unreadable_frames, self.unreadable_blocks, self.lost, self.damaged_map_pages];
        found.into_iter().any(|count| count > 0)
    }

    /// Returns an empty report for a drive with this layout.
    pub fn new(layout: &Layout) -> MountReport {
        MountReport { spare_reads: layout.per_lane(0), ..MountReport::default() }
    }

    /// Counts the frames that cannot be read, for mounts that read every spare area.
    pub fn count_unreadable(&mut self, medium: &Medium) {
        let good = medium.layout().block_ids().filter(|&b| !medium.is_bad(b));
        self.unreadable_frames = good.map(|b| u64::from(medium.unreadable_frames(b))).sum();
    }

    /// Counts spare areas of a block that were read.
    pub fn read_spare_areas(&mut self, layout: &Layout, block: BlockId, count: u32) {
        beat(count);
        self.spare_reads[layout.lane_of(block)] += u64::from(count);
    }

    /// Completes the report with the programs and erases of the mount itself. The medium's counters
    /// were `before` when the mount began.
    pub fn finish(&mut self, before: &Counters, medium: &Medium) {
        let (layout, own) = (medium.layout(), Cause::Recovery as usize);
        let done = |table: fn(&Counters) -> &[u64; Cause::ALL.len()], per_frame: u32| {
            (table(&medium.counters)[own] - table(before)[own]) / u64::from(per_frame)
        };
        self.programs = done(|c| &c.programs, layout.data_pages_in(BlockMode::Native));
        self.erases = done(|c| &c.erases, layout.pages_per_frame);
        if SeededBug::HideDamage.is_active() {
            (self.unreadable_frames, self.lost) = (0, 0);
        }
    }
}

/// The maximum work of a mount (promise R4), in units of the FTL: frames and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountLimit {
    /// The number of spare areas read, as [`MountReport::spare_reads`] counts them.
    pub spare_reads: u64,
    /// The number of frames read whole.
    pub reads: u64,
    /// The number of frames programmed.
    pub programs: u64,
    /// The number of blocks erased.
    pub erases: u64,
}

impl MountLimit {
    /// Returns the limit for schemes whose mounts finish merges that a power cut interrupted. A
    /// logical block has `pages` pages.
    ///
    /// Each logical block is merged at most once, because afterwards all its pages are in one
    /// block. Each block is erased at most once, and each merge causes one more erase.
    pub fn of_merges(layout: &Layout, pages: u32) -> MountLimit {
        let (blocks, frames) = (u64::from(layout.blocks()), u64::from(layout.frames_per_block));
        let merges = u64::from(layout.logical_units.div_ceil(pages)).min(blocks);
        // in each lane, one block in which programs fail may be replaced
        let lanes = u64::from(layout.lanes);
        MountLimit {
            spare_reads: blocks * (frames + 2),
            reads: (merges + lanes) * frames,
            // the last page of each block marks it as complete
            programs: (merges + lanes) * (frames + 1),
            erases: blocks + merges,
        }
    }
}

/// The reason why a map page is written. The run record counts each reason separately.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// A page leaves the cache and makes room.
    Evict,
    /// A FLUSH.
    Flush,
    /// Collection of data moved pages.
    Moved,
    /// An entry was trimmed. The trim must survive a FLUSH, and the erase of the page's block.
    Trim,
    /// Idle time.
    Idle,
    /// A mount found newer entries in spare areas.
    Mount,
    /// The page is a directory page, written after the map pages of a FLUSH.
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

    /// Returns the name of the reason in the run record.
    pub const fn name(self) -> &'static str {
        ["evict", "flush", "moved", "trim", "idle", "mount", "directory"][self as usize]
    }
}

/// The number of map pages read and written. Copies by collection are counted separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounters {
    /// The number of map pages read to look up entries.
    pub loads: u64,
    /// The number of map pages read because only a part of a page was in memory when its changes
    /// had to be written.
    pub merges: u64,
    /// The number of map pages read to export their entries to the host.
    pub exported_pages: u64,
    /// The number of map pages written, by [`Reason`].
    pub writes: [u64; Reason::ALL.len()],
    /// The number of map pages copied by the collection of map blocks.
    pub copies: u64,
}

/// The kind of a merge of a data block, or of the reclamation of a log block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MergeClass {
    /// The log block has the whole logical block in order, and every page is the newest version.
    /// The log block becomes the data block.
    Switch,
    /// The log block has the newest versions of some pages at their offsets. The other pages are
    /// copied into the log block, which then becomes the data block.
    Partial,
    /// The newest versions are copied to a new block.
    Full,
    /// No page of the log block was valid, so it is erased. No data block is merged.
    Dead,
    /// The valid pages were copied to another log block. No data block is merged.
    Moved,
}

impl MergeClass {
    /// All classes, in the order of their numbers. The first three merge data blocks.
    pub const ALL: [MergeClass; 5] = [
        MergeClass::Switch,
        MergeClass::Partial,
        MergeClass::Full,
        MergeClass::Dead,
        MergeClass::Moved,
    ];

    /// Returns the name of the class in the run record.
    pub const fn name(self) -> &'static str {
        ["switch", "partial", "full", "dead", "moved"][self.index()]
    }

    /// Returns the index of the class in [`MergeClass::ALL`].
    const fn index(self) -> usize {
        self as usize
    }
}

/// Counters of merges in log-block and block-mapped schemes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeCounters {
    /// The number of data blocks brought up to date, for each [`MergeClass`].
    pub data_blocks: [u64; 3],
    /// The number of log blocks reclaimed, for each [`MergeClass`]; `None` for schemes without log
    /// blocks.
    pub log_blocks: Option<[u64; 5]>,
    /// The number of log blocks for sequential writes that needed full merges.
    pub sequential_full: u64,
    /// The number of pages copied into data blocks.
    pub copies: u64,
    /// The number of pages copied from log block to log block.
    pub moved_pages: u64,
    /// The number of log blocks that moved to another area without a copy.
    pub migrated_blocks: u64,
    /// The number of logical blocks with a valid page in a log block when its reclamation began,
    /// summed over all reclaimed log blocks.
    pub associated: u64,
    /// The largest number of such logical blocks for one log block.
    pub associated_max: u64,
    /// The number of host pages that were written in place, that is, into their data block.
    pub in_place: u64,
    /// The number of times that the order of programs ruled out the scheme's choice. A page then
    /// went to the log instead of its place, or a full merge replaced a partial merge.
    pub order_detours: u64,
}

impl MergeCounters {
    /// Counts a data block that was merged.
    pub fn merged(&mut self, class: MergeClass) {
        self.data_blocks[class.index()] += 1;
    }

    /// Counts a log block that was reclaimed.
    pub fn reclaimed(&mut self, class: MergeClass) {
        self.log_blocks.get_or_insert_default()[class.index()] += 1;
    }
}

/// One area of the log: blocks that store pages of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AreaUse {
    /// Name of the area.
    pub name: &'static str,
    /// The number of log blocks that the area may have.
    pub budget: u32,
    /// The number of log blocks that the area has.
    pub blocks: u32,
    /// The number of pages of its log blocks.
    pub pages: u64,
    /// The number of pages of its log blocks that are valid.
    pub valid: u64,
}

/// Counters of a scheme since the last reset, and its tables.
#[derive(Clone, Debug, Default)]
pub struct FtlReport {
    /// `true` if trims are lost at a mount. A trimmed page may then have any version that it ever
    /// had.
    pub forgets_trims: bool,
    /// `true` if mounts read no map entries from the spare areas of data. If a map page is lost, an
    /// older version replaces it, and the loss is reported.
    pub trusts_its_map: bool,
    /// Counters of map accesses.
    pub map: MapCounters,
    /// Counters of map pages read and written.
    pub map_pages: PageCounters,
    /// Additional counters of the map store, by name.
    pub map_details: Vec<(&'static str, u64)>,
    /// Additional counters of the scheme, by name.
    pub scheme_details: Vec<(&'static str, u64)>,
    /// The report of the last mount.
    pub mount: MountReport,
    /// Counters of merges; `None` for schemes without merges.
    pub merges: Option<MergeCounters>,
    /// Areas of the log; empty for schemes without a log.
    pub areas: Vec<AreaUse>,
    /// The number of blocks collected in the foreground, in idle time, and for wear.
    pub collected: [u64; 3],
    /// The number of valid units found in collected blocks.
    pub collected_valid_units: u64,
    /// The number of erased blocks that are ready for use now.
    pub free_blocks: u64,
    /// The number of lookups answered from the page buffer.
    pub buffer_hits: u64,
    /// The number of blocks that went bad during the run.
    pub retired_blocks: u64,
    /// Blocks that were written again because of their age, and because of their reads.
    pub refreshed: [u64; 2],
    /// Tables of the scheme.
    pub memory: Vec<MemoryUse>,
    /// Notes about the parts of a drive that the scheme leaves out or simplifies.
    pub approximations: Vec<Note>,
}
