//! The drive's side of HPB, in which the host's memory caches the map (Jeong et al., *Improving
//! Flash Storage Performance by Caching Address Mapping Table in Host Memory*, HotStorage 2017).
//! The paper calls this side the "device-side L2P manager". The manager exports subregions of the
//! map, tracks the subregions that change afterwards, and tells the host about changes. When
//! entries come back with reads, it decides which entries are accepted.
//!
//! The paper verifies no entries ("further works"). Here a read returns the same data whatever
//! entries the host sends (R7 of `docs/RELIABILITY.md`), unless `hpb.protect = plain` and the host
//! forges entries. An entry is accepted only under three conditions. This drive made the entry for
//! this page ([`entry`]). The entry belongs to the generation of the last export of its subregion.
//! The map entry of the page has not changed since that export.

pub mod entry;
mod notices;
pub mod params;

pub use entry::{NO_ENTRY, Protect, Refusal};
pub use notices::Notice;

use entry::Sealer;
use fixedbitset::FixedBitSet;
use flashatlas_types::{Dur, Lpn, Params, Ppn, SECTOR_BYTES, Seed, Tag};
use notices::Notices;
use params::{
    ACTIVATION_READS, ACTIVE_REGIONS, CHANGES, CONTROL, DIRTY, HASH_TIME, MAX_READ, PAIRS, PROTECT,
    REFRESH_READS, REGION, SUBREGION, UPDATE,
};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Parameters that drive and host agree on when they connect.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Pages of the drive.
    pub units: u32,
    /// Pages of a subregion.
    pub subregion: u32,
    /// Subregions of a region.
    pub subregions: u32,
    /// Protection of entries against forgery.
    pub protect: Protect,
    /// `true` if a change makes one page dirty, `false` if it makes the whole subregion dirty.
    pub by_page: bool,
    /// `true` if changed entries travel with responses, `false` if the host fetches subregions.
    pub piggyback: bool,
    /// `true` if the host decides which subregions it caches.
    pub host_controls: bool,
    /// Number of reads without an accepted entry after which the host should fetch a subregion that
    /// it does not cache.
    pub activation_reads: u32,
    /// Number of such reads after which the host should fetch a changed subregion again.
    pub refresh_reads: u32,
    /// Greatest number of entries in a response.
    pub pairs: usize,
    /// Greatest number of changed entries that wait for a response.
    pub changes: usize,
    /// Sectors of the longest read that may carry entries.
    pub max_sectors: u32,
    /// Greatest number of regions that the drive tells the host to cache at the same time.
    pub active_regions: u32,
    /// Time of one hash. An entry needs [`Protect::hashes`] hashes.
    pub hash_time: Dur,
}

impl Terms {
    /// Returns the terms of a configuration for a drive of `units` pages. Each page has
    /// `unit_sectors` sectors.
    pub fn new(params: &Params, units: u32, unit_sectors: u32) -> Terms {
        let unit = u64::from(unit_sectors * SECTOR_BYTES);
        let pages = |bytes| (params.get(bytes) / unit) as u32;
        let subregion = pages(SUBREGION);
        Terms {
            units,
            subregion: subregion.min(units),
            subregions: pages(REGION) / subregion,
            protect: Protect::parse(params.get(PROTECT)),
            by_page: params.get(DIRTY) == "page",
            piggyback: params.get(UPDATE) == "piggyback",
            host_controls: params.get(CONTROL) == "host",
            activation_reads: params.get(ACTIVATION_READS),
            refresh_reads: params.get(REFRESH_READS),
            pairs: params.get(PAIRS) as usize,
            changes: params.get(CHANGES) as usize,
            max_sectors: (params.get(MAX_READ) / u64::from(SECTOR_BYTES)) as u32,
            active_regions: match params.get(ACTIVE_REGIONS) {
                0 => u32::MAX,
                given => given,
            },
            hash_time: params.get(HASH_TIME),
        }
    }

