//! The lower device in units of superpages, with the commands that are sent to it and its contents
//! (see [`Contents`]).

use super::settings::Areas;
use crate::completion::CompletionTracker;
use flashatlas_device::pieces::{pieces, units};
use flashatlas_device::{
    Cmd, Contents, Done, LayerError, Pages, Reply, Storage, Submission, SubmitError, UnitContent,
};
use flashatlas_types::{Lba, Lpn, Ps, SECTOR_BYTES, Stamp, Tag};

/// The lower device, and its commands in flight.
pub(super) struct LowerDevice {
    pub device: Box<dyn Storage>,
    pub contents: Contents,
    pub completions: CompletionTracker,
    pub instant: bool,
    keep_bytes: bool,
    next_tag: u64,
    unit_sectors: u32,
    page_sectors: u32,
    superpage_sectors: u32,
    reply: Reply,
    /// Stamps of the units of a write.
    stamps: Vec<Stamp>,
    /// Commands that the device completed; empty between calls.
    done: Vec<Done>,
    /// Writes that were sent since the last FLUSH.
    unflushed: Vec<Tag>,
    pub counters: LowerTraffic,
}

/// Counts of the commands that were sent to the lower device.
#[derive(Clone, Copy, Default)]
pub(super) struct LowerTraffic {
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub trims: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
}

/// Data of a superpage write.
pub(super) struct Data<'a> {
    pub stamps: &'a [Stamp],
    pub bytes: Option<&'a [u8]>,
}

impl LowerDevice {
    pub fn new(device: Box<dyn Storage>, areas: &Areas, keep_bytes: bool) -> LowerDevice {
        LowerDevice {
            contents: Contents::default(),
            completions: CompletionTracker::default(),
            instant: true,
            keep_bytes,
            next_tag: 0,
            unit_sectors: device.unit_sectors(),
            page_sectors: areas.page_sectors,
            superpage_sectors: areas.superpage_sectors(),
            device,
            reply: Reply::default(),
            stamps: Vec::new(),
            done: Vec::new(),
            unflushed: Vec::new(),
            counters: LowerTraffic::default(),
        }
    }

    /// Removes the commands that were in flight when the power failed.
    pub fn forget_flights(&mut self) {
        self.completions = CompletionTracker::default();
        self.unflushed.clear();
    }

    /// Returns a tag for a command that will be sent later.
    pub fn reserve_tag(&mut self) -> Tag {
        self.next_tag += 1;
        let tag = Tag(self.next_tag);
        if !self.instant {
            self.completions.sent(tag);
        }
        tag
    }

    fn send(&mut self, now: Ps, tag: Tag, cmd: Cmd<'_>, after: &[Tag]) -> Result<Tag, SubmitError> {
        let sent = self.device.submit_after(Submission { now, tag, cmd, after }, &mut self.reply);
        if sent.is_err() && !self.instant {
            self.completions.refused(tag);
        }
        sent.map(|()| tag)
    }

    fn first_sector(&self, superpage: u32) -> Lba {
        Lba(u64::from(superpage) * u64::from(self.superpage_sectors))
    }

    /// Reads sectors.
    ///
    /// [`LowerDevice::pages_read`] and [`LowerDevice::bytes_read`] return the result until the next
    /// command.
    pub fn read(
        &mut self,
        now: Ps,
        lba: u64,
        sectors: u32,
        after: &[Tag],
    ) -> Result<Tag, SubmitError> {
        self.counters.reads += 1;
        self.counters.read_bytes += u64::from(sectors) * u64::from(SECTOR_BYTES);
        let tag = self.reserve_tag();
        self.send(now, tag, Cmd::Read { lba: Lba(lba), sectors }, after)
    }

