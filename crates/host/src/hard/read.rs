//! Reads. Each page is looked up, and pages that are consecutive on the lower device are read
//! together. So one request may become several commands. In the paper, reads are 5 % slower because
//! of this.

use super::Hard;
use flashatlas_device::pieces::{Piece, pieces};
use flashatlas_device::{Reply, SubmitError};
use flashatlas_types::{Lba, Ps, SECTOR_BYTES, Stamp, Tag};
use smallvec::SmallVec;

/// Pieces of pages that are consecutive on the lower device.
struct PageRun {
    lba: u64,
    sectors: u32,
}

impl Hard {
    pub(super) fn read(
        &mut self,
        now: Ps,
        tag: Tag,
        lba: Lba,
        sectors: u32,
        reply: &mut Reply,
    ) -> Result<(), SubmitError> {
        self.counters.reads += 1;
        let mut waits: SmallVec<[Tag; 4]> = SmallVec::new();
        let mut run: Option<PageRun> = None;
        let mut lookups = 0;
        for piece in pieces(lba, sectors, self.areas.page_sectors) {
            lookups += 1;
            let buffered = self.buffer.find(piece.lpn.0);
            let stands = self.map.get(piece.lpn.0).filter(|_| buffered.is_none());
            if let Some(vpn) = stands {
                let at = self.sector_of(vpn) + u64::from(piece.first);
                match &mut run {
                    Some(run) if run.lba + u64::from(run.sectors) == at => {
                        run.sectors += piece.sectors
                    }
                    _ => {
                        self.read_run(now, run.take(), &mut waits, reply)?;
                        run = Some(PageRun { lba: at, sectors: piece.sectors });
                    }
                }
                continue;
            }
            self.read_run(now, run.take(), &mut waits, reply)?;
            self.answer(&piece, buffered, &mut waits, reply);
        }
        self.read_run(now, run, &mut waits, reply)?;
        self.complete(now, tag, &waits, lookups);
        Ok(())
    }

    /// Adds to the reply a page from the merge buffer, or zeros for a page that was never written.
    fn answer(
        &mut self,
        piece: &Piece,
        buffered: Option<usize>,
        waits: &mut SmallVec<[Tag; 4]>,
        reply: &mut Reply,
    ) {
        reply.stamps.push(buffered.map_or(Stamp::ZERO, |place| self.buffer.stamps[place]));
        if self.settings.keep_bytes {
            let bytes = (piece.sectors * SECTOR_BYTES) as usize;
            match buffered.and_then(|place| self.buffer.bytes_at(place)) {
                Some(page) => reply
                    .bytes
                    .extend_from_slice(&page[(piece.first * SECTOR_BYTES) as usize..][..bytes]),
                None => reply.bytes.extend(std::iter::repeat_n(0, bytes)),
            }
        }
        if buffered.is_none() {
            self.counters.unmapped_units += 1;
        } else {
            self.counters.buffer_hits += 1;
            // a partial page in the buffer is complete only after the read of its other sectors
            waits.extend_from_slice(&self.buffer.after);
        }
    }

    fn read_run(
        &mut self,
        now: Ps,
        run: Option<PageRun>,
        waits: &mut SmallVec<[Tag; 4]>,
        reply: &mut Reply,
    ) -> Result<(), SubmitError> {
        let Some(PageRun { lba, sectors }) = run else { return Ok(()) };
        waits.push(self.lower.read(now, lba, sectors, &self.sent_after)?);
        for stamp in self.lower.pages_read(lba, sectors) {
            reply.stamps.push(stamp?);
        }
        if self.settings.keep_bytes {
            reply.bytes.extend_from_slice(self.lower.bytes_read());
        }
        Ok(())
    }
}
