//! The log, which stores the map on the drive.
//!
//! The log consists of a ring of records with the changes since the last checkpoint, and of two
//! checkpoints of the whole map, which are written in turn.
//!
//! A record is written in four cases: a segment of superpages is full (a *summary*), a FLUSH or FUA
//! needs it (a *journal* of the open segment), vacated superpages are needed, or the record cannot
//! hold more changes. All data that a record maps is made durable before the record. The record
//! itself is durable (FUA) before a superpage that it vacates is written again, and before the
//! command that caused the record is complete. So a mount can rely on every record that it can
//! read. A torn record loses no promised data, because its command was not complete.
//!
//! A checkpoint is begun when half of the ring is used. It is written a few superpages at a time,
//! together with the next records. Its chunks may contain changes that were made after it was
//! begun. These changes are also in the records since the beginning of the checkpoint, and a mount
//! applies them again, in order.

use super::Hard;
use super::format::{Change, Kind, Record, push};
use super::settings::Areas;
use flashatlas_device::SubmitError;
use flashatlas_types::{Ps, SeededBug, Tag, Violation};
use smallvec::SmallVec;

/// Number of places that are kept free in the ring while a checkpoint is written.
const SLACK: u32 = 3;

/// The state of the log.
#[derive(Default)]
pub(super) struct Log {
    /// Changes since the last record.
    pending: Vec<u32>,
    /// Number of superpages written since the last record.
    superpages: u32,
    /// Number of the next record.
    pub next: u64,
    /// First record that a mount replays. The changes of earlier records are in the checkpoint.
    pub start: u64,
    /// Generation of the complete checkpoint; 0 if there is none yet.
    pub generation: u64,
    /// The write of the last record or checkpoint that was sent.
    last: Option<Tag>,
    /// Trims of the superpages that the last records vacated.
    trims: Vec<Tag>,
    /// Number of superpages at the end of the free list to which a write must wait for `last` and
    /// `trims`.
    fresh: usize,
    checkpoint: Option<Checkpoint>,
}

/// A checkpoint that is being written.
struct Checkpoint {
    start: u64,
    next_chunk: u32,
}

impl Log {
    /// Returns the log after a mount.
    pub fn after(start: u64, next: u64, generation: u64) -> Log {
        Log { start, next, generation, ..Log::default() }
    }

    /// Returns how many changes of superpages with `pages` pages still fit into the next record. (A
    /// trim takes as much room as a superpage of one page.)
    pub fn room(&self, areas: &Areas, pages: u32) -> usize {
        (areas.chunk_entries as usize - self.pending.len()) / (1 + pages as usize)
    }

    /// Adds a change of the map to the next record.
    pub fn note(&mut self, change: Change<'_>) {
        push(&mut self.pending, change);
        self.superpages += u32::from(matches!(change, Change::Written(..)));
    }

    /// Returns the commands for which a write to free superpages waits.
    ///
    /// The write leaves `left` superpages free.
    pub fn freed_by(&mut self, left: usize) -> SmallVec<[Tag; 2]> {
        let waits = left < self.fresh;
        self.fresh = self.fresh.min(left);
        self.last.iter().chain(&self.trims).copied().filter(|_| waits).collect()
    }

    pub fn check(&self, areas: &Areas) -> Result<(), Violation> {
        let used = self.next - self.start;
        Violation::unless(
            used <= u64::from(areas.ring),
            "the ring holds every record since the checkpoint",
            || format!("{used} records are in a ring of {} places", areas.ring),
        )
    }
}

impl Hard {
    /// Makes room in the next record for a change of a superpage with `pages` pages.
    ///
    /// The caller adds the change itself later.
    pub(super) fn log_room(&mut self, now: Ps, pages: u32) -> Result<(), SubmitError> {
        if self.log.room(&self.areas, pages) == 0 {
            self.record(now)?;
        }
        Ok(())
    }

    /// Writes the summary of the segment, if the segment is full.
    pub(super) fn close_segment(&mut self, now: Ps) -> Result<(), SubmitError> {
        if self.log.superpages >= self.settings.segment {
            self.record(now)?;
        }
        Ok(())
    }

    /// Makes all writes so far durable. Returns the command that completes when they are durable.
    pub(super) fn make_durable(&mut self, now: Ps) -> Result<Tag, SubmitError> {
        if !self.log.pending.is_empty() {
            return self.record(now);
        }
        let after: Vec<Tag> =
            self.log.last.into_iter().chain(self.sent_after.iter().copied()).collect();
        self.lower.flush(now, &after)
    }

