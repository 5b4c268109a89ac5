//! The log, by which the map survives: a ring of records with the changes since the last
//! checkpoint, and two checkpoints of the whole map that are written in turn.
//!
//! A record is written when a segment of superpages is full (a *summary*), at a FLUSH or FUA (a
//! *journal* of the segment that is open), when superpages that were vacated are needed, and when
//! it can hold no more. Everything that a record maps is made durable before the record. The record
//! itself is durable (FUA) before a superpage that it vacates is written again, and before the
//! command that asked for the record is complete. So a mount believes every record that it can
//! read. Nothing is lost of what a torn record would have said: it was not promised.
//!
//! A checkpoint is begun when half of the ring is used, and written a few superpages at a time
//! beside the records that follow. Its chunks may have changes that are newer than its beginning:
//! the records from there on repeat these changes, in order.

use super::Hard;
use super::format::{Change, Kind, Record, push};
use super::settings::Areas;
use flashatlas_device::SubmitError;
use flashatlas_types::{Ps, SeededBug, Tag, Violation};
use smallvec::SmallVec;

/// Records whose places are kept free in the ring while a checkpoint is written.
const SLACK: u32 = 3;

/// The state of the log.
#[derive(Default)]
pub(super) struct Log {
    /// Changes since the last record.
    pending: Vec<u32>,
    /// Superpages written since then.
    superpages: u32,
    /// Number of the next record.
    pub next: u64,
    /// First record that a mount goes through: the records before it are in the checkpoint.
    pub start: u64,
    /// Generation of the complete checkpoint; 0 if there is none yet.
    pub generation: u64,
    /// The last record or checkpoint that was sent.
    last: Option<Tag>,
    /// Trims that told the drive which superpages the last records vacated.
    trims: Vec<Tag>,
    /// Number of free superpages, at the end of the list, that wait for `last` and for `trims`.
    fresh: usize,
    checkpoint: Option<Checkpoint>,
}

/// A checkpoint that is being written.
struct Checkpoint {
    start: u64,
    next_chunk: u32,
}

impl Log {
    /// Returns a log that goes on after a mount.
    pub fn after(start: u64, next: u64, generation: u64) -> Log {
        Log { start, next, generation, ..Log::default() }
    }

    /// Returns the number of changes that fit into the next record, of superpages with `pages`
    /// pages each. (A trim is as long as a superpage of 1.)
    pub fn room(&self, areas: &Areas, pages: u32) -> usize {
        (areas.chunk_entries as usize - self.pending.len()) / (1 + pages as usize)
    }

    /// Adds a change of the map to the next record.
    pub fn note(&mut self, change: Change<'_>) {
        push(&mut self.pending, change);
        self.superpages += u32::from(matches!(change, Change::Written(..)));
    }

    /// Returns the commands that a write to free superpages waits for, if it leaves `left`
    /// superpages free behind it.
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
            || format!("{used} records, {} places", areas.ring),
        )
    }
}

impl Hard {
    /// Makes sure that the next record has room for a change of a superpage with `pages` pages. The
    /// change itself is made later.
    pub(super) fn log_room(&mut self, now: Ps, pages: u32) -> Result<(), SubmitError> {
        if self.log.room(&self.areas, pages) == 0 {
            self.record(now)?;
        }
        Ok(())
    }

    /// Writes a record for a segment that is full: its summary.
    pub(super) fn close_segment(&mut self, now: Ps) -> Result<(), SubmitError> {
        if self.log.superpages >= self.settings.segment {
            self.record(now)?;
        }
        Ok(())
    }

    /// Makes durable whatever was written so far. Returns the command whose completion promises it.
    pub(super) fn make_durable(&mut self, now: Ps) -> Result<Tag, SubmitError> {
        if !self.log.pending.is_empty() {
            return self.record(now);
        }
        let after: Vec<Tag> =
            self.log.last.into_iter().chain(self.sent_after.iter().copied()).collect();
        self.lower.flush(now, &after)
    }

    /// Writes the changes since the last record. The superpages that they vacated are free then.
    pub(super) fn record(&mut self, now: Ps) -> Result<Tag, SubmitError> {
        if self.log.next - self.log.start >= u64::from(self.areas.ring) {
            // mounts have cut checkpoints short until no place is left: what is durable now needs
            // no record
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
        assert!(used <= self.areas.ring, "{used} records in a ring of {}", self.areas.ring);
        if self.log.checkpoint.is_some() || used >= self.areas.ring / 2 {
            // it is done when the ring is nearly full, wherever it was begun
            let done = self.log.checkpoint.as_ref().map_or(0, |c| c.next_chunk);
            let places = self.areas.ring.saturating_sub(used + SLACK).max(1);
            self.write_checkpoint(now, (self.areas.chunks - done).div_ceil(places))?;
        }
        self.lower.forget_stale();
        Ok(tag)
    }

    /// Sends a FLUSH, so that what was written before is durable before what is written next.
    fn flush_before(&mut self, now: Ps, unless: SeededBug) -> Result<Tag, SubmitError> {
        if unless.is_active() {
            Ok(self.log.last.unwrap_or(Tag(0)))
        } else {
            self.lower.flush(now, self.log.last.as_slice())
        }
    }

    /// Frees the superpages that are empty according to the log, and lets the lower device forget
    /// them.
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

    /// Writes `parts` parts of the checkpoint. After its last part it takes the place of the
    /// checkpoint before.
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