    /// Returns the number of subregions of the drive.
    pub fn subregion_count(&self) -> u32 {
        self.units.div_ceil(self.subregion)
    }

    /// Returns the number of regions of the drive.
    pub fn region_count(&self) -> u32 {
        self.subregion_count().div_ceil(self.subregions)
    }

    /// Returns the bytes that a subregion occupies in the host's memory. The first number is for
    /// its entries, the second for bits that mark the pages written since the fetch.
    pub fn host_bytes(&self) -> (u64, u64) {
        let pages = u64::from(self.subregion);
        (pages * u64::from(self.protect.entry_bytes()), pages.div_ceil(64) * 8)
    }

    /// Returns the subregion of a page.
    pub fn subregion_of(&self, lpn: Lpn) -> u32 {
        lpn.0 / self.subregion
    }

    /// Returns the pages of a subregion.
    pub fn pages(&self, subregion: u32) -> Range<u32> {
        let first = subregion * self.subregion;
        first..self.units.min(first + self.subregion)
    }
}

/// State of a subregion, from the drive's point of view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SubregionState {
    /// Never exported under this key, so no entry of the subregion is valid.
    Unknown,
    /// Exported, and unchanged since.
    Clean,
    /// Exported, and changed since.
    Dirty,
}

#[derive(Clone, Copy)]
struct Subregion {
    state: SubregionState,
    generation: u8,
    /// Number of reads without an accepted entry since the subregion was exported or recommended to
    /// the host.
    reads: u32,
    /// `true` if the host was told to fetch the subregion and has not yet done so.
    told: bool,
    /// Number of exports of the subregion, and number of entries that changed after the last export
    /// and have not reached the host.
    times: u32,
    waiting: u32,
    /// `true` if more entries have changed than can wait, so that the host must fetch the
    /// subregion.
    lost: bool,
}

const NEW: Subregion = Subregion {
    state: SubregionState::Unknown,
    generation: 0,
    reads: 0,
    told: false,
    times: 0,
    waiting: 0,
    lost: false,
};

/// Counters of the L2P manager.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct HpbCounters {
    /// Entries that were accepted.
    pub valid_entries: u64,
    /// Entries that were refused, by [`Refusal`].
    pub refused: [u64; Refusal::ALL.len()],
    /// Subregions that were exported.
    pub exported_entries: u64,
    /// Number of times that a subregion, or with `hpb.dirty = page` a page, became dirty.
    pub dirtied: u64,
    /// Resets after a subregion ran out of generations.
    pub resets: u64,
}

/// The L2P manager.
pub(crate) struct Manager {
    pub terms: Terms,
    sealer: Sealer,
    subregions: Vec<Subregion>,
    /// Pages that have changed since their subregion was exported, if single pages are tracked.
    changed: FixedBitSet,
    notices: Notices,
    /// Changed entries in the response to each tag. For each entry, the list has its subregion and
    /// the number of exports of that subregion so far.
    on_the_way: FxHashMap<Tag, Vec<(u32, u32)>>,
    pub counters: HpbCounters,
}

impl Manager {
    /// Returns a manager that has exported no subregion.
    pub fn new(terms: Terms, seed: Seed) -> Manager {
        Manager {
            sealer: Sealer::new(terms.protect, seed),
            subregions: vec![NEW; terms.subregion_count() as usize],
            changed: FixedBitSet::with_capacity(if terms.by_page {
                terms.units as usize
            } else {
                0
            }),
            notices: Notices::new(&terms),
            on_the_way: FxHashMap::default(),
            counters: HpbCounters::default(),
            terms,
        }
    }

    /// Starts again with a new key, because the power was off or a subregion has no generation
    /// left. All entries in the host become void, and a notice tells the host.
    pub fn restart(&mut self) {
        self.sealer.new_key();
        self.subregions.fill(NEW);
        self.changed.clear();
        self.notices.reset();
        self.on_the_way.clear();
    }