    /// Writes a record of the changes since the last record, and frees the superpages that they
    /// vacated.
    pub(super) fn record(&mut self, now: Ps) -> Result<Tag, SubmitError> {
        if self.log.next - self.log.start >= u64::from(self.areas.ring) {
            // several mounts have abandoned checkpoints, so the ring is full; a complete checkpoint
            // frees its places
            self.lower.flush(now, self.log.last.as_slice())?;
            self.write_checkpoint(now, self.areas.chunks)?;
        }
        let full = self.log.superpages >= self.settings.segment;
        let kind = if full { Kind::Summary } else { Kind::Journal };
        *(if full { &mut self.counters.summaries } else { &mut self.counters.journals }) += 1;
        let mut after = vec![self.flush_before(now, SeededBug::RecordBeforeData)?];
        after.extend(self.log.last);
        let words = std::mem::take(&mut self.log.pending);
        let record =
            Record { kind, sequence: self.log.next, words }.encode(self.areas.superpage_bytes());
        let place = self.areas.record(self.log.next);
        let tag = self.lower.write_record(now, place, &record, true, &after)?;
        let completions = &self.lower.completions;
        self.log.trims.retain(|&trim| completions.is_in_flight(trim));
        let settled = self.log.trims.is_empty()
            && !self.log.last.is_some_and(|last| completions.is_in_flight(last));
        self.log.fresh = if settled { 0 } else { self.log.fresh } + self.map.vacated.len();
        (self.log.superpages, self.log.last) = (0, Some(tag));
        self.log.next += 1;
        self.free_vacated(now, tag)?;
        let used = (self.log.next - self.log.start) as u32;
        assert!(
            used <= self.areas.ring,
            "{used} records are in a ring of {} places",
            self.areas.ring
        );
        if self.log.checkpoint.is_some() || used >= self.areas.ring / 2 {
            // the checkpoint must be complete before the ring is full
            let done = self.log.checkpoint.as_ref().map_or(0, |c| c.next_chunk);
            let places = self.areas.ring.saturating_sub(used + SLACK).max(1);
            self.write_checkpoint(now, (self.areas.chunks - done).div_ceil(places))?;
        }
        self.lower.forget_stale();
        Ok(tag)
    }

    /// Sends a FLUSH, so that earlier writes are durable before the next write.
    fn flush_before(&mut self, now: Ps, unless: SeededBug) -> Result<Tag, SubmitError> {
        if unless.is_active() {
            Ok(self.log.last.unwrap_or(Tag(0)))
        } else {
            self.lower.flush(now, self.log.last.as_slice())
        }
    }

    /// Frees the superpages that the record has vacated, and trims them on the lower device.
    fn free_vacated(&mut self, now: Ps, record: Tag) -> Result<(), SubmitError> {
        let mut vacated = std::mem::take(&mut self.map.vacated);
        vacated.sort_unstable();
        if self.settings.trim {
            for run in vacated.chunk_by(|a, b| a + 1 == *b) {
                let first = self.areas.data_first() + run[0];
                self.log.trims.push(self.lower.trim(now, first, run.len() as u32, &[record])?);
            }
        }
        self.map.free.extend(&vacated);
        vacated.clear();
        self.map.vacated = vacated;
        Ok(())
    }

    /// Writes the next `parts` parts of the checkpoint. The checkpoint is valid after its last
    /// part.
    fn write_checkpoint(&mut self, now: Ps, parts: u32) -> Result<(), SubmitError> {
        let begun = self.log.checkpoint.take();
        let Checkpoint { start, next_chunk } =
            begun.unwrap_or(Checkpoint { start: self.log.next, next_chunk: 0 });
        let generation = self.log.generation + 1;
        let header = self.areas.checkpoint((generation % 2) as u32);
        let end = next_chunk.saturating_add(parts).min(self.areas.chunks);
        for chunk in next_chunk..end {
            let entries =
                self.map.entries(chunk * self.areas.chunk_entries, self.areas.chunk_entries);
            let record =
                Record { kind: Kind::Chunk, sequence: generation, words: entries.to_vec() };
            let bytes = record.encode(self.areas.superpage_bytes());
            self.lower.write_record(
                now,
                header + 1 + chunk,
                &bytes,
                false,
                self.log.last.as_slice(),
            )?;
            self.counters.checkpoint_chunks += 1;
        }
        if end < self.areas.chunks {
            self.log.checkpoint = Some(Checkpoint { start, next_chunk: end });
            return Ok(());
        }
        let flushed = self.flush_before(now, SeededBug::CheckpointBeforeChunks)?;
        let words = vec![start as u32, (start >> 32) as u32, self.areas.chunks];
        let record = Record { kind: Kind::Checkpoint, sequence: generation, words };
        let bytes = record.encode(self.areas.superpage_bytes());
        self.log.last = Some(self.lower.write_record(now, header, &bytes, true, &[flushed])?);
        (self.log.start, self.log.generation) = (start, generation);
        self.counters.checkpoints += 1;
        Ok(())
    }
}
