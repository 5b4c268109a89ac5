//! Map pages on flash: their places, their writes, and the collection of the blocks that store
//! them.
//!
//! A map page belongs to a lane (its number modulo the number of lanes). Each lane has a frontier
//! for map pages, and blocks that store only map pages. When a lane opens the last block that it
//! may use for map pages, it selects its full block with the fewest valid pages. These pages are
//! copied to the new block, and the full block is erased. So a write of a map page waits only for
//! map pages.
//!
//! The directory in the controller's memory has the place of each map page. The directory is
//! persisted with every map page: the spare area of a map page names the page and stores the number
//! of its program.

mod mount;

use super::ids::filled;
use super::table::{HEADER_BYTES, Header};
use crate::FtlContext;
use crate::maps::{MapContext, MapPage};
use crate::pool::Pool;
use crate::superseded::Superseded;
use flashatlas_nand::{MapContent, MapForm, MapOfBase, OobRole, ReadPart, Unit};
use flashatlas_types::{
    BlockId, Cause, FtlError, LaneId, Layout, Lpn, OpId, Ppn, Stamp, TiVec, Violation,
};
use std::ops::Range;
use std::sync::Arc;

/// A map page on its way to flash.
pub(crate) struct Image {
    pub page: MapPage,
    pub content: Content,
}

/// Header and entries of a map page on its way to flash.
pub(crate) enum Content {
    Bytes(Arc<[u8]>),
    /// Entries as the base under the map says, but for some. They have no bytes, because these
    /// would have to be computed.
    OfBase(MapOfBase),
}

/// The layout of map pages in frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AreaShape {
    /// The number of map pages of the drive.
    pub pages: u32,
    /// The number of pages of the directory, numbered after the map pages. It is 0 if the directory
    /// is stored only in the spare areas of map pages.
    pub directory: u32,
    /// The number of lanes that store map pages, counted from the first lane.
    pub lanes: u32,
    /// The number of slots of a map page.
    pub slots: u32,
    /// The number of map pages in a frame.
    pub per_frame: u32,
    /// `true` if pages that are written together may share a frame.
    pub pack: bool,
    /// The form of the entries.
    pub form: MapForm,
}

impl AreaShape {
    /// Returns the lane of a page.
    pub fn lane_of(&self, page: MapPage) -> LaneId {
        LaneId::new(page.number() % self.lanes)
    }

    /// Returns the lanes that have map pages.
    fn lane_ids(&self) -> impl Iterator<Item = LaneId> + use<> {
        (0..self.lanes).map(LaneId::new)
    }

    /// Returns the map pages of a lane, without the pages of the directory.
    fn pages_of(&self, lane: LaneId) -> impl Iterator<Item = MapPage> + use<> {
        (lane.number()..self.pages).step_by(self.lanes as usize).map(MapPage::new)
    }

    /// Returns the number of map pages in a frame, as the length of a list.
    fn frame_len(&self) -> usize {
        self.per_frame as usize
    }

    /// Returns the directory page with this number in the directory.
    pub fn directory_page(&self, number: u32) -> MapPage {
        MapPage::new(self.pages + number)
    }

    /// Returns the places within `slots` at which a map page can begin.
    fn places_in(&self, slots: Range<u32>) -> impl Iterator<Item = Ppn> + use<> {
        slots.step_by(self.slots as usize).map(Ppn)
    }
}

/// The blocks of map pages, and the place of each map page.
pub(crate) struct MapArea {
    pub shape: AreaShape,
    frames_per_block: u32,
    /// First slot of each map page; [`Ppn::NONE`] for pages that were never written.
    directory: TiVec<MapPage, Ppn>,
    /// Block and next frame of each lane's frontier.
    frontiers: TiVec<LaneId, Option<(BlockId, u32)>>,
    /// Full blocks of each lane.
    closed: TiVec<LaneId, Vec<BlockId>>,
    /// Programs that superseded pages of a block.
    superseded: Superseded,
    /// The last erase of a map block in each lane. Programs of the lane's frontier wait for the
    /// operation in `ready`: the erase that made room for the frontier. Without this wait, a power
    /// cut could leave more map blocks than a lane may have.
    erases: TiVec<LaneId, OpId>,
    ready: TiVec<LaneId, OpId>,
    /// The mark that a mount puts into its copies until it is complete ([`Header::mending`]).
    pub mending: bool,
    /// Number of map pages that collection copied.
    pub copies: u64,
}

