//! Writes, trims and FLUSHes. Whole superpages are written directly, and smaller writes are
//! gathered.

use super::Hard;
use super::format::Change;
use super::lower::Data;
use super::map::NONE;
use super::settings::RECLAIM;
use flashatlas_device::SubmitError;
use flashatlas_device::pieces::{Content, Piece, pieces, placed, slice_of};
use flashatlas_types::{Lba, Ps, SECTOR_BYTES, SeededBug, Stamp, Tag};
use smallvec::SmallVec;
use std::sync::Arc;

/// Greatest number of superpages that one command to the lower device writes.
const RUN: usize = 64;

impl Hard {
    pub(super) fn write(
        &mut self,
        now: Ps,
        tag: Tag,
        (lba, sectors): (Lba, u32),
        fua: bool,
        content: Content<'_>,
        data: Option<&[u8]>,
    ) -> Result<(), SubmitError> {
        let (page_sectors, per_superpage) = (self.areas.page_sectors, self.areas.pages as usize);
        let all: SmallVec<[Piece; 8]> = pieces(lba, sectors, page_sectors).collect();
        let mut waits: SmallVec<[Tag; 4]> = SmallVec::new();
        let mut rest = &all[..];
        while let Some(piece) = rest.first() {
            let covered = |group: &[Piece]| group.iter().all(|p| p.is_whole(page_sectors));
            let whole = rest.chunks_exact(per_superpage).take_while(|group| covered(group)).count();
            if piece.lpn.0 % self.areas.pages == 0 && whole > 0 {
                let (direct, others) = rest.split_at(whole * per_superpage);
                self.write_direct(now, direct, content, data, &mut waits)?;
                rest = others;
            } else {
                self.gather(now, piece, content, data, &mut waits)?;
                rest = &rest[1..];
            }
        }
        if fua {
            if !self.buffer.is_empty() {
                self.counters.flushed += 1;
                self.dispatch(now)?;
            }
            waits.push(self.make_durable(now)?);
        }
        self.complete(now, tag, &waits, all.len() as u32);
        Ok(())
    }

    /// Writes aligned pages that fill superpages. Consecutive free superpages are written together.
    fn write_direct(
        &mut self,
        now: Ps,
        mut direct: &[Piece],
        content: Content<'_>,
        data: Option<&[u8]>,
        waits: &mut SmallVec<[Tag; 4]>,
    ) -> Result<(), SubmitError> {
        let (page_sectors, per_superpage) = (self.areas.page_sectors, self.areas.pages as usize);
        while !direct.is_empty() {
            self.make_room(now)?;
            self.log_room(now, self.areas.pages)?;
            let spare = self.map.free.len().saturating_sub(RECLAIM as usize).max(1);
            let most = (direct.len() / per_superpage)
                .min(RUN)
                .min(self.log.room(&self.areas, self.areas.pages))
                .min(spare);
            let (first, count, freed_by) = self.take_free(most as u32);
            let (group, rest) = direct.split_at(count as usize * per_superpage);
            let lpns: Vec<u32> = group.iter().map(|p| p.lpn.0).collect();
            let stamps: Vec<Stamp> =
                group.iter().map(|p| content.stamp(p, Stamp::ZERO, page_sectors)).collect();
            for &lpn in &lpns {
                self.buffer.drop_page(lpn);
            }
            let bytes = data.map(|d| {
                let start = (group[0].offset * SECTOR_BYTES) as usize;
                &d[start..start + (group.len() as u32 * page_sectors * SECTOR_BYTES) as usize]
            });
            let after: SmallVec<[Tag; 4]> =
                self.sent_after.iter().copied().chain(freed_by).collect();
            let tag = self.lower.reserve_tag();
            let to = self.areas.data_first() + first;
            self.lower.write(now, tag, to, &Data { stamps: &stamps, bytes }, &after)?;
            self.counters.direct_superpages += u64::from(count);
            for (superpage, lpns) in (first..).zip(lpns.chunks(per_superpage)) {
                self.enter(superpage, lpns);
            }
            waits.push(tag);
            self.close_segment(now)?;
            direct = rest;
        }
        Ok(())
    }

    /// Puts a page into the merge buffer, and sends the buffer when it is full.
    fn gather(
        &mut self,
        now: Ps,
        piece: &Piece,
        content: Content<'_>,
        data: Option<&[u8]>,
        waits: &mut SmallVec<[Tag; 4]>,
    ) -> Result<(), SubmitError> {
        let page_sectors = self.areas.page_sectors;
        let place = self.buffer.find(piece.lpn.0);
        if self.buffer.is_empty() {
            self.open_buffer(now);
        }
        self.buffer.after.extend_from_slice(&self.sent_after);
        waits.extend(self.buffer.admitted_by);
        let mut old = (Stamp::ZERO, None);
        if let Some(place) = place {
            old = (self.buffer.stamps[place], self.buffer.bytes_at(place).map(Arc::from));
            self.counters.replaced_pages += 1;
        } else if !piece.is_whole(page_sectors)
            && let Some(vpn) = self.map.get(piece.lpn.0)
        {
            let lba = self.sector_of(vpn);
            let read = self.lower.read(now, lba, page_sectors, &self.sent_after)?;
            let stamp =
                self.lower.pages_read(lba, page_sectors).next().expect("the page was read")?;
            old = (stamp, data.map(|_| Arc::from(self.lower.bytes_read())));
            self.counters.partial_pages += 1;
            self.buffer.after.push(read);
            waits.push(read);
        }
        let page_bytes = (page_sectors * SECTOR_BYTES) as usize;
        let bytes = data.map(|d| placed(slice_of(d, piece), piece, old.1, page_bytes));
        self.buffer.put(piece.lpn.0, content.stamp(piece, old.0, page_sectors), bytes.as_deref());
        self.counters.merged_pages += 1;
        if self.settings.complete_when_written {
            waits.push(self.buffer.tag);
        }
        if self.buffer.is_full() {
            self.counters.full += 1;
            self.dispatch(now)?;
        }
        Ok(())
    }

