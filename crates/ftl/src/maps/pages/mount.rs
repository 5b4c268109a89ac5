//! Mounts: the map is rebuilt from the map pages on flash.

use super::MapOnFlash;
use super::area::{Content, Image};
use super::table::{HEADER_BYTES, Header};
use crate::MountReport;
use crate::maps::{MapContext, MapPage, Replay};
use crate::report::Reason;
use flashatlas_nand::{MapContent, Medium};
use flashatlas_types::{BlockId, FtlError, Lpn, Ppn, SeededBug};
use std::sync::Arc;

impl MapOnFlash {
    /// Rebuilds the table from the map pages on flash.
    ///
    /// # Errors
    /// Returns an error if the power fails.
    pub fn load_all(
        &mut self,
        io: &mut MapContext<'_, '_>,
        blocks: &[BlockId],
        mount: &mut MountReport,
    ) -> Result<Replay, FtlError> {
        let unreadable: u64 =
            blocks.iter().map(|&b| u64::from(io.cx.flash.medium.unreadable_frames(b))).sum();
        mount.unreadable_frames += unreadable;
        let mut damaged = Vec::new();
        self.area.mount(io, blocks, &mut |page| damaged.push(page))?;
        let is_laid = self.lay(io.cx.flash.medium);
        if !is_laid {
            io.cx.flash.medium.write_down_maps();
        }
        let mut replay = Replay::everything(self.table.pages());
        let mut any = false;
        for page in self.table.page_ids() {
            let Some(at) = self.area.place(page) else { continue };
            any = true;
            let content = io.cx.flash.medium.map_content(at)?;
            let header = Header::of(content);
            (replay.upto[page], replay.version[page]) = (header.upto, header.version);
            replay.from = replay.from.max(header.replay_from);
            let frame = io.pool.layout().frame_of(at);
            replay.hear(io.cx.flash.medium.frame_sequence(frame)?, header.mending);
            if let (MapContent::Bytes(bytes), false) = (content, is_laid) {
                self.table.restore(page, &bytes[HEADER_BYTES..]);
            }
            mount.map_page_reads += 1;
        }
        mount.damaged_map_pages += damaged.len() as u64;
        // an unreadable frame may have been a map page, and so may a block that was erased because
        // it was unreadable. Without roll-forward, spare areas do not help: they also name pages
        // that an earlier mount gave up, and these cannot be distinguished from pages that were
        // flushed later
        self.incomplete = self.roll_forward
            && (!damaged.is_empty() || unreadable > 0 || mount.unreadable_blocks > 0);
        self.area.mending = self.incomplete;
        if self.incomplete {
            replay.from = 0; // the changes of the lost version may have any age
        } else if any && (!self.roll_forward || SeededBug::TrustStaleMap.is_active()) {
            replay.from = u64::MAX;
        }
        Ok(replay)
    }

    /// Lays the table over the base of a medium, if all data and every map page are as the base
    /// says. Returns `false` if they are not.
    fn lay(&mut self, medium: &Medium) -> bool {
        let Some(base) = medium.base_under_map() else { return false };
        let is_of_base = |page| {
            let content = self.area.place(page).map(|at| medium.map_content(at));
            matches!(content, Some(Ok(MapContent::OfBase(page))) if page.changed.is_empty())
        };
        let is_laid = self.table.page_ids().all(is_of_base);
        if is_laid {
            self.table.lay(Arc::clone(base));
        }
        is_laid
    }

    /// Continues an earlier mount that was interrupted. That mount had found damage that may no
    /// longer be visible.
    pub fn take_up(&mut self, replay: &mut Replay, mount: &mut MountReport) {
        if replay.newest.1 && self.roll_forward {
            mount.damaged_map_pages += 1;
            (self.incomplete, self.area.mending) = (true, true);
            replay.from = 0;
        }
    }

    /// Marks the damage on flash, before a mount erases unreadable blocks.
    ///
    /// # Errors
    /// Returns an error if the power fails.
    pub fn before_discard(&mut self, io: &mut MapContext<'_, '_>) -> Result<(), FtlError> {
        if self.area.mending {
            let header = Header { version: 0, upto: 0, replay_from: 0, mending: true };
            let blank = |page: MapPage| {
                let mut bytes = header.encode().to_vec();
                self.table.encode(page, &mut bytes);
                Image { page, content: Content::Bytes(Arc::from(bytes)) }
            };
            self.marked = self.area.mark(io, blank)?;
        }
        Ok(())
    }

    /// Sets an entry that a mount found in a spare area, programmed with number `sequence`.
    pub fn restore(&mut self, lpn: Lpn, ppn: Ppn, sequence: u64) {
        let page = self.table.page_of(lpn);
        self.table.set(lpn, ppn);
        self.changes.mark_found(page, self.table.index_in(page, lpn), sequence);
    }

    /// Makes room before a mount writes pages, because an interrupted collection may have taken the
    /// block that they need.
    ///
    /// # Errors
    /// Returns an error if there is no room, or if the power fails.
    pub fn before_writes(&mut self, io: &mut MapContext<'_, '_>) -> Result<(), FtlError> {
        self.changes.sort();
        self.area.collect_again(io)
    }

    /// Ends a mount. Entries that were found in spare areas are in memory. Their map pages are
    /// written in two cases: if a later mount could not find these entries again, or if `all` is
    /// `true` because memory has no room for them.
    ///
    /// # Errors
    /// Returns an error if there is no room, or if the power fails.
    pub fn mounted(
        &mut self,
        io: &mut MapContext<'_, '_>,
        mount: &mut MountReport,
        all: bool,
    ) -> Result<(), FtlError> {
        self.before_writes(io)?;
        if all || self.is_written_by_mounts() {
            let mut pages: Vec<MapPage> = self.changes.iter().collect();
            if pages.is_empty() && self.area.mending {
                pages.extend(self.marked);
            }
            mount.map_page_writes += pages.len() as u64;
            self.write(io, &mut pages, Reason::Mount, &[])?;
        }
        self.area.mending = false;
        Ok(())
    }
}
