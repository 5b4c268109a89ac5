//! The shape of a drive: the parts on the board, and the lanes, blocks and frames into which the
//! FTL groups them.
//!
//! One mechanism serves mapping units of every size. One program operation of the FTL writes a
//! *frame*. A frame is one page, the same page of several planes, or a superpage of pages on
//! several dies. A frame consists of *slots*, and each slot stores one mapping unit:
//!
//! | mapping unit | frame | slots |
//! |---|---|---|
//! | smaller than a page (4 KiB units, 16 KiB page) | one page, or one on each of several planes | 4, or 4 a plane |
//! | a page | one page | 1 |
//! | larger (a 16 KiB superpage of four 4 KiB pages) | four pages on four dies | 1 |

use crate::page_order::PageTable;
use crate::{
    AllocationOrder, BlockId, Cell, ConfigError, Divisor, FrameId, LaneId, PageOrder, Ppn,
    ProgramUnit,
};

/// The parts on the board. Every count is at least 1. Each level is counted within one part of the
/// level above: ways in a channel, dies in a way, and so on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Channels (buses) of the drive.
    pub channels: u32,
    /// Packages (chip enables) on a channel.
    pub ways: u32,
    /// Dies in a package.
    pub dies: u32,
    /// Planes in a die.
    pub planes: u32,
    /// Erase blocks in a plane.
    pub blocks: u32,
    /// Pages in an erase block.
    pub pages: u32,
    /// Data bytes of a page.
    pub page_bytes: u32,
    /// Spare bytes of a page. They store the OOB record.
    pub spare_bytes: u32,
    /// Bits in a cell.
    pub cell: Cell,
}

impl Geometry {
    /// Returns the number of dies of the whole drive.
    pub const fn die_count(&self) -> u32 {
        self.channels * self.ways * self.dies
    }

    /// Returns the kind of a page in the consecutive order: 0 lower, 1 upper (MLC) or middle, 2
    /// upper, 3 top (QLC). [`Layout::level_in`] returns it in the order of the drive.
    #[inline]
    pub const fn level(&self, page: u32) -> u8 {
        (page % self.cell.levels() as u32) as u8
    }
}

/// The parts of each level that one frame covers. Each count divides the count of the same level in
/// the [`Geometry`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Channels under one frame.
    pub channels: u32,
    /// Ways under one frame.
    pub ways: u32,
    /// Dies under one frame.
    pub dies: u32,
    /// Planes under one frame. Several planes work together in a multi-plane operation.
    pub planes: u32,
}

impl Span {
    /// One page on one plane.
    pub const ONE: Span = Span { channels: 1, ways: 1, dies: 1, planes: 1 };
}

/// Numbers of a block in one mode ([`crate::BlockMode`]), stored because every program and read
/// needs them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModeShape {
    pub frames: u32,
    /// Slots of a frame.
    pub slots: u32,
    /// Pages of a frame.
    pub pages: u32,
    /// Pages that one program writes on a plane.
    pub at_once: u32,
}

/// A geometry with the numbering that the FTL uses. Blocks are numbered lane by lane, frames block
/// by block, slots frame by frame.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The board.
    pub geometry: Geometry,
    /// The part of the board that one frame covers.
    pub span: Span,
    /// Bytes of a mapping unit.
    pub unit_bytes: u32,
    /// Lanes: sets of dies and planes that work in parallel.
    pub lanes: u32,
    /// Blocks in a lane.
    pub blocks_per_lane: u32,
    /// The pages that one program writes on each plane.
    pub program_unit: ProgramUnit,
    /// Order of the pages of a block.
    pub page_order: PageOrder,
    /// The pages of a block, unless they are in the consecutive order.
    pub(crate) page_table: Option<PageTable>,
    /// Frames in a block (the pages or word lines of one physical block).
    pub frames_per_block: u32,
    /// Slots in a frame, 1 to 64.
    pub slots_per_frame: u32,
    /// Physical pages in a frame.
    pub pages_per_frame: u32,
    /// Planes under a frame, and so physical blocks in a block.
    pub planes_per_frame: u32,
    /// Planes under a frame that hold data: all planes but those of the die with parity.
    pub data_planes_per_frame: u32,
    /// Dies under a frame.
    pub dies_per_frame: u32,
    /// Slots in a block.
    pub slots_per_block: u32,
    /// Logical pages (mapping units) that the drive exports.
    pub logical_units: u32,
    lane_dies: Vec<u32>,
    /// The shapes of the modes, indexed by the number of the mode.
    pub(crate) modes: [ModeShape; 2],
    /// Kinds of page that frames of native blocks have.
    pub(crate) frame_levels: u32,
    by_slots_per_block: Divisor,
    by_slots_per_frame: Divisor,
    by_frames_per_block: Divisor,
    by_blocks_per_lane: Divisor,
}

