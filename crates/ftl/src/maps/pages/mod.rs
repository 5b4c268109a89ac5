//! The common code of map stores whose map is on flash: the table, the pages on flash with their
//! directory and collection, the changes that flash lacks, and the mount that rebuilds the map.
//!
//! [`MapOnFlash`] is this common code. Two kinds of stores use it: stores whose whole map is in
//! DRAM ([`resident`]) and stores that load map pages on demand ([`paged`]).
//!
//! A map page is always written whole and up to date. Its header has the last program that its
//! entries include (`upto`), and the last program that *every* page on flash includes
//! (`replay_from`). A mount reads the spare areas of data that was programmed later. It takes an
//! entry from a spare area if the number of its program is above the `upto` of the map page. Trims
//! leave no entry in spare areas. So a map page with a trimmed entry is written before the next
//! FLUSH completes, and before the erase of the block to which the entry pointed.

mod area;
mod bits;
mod cache;
mod changes;
pub(crate) mod cmt;
mod copies;
pub(crate) mod ids;
pub(crate) mod learned;
pub(crate) mod lines;
pub(crate) mod misses;
mod mount;
mod moves;
pub(crate) mod order;
pub(crate) mod paged;
pub(crate) mod resident;
mod settings;
pub(crate) mod slots;
mod table;

pub(crate) use settings::{
    DIRECTORY, LANES, MapShape, OVER_PROVISIONING, PACK, ROLL_FORWARD, quota,
};

use crate::FtlContext;
use crate::maps::{MapContext, MapPage};
use crate::pool::Pool;
use crate::report::{PageCounters, Reason};
use area::{Content, Image, MapArea};
use changes::Changes;
use copies::Copies;
use flashatlas_nand::{FrameState, MapContent, MapOfBase, Medium};
use flashatlas_types::{
    BlockId, FtlError, Layout, Lpn, OpId, Ppn, SeededBug, TiVec, Violation, beat,
};
use std::sync::Arc;
use table::{HEADER_BYTES, Header, Table};

/// A map page over a base has no bytes if at most one in this number of its entries differs from
/// the base. An entry that differs takes twice the memory of an entry in bytes.
const FEW: u32 = 4;

/// The map, and its copy on flash.
pub(crate) struct MapOnFlash {
    pub table: Table,
    pub changes: Changes,
    area: MapArea,
    /// `true` if a mount reads newer entries from the spare areas of data.
    roll_forward: bool,
    /// `true` if a mount found that map pages may be missing. The mount then reads every spare area
    /// and writes the entries that it finds to flash.
    incomplete: bool,
    /// The page that marks the damage on flash ([`MapArea::mark`]), until the mount is complete.
    marked: Option<MapPage>,
    /// A count that increases each time the map ceases to need any block ([`MapOnFlash::needs`]).
    /// For each block, `pointed` has the count at the last change that a mount cannot find after
    /// the erase of the block.
    epoch: u64,
    pointed: TiVec<BlockId, u64>,
    /// Copies that may be unfinished.
    copies: Copies,
    pub pages: PageCounters,
}

impl MapOnFlash {
    /// Returns an empty map. If `counted` is `true`, the changed entries of each map page are
    /// counted.
    pub fn new(layout: &Layout, shape: &MapShape, counted: bool) -> MapOnFlash {
        let table = Table::new(layout.logical_units, shape.per_page, shape.entry_bytes);
        let area = MapArea::new(layout, shape.on_flash);
        MapOnFlash {
            changes: Changes::new(table.pages(), table.per_page, counted),
            area,
            table,
            roll_forward: shape.roll_forward,
            incomplete: false,
            marked: None,
            epoch: 1,
            pointed: layout.per_block(0),
            copies: Copies::default(),
            pages: PageCounters::default(),
        }
    }

    /// Changes an entry because of program `op`; returns its old value.
    #[inline]
    pub fn change(&mut self, pool: &Pool, lpn: Lpn, ppn: Ppn, op: OpId) -> Ppn {
        let (page, trim) = (self.table.page_of(lpn), ppn == Ppn::NONE);
        let old = self.table.set(lpn, ppn);
        self.changes.mark(page, self.table.index_in(page, lpn), pool.settled + 1, op, trim);
        if (trim || !self.roll_forward)
            && let Some(old) = old.mapped()
        {
            self.pointed[pool.layout().block_of(old)] = self.epoch;
        }
        old
    }

