//! Virtual address reclamation (HARD, Fig. 14.3). Valid pages of superpages with many invalid pages
//! are read, and written together to a free superpage. The superpages that held them are then free.

use super::Hard;
use super::lower::Data;
use super::map::NONE;
use super::settings::RECLAIM;
use flashatlas_device::SubmitError;
use flashatlas_types::{FtlError, Ps, SECTOR_BYTES, Stamp, Tag};

/// Pages that are moved to another superpage.
#[derive(Default)]
struct Moving {
    lpns: Vec<u32>,
    stamps: Vec<Stamp>,
    bytes: Vec<u8>,
    reads: Vec<Tag>,
}

impl Hard {
    /// Ensures that a superpage is free.
    pub(super) fn make_room(&mut self, now: Ps) -> Result<(), SubmitError> {
        // one round for each superpage is enough, because each round empties a superpage
        for _ in 0..=self.areas.data {
            let (free, vacated) = (self.map.free.len() as u32, self.map.vacated.len() as u32);
            if free <= RECLAIM && vacated > 0 {
                self.record(now)?;
                continue;
            }
            if free + vacated > self.settings.low_water {
                return Ok(());
            }
            if free == 0 || !self.reclaim(now)? {
                break;
            }
        }
        if self.map.free.is_empty() {
            return Err(SubmitError::Ftl(FtlError::NoSpace {
                free_blocks: 0,
                valid_units: self.map.valid_count(),
                physical_units: u64::from(self.areas.data) * u64::from(self.areas.pages),
            }));
        }
        Ok(())
    }

    /// Moves pages until a superpage is full. Returns `false` if there were no pages to move.
    fn reclaim(&mut self, now: Ps) -> Result<bool, SubmitError> {
        let wanted = self.areas.pages as usize;
        let mut moving = Moving::default();
        let mut aside = Vec::new();
        while moving.lpns.len() < wanted {
            let Some((victim, valid)) = self.map.victim() else { break };
            let all = valid as usize <= wanted - moving.lpns.len();
            self.pick_up(now, victim, wanted, &mut moving)?;
            if !all {
                break;
            }
            self.map.set_aside(victim); // so that the policy picks another superpage
            aside.push(victim);
        }
        self.map.put_back(&aside);
        if moving.lpns.is_empty() {
            return Ok(false);
        }
        self.counters.reclaim_rounds += 1;
        self.counters.reclaimed_pages += moving.lpns.len() as u64;
        let Moving { mut lpns, mut stamps, mut bytes, mut reads } = moving;
        lpns.resize(wanted, NONE);
        stamps.resize(wanted, Stamp::ZERO);
        bytes.resize(self.areas.superpage_bytes() as usize, 0);
        let bytes = self.settings.keep_bytes.then_some(&bytes[..]);
        let tag = self.lower.reserve_tag();
        self.send_superpage(now, tag, &lpns, &Data { stamps: &stamps, bytes }, &mut reads)?;
        Ok(true)
    }

    /// Reads valid pages of a superpage until `moving` holds `wanted` pages.
    fn pick_up(
        &mut self,
        now: Ps,
        victim: u32,
        wanted: usize,
        moving: &mut Moving,
    ) -> Result<(), SubmitError> {
        let pages: Vec<(u32, u32)> =
            self.map.valid_pages(victim).take(wanted - moving.lpns.len()).collect();
        let page_sectors = self.areas.page_sectors;
        for run in pages.chunk_by(|a, b| a.0 + 1 == b.0) {
            let (lba, sectors) = (self.sector_of(run[0].0), run.len() as u32 * page_sectors);
            moving.reads.push(self.lower.read(now, lba, sectors, &[])?);
            for (&(_, lpn), stamp) in run.iter().zip(self.lower.pages_read(lba, sectors)) {
                moving.lpns.push(lpn);
                moving.stamps.push(stamp?);
            }
            if self.settings.keep_bytes {
                moving.bytes.extend_from_slice(self.lower.bytes_read());
            }
        }
        Ok(())
    }

    /// Fills free places of the merge buffer with the valid pages of other superpages, if all valid
    /// pages of a superpage fit.
    pub(super) fn fill(&mut self, now: Ps) -> Result<(), SubmitError> {
        let mut aside = Vec::new();
        while let Some((victim, valid)) =
            self.map.victim().filter(|&(_, valid)| valid as usize <= self.buffer.room())
        {
            let newer = |(_, lpn)| self.buffer.find(lpn).is_some();
            if valid == 0 || self.map.valid_pages(victim).any(newer) {
                break; // pages in the buffer will replace some of its valid pages
            }
            let mut moving = Moving::default();
            self.pick_up(now, victim, valid as usize, &mut moving)?;
            let page_bytes = (self.areas.page_sectors * SECTOR_BYTES) as usize;
            for (i, (&lpn, &stamp)) in moving.lpns.iter().zip(&moving.stamps).enumerate() {
                let bytes = self
                    .settings
                    .keep_bytes
                    .then(|| &moving.bytes[i * page_bytes..(i + 1) * page_bytes]);
                self.buffer.put(lpn, stamp, bytes);
            }
            self.counters.filled_pages += u64::from(valid);
            self.buffer.after.extend(moving.reads);
            self.map.set_aside(victim);
            aside.push(victim);
            if self.buffer.is_full() {
                break;
            }
        }
        self.map.put_back(&aside);
        Ok(())
    }
}