    /// Returns the stamps of the layer's pages from the last read.
    ///
    /// The last read was of `sectors` sectors from `lba` on. An error stands for a page that this
    /// layer did not write.
    pub fn pages_read(
        &self,
        lba: u64,
        sectors: u32,
    ) -> impl Iterator<Item = Result<Stamp, SubmitError>> {
        let first = units(Lba(lba), sectors, self.unit_sectors).start;
        pieces(Lba(lba), sectors, self.page_sectors).map(move |piece| {
            let lba = lba + u64::from(piece.offset);
            let touched = units(Lba(lba), piece.sectors, self.unit_sectors);
            let stamps = &self.reply.stamps
                [(touched.start - first) as usize..(touched.end - first) as usize];
            self.page_of(lba, stamps.iter().copied())
        })
    }

    /// Returns the stamp of the page at sector `lba`, from the stamps of the units that hold it.
    fn page_of(
        &self,
        lba: u64,
        mut units: impl Iterator<Item = Stamp>,
    ) -> Result<Stamp, SubmitError> {
        let first = units.next();
        let page = if self.unit_sectors <= self.page_sectors {
            first.filter(|&stamp| units.all(|other| other == stamp))
        } else {
            let part = (lba % u64::from(self.unit_sectors)) as u32 / self.page_sectors;
            match first.and_then(|unit| self.contents.get(unit)) {
                Some(UnitContent::Pages(pages)) => pages.get(part as usize).copied(),
                _ => None,
            }
        };
        page.ok_or_else(|| {
            let what = format!(
                "sector {lba} of the lower device does not hold the page that was written there"
            );
            LayerError::Damaged { layer: "hard", what }.into()
        })
    }

    /// Returns the bytes of the last read.
    pub fn bytes_read(&self) -> &[u8] {
        &self.reply.bytes
    }

    /// Returns the stamp of the page at sector `lba`, without a command to the device.
    pub fn page_held(&self, lba: u64) -> Result<Stamp, SubmitError> {
        let units: Result<Vec<Stamp>, SubmitError> =
            units(Lba(lba), self.page_sectors, self.unit_sectors)
                .map(|unit| self.device.peek_stamp(Lpn(unit as u32)))
                .collect();
        self.page_of(lba, units?.into_iter())
    }

    /// Writes consecutive superpages that hold pages.
    pub fn write(
        &mut self,
        now: Ps,
        tag: Tag,
        superpage: u32,
        data: &Data<'_>,
        after: &[Tag],
    ) -> Result<Tag, SubmitError> {
        let (lba, pages) = (self.first_sector(superpage), data.stamps.iter());
        let mut stamps = std::mem::take(&mut self.stamps);
        stamps.clear();
        if self.unit_sectors <= self.page_sectors {
            // a unit that holds a page or a part of a page has the page's stamp
            let each = (self.page_sectors / self.unit_sectors) as usize;
            stamps.extend(pages.flat_map(|&stamp| std::iter::repeat_n(stamp, each)));
        } else {
            let each = (self.unit_sectors / self.page_sectors) as usize;
            let units = data
                .stamps
                .chunks_exact(each)
                .map(|pages| UnitContent::Pages(Pages::from_slice(pages)));
            stamps.extend(units.map(|unit| self.contents.compose(unit)));
        }
        let cmd = Cmd::WriteUnits { lba, fua: false, stamps: &stamps, data: data.bytes };
        let sent = self.write_sectors(now, tag, cmd, after);
        self.stamps = stamps;
        sent
    }

    /// Writes a record of the layer.
    pub fn write_record(
        &mut self,
        now: Ps,
        superpage: u32,
        bytes: &[u8],
        fua: bool,
        after: &[Tag],
    ) -> Result<Tag, SubmitError> {
        let stamps = self.contents.compose_record(bytes, self.unit_sectors * SECTOR_BYTES);
        let (lba, data) = (self.first_sector(superpage), self.keep_bytes.then_some(bytes));
        let tag = self.reserve_tag();
        self.write_sectors(now, tag, Cmd::WriteUnits { lba, fua, stamps: &stamps, data }, after)
    }