    /// Returns `true` if the erase of a block would destroy data that a mount needs to find the
    /// place of a page, or to detect that the page was trimmed.
    pub fn needs(&self, block: BlockId) -> bool {
        self.pointed[block] == self.epoch
    }

    /// Notes that the copies of changed pages survive a power cut. If a mount can find every
    /// remaining change in spare areas, the map no longer needs any block ([`MapOnFlash::needs`]).
    pub fn note_survival(&mut self) {
        if self.changes.trimmed().is_empty() && (self.roll_forward || self.changes.len() == 0) {
            self.epoch += 1;
        }
    }

    /// Notes a copy of changed pages. The copy is complete once `op` is complete. Until then no
    /// other copy may state that these changes survive.
    pub fn copied(&mut self, cx: &mut FtlContext<'_>, op: OpId, since: Option<u64>) {
        if let (Some(since), true) = (since, op != OpId::NONE) {
            self.copies.push(cx.flash.plan, cx.command.oldest_unfinished, op, since);
        }
    }

    /// Returns an operation that waits for all unfinished copies. A FLUSH waits for this operation
    /// in addition to its own copies. The erase of a block that the map on flash may still need
    /// waits for it too.
    pub fn unfinished(&mut self, cx: &mut FtlContext<'_>) -> OpId {
        let ops = self.copies.unfinished(cx.command.oldest_unfinished);
        cx.flash.plan.join(flashatlas_types::Class::Map, &ops)
    }

    /// Returns [`MapOnFlash::unfinished`] if the map needed a block, otherwise [`OpId::NONE`]. The
    /// erase of the block waits for the returned operation.
    pub fn unfinished_for(&mut self, cx: &mut FtlContext<'_>, block: BlockId) -> OpId {
        match std::mem::take(&mut self.pointed[block]) {
            0 => OpId::NONE,
            _ => self.unfinished(cx),
        }
    }

    /// Returns whether a mount may read the spare areas of data.
    pub fn rolls_forward(&self) -> bool {
        self.roll_forward
    }

    /// Returns `true` if a mount writes all entries that it finds in spare areas to flash.
    pub fn is_written_by_mounts(&self) -> bool {
        !self.roll_forward || self.incomplete
    }

    /// Returns whether a mount found that map pages may be missing.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Returns whether a map page was ever written.
    pub fn on_flash(&self, page: MapPage) -> bool {
        self.area.place(page).is_some()
    }

    /// Reads a map page to look up the entry of `lpn`, if the page was ever written. Its entry of
    /// `lpn` must be the current entry.
    ///
    /// # Errors
    /// Returns an error if the map page is damaged.
    pub fn load(
        &mut self,
        cx: &mut FtlContext<'_>,
        page: MapPage,
        lpn: Lpn,
        after: &[OpId],
    ) -> Result<OpId, FtlError> {
        let (found, op) = match self.area.place(page) {
            None => (Ppn::NONE, self.area_wait(cx, after)),
            Some(at) => {
                self.pages.loads += 1;
                let op = self.area.read(cx, page, after)?;
                let index = self.table.index_in(page, lpn);
                let medium = &cx.flash.medium;
                let found = match medium.map_content(at)? {
                    MapContent::Bytes(bytes) => self.table.decode(&bytes[HEADER_BYTES..], index),
                    MapContent::OfBase(of_base) => {
                        of_base.place(index).unwrap_or_else(|| medium.place_in_base(lpn))
                    }
                };
                (found, op)
            }
        };
        let known = self.table.get(lpn);
        assert!(
            found == known,
            "map page {page} on flash places page {lpn} at {found}, but the page is at {known}"
        );
        Ok(op)
    }

    fn area_wait(&self, cx: &mut FtlContext<'_>, after: &[OpId]) -> OpId {
        cx.flash.plan.join(flashatlas_types::Class::Map, after)
    }

    /// Reads a map page that is to be written again with its changes, if it was ever written.
    ///
    /// # Errors
    /// Returns an error if the map page cannot be read.
    pub fn merge(
        &mut self,
        cx: &mut FtlContext<'_>,
        page: MapPage,
        after: &[OpId],
    ) -> Result<OpId, FtlError> {
        self.pages.merges += u64::from(self.on_flash(page));
        self.read_whole(cx, page, after)
    }

