//! The drive's side of HPB, the map cached in host memory (Jeong et al., *Improving Flash Storage
//! Performance by Caching Address Mapping Table in Host Memory*, HotStorage 2017): the paper's
//! "device-side L2P manager". It hands out subregions of the map, knows which have changed since,
//! tells the host so, and decides which entry that comes back is believed.
//!
//! The paper verifies nothing ("further works"). Here a read gets the same data whatever the host
//! sends with it (R7 of `docs/RELIABILITY.md`), unless `hpb.protect = plain` and the host forges
//! entries: an entry is believed only if it was made by this drive for this page ([`entry`]), in
//! the generation in which its subregion was handed out last, and nothing there has changed since.

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

/// What both sides agree upon when they meet.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Pages of the drive.
    pub units: u32,
    /// Pages of a subregion.
    pub subregion: u32,
    /// Subregions of a region.
    pub subregions: u32,
    /// How entries are told from forged ones.
    pub protect: Protect,
    /// What changes one page: its subregion, or itself alone.
    pub by_page: bool,
    /// Changed entries come with responses; otherwise the host fetches subregions.
    pub piggyback: bool,
    /// The host decides what it caches.
    pub host_controls: bool,
    /// Reads without an entry that was believed, after which a subregion is worth fetching: one
    /// that the host has not, and one that has changed.
    pub activation_reads: u32,
    /// See `activation_reads`.
    pub refresh_reads: u32,
    /// Entries in a response, and changed entries that wait for one.
    pub pairs: usize,
    /// See `pairs`.
    pub changes: usize,
    /// Sectors of the longest read that brings entries along.
    pub max_sectors: u32,
    /// Regions that the drive has the host cache at once.
    pub active_regions: u32,
    /// Time to make or check an entry.
    pub hash_time: Dur,
}

impl Terms {
    /// Those of a configuration, over a drive of `units` pages of `unit_sectors`.
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

    /// Subregions of the drive.
    pub fn subregion_count(&self) -> u32 {
        self.units.div_ceil(self.subregion)
    }

    /// Regions of the drive.
    pub fn region_count(&self) -> u32 {
        self.subregion_count().div_ceil(self.subregions)
    }

    /// Bytes of a subregion in the host's memory: of its entries, and of a bit for each page that
    /// was written since.
    pub fn host_bytes(&self) -> (u64, u64) {
        let pages = u64::from(self.subregion);
        (pages * u64::from(self.protect.entry_bytes()), pages.div_ceil(64) * 8)
    }

    /// The subregion of a page.
    pub fn subregion_of(&self, lpn: Lpn) -> u32 {
        lpn.0 / self.subregion
    }

    /// The pages of a subregion.
    pub fn pages(&self, subregion: u32) -> Range<u32> {
        let first = subregion * self.subregion;
        first..self.units.min(first + self.subregion)
    }
}

/// What the drive knows of a subregion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SubregionState {
    /// Never handed out under this key: no entry of it is genuine.
    Unknown,
    /// Handed out, and as it was.
    Clean,
    /// Something in it has changed since.
    Dirty,
}

#[derive(Clone, Copy)]
struct Subregion {
    state: SubregionState,
    generation: u8,
    /// Reads since it was handed out, or told to the host, that had to do without an entry.
    reads: u32,
    /// The host was told to fetch it, and has not yet.
    told: bool,
    /// Times that it was handed out, and changed entries since then that the host does not have.
    times: u32,
    waiting: u32,
    /// More have changed than could wait: the host must fetch it.
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

/// What the manager counts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct HpbCounters {
    /// Entries that were believed.
    pub valid_entries: u64,
    /// Entries that were not, by [`Refusal`].
    pub refused: [u64; Refusal::ALL.len()],
    /// Subregions that were handed out.
    pub exported_entries: u64,
    /// Times a subregion became dirty, or in `hpb.dirty = page` a page.
    pub dirtied: u64,
    /// Resets because a subregion ran out of generations.
    pub resets: u64,
}

/// The L2P manager.
pub(crate) struct Manager {
    pub terms: Terms,
    sealer: Sealer,
    subregions: Vec<Subregion>,
    /// Pages that have changed since their subregion was handed out, where each is known by itself.
    changed: FixedBitSet,
    notices: Notices,
    /// Changed entries that responses take along: of which subregions, in which of their times.
    on_the_way: FxHashMap<Tag, Vec<(u32, u32)>>,
    pub counters: HpbCounters,
}

impl Manager {
    /// Nothing is handed out.
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

    /// The power was off, or no generation is left: what hosts have is worth nothing, and they are
    /// told.
    pub fn restart(&mut self) {
        self.sealer.new_key();
        self.subregions.fill(NEW);
        self.changed.clear();
        self.notices.reset();
        self.on_the_way.clear();
    }