/// The largest number of physical units that 32-bit addresses can name. A few addresses are
/// reserved for other meanings.
const SLOTS_MAX: u64 = u32::MAX as u64 - 65;

/// Bytes of memory that a simulation uses for each physical unit. They hold the state, owner and
/// stamp of the unit, the map and the oracle. On `ufs-128gb`, runs that touch all of this memory
/// used between 20.3 bytes (`steady`) and 23.6 bytes (`fill`) a unit.
pub const MEMORY_PER_UNIT: u64 = 24;

/// Returns the message that a drive has too many units. The message names the smallest unit that
/// fits: with larger units, a frame holds fewer of them.
fn too_many(slots: u64, per_frame: u32, unit: u64) -> String {
    let why = format!("{slots} physical units need more than 32-bit addresses");
    let fewer = (1..per_frame).rev().filter(|n| per_frame % n == 0);
    let fits = fewer
        .map(|n| (slots / u64::from(per_frame) * u64::from(n), unit * u64::from(per_frame / n)))
        .find(|&(slots, _)| slots <= SLOTS_MAX);
    match fits {
        Some((slots, unit)) => format!(
            "{why}; the smallest unit that fits has {unit} bytes: {slots} units of this size take \
             about {} GiB of memory in tables",
            (slots * MEMORY_PER_UNIT).div_ceil(1 << 30)
        ),
        None => format!(
            "{why}, even with one unit in each frame: use a smaller drive, or larger frames \
             (drive.frame_*)"
        ),
    }
}

impl Layout {
    /// Returns a layout as [`Layout::of_frames`] does. One program writes one page of each plane.
    ///
    /// # Errors
    /// Returns the errors of [`Layout::of_frames`].
    pub fn new(
        geometry: Geometry,
        span: Span,
        unit_bytes: u32,
        order: AllocationOrder,
        logical_units: u32,
    ) -> Result<Layout, ConfigError> {
        let program = ProgramUnit::Page;
        Layout::of_frames(geometry, span, unit_bytes, order, logical_units, program)
    }

    /// Checks `geometry`, `span` and `unit_bytes` against each other, and numbers the lanes in
    /// `order`. One program writes a frame, which is a `program_unit` on each plane.
    ///
    /// # Errors
    /// Returns an error that names the key at fault if a span does not divide its level, if a frame
    /// covers more than 64 dies, or if a unit does not fill a frame with 1 to 64 whole units.
    /// Returns an error if programs write whole word lines and a block is no whole number of them,
    /// or if there are more physical units than 32-bit addresses can name.
    pub fn of_frames(
        geometry: Geometry,
        span: Span,
        unit_bytes: u32,
        order: AllocationOrder,
        logical_units: u32,
        program_unit: ProgramUnit,
    ) -> Result<Layout, ConfigError> {
        Layout::built(geometry, span, unit_bytes, order, logical_units, (program_unit, false))
    }