    /// Returns the time to make or to check `entries` entries, one after another.
    pub fn hashing(&self, entries: u64) -> Dur {
        Dur(self.terms.hash_time.0.saturating_mul(self.terms.protect.hashes() * entries))
    }

    /// Notes that the map entry of a page has changed.
    pub fn remapped(&mut self, lpn: Lpn) {
        let index = self.terms.subregion_of(lpn);
        if self.subregions[index as usize].state == SubregionState::Unknown {
            return;
        }
        if self.terms.by_page {
            self.counters.dirtied += u64::from(!self.changed.put(lpn.0 as usize));
            return;
        }
        let group = &mut self.subregions[index as usize];
        if self.terms.piggyback && !group.lost {
            match self.notices.change(lpn) {
                Some(added) => group.waiting += u32::from(added),
                None => group.lost = true,
            }
        }
        if group.state == SubregionState::Clean {
            self.counters.dirtied += 1;
            (group.state, group.reads) = (SubregionState::Dirty, 0);
            self.next_generation(index);
        }
    }

    /// Returns `true` if single pages are tracked and this page has changed since its subregion was
    /// exported.
    fn has_changed(&self, lpn: Lpn) -> bool {
        self.terms.by_page && self.changed.contains(lpn.0 as usize)
    }

    /// Invalidates all exported entries of a subregion by starting its next generation.
    fn next_generation(&mut self, subregion: u32) {
        let generations = self.terms.protect.generations();
        let group = &mut self.subregions[subregion as usize];
        let next = u32::from(group.generation) + 1;
        if next < generations {
            group.generation = next as u8;
        } else if generations > 1 {
            // the first generation follows, and its old entries would be valid again
            self.counters.resets += 1;
            self.restart();
        }
    }

    /// Returns the place of a page in `entry`, if the entry passes its checks. The caller must
    /// still compare the spare area at that place.
    ///
    /// # Errors
    /// Returns the reason why the entry is refused, and counts it.
    pub fn open(&mut self, lpn: Lpn, entry: u64, slots: u32) -> Result<Ppn, Refusal> {
        let group = self.subregions[self.terms.subregion_of(lpn) as usize];
        let opened = match group.state {
            SubregionState::Unknown => Err(Refusal::Inactive),
            SubregionState::Dirty => Err(Refusal::Dirty),
            SubregionState::Clean if self.has_changed(lpn) => Err(Refusal::Dirty),
            SubregionState::Clean => self.sealer.open(lpn, entry, group.generation),
        };
        let opened =
            opened.and_then(|ppn| if ppn.0 < slots { Ok(ppn) } else { Err(Refusal::OutOfRange) });
        if let Err(why) = opened {
            self.counters.refused[why as usize] += 1;
        }
        opened
    }

    /// Notes that a read of a page had no accepted entry and needed a map lookup. The host may need
    /// the page's subregion.
    pub fn missed(&mut self, lpn: Lpn) {
        let index = self.terms.subregion_of(lpn);
        let changed = self.has_changed(lpn);
        let group = &mut self.subregions[index as usize];
        // only the drive can tell which pages have changed; but if changed entries wait for a
        // response, no fetch is needed
        let (enough, ours) = if changed || group.state == SubregionState::Dirty {
            (self.terms.refresh_reads, !self.terms.piggyback || group.lost)
        } else {
            // a host in control counts its reads itself; otherwise, a host that fetched the
            // subregion and sends no entries may have dropped it
            (self.terms.activation_reads, !self.terms.host_controls)
        };
        if !ours {
            return;
        }
        group.reads += 1;
        // if the host was told but did not fetch the subregion, the host had no room, so it is told
        // again later
        if group.reads >= if group.told { 8 * enough } else { enough } {
            (group.told, group.reads) = (true, 0);
            self.notices.activate(index);
        }
    }

    /// Notes that a page was read.
    #[inline]
    pub fn read(&mut self, lpn: Lpn) {
        self.notices.touch(self.terms.subregion_of(lpn) / self.terms.subregions);
    }