    /// How long it takes to make, or to check, `entries` entries, one after the other.
    pub fn hashing(&self, entries: u64) -> Dur {
        Dur(self.terms.hash_time.0.saturating_mul(self.terms.protect.hashes() * entries))
    }

    /// The map entry of a page is another from now on.
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

    /// Whether a page has changed since its subregion was handed out, where pages are known by
    /// themselves.
    fn has_changed(&self, lpn: Lpn) -> bool {
        self.terms.by_page && self.changed.contains(lpn.0 as usize)
    }

    /// What was handed out of a subregion is stale from now on.
    fn next_generation(&mut self, subregion: u32) {
        let generations = self.terms.protect.generations();
        let group = &mut self.subregions[subregion as usize];
        let next = u32::from(group.generation) + 1;
        if next < generations {
            group.generation = next as u8;
        } else if generations > 1 {
            // its entries of the first generation would be genuine again
            self.counters.resets += 1;
            self.restart();
        }
    }

    /// Where the page is if `entry` is believed. What it says is to be confirmed by the spare
    /// area there.
    ///
    /// # Errors
    /// Why it is not; counted.
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

    /// A page was read without an entry that was believed, and its map entry was looked up: the
    /// host may want its subregion.
    pub fn missed(&mut self, lpn: Lpn) {
        let index = self.terms.subregion_of(lpn);
        let changed = self.has_changed(lpn);
        let group = &mut self.subregions[index as usize];
        // of what has changed the drive alone knows; but entries that wait for a response need no
        // fetch
        let (enough, ours) = match changed || group.state == SubregionState::Dirty {
            true => (self.terms.refresh_reads, !self.terms.piggyback || group.lost),
            // a host in control counts by itself; one that has it and does not use it may have
            // dropped it
            false => (self.terms.activation_reads, !self.terms.host_controls),
        };
        if !ours {
            return;
        }
        group.reads += 1;
        // a host that was told and did not fetch had no room then
        if group.reads >= if group.told { 8 * enough } else { enough } {
            (group.told, group.reads) = (true, 0);
            self.notices.activate(index);
        }
    }

    /// A page of a region was read.
    #[inline]
    pub fn read(&mut self, lpn: Lpn) {
        self.notices.touch(self.terms.subregion_of(lpn) / self.terms.subregions);
    }

    /// A subregion goes to the host: the entries of its pages, which are at `place`.
    pub fn export_entries(
        &mut self,
        subregion: u32,
        place: impl Fn(Lpn) -> Option<Ppn>,
        entries: &mut Vec<u64>,
    ) {
        self.counters.exported_entries += 1;
        let pages = self.terms.pages(subregion);
        if self.terms.by_page && self.forget_changes(pages.clone()) {
            // what the host had of the changed pages is genuine in this generation
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

    /// No page of a range has changed. Whether any had.
    fn forget_changes(&mut self, pages: Range<u32>) -> bool {
        let pages = pages.start as usize..pages.end as usize;
        let any = self.changed.contains_any_in_range(pages.clone());
        self.changed.remove_range(pages);
        any
    }

    /// The host gives a region back, or all of them.
    pub fn give_back(&mut self, region: Option<u32>) {
        let all = 0..self.terms.region_count();
        for region in region.map_or(all, |r| r..r + 1) {
            self.notices.drop_region(region);
            let first = (region * self.terms.subregions) as usize;
            let end = self.subregions.len().min(first + self.terms.subregions as usize);
            // what was handed out stays genuine: changes must be known as before
            self.subregions[first..end]
                .iter_mut()
                .for_each(|group| (group.told, group.reads) = (false, 0));
        }
    }

    /// What the response to `tag` says, if anything; `place` is where pages are.
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

    /// The response to `tag` has reached the host. Only now are subregions clean whose last changed
    /// entries it took along: until then the host reads by the entries that they replace.
    #[inline]
    pub fn reached(&mut self, tag: Tag) {
        if self.on_the_way.is_empty() {
            return;
        }
        for (index, times) in self.on_the_way.remove(&tag).unwrap_or_default() {
            let group = &mut self.subregions[index as usize];
            if group.times != times {
                continue; // it was fetched since
            }
            group.waiting -= 1;
            if group.waiting == 0 && !group.lost {
                group.state = SubregionState::Clean;
            }
        }
    }

    /// Bytes of the manager's tables in the drive: for each subregion its state, generation and
    /// count of reads; for each page a bit, where pages are known by themselves; entries that wait.
    pub fn bytes(&self) -> u64 {
        let changes = if self.terms.piggyback { self.terms.changes as u64 * 4 } else { 0 };
        self.subregions.len() as u64 * 3 + (self.changed.len() as u64).div_ceil(8) + changes
    }
}