    pub(crate) fn built(
        geometry: Geometry,
        span: Span,
        unit_bytes: u32,
        order: AllocationOrder,
        logical_units: u32,
        (program_unit, parity): (ProgramUnit, bool),
    ) -> Result<Layout, ConfigError> {
        let g = geometry;
        for (key, part, whole) in [
            ("drive.frame_channels", span.channels, g.channels),
            ("drive.frame_ways", span.ways, g.ways),
            ("drive.frame_dies", span.dies, g.dies),
            ("drive.frame_planes", span.planes, g.planes),
        ] {
            if part == 0 || whole % part != 0 {
                return Err(ConfigError::new(
                    key,
                    format!("{part} does not divide the {whole} of the geometry"),
                ));
            }
        }
        let dies_per_frame = span.channels * span.ways * span.dies;
        if dies_per_frame > 64 {
            return Err(ConfigError::new(
                "drive.frame_channels",
                format!("a frame covers {dies_per_frame} dies; a frame can cover at most 64 dies"),
            ));
        }
        let pages_at_once = match program_unit {
            ProgramUnit::Page => 1,
            ProgramUnit::WordLine => u32::from(g.cell.levels()),
        };
        if g.pages % pages_at_once != 0 {
            let why = format!("{} pages are no whole word lines of {pages_at_once}", g.pages);
            return Err(ConfigError::new("drive.pages", why));
        }
        let frames_per_block = g.pages / pages_at_once;
        let planes_per_frame = dies_per_frame * span.planes;
        let pages_per_frame = planes_per_frame * pages_at_once;
        let data_planes_per_frame = planes_per_frame - u32::from(parity) * span.planes;
        let data_pages = data_planes_per_frame * pages_at_once;
        let frame_bytes = u64::from(data_pages) * u64::from(g.page_bytes);
        let unit = u64::from(unit_bytes);
        if unit == 0 || frame_bytes % unit != 0 || frame_bytes / unit > 64 {
            return Err(ConfigError::new(
                "map.unit",
                format!(
                    "a frame of {frame_bytes} bytes ({data_pages} pages of {}{}) does not \
                     consist of 1 to 64 whole units of {unit} bytes; change the unit or the \
                     drive.frame_* keys",
                    g.page_bytes,
                    if parity { ", without its parity" } else { "" }
                ),
            ));
        }
        let slots_per_frame = (frame_bytes / unit) as u32;
        let groups = [
            g.channels / span.channels,
            g.ways / span.ways,
            g.dies / span.dies,
            g.planes / span.planes,
        ];
        let lanes = groups.iter().product::<u32>();
        let slots = u64::from(lanes)
            * u64::from(g.blocks)
            * u64::from(frames_per_block)
            * u64::from(slots_per_frame);
        if slots > SLOTS_MAX {
            return Err(ConfigError::new("map.unit", too_many(slots, slots_per_frame, unit)));
        }
        let levels = u32::from(g.cell.levels());
        // a frame has pages of all levels, or each level has frames of its own
        let (fewer_slots, fewer_frames) = (pages_at_once, levels / pages_at_once);
        let native = ModeShape {
            frames: frames_per_block,
            slots: slots_per_frame,
            pages: pages_per_frame,
            at_once: pages_at_once,
        };
        let slc = ModeShape {
            frames: frames_per_block / fewer_frames,
            slots: slots_per_frame / fewer_slots,
            pages: planes_per_frame,
            at_once: 1,
        };
        let mut layout = Layout {
            geometry,
            span,
            unit_bytes,
            lanes,
            blocks_per_lane: g.blocks,
            program_unit,
            page_order: PageOrder::Consecutive,
            page_table: None,
            frames_per_block,
            slots_per_frame,
            pages_per_frame,
            planes_per_frame,
            data_planes_per_frame,
            dies_per_frame,
            slots_per_block: frames_per_block * slots_per_frame,
            logical_units,
            modes: [native, slc],
            frame_levels: fewer_frames,
            lane_dies: Vec::with_capacity((lanes * dies_per_frame) as usize),
            by_slots_per_block: Divisor::new(frames_per_block * slots_per_frame),
            by_slots_per_frame: Divisor::new(slots_per_frame),
            by_frames_per_block: Divisor::new(frames_per_block),
            by_blocks_per_lane: Divisor::new(g.blocks),
        };
        for lane in 0..lanes {
            layout.push_lane_dies(lane, groups, order);
        }
        Ok(layout)
    }