    /// Begins to gather a new superpage. It may have to wait for an earlier superpage write.
    fn open_buffer(&mut self, now: Ps) {
        self.forget_written();
        let surplus = (self.sent.len() + 1).checked_sub(self.settings.buffers);
        self.buffer.admitted_by = surplus.filter(|&n| n > 0).map(|n| self.sent[n - 1]);
        self.buffer.since = now;
        self.buffer.tag = self.lower.reserve_tag();
    }

    /// Removes completed superpage writes from the list of writes in flight.
    fn forget_written(&mut self) {
        let completions = &self.lower.completions;
        while self.sent.front().is_some_and(|&tag| !completions.is_in_flight(tag)) {
            self.sent.pop_front();
        }
    }

    /// Sends the gathered superpage to the drive.
    ///
    /// The superpage's free places are filled with reclaimed pages, or padded.
    pub(super) fn dispatch(&mut self, now: Ps) -> Result<(), SubmitError> {
        self.make_room(now)?;
        if self.settings.fill && !self.buffer.is_full() {
            self.fill(now)?;
        }
        let (tag, mut after) = (self.buffer.tag, std::mem::take(&mut self.buffer.after));
        after.extend(self.buffer.admitted_by.take());
        let (lpns, stamps, bytes) = self.buffer.take();
        self.counters.padded_pages += lpns.iter().filter(|&&lpn| lpn == NONE).count() as u64;
        self.send_superpage(
            now,
            tag,
            &lpns,
            &Data { stamps: &stamps, bytes: bytes.as_deref() },
            &mut after,
        )?;
        self.close_segment(now)
    }

    /// Writes pages to a free superpage, and adds them to the map.
    pub(super) fn send_superpage(
        &mut self,
        now: Ps,
        tag: Tag,
        lpns: &[u32],
        data: &Data<'_>,
        after: &mut Vec<Tag>,
    ) -> Result<(), SubmitError> {
        self.log_room(now, self.areas.pages)?;
        let (superpage, _, freed_by) = self.take_free(1);
        after.extend(freed_by);
        self.lower.write(now, tag, self.areas.data_first() + superpage, data, after)?;
        self.enter(superpage, lpns);
        self.forget_written();
        self.sent.push_back(tag);
        Ok(())
    }

    /// Adds the pages of a written superpage to the map and to the log.
    fn enter(&mut self, superpage: u32, lpns: &[u32]) {
        self.map.written(superpage, lpns);
        self.log.note(Change::Written(superpage, lpns));
        if SeededBug::ReuseVacated.is_active() {
            let vacated = std::mem::take(&mut self.map.vacated);
            self.map.free.extend(vacated);
        }
    }

    /// Takes at most `most` consecutive free superpages.
    ///
    /// Returns the first superpage, their number, and the commands for which a write to them waits.
    fn take_free(&mut self, most: u32) -> (u32, u32, SmallVec<[Tag; 2]>) {
        let first = self.map.free.pop_front().expect("reclamation left a superpage");
        let mut count = 1;
        while count < most && self.map.free.front() == Some(&(first + count)) {
            self.map.free.pop_front();
            count += 1;
        }
        (first, count, self.log.freed_by(self.map.free.len()))
    }

    pub(super) fn trim(
        &mut self,
        now: Ps,
        tag: Tag,
        lba: Lba,
        sectors: u32,
    ) -> Result<(), SubmitError> {
        let page_sectors = self.areas.page_sectors;
        let whole = || {
            pieces(lba, sectors, page_sectors).filter(|p| p.is_whole(page_sectors)).map(|p| p.lpn.0)
        };
        // a full record is written before the trim, because a record without the trim must not free
        // superpages that the trim vacates
        self.log_room(now, 1)?;
        let (mut first, mut count) = (NONE, 0);
        for lpn in whole() {
            self.buffer.drop_page(lpn);
            if self.map.get(lpn).is_some() {
                self.map.trimmed(lpn);
                first = first.min(lpn);
                count = lpn - first + 1;
            }
        }
        if count > 0 && !SeededBug::DropTrimRecord.is_active() {
            self.log.note(Change::Trimmed(first, count));
        }
        self.complete(now, tag, &[], whole().count() as u32);
        Ok(())
    }

    /// Makes everything durable.
    ///
    /// The gathered superpage is sent, the log records the changes of the map, and the lower device
    /// makes both durable.
    pub(super) fn flush(&mut self, now: Ps, tag: Tag) -> Result<(), SubmitError> {
        if !self.buffer.is_empty() {
            self.counters.flushed += 1;
            self.dispatch(now)?;
        }
        let durable = self.make_durable(now)?;
        self.complete(now, tag, &[durable], 0);
        Ok(())
    }
}