    /// Reads a map page to export its entries to the host, if it was ever written.
    ///
    /// # Errors
    /// Returns an error if the map page cannot be read.
    pub fn export_entries(
        &mut self,
        cx: &mut FtlContext<'_>,
        page: MapPage,
    ) -> Result<OpId, FtlError> {
        self.pages.exported_pages += u64::from(self.on_flash(page));
        let command = cx.command.first;
        self.read_whole(cx, page, &[command])
    }

    fn read_whole(
        &mut self,
        cx: &mut FtlContext<'_>,
        page: MapPage,
        after: &[OpId],
    ) -> Result<OpId, FtlError> {
        if self.on_flash(page) {
            self.area.read(cx, page, after)
        } else {
            Ok(self.area_wait(cx, after))
        }
    }

    /// Writes map pages in their current state. Each write waits for the programs that its entries
    /// point to, and all writes wait for `after`.
    ///
    /// # Errors
    /// Returns an error if there is no room, or if the power fails.
    pub fn write(
        &mut self,
        io: &mut MapContext<'_, '_>,
        pages: &mut [MapPage],
        reason: Reason,
        after: &[OpId],
    ) -> Result<OpId, FtlError> {
        let together = self.area.together();
        let shape = self.area.shape;
        pages.sort_unstable_by_key(|&page| (shape.lane_of(page), page));
        let mut written = Vec::with_capacity(pages.len());
        let of_lanes = pages.chunk_by(|&a, &b| shape.lane_of(a) == shape.lane_of(b));
        for group in of_lanes.flat_map(|of_lane| of_lane.chunks(together)) {
            let newest = group.iter().map(|&p| self.changes.newest(p)).max().unwrap_or(OpId::NONE);
            let mut waits = after.to_vec();
            waits.extend(io.pool.unfinished(newest));
            beat(1);
            let since = group.iter().filter_map(|&page| self.changes.since(page)).min();
            group.iter().for_each(|&page| self.changes.clear(page));
            if self.area.mending && self.changes.len() == 0 {
                self.area.make_room_for(io, group[0])?; // the copies still have the mark
                self.area.mending = false;
                waits.extend_from_slice(&written);
            }
            let header = self.header(io);
            let of_base = io.cx.flash.medium.holds_maps_of_base();
            let images: Vec<Image> =
                group.iter().map(|&page| self.image(header, page, of_base)).collect();
            self.count_writes(reason, images.len() as u64);
            let op = self.area.write(io, &images, &waits)?;
            self.copied(io.cx, op, since);
            written.push(op);
        }
        self.note_survival();
        let written = io.cx.flash.plan.join(flashatlas_types::Class::Map, &written);
        if reason == Reason::Flush && !pages.is_empty() {
            return self.write_directory(io, pages, written);
        }
        Ok(written)
    }

    /// Writes all map pages in order. The copies count as complete: no page has changed afterwards.
    ///
    /// # Errors
    /// Returns an error if there is no room, or if the power fails.
    pub fn write_whole(&mut self, io: &mut MapContext<'_, '_>) -> Result<(), FtlError> {
        self.changes.clear_all();
        self.area.mending = false;
        let mut pages: Vec<MapPage> = self.table.page_ids().collect();
        let written = self.write(io, &mut pages, Reason::Mount, &[])?;
        self.write_directory(io, &pages, written).map(|_| ())
    }

    /// Writes the directory pages that list these map pages, if the directory has pages. They are
    /// programmed after `after`, the programs of the map pages.
    fn write_directory(
        &mut self,
        io: &mut MapContext<'_, '_>,
        pages: &[MapPage],
        after: OpId,
    ) -> Result<OpId, FtlError> {
        let shape = self.area.shape;
        if shape.directory == 0 {
            return Ok(after);
        }
        let places = self.table.page_bytes() / 4;
        let touched: std::collections::BTreeSet<u32> =
            pages.iter().map(|page| page.number() / places).collect();
        let mut written = vec![after];
        for number in touched {
            let mut bytes = self.header(io).encode().to_vec();
            bytes.extend(self.area.places(MapPage::new(number * places), places).flatten());
            bytes.resize(HEADER_BYTES + self.table.page_len(), u8::MAX); // as long as a map page
            let content = Content::Bytes(Arc::from(bytes));
            let image = Image { page: shape.directory_page(number), content };
            self.count_writes(Reason::Directory, 1);
            written.push(self.area.write(io, &[image], &[after])?);
        }
        Ok(io.cx.flash.plan.join(flashatlas_types::Class::Map, &written))
    }