    fn push_lane_dies(&mut self, lane: u32, groups: [u32; 4], order: AllocationOrder) {
        let (g, span) = (self.geometry, self.span);
        let mut at = [0u32; 4];
        let mut rest = lane;
        for letter in order.0 {
            let level = b"CWDP".iter().position(|&l| l == letter).expect("parsed");
            at[level] = rest % groups[level];
            rest /= groups[level];
        }
        for c in 0..span.channels {
            for w in 0..span.ways {
                for d in 0..span.dies {
                    let (c, w, d) =
                        (at[0] * span.channels + c, at[1] * span.ways + w, at[2] * span.dies + d);
                    self.lane_dies.push((c * g.ways + w) * g.dies + d);
                }
            }
        }
    }

    /// Returns the number of sectors in a mapping unit.
    #[inline]
    pub fn unit_sectors(&self) -> u32 {
        self.unit_bytes / crate::SECTOR_BYTES
    }

    /// Returns the number of blocks of the drive, good and bad.
    #[inline]
    pub fn blocks(&self) -> u32 {
        self.lanes * self.blocks_per_lane
    }

    /// Returns the number of frames of the drive.
    #[inline]
    pub fn frames(&self) -> u32 {
        self.blocks() * self.frames_per_block
    }

    /// Returns the number of slots of the drive.
    #[inline]
    pub fn slots(&self) -> u32 {
        self.blocks() * self.slots_per_block
    }

    /// Returns the number of sectors that the drive exports.
    pub fn sectors(&self) -> u64 {
        u64::from(self.logical_units) * u64::from(self.unit_sectors())
    }

    /// Returns the number of bytes of data that a frame holds.
    pub fn frame_bytes(&self) -> u64 {
        u64::from(self.slots_per_frame) * u64::from(self.unit_bytes)
    }

    /// Returns the lane of a block.
    #[inline]
    pub fn lane_of(&self, block: BlockId) -> LaneId {
        LaneId(self.by_blocks_per_lane.divide(block.0))
    }

    /// Returns the blocks of a lane.
    pub fn lane_blocks(&self, lane: LaneId) -> impl DoubleEndedIterator<Item = BlockId> + use<> {
        let first = lane.0 * self.blocks_per_lane;
        (first..first + self.blocks_per_lane).map(BlockId)
    }

    /// Returns the global numbers (channel-major) of the dies under a frame of a lane.
    #[inline]
    pub fn dies_of(&self, lane: LaneId) -> &[u32] {
        let n = self.dies_per_frame as usize;
        &self.lane_dies[lane.0 as usize * n..][..n]
    }

    /// Returns the channel of the die with this global number.
    #[inline]
    pub fn channel_of(&self, die: u32) -> u32 {
        die / (self.geometry.ways * self.geometry.dies)
    }

    /// Returns the block of a frame.
    #[inline]
    pub fn block_of_frame(&self, frame: FrameId) -> BlockId {
        BlockId(self.by_frames_per_block.divide(frame.0))
    }

    /// Returns the frame of a slot.
    #[inline]
    pub fn frame_of(&self, ppn: Ppn) -> FrameId {
        FrameId(self.by_slots_per_frame.divide(ppn.0))
    }

    /// Returns the block of a slot.
    #[inline]
    pub fn block_of(&self, ppn: Ppn) -> BlockId {
        BlockId(self.by_slots_per_block.divide(ppn.0))
    }

    /// Returns frame number `index` of a block.
    #[inline]
    pub fn frame_in(&self, block: BlockId, index: u32) -> FrameId {
        FrameId(block.0 * self.frames_per_block + index)
    }

    /// Returns the number of a frame in its block, from 0. [`Layout::frame_in`] is the inverse.
    #[inline]
    pub fn index_in(&self, block: BlockId, frame: FrameId) -> u32 {
        frame.0 - self.frame_in(block, 0).0
    }

    /// Returns the first slot of a frame.
    #[inline]
    pub fn first_slot(&self, frame: FrameId) -> Ppn {
        Ppn(frame.0 * self.slots_per_frame)
    }

