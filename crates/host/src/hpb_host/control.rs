//! Decisions of the host. It decides which regions it drops and, in host control, which subregions
//! it fetches.
//!
//! Counters, thresholds and timers follow Linux's driver, `drivers/ufs/core/ufshpb.c`.

use super::HpbHost;
use super::regions::SubregionState;
use flashatlas_types::{Lpn, Ps};
use std::ops::Range;

impl HpbHost {
    /// Makes room in memory for one more subregion. Returns `true` if there is room.
    ///
    /// Drops the least recently read regions.
    pub(super) fn make_room(&mut self, now: Ps, subregion: u32) -> bool {
        let region = self.regions.region_of(subregion);
        let mut reads_max = u32::MAX;
        if self.settings.terms.host_controls {
            if !self.regions.has_room()
                && self.regions.region(region).reads < self.settings.eviction_enter
            {
                return false;
            }
            reads_max = self.settings.eviction_exit;
        }
        while !self.regions.has_room() {
            let Some(victim) = self.regions.victim(Some(region), reads_max) else { return false };
            self.counters.evictions += 1;
            self.evict(now, victim);
        }
        true
    }

    fn evict(&mut self, now: Ps, region: u32) {
        self.regions.drop_region(region);
        if self.settings.terms.host_controls {
            self.give_back(now, region);
        }
    }

    /// Drops regions until the host is within its memory limit, which may have shrunk.
    pub(super) fn keep_within_limit(&mut self, now: Ps) {
        while self.regions.is_over_limit() {
            // regions that are being fetched are not dropped, so the limit may be exceeded until
            // they arrive
            let Some(victim) = self.regions.victim(None, u32::MAX) else { return };
            self.counters.pressure_evictions += 1;
            self.evict(now, victim);
        }
    }

    /// Counts a read of pages.
    #[inline]
    pub(super) fn count_read(&mut self, now: Ps, first: Lpn) {
        let index = self.settings.terms.subregion_of(first);
        let region = self.regions.region_of(index);
        self.regions.touch(region);
        if self.settings.terms.host_controls || self.regions.region(region).update {
            self.count_for_host(now, index, region);
        }
    }

    fn count_for_host(&mut self, now: Ps, index: u32, region: u32) {
        self.regions.region(region).reads += 1;
        let subregion = self.regions.subregion(index);
        subregion.reads += 1;
        let enough = self.settings.terms.host_controls
            && subregion.reads == self.settings.terms.activation_reads;
        if std::mem::take(&mut self.regions.region(region).update) {
            let held = self.regions.of_region(region);
            let held: Vec<u32> = held
                .filter(|&s| self.regions.subregion(s).state == SubregionState::Valid)
                .collect();
            held.into_iter().for_each(|s| self.want(now, s));
        }
        if enough && self.regions.subregion(index).state != SubregionState::Invalid {
            self.want(now, index);
        }
        if self.regions.region(region).reads > self.settings.terms.subregion {
            for index in self.regions.of_region(region) {
                self.regions.subregion(index).reads /= 2;
            }
            self.regions.region(region).reads /= 2;
        }
    }

    /// Counts a write of pages. The number of reads of their subregions becomes zero.
    pub(super) fn count_write(&mut self, pages: &Range<u32>) {
        if !self.settings.terms.host_controls {
            return;
        }
        let terms = &self.settings.terms;
        for index in terms.subregion_of(Lpn(pages.start))..=terms.subregion_of(Lpn(pages.end - 1)) {
            let reads = std::mem::take(&mut self.regions.subregion(index).reads);
            let region = self.regions.region_of(index);
            let region = self.regions.region(region);
            region.reads = region.reads.saturating_sub(reads);
            region.written = true;
        }
    }

    /// Starts a region's timer when its first subregion gets memory.
    pub(super) fn arm_timer(&mut self, now: Ps, region: u32) {
        let (timeout, expiries) = (self.settings.read_timeout, self.settings.timeout_expiries);
        let region = self.regions.region(region);
        if region.held == 1 {
            (region.expires, region.expiries) = (now.after(timeout), expiries);
        }
    }

    /// Carries out the work that depends on time, and sets the time of the next call.
    ///
    /// This work is changes of the memory limit, timers of regions, and the fetch of pinned regions
    /// at the start.
    pub(super) fn look_around(&mut self, now: Ps) {
        let pressure = &self.settings.memory;
        let reached =
            pressure.iter().rposition(|&(at, _)| at <= now).expect("the first is time zero");
        let next = pressure.get(reached + 1).map_or(Ps(u64::MAX), |&(at, _)| at);
        let limit =
            (pressure[reached].1 / self.settings.subregion_bytes()).min(u64::from(u32::MAX)) as u32;
        if self.regions.limit != limit {
            self.regions.limit = limit;
            self.keep_within_limit(now);
        }
        self.look_at = next;
        if self.settings.terms.host_controls {
            self.look_at = next.min(now.after(self.settings.poll));
            self.expire(now);
        }
        if !std::mem::replace(&mut self.started, true) {
            (0..self.settings.pinned_subregions()).for_each(|subregion| self.want(now, subregion));
        }
    }

    fn expire(&mut self, now: Ps) {
        for region in self.regions.active() {
            let timeout = self.settings.read_timeout;
            let of = self.regions.region(region);
            if now < of.expires {
                continue;
            }
            // subregions that are being fetched stay until a later expiry
            of.expiries = of.expiries.saturating_sub(1);
            if !of.written && of.expiries > 0 {
                of.expires = now.after(timeout);
                continue;
            }
            self.counters.expired += 1;
            self.evict(now, region);
        }
    }
}
