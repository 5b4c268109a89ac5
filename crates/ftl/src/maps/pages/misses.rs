//! Handling of the misses of the map's cache, by the decisions of its policy.

use super::cache::{Cache, Io};
use crate::MemoryUse;
use crate::caching::{CachePolicy, MapAccess};
use crate::maps::MapPage;
use flashatlas_types::{FtlError, Lpn, MediumError, MemoryKind, OpId};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// A map page that a lookup has read and that does not stay in memory. Later lookups of the same
/// command still find it.
struct Passing {
    command: u64,
    page: MapPage,
    ready: OpId,
}

/// A policy, and the counters of its work.
pub(crate) struct Misses {
    policy: Box<dyn CachePolicy>,
    page_bytes: u64,
    clock: u64,
    passing: Option<Passing>,
    /// Prefetched pages that were not used yet, each with the operation that loads it.
    unused: FxHashMap<MapPage, OpId>,
    ahead: Vec<u32>,
    left_out: u64,
    loaded_ahead: u64,
    used_ahead: u64,
}

impl Misses {
    pub fn new(policy: Box<dyn CachePolicy>, page_bytes: u32) -> Misses {
        Misses {
            policy,
            page_bytes: page_bytes.into(),
            clock: 0,
            passing: None,
            unused: FxHashMap::default(),
            ahead: Vec::new(),
            left_out: 0,
            loaded_ahead: 0,
            used_ahead: 0,
        }
    }

    fn access(&mut self, page: MapPage, lpn: Lpn, change: bool, cache: &impl Cache) -> MapAccess {
        self.clock += 1;
        let room = cache.pages_free() > 0;
        let most = cache.pages_most().saturating_sub(1);
        MapAccess { page: page.number(), lpn, change, clock: self.clock - 1, room, most }
    }

    /// Notes the use of an entry that is in memory. If its page was prefetched and is used for the
    /// first time, returns the operation that loads the page.
    pub fn used(&mut self, cache: &impl Cache, page: MapPage, lpn: Lpn, change: bool) -> OpId {
        let access = self.access(page, lpn, change, cache);
        let ready = if self.unused.is_empty() { None } else { self.unused.remove(&page) };
        self.used_ahead += u64::from(ready.is_some());
        self.policy.used(&access);
        ready.unwrap_or(OpId::NONE)
    }

    /// Returns the operation that loaded a page for this command, if the page does not stay in
    /// memory.
    pub fn passing(&self, command: u64, page: MapPage) -> Option<OpId> {
        let passing = self.passing.as_ref()?;
        (passing.command == command && passing.page == page).then_some(passing.ready)
    }

    /// Handles an entry that is not in memory. Returns the operation after which the entry is in
    /// memory. Pages in `moved` are not prefetched, because flash lacks some of their entries.
    pub fn missed(
        &mut self,
        cache: &mut impl Cache,
        io: &mut Io<'_, '_>,
        moved: &BTreeSet<MapPage>,
        lpn: Lpn,
        change: bool,
    ) -> Result<OpId, FtlError> {
        let page = io.map.table.page_of(lpn);
        let access = self.access(page, lpn, change, cache);
        self.unused.remove(&page);
        let mut ahead = std::mem::take(&mut self.ahead);
        ahead.clear();
        let stays = self.policy.missed(&access, &mut ahead) || change || self.policy.keeps_all();
        let ready = if stays { cache.fetch(io, lpn)? } else { io.load(lpn, OpId::NONE)? };
        if !stays {
            self.left_out += 1;
            self.passing = Some(Passing { command: io.cx.command.number, page, ready });
        } else if self.passing.as_ref().is_some_and(|passing| passing.page == page) {
            self.passing = None;
        }
        let mut room = cache.pages_most().saturating_sub(u32::from(stays));
        for &number in &ahead {
            let page = MapPage::new(number);
            let there = number >= io.map.table.pages() || cache.holds_page(page);
            // a prefetch causes no write, and its read errors are ignored
            let free = cache.evicts_unchanged();
            if room == 0 || there || !free || moved.contains(&page) || !io.map.on_flash(page) {
                continue;
            }
            match cache.fetch(io, io.map.table.first_of(page)) {
                Ok(ready) => self.unused.insert(page, ready),
                Err(FtlError::Medium(MediumError::Unreadable(_) | MediumError::Damaged(_))) => {
                    continue;
                }
                Err(error) => return Err(error),
            };
            (room, self.loaded_ahead) = (room - 1, self.loaded_ahead + 1);
        }
        if stays {
            cache.used(io.map, lpn);
        }
        self.ahead = ahead;
        Ok(ready)
    }

    pub fn details(&self) -> [(&'static str, u64); 3] {
        [
            ("pages_left_out", self.left_out),
            ("pages_ahead", self.loaded_ahead),
            ("pages_ahead_used", self.used_ahead),
        ]
    }

    pub fn reset_counters(&mut self) {
        (self.left_out, self.loaded_ahead, self.used_ahead) = (0, 0, 0);
    }

    pub fn memory(&self) -> Vec<MemoryUse> {
        let mut tables = self.policy.memory();
        if !self.policy.keeps_all() {
            tables.push(MemoryUse {
                table: "map page that does not stay",
                memory: MemoryKind::Sram,
                bytes: self.page_bytes,
            });
        }
        tables
    }
}