    /// Returns the first slot of a block.
    #[inline]
    pub fn block_slot(&self, block: BlockId) -> Ppn {
        Ppn(block.0 * self.slots_per_block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOARD: Geometry = Geometry {
        channels: 2,
        ways: 2,
        dies: 1,
        planes: 2,
        blocks: 8,
        pages: 4,
        page_bytes: 16384,
        spare_bytes: 1024,
        cell: Cell::Tlc,
    };

    fn layout(span: Span, unit: u32, order: &str) -> Result<Layout, ConfigError> {
        Layout::new(BOARD, span, unit, AllocationOrder::parse(order).unwrap(), 100)
    }

    #[test]
    fn three_granularities_are_one_mechanism() {
        let small = layout(Span::ONE, 4096, "CWDP").unwrap();
        assert_eq!((small.lanes, small.slots_per_frame, small.pages_per_frame), (8, 4, 1));
        let page = layout(Span::ONE, 16384, "CWDP").unwrap();
        assert_eq!((page.lanes, page.slots_per_frame), (8, 1));
        let superpage =
            layout(Span { channels: 2, planes: 2, ..Span::ONE }, 65536, "CWDP").unwrap();
        assert_eq!(
            (superpage.lanes, superpage.slots_per_frame, superpage.dies_per_frame),
            (2, 1, 2)
        );
        // lane 0 is way 0 of both channels, lane 1 is way 1 of both (dies are numbered channel by
        // channel)
        assert_eq!(
            (superpage.dies_of(LaneId(0)), superpage.dies_of(LaneId(1))),
            (&[0, 2][..], &[1, 3][..])
        );
    }

    #[test]
    fn the_first_letter_of_the_order_changes_fastest() {
        let dies = |order| {
            let l = layout(Span { planes: 2, ..Span::ONE }, 4096, order).unwrap();
            (0..4).map(|lane| l.dies_of(LaneId(lane))[0]).collect::<Vec<_>>()
        };
        // die = channel * 2 + way
        assert_eq!(dies("CWDP"), [0, 2, 1, 3]);
        assert_eq!(dies("WCDP"), [0, 1, 2, 3]);
        let planes = layout(Span::ONE, 4096, "PCWD").unwrap();
        assert_eq!((0..4).map(|l| planes.dies_of(LaneId(l))[0]).collect::<Vec<_>>(), [0, 0, 2, 2]);
        assert!(AllocationOrder::parse("CWDD").is_none());
    }

    #[test]
    fn addresses_round_trip() {
        let l = layout(Span::ONE, 4096, "CWDP").unwrap();
        let frame = l.frame_in(BlockId(9), 3);
        let slot = Ppn(l.first_slot(frame).0 + 2);
        assert_eq!(
            (l.block_of(slot), l.frame_of(slot), l.block_of_frame(frame)),
            (BlockId(9), frame, BlockId(9))
        );
        assert_eq!(l.lane_of(BlockId(9)), LaneId(1));
        assert_eq!(l.block_slot(BlockId(9)), l.first_slot(l.frame_in(BlockId(9), 0)));
    }

    #[test]
    fn too_many_units_are_refused_with_the_smallest_that_fits() {
        // 2 x 8 x 2^20 blocks of 64 pages are 2^30 frames of 16 KiB, or 2^32 units of 4 KiB
        let large = |blocks: u32, unit: u32| {
            let board = Geometry { channels: 8, blocks, pages: 64, planes: 1, ..BOARD };
            let order = AllocationOrder::parse("CWDP").unwrap();
            Layout::new(board, Span::ONE, unit, order, 100).map_err(|e| e.to_string())
        };
        let refused = large(1 << 20, 4096).unwrap_err();
        // units of twice the size: 2^31 units, and 24 bytes of memory for each
        assert!(
            refused.contains("4294967296 physical units")
                && refused.contains("8192 bytes: 2147483648 units")
                && refused.contains("about 48 GiB of memory"),
            "{refused}"
        );
        assert_eq!(large(1 << 20, 8192).unwrap().slots(), 1 << 31);
        let none = large(1 << 23, 16384).unwrap_err();
        assert!(none.contains("even with one unit in each frame"), "{none}");
    }

    #[test]
    fn impossible_shapes_name_the_key() {
        assert_eq!(
            layout(Span { channels: 3, ..Span::ONE }, 4096, "CWDP").unwrap_err().key,
            "drive.frame_channels"
        );
        assert_eq!(layout(Span::ONE, 5000, "CWDP").unwrap_err().key, "map.unit");
        assert_eq!(layout(Span::ONE, 32768, "CWDP").unwrap_err().key, "map.unit");
    }
}