    /// Exports a subregion to the host: appends the entries of its pages. `place` returns their
    /// places.
    pub fn export_entries(
        &mut self,
        subregion: u32,
        place: impl Fn(Lpn) -> Option<Ppn>,
        entries: &mut Vec<u64>,
    ) {
        self.counters.exported_entries += 1;
        let pages = self.terms.pages(subregion);
        if self.terms.by_page && self.forget_changes(pages.clone()) {
            // without a new generation, the host's old entries of the changed pages would be
            // accepted
            self.next_generation(subregion);
        }
        self.notices.forget(pages.clone());
        self.notices.fetched(subregion);
        let group = &mut self.subregions[subregion as usize];
        *group = Subregion {
            state: SubregionState::Clean,
            generation: group.generation,
            times: group.times + 1,
            ..NEW
        };
        let generation = group.generation;
        let sealed =
            |lpn| place(lpn).map_or(NO_ENTRY, |ppn| self.sealer.seal(lpn, ppn, generation));
        entries.extend(pages.map(|page| sealed(Lpn(page))));
    }

    /// Marks all pages of a range as unchanged. Returns `true` if any of them had changed.
    fn forget_changes(&mut self, pages: Range<u32>) -> bool {
        let pages = pages.start as usize..pages.end as usize;
        let any = self.changed.contains_any_in_range(pages.clone());
        self.changed.remove_range(pages);
        any
    }

    /// Notes that the host returns a region, or all regions if `region` is `None`.
    pub fn give_back(&mut self, region: Option<u32>) {
        let all = 0..self.terms.region_count();
        for region in region.map_or(all, |r| r..r + 1) {
            self.notices.drop_region(region);
            let first = (region * self.terms.subregions) as usize;
            let end = self.subregions.len().min(first + self.terms.subregions as usize);
            // exported entries stay valid, so their changes must still be tracked
            self.subregions[first..end]
                .iter_mut()
                .for_each(|group| (group.told, group.reads) = (false, 0));
        }
    }

    /// Returns the notice in the response to `tag`, or `None`. `place` returns the places of pages.
    #[inline]
    pub fn notice(&mut self, tag: Tag, place: impl Fn(Lpn) -> Option<Ppn>) -> Option<Box<Notice>> {
        if self.notices.is_empty() {
            return None;
        }
        let mut notice = Box::new(self.notices.take());
        if notice.pairs.is_empty() {
            return Some(notice);
        }
        let mut of = Vec::with_capacity(notice.pairs.len());
        for (lpn, entry) in &mut notice.pairs {
            let index = self.terms.subregion_of(*lpn);
            let group = &self.subregions[index as usize];
            *entry =
                place(*lpn).map_or(NO_ENTRY, |ppn| self.sealer.seal(*lpn, ppn, group.generation));
            of.push((index, group.times));
        }
        self.on_the_way.insert(tag, of);
        Some(notice)
    }

    /// Notes that the response to `tag` has reached the host.
    ///
    /// The response may contain the last changed entries of a subregion. The subregion then becomes
    /// clean only now, because the host has used the old entries until now.
    #[inline]
    pub fn reached(&mut self, tag: Tag) {
        if self.on_the_way.is_empty() {
            return;
        }
        for (index, times) in self.on_the_way.remove(&tag).unwrap_or_default() {
            let group = &mut self.subregions[index as usize];
            if group.times != times {
                continue; // the subregion was fetched since
            }
            group.waiting -= 1;
            if group.waiting == 0 && !group.lost {
                group.state = SubregionState::Clean;
            }
        }
    }

    /// Returns the bytes of the manager's tables in the drive. They are the state, the generation
    /// and the number of reads of each subregion, the waiting entries, and a bit for each page if
    /// single pages are tracked.
    pub fn bytes(&self) -> u64 {
        let changes = if self.terms.piggyback { self.terms.changes as u64 * 4 } else { 0 };
        self.subregions.len() as u64 * 3 + (self.changed.len() as u64).div_ceil(8) + changes
    }
}