    /// Returns the header of a copy that is made now. The copied pages already count as unchanged.
    pub fn header(&mut self, io: &mut MapContext<'_, '_>) -> Header {
        let changed = self.changes.replay_from(io.pool.settled);
        let copied = self.copies.oldest_change(io.cx.command.oldest_unfinished);
        let survives = copied.map_or(changed, |since| changed.min(since - 1));
        Header {
            version: io.cx.flash.medium.take_number(),
            upto: io.pool.settled + if SeededBug::MapBeforeData.is_active() { 3 } else { 0 },
            replay_from: if SeededBug::ReplayTooLate.is_active() {
                io.pool.settled
            } else {
                survives
            },
            mending: self.area.mending,
        }
    }

    fn count_writes(&mut self, reason: Reason, pages: u64) {
        self.pages.writes[reason as usize] += pages;
    }

    /// Returns a map page with its current entries. If `of_base` is `true` and few of them differ
    /// from the base under the map, it has no bytes.
    fn image(&self, header: Header, page: MapPage, of_base: bool) -> Image {
        let header = header.encode();
        if of_base
            && let Some(moved) = self.table.moved(page)
            && moved.len() as u32 <= self.table.per_page / FEW
        {
            let changed = moved.collect();
            return Image { page, content: Content::OfBase(MapOfBase { header, changed }) };
        }
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.table.page_len());
        bytes.extend(header);
        self.table.encode(page, &mut bytes);
        Image { page, content: Content::Bytes(Arc::from(bytes)) }
    }

    /// Returns the number of bytes of the directory.
    pub fn directory_bytes(&self) -> u64 {
        self.area.directory_bytes()
    }

    /// Returns the counters of the pages.
    pub fn page_counters(&self) -> PageCounters {
        PageCounters { copies: self.area.copies, ..self.pages }
    }

    /// Sets the counters to zero.
    pub fn reset_counters(&mut self) {
        self.pages = PageCounters::default();
        self.area.copies = 0;
    }

    /// Checks the rules of the pages on flash: an unchanged page contains exactly the entries of
    /// the map, unless the page survives `elsewhere` or wrong bits have taken it. Returns the
    /// number of valid slots of map pages.
    ///
    /// # Errors
    /// Returns the first rule that does not hold.
    pub fn check(
        &self,
        medium: &Medium,
        pool: &Pool,
        elsewhere: impl Fn(MapPage) -> bool,
    ) -> Result<u64, Violation> {
        let valid = self.area.check(medium, pool)?;
        let mut entries = Vec::new();
        for page in self.table.page_ids().filter(|&p| !self.changes.contains(p) && !elsewhere(p)) {
            let content = self.area.place(page).map(|at| medium.map_content(at));
            let holds = match content {
                None => self.table.entries(page).all(|p| p == Ppn::NONE),
                Some(Ok(MapContent::OfBase(of_base))) => {
                    let moved = self.table.moved(page);
                    moved.is_some_and(|moved| moved.eq(of_base.changed.iter().copied()))
                }
                Some(Ok(MapContent::Bytes(bytes))) => {
                    entries.clear();
                    self.table.encode(page, &mut entries);
                    bytes[HEADER_BYTES..] == entries
                }
                // the store does not know of a page that was lost when a spare block took the place
                // of its block: a command that needs it fails, or a mount finds it
                Some(Err(_)) => self
                    .area
                    .place(page)
                    .is_some_and(|at| medium.state(pool.layout().frame_of(at)) == FrameState::Lost),
            };
            Violation::unless(
                holds,
                "an unchanged map page on flash has the current entries",
                || format!("map page {page}, slot {:?}", self.area.place(page)),
            )?;
        }
        Ok(valid)
    }
}