impl MapArea {
    pub fn new(layout: &Layout, shape: AreaShape) -> MapArea {
        MapArea {
            shape,
            frames_per_block: layout.frames_per_block,
            directory: filled(shape.pages + shape.directory, Ppn::NONE),
            frontiers: layout.per_lane(None),
            closed: layout.per_lane(Vec::new()),
            superseded: Superseded::new(layout),
            erases: layout.per_lane(OpId::NONE),
            ready: layout.per_lane(OpId::NONE),
            mending: false,
            copies: 0,
        }
    }

    /// Returns the place of a map page, or `None` if the page was never written.
    pub fn place(&self, page: MapPage) -> Option<Ppn> {
        self.directory[page].mapped()
    }

    /// Returns the number of bytes of the directory.
    pub fn directory_bytes(&self) -> u64 {
        u64::from(self.shape.pages) * 4
    }

    /// Returns whether a map block can contain a page with this number.
    fn knows(&self, page: MapPage) -> bool {
        self.directory.get(page).is_some()
    }

    /// Returns the places of `count` map pages from `first` on, encoded as in the directory: 4
    /// bytes each, little-endian.
    pub fn places(&self, first: MapPage, count: u32) -> impl Iterator<Item = [u8; 4]> + '_ {
        let end = MapPage::new((first.number() + count).min(self.shape.pages));
        self.directory[first..end].iter().map(|p| p.0.to_le_bytes())
    }

    /// Returns the largest number of a lane's map pages that one frame may store.
    pub fn together(&self) -> usize {
        if self.shape.pack { self.shape.frame_len() } else { 1 }
    }

    /// Reads a map page that is on flash.
    pub fn read(
        &self,
        cx: &mut FtlContext<'_>,
        page: MapPage,
        after: &[OpId],
    ) -> Result<OpId, FtlError> {
        let at = self.place(page).expect("only pages that were written are read");
        self.read_at(cx, at, after)
    }

    fn read_at(&self, cx: &mut FtlContext<'_>, at: Ppn, after: &[OpId]) -> Result<OpId, FtlError> {
        let layout = cx.flash.medium.layout();
        let frame = layout.frame_of(at);
        let ones = u64::MAX >> (64 - self.shape.slots);
        let slots = ones << (at.0 - layout.first_slot(frame).0);
        Ok(cx.flash.read(frame, slots, ReadPart::Whole, Cause::Map, after)?)
    }

    /// Programs one frame with map pages of one lane. A frame must have room for all of them.
    pub fn write(
        &mut self,
        io: &mut MapContext<'_, '_>,
        images: &[Image],
        after: &[OpId],
    ) -> Result<OpId, FtlError> {
        let lane = self.shape.lane_of(images[0].page);
        self.make_room(io, lane)?;
        self.program(io, lane, images, after)
    }

    fn program(
        &mut self,
        io: &mut MapContext<'_, '_>,
        lane: LaneId,
        images: &[Image],
        after: &[OpId],
    ) -> Result<OpId, FtlError> {
        let (block, index) = self.frontiers[lane].expect("there is room");
        let frame = io.cx.flash.medium.layout().frame_in(block, index);
        let mut units = Vec::with_capacity(images.len() * self.shape.slots as usize);
        for image in images {
            assert!(
                self.shape.lane_of(image.page) == lane,
                "map page {} is written in lane {lane}",
                image.page
            );
            let (stamp, bytes) = match &image.content {
                Content::Bytes(bytes) => (Stamp(crc32c::crc32c(bytes)), Some(Arc::clone(bytes))),
                Content::OfBase(_) => (Stamp::ZERO, None),
            };
            let lpn = Lpn(image.page.number());
            units.push(Unit { lpn, stamp, bytes });
            units.extend((1..self.shape.slots).map(|_| Unit { lpn, stamp, bytes: None }));
        }
        let ready = Some(self.ready[lane]).filter(|&op| io.cx.may_be_unfinished(op));
        let after: Vec<OpId> = after.iter().copied().chain(ready).collect();
        let (first, op) = io.cx.flash.program(frame, units.iter(), Cause::Map, &after)?;
        for (i, image) in images.iter().enumerate() {
            let at = Ppn(first.0 + i as u32 * self.shape.slots);
            if let Content::OfBase(page) = &image.content {
                io.cx.flash.medium.hold_map_of_base(at, page.clone(), self.shape.form);
            }
            if let Some(old) = std::mem::replace(&mut self.directory[image.page], at).mapped() {
                for slot in self.slots_of(old) {
                    io.pool.blocks.invalidate(slot);
                }
                let block = io.pool.layout().block_of(old);
                self.superseded.add(block, op, io.cx.command.oldest_unfinished);
            }
            self.slots_of(at).for_each(|slot| io.pool.blocks.set_valid(slot));
        }
        if index + 1 == self.frames_per_block {
            self.frontiers[lane] = None;
            self.closed[lane].push(block);
        } else {
            self.frontiers[lane] = Some((block, index + 1));
        }
        Ok(op)
    }

    fn slots_of(&self, at: Ppn) -> impl Iterator<Item = Ppn> + use<> {
        (at.0..at.0 + self.shape.slots).map(Ppn)
    }

    /// Makes room for a write of this page.
    pub fn make_room_for(
        &mut self,
        io: &mut MapContext<'_, '_>,
        page: MapPage,
    ) -> Result<(), FtlError> {
        self.make_room(io, self.shape.lane_of(page))
    }

    /// Ensures that the frontier of a lane has room for a frame.
    fn make_room(&mut self, io: &mut MapContext<'_, '_>, lane: LaneId) -> Result<(), FtlError> {
        // each collection frees at least one slot of the lane's map blocks; the last round finds
        // the room
        for _ in 0..self.closed[lane].len() * self.frames_per_block as usize + 2 {
            if self.frontiers[lane].is_some() {
                return Ok(());
            }
            let last = io.pool.free_for_map(lane) == 1;
            self.open(io, lane)?;
            if last && let Some(victim) = self.pick(io.pool, lane, self.room(lane)) {
                self.collect(io, lane, victim)?;
            }
        }
        Err(io.pool.no_space())
    }

    fn open(&mut self, io: &mut MapContext<'_, '_>, lane: LaneId) -> Result<(), FtlError> {
        let block = io.pool.take_for_map(lane).ok_or_else(|| io.pool.no_space())?;
        self.open_block(io.cx, lane, block);
        Ok(())
    }

    fn open_block(&mut self, cx: &mut FtlContext<'_>, lane: LaneId, block: BlockId) {
        cx.flash.open(block, OobRole::MAP);
        self.frontiers[lane] = Some((block, 0));
        self.ready[lane] = self.erases[lane];
    }

    /// Returns the number of map pages for which the frontier of a lane has room.
    fn room(&self, lane: LaneId) -> u32 {
        self.frontiers[lane]
            .map_or(0, |(_, next)| (self.frames_per_block - next) * self.shape.per_frame)
    }

    /// Returns the full block of a lane with the fewest valid pages. Returns `None` if all its
    /// pages are valid, or if more than `most` pages are valid.
    fn pick(&self, pool: &Pool, lane: LaneId, most: u32) -> Option<BlockId> {
        let valid = |block: &BlockId| pool.blocks.valid(*block) / self.shape.slots;
        let victim = self.closed[lane].iter().copied().min_by_key(|b| (valid(b), *b))?;
        let full = self.frames_per_block * self.shape.per_frame;
        (valid(&victim) < full && valid(&victim) <= most).then_some(victim)
    }

    /// Copies the valid pages of a block to the lane's frontier, which has room for them, and
    /// erases the block.
    fn collect(
        &mut self,
        io: &mut MapContext<'_, '_>,
        lane: LaneId,
        victim: BlockId,
    ) -> Result<(), FtlError> {
        self.closed[lane].retain(|&b| b != victim);
        let first = io.pool.layout().block_slot(victim).0;
        let slots = io.pool.layout().slots_per_block;
        let mut valid: Vec<Ppn> = Vec::new();
        for at in self.shape.places_in(first..first + slots) {
            if io.pool.blocks.is_valid(at) {
                valid.push(at);
            }
        }
        let mut after: Vec<OpId> = Vec::new();
        for group in valid.chunks(self.shape.frame_len()) {
            let (mut images, mut sensed) =
                (Vec::with_capacity(group.len()), Vec::with_capacity(group.len()));
            for &at in group {
                let page = MapPage::new(io.cx.flash.medium.lpn(at)?.0);
                if !self.knows(page) || self.place(page) != Some(at) {
                    return Err(FtlError::NotMapped { at, found: Lpn(page.number()) });
                }
                sensed.push(self.read_at(io.cx, at, &[])?);
                images.push(self.copy(io, page, at)?);
            }
            self.copies += images.len() as u64;
            if self.frontiers[lane].is_none() {
                return Err(io.pool.no_space());
            }
            after.push(self.program(io, lane, &images, &sensed)?);
        }
        // the copies supersede pages of the block too; each operation is named once
        let superseded = self.superseded.take(victim, io.cx.command.oldest_unfinished);
        let others: Vec<OpId> = superseded.filter(|op| !after.contains(op)).collect();
        after.extend(others);
        self.erases[lane] = io.pool.erase(io.cx, victim, Cause::Map, &after)?;
        Ok(())
    }

    /// Returns a copy of a map page for another place, with the current mark of a mount.
    fn copy(&self, io: &MapContext<'_, '_>, page: MapPage, at: Ppn) -> Result<Image, FtlError> {
        let medium = &io.cx.flash.medium;
        let content = medium.map_content(at)?;
        let header = Header::of(content);
        let content = match content {
            MapContent::Bytes(bytes) if header.mending == self.mending => {
                Content::Bytes(Arc::clone(bytes))
            }
            MapContent::Bytes(bytes) => {
                let mut changed = bytes.to_vec();
                let header = Header { mending: self.mending, ..header };
                changed[..HEADER_BYTES].copy_from_slice(&header.encode());
                Content::Bytes(Arc::from(changed))
            }
            MapContent::OfBase(of_base) => {
                let header = Header { mending: self.mending, ..header }.encode();
                Content::OfBase(MapOfBase { header, changed: of_base.changed.clone() })
            }
        };
        Ok(Image { page, content })
    }

    /// Writes a mark to flash that a mount is repairing the map, before the mount erases the
    /// evidence of the damage. Returns the page that was written, or `Ok(None)` if no lane has
    /// room.
    ///
    /// A page is copied in a lane that has room for the copy and for the next collection. `blank`
    /// builds a page for a lane without written pages.
    pub fn mark(
        &mut self,
        io: &mut MapContext<'_, '_>,
        blank: impl Fn(MapPage) -> Image,
    ) -> Result<Option<MapPage>, FtlError> {
        let roomy = (0..self.shape.lanes.min(self.shape.pages)).map(LaneId::new).find(|&lane| {
            let free = io.pool.free_for_map(lane);
            let (room, free) = match self.frontiers[lane] {
                Some(_) => (self.room(lane), free),
                None if free > 0 => (self.frames_per_block * self.shape.per_frame, free - 1),
                None => return false,
            };
            free > 0 || self.pick(io.pool, lane, room - self.shape.per_frame).is_some()
        });
        let Some(lane) = roomy else { return Ok(None) };
        if self.frontiers[lane].is_none() {
            self.open(io, lane)?;
        }
        let image = match self.shape.pages_of(lane).find_map(|page| Some((page, self.place(page)?)))
        {
            Some((page, at)) => self.copy(io, page, at)?,
            None => blank(MapPage::new(lane.number())), // the first page of the lane
        };
        let page = image.page;
        self.program(io, lane, &[image], &[])?;
        Ok(Some(page))
    }

    /// Checks the map pages on flash: the directory and the valid slots agree, and every block is
    /// in the right list. Returns the number of valid slots of map pages.
    pub fn check(&self, medium: &flashatlas_nand::Medium, pool: &Pool) -> Result<u64, Violation> {
        let mut valid = 0;
        for page in self.directory.keys() {
            let Some(at) = self.place(page) else { continue };
            valid += u64::from(self.shape.slots);
            let named = medium.lpn(at) == Ok(Lpn(page.number()))
                && self.slots_of(at).all(|s| pool.blocks.is_valid(s));
            Violation::unless(named, "the directory names valid slots that hold the page", || {
                format!("slot {at} of map page {page} holds {:?}", medium.lpn(at))
            })?;
            let block = pool.layout().block_of(at);
            Violation::unless(
                medium.oob_role(block) == OobRole::MAP,
                "map pages are in map blocks",
                || format!("map page {page} in block {block}"),
            )?;
        }
        let listed = self.closed.iter().map(Vec::len).sum::<usize>()
            + self.frontiers.iter().flatten().count();
        let blocks = pool.blocks.count(crate::blocks::Role::Map);
        Violation::unless(listed == blocks, "every map block is listed", || {
            format!("there are {blocks} map blocks, but {listed} are listed")
        })?;
        Ok(valid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::MapQuota;
    use crate::{Command, Copies, Outcome};
    use flashatlas_fixtures::layouts::lanes;
    use flashatlas_nand::{Flash, Medium, Rules};
    use flashatlas_types::{OpKind, Plan, Seed};

    /// The lane has blocks of two pages, and three blocks may store map pages. Pages 0 and 1 fill
    /// block A. A new version of page 0 and then page 2 fill block B. To write page 1 again, the
    /// last block is opened, and A is collected: page 1 is copied to the last block. The erase of A
    /// waits for that copy and for the new version of page 0. It does not wait for page 2, which is
    /// in flight as well.
    #[test]
    fn the_erase_of_a_map_block_waits_for_its_own_pages() {
        let layout = lanes(1, [6, 2, 1], 4);
        let mut medium = Medium::new(Arc::new(layout.clone()), Rules::PLAIN, 0, Seed(1)).unwrap();
        let mut pool = Pool::new(&layout, &medium, true, MapQuota { blocks: 3, lanes: 1 });
        (0..6).for_each(|block| pool.put(&medium, BlockId::new(block)));
        let form = MapForm { per_page: 128, entry_bytes: 4, slots: 1 };
        let shape = AreaShape {
            pages: 4,
            directory: 0,
            lanes: 1,
            slots: 1,
            per_frame: 1,
            pack: true,
            form,
        };
        let mut area = MapArea::new(&layout, shape);
        let mut plan = Plan::default();
        plan.set_recording(true);
        let command = Command { oldest_unfinished: OpId(1), ..Command::UNTIMED };
        let (mut copies, mut outcome) = (Copies::default(), Outcome::default());
        let flash = Flash { medium: &mut medium, plan: &mut plan };
        let mut cx = FtlContext::new(flash, &command, &mut copies, &mut outcome);
        let mut io = MapContext::new(&mut cx, &mut pool);
        let mut write = |page| {
            let content = Content::Bytes(vec![page as u8; 512].into());
            area.write(&mut io, &[Image { page: MapPage::new(page), content }], &[]).unwrap()
        };
        write(0);
        write(1);
        let (zero_again, two) = (write(0), write(2));
        write(1);
        let programs: Vec<OpId> = plan
            .iter()
            .filter(|(_, op, _)| matches!(op.kind, OpKind::Program { .. }))
            .map(|(id, ..)| id)
            .collect();
        let copy = programs[4];
        let erase = plan.iter().find(|(_, op, _)| matches!(op.kind, OpKind::Erase { .. }));
        let (_, _, after) = erase.expect("block A was collected");
        assert_eq!(after.to_vec(), [copy, zero_again], "the erase does not wait for {two}");
    }
}
