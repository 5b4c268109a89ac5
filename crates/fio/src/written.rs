//! The writes of a pass, in the order in which `verify` reads them back.

use super::request::{Direction, JobRequest};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Writes of one pass.
///
/// If the job keeps a random map, the writes are in order of issue, because the job then writes no
/// block twice. Otherwise the writes are in order of address, without the writes that a later write
/// overlaps (fio 3.33, `iolog.c`: `log_io_piece`).
#[derive(Default)]
pub(super) struct Written {
    in_order: VecDeque<JobRequest>,
    /// Number of bytes of each write, by file and first byte.
    by_address: BTreeMap<(u32, u64), u64>,
    /// Number of incomplete writes, by file and first byte; only counted with `verify_backlog`.
    flying: HashMap<(u32, u64), u32>,
}

impl Written {
    pub fn add(&mut self, keeps_map: bool, write: JobRequest) {
        if keeps_map {
            self.in_order.push_back(write);
            return;
        }
        let (start, end) = (write.offset, write.offset.saturating_add(write.bytes));
        while let Some((&key, _)) = self
            .by_address
            .range((write.file, 0)..(write.file, end))
            .next_back()
            .filter(|&(key, bytes)| key.1 + bytes > start)
        {
            self.by_address.remove(&key);
        }
        self.by_address.insert((write.file, start), write.bytes);
    }

    /// Counts a write that begins.
    pub fn fly(&mut self, write: JobRequest) {
        *self.flying.entry((write.file, write.offset)).or_default() += 1;
    }

    /// Removes a write that is complete from the count.
    pub fn land(&mut self, file: u32, offset: u64) {
        if let Some(count) = self.flying.get_mut(&(file, offset)) {
            *count -= 1;
            if *count == 0 {
                self.flying.remove(&(file, offset));
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of writes that were not read back.
    pub fn len(&self) -> usize {
        self.in_order.len() + self.by_address.len()
    }

    /// Returns the read of the next write, or `None` if all writes were read back.
    pub fn take(&mut self) -> Option<JobRequest> {
        let read =
            |file, offset, bytes| JobRequest { direction: Direction::Read, file, offset, bytes };
        match self.in_order.pop_front() {
            Some(write) => Some(read(write.file, write.offset, write.bytes)),
            None => self.by_address.pop_first().map(|((file, at), bytes)| read(file, at, bytes)),
        }
    }

    /// Returns the next read as [`Written::take`] does, or `None` if its write is not complete.
    pub fn take_landed(&mut self) -> Option<JobRequest> {
        let ordered = self.in_order.front().map(|write| (write.file, write.offset));
        let key = ordered.or_else(|| self.by_address.keys().next().copied())?;
        if self.flying.contains_key(&key) { None } else { self.take() }
    }
}