    fn write_sectors(
        &mut self,
        now: Ps,
        tag: Tag,
        cmd: Cmd<'_>,
        after: &[Tag],
    ) -> Result<Tag, SubmitError> {
        if let Some((_, sectors)) = cmd.range(self.unit_sectors) {
            self.counters.writes += 1;
            self.counters.write_bytes += u64::from(sectors) * u64::from(SECTOR_BYTES);
        }
        if !self.instant {
            self.unflushed.push(tag);
        }
        self.send(now, tag, cmd, after)
    }

    /// Returns the bytes of a superpage, or `Ok(None)` if it holds no record of this layer.
    pub fn read_record(&mut self, now: Ps, superpage: u32) -> Result<Option<Vec<u8>>, SubmitError> {
        let (lba, sectors) = (self.first_sector(superpage), self.superpage_sectors);
        self.read(now, lba.0, sectors, &[])?;
        if self.keep_bytes {
            return Ok(Some(self.reply.bytes.clone()));
        }
        Ok(self.contents.record(&self.reply.stamps, self.unit_sectors * SECTOR_BYTES))
    }

    /// Returns the first sector of the first superpage that holds data, or `None` if the device is
    /// blank.
    pub fn first_used(&mut self, now: Ps) -> Result<Option<u64>, SubmitError> {
        let all = self.device.sectors();
        let step = u64::from(self.superpage_sectors);
        for lba in (0..all).step_by(step as usize) {
            self.read(now, lba, step.min(all - lba) as u32, &[])?;
            // units of zeros may be left from a superblock that was only partly written
            let zeros = |&stamp: &Stamp| match self.contents.get(stamp) {
                Some(UnitContent::Bytes(bytes)) => bytes.is_empty(),
                _ => stamp == Stamp::ZERO,
            };
            let blank = if self.keep_bytes {
                self.reply.bytes.iter().all(|&b| b == 0)
            } else {
                self.reply.stamps.iter().all(zeros)
            };
            if !blank {
                return Ok(Some(lba));
            }
        }
        Ok(None)
    }

    /// Makes every write so far durable.
    pub fn flush(&mut self, now: Ps, after: &[Tag]) -> Result<Tag, SubmitError> {
        self.counters.flushes += 1;
        let completions = &self.completions;
        let mut waits = std::mem::take(&mut self.unflushed);
        waits.retain(|&tag| completions.is_in_flight(tag));
        waits.extend_from_slice(after);
        let tag = self.reserve_tag();
        if !self.instant {
            self.unflushed.push(tag); // the next FLUSH waits for this one
        }
        self.send(now, tag, Cmd::Flush, &waits)
    }

    /// Tells the device that superpages are no longer needed.
    pub fn trim(
        &mut self,
        now: Ps,
        superpage: u32,
        count: u32,
        after: &[Tag],
    ) -> Result<Tag, SubmitError> {
        self.counters.trims += 1;
        let (lba, sectors) = (self.first_sector(superpage), count * self.superpage_sectors);
        let tag = self.reserve_tag();
        self.send(now, tag, Cmd::Trim { lba, sectors }, after)
    }

    /// Advances the device up to and including `until`.
    ///
    /// Appends the commands from above that are then complete to `out`.
    #[inline]
    pub fn advance(&mut self, until: Ps, out: &mut Vec<Done>) {
        self.device.advance(until, &mut self.done);
        // most events complete no command
        if !self.done.is_empty() || self.completions.next_due().is_some_and(|at| at <= until) {
            self.pass_up(until, out);
        }
    }

    fn pass_up(&mut self, until: Ps, out: &mut Vec<Done>) {
        let first = out.len();
        self.done.drain(..).for_each(|done| self.completions.done(done, out));
        if self.completions.complete_due(until, out) {
            out[first..].sort_by_key(|d| d.at);
        }
    }

    /// Removes the contents of stamps that the device no longer holds, if there are many.
    pub fn forget_stale(&mut self) {
        let units = self.device.shape().units();
        if self.contents.len() > 2 * units as usize + (1 << 16) {
            let held: rustc_hash::FxHashSet<Stamp> =
                (0..units).filter_map(|unit| self.device.peek_stamp(Lpn(unit)).ok()).collect();
            self.contents.retain(|stamp| held.contains(&stamp));
        }
    }
}
