//! The host's part of the map. It consists of subregions with their entries. The subregions of a
//! region are dropped together.

use super::settings::HpbSettings;
use fixedbitset::FixedBitSet;
use flashatlas_device::hpb::{NO_ENTRY, Terms};
use flashatlas_ftl::list::IndexList;
use flashatlas_types::{Lpn, Ps};
use std::ops::Range;

/// State of a subregion at the host. The states come from Linux's driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SubregionState {
    /// The subregion has no memory.
    Unused,
    /// The subregion has memory and must be fetched.
    Invalid,
    /// The subregion is being fetched.
    Issued,
    /// The subregion's entries are sent with reads.
    Valid,
}

/// A part of the map that is fetched with one command.
pub(super) struct Subregion {
    pub state: SubregionState,
    /// `true` if the subregion waits for its turn to be fetched.
    pub queued: bool,
    /// `true` if the subregion must be fetched again after it has arrived.
    pub again: bool,
    /// Number of reads, if the host counts them.
    pub reads: u32,
    /// Number of the command that fetched the entries.
    pub made: u64,
    pub entries: Vec<u64>,
    /// Pages that were written or trimmed since the fetch.
    pub dirty: FixedBitSet,
}

/// Subregions that are dropped together.
#[derive(Clone, Copy, Default)]
pub(super) struct Region {
    pub pinned: bool,
    /// Number of the region's subregions that have memory.
    pub held: u32,
    /// Number of reads, if the host counts them.
    pub reads: u32,
    /// `true` if the region was written since a subregion of it was fetched.
    pub written: bool,
    /// `true` if the region's valid subregions must be fetched again at its next read.
    pub update: bool,
    /// Time at which the region's timer expires.
    pub expires: Ps,
    /// Number of times that the timer may still expire.
    pub expiries: u32,
}

/// Reason why a read is sent without entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Miss {
    /// The read is longer than a read with entries may be.
    Long,
    /// The read extends into another subregion.
    Crosses,
    /// No subregion of the region is cached.
    Region,
    /// The subregion is not cached, or has not arrived yet.
    Subregion,
    /// A page was written since the subregion was fetched.
    Dirty,
    /// A page had no place when the subregion was fetched.
    NoEntry,
}

impl Miss {
    pub const ALL: [Miss; 6] =
        [Miss::Long, Miss::Crosses, Miss::Region, Miss::Subregion, Miss::Dirty, Miss::NoEntry];

    /// Returns the name of the reason's counter.
    pub const fn name(self) -> &'static str {
        [
            "miss_long",
            "miss_crosses",
            "miss_region",
            "miss_subregion",
            "miss_dirty",
            "miss_no_entry",
        ][self as usize]
    }
}

/// All regions.
pub(super) struct Regions {
    terms: Terms,
    subregions: Vec<Subregion>,
    regions: Vec<Region>,
    /// Regions with memory that are not pinned, in the order of their last read.
    lru: IndexList,
    /// Number of subregions that have memory.
    used: u32,
    /// Number of subregions that may have memory.
    pub limit: u32,
    /// Greatest number of subregions that had memory at the same time.
    most: u32,
}

impl Regions {
    pub fn new(settings: &HpbSettings) -> Regions {
        let terms = settings.terms.clone();
        let new = |_| Subregion {
            state: SubregionState::Unused,
            queued: false,
            again: false,
            reads: 0,
            made: 0,
            entries: Vec::new(),
            dirty: FixedBitSet::new(),
        };
        let region = |r| Region { pinned: r < settings.pinned_regions, ..Region::default() };
        Regions {
            subregions: (0..terms.subregion_count()).map(new).collect(),
            regions: (0..terms.region_count()).map(region).collect(),
            lru: IndexList::new(terms.region_count()),
            used: 0,
            limit: 0,
            most: 0,
            terms,
        }
    }

    pub fn region_of(&self, subregion: u32) -> u32 {
        subregion / self.terms.subregions
    }

    pub fn region(&mut self, region: u32) -> &mut Region {
        &mut self.regions[region as usize]
    }

    pub fn subregion(&mut self, subregion: u32) -> &mut Subregion {
        &mut self.subregions[subregion as usize]
    }

    /// Returns the subregions of a region.
    pub fn of_region(&self, region: u32) -> Range<u32> {
        let first = region * self.terms.subregions;
        first..self.terms.subregion_count().min(first + self.terms.subregions)
    }

    pub fn is_active(&self, region: u32) -> bool {
        self.regions[region as usize].held > 0
    }

    /// Returns the regions with memory that are not pinned, the least recently read one first.
    pub fn active(&self) -> Vec<u32> {
        self.lru.iter().collect()
    }

    /// Returns the entries of `count` pages from `first` on for a read, or the reason for a miss.
    #[inline]
    pub fn entries(&self, first: Lpn, count: u32) -> Result<&[u64], Miss> {
        let index = self.terms.subregion_of(first);
        let subregion = &self.subregions[index as usize];
        let start = first.0 - index * self.terms.subregion;
        if start + count > self.terms.subregion {
            return Err(Miss::Crosses);
        }
        if subregion.state != SubregionState::Valid {
            return Err(if self.is_active(self.region_of(index)) {
                Miss::Subregion
            } else {
                Miss::Region
            });
        }
        let pages = start as usize..(start + count) as usize;
        if pages.clone().any(|page| subregion.dirty.contains(page)) {
            return Err(Miss::Dirty);
        }
        let entries = &subregion.entries[pages];
        if entries.contains(&NO_ENTRY) { Err(Miss::NoEntry) } else { Ok(entries) }
    }

    /// Notes that a region was read.
    #[inline]
    pub fn touch(&mut self, region: u32) {
        if self.lru.contains(region) {
            self.lru.touch(region);
        }
    }

    /// Marks pages that are written or trimmed, because their entries become stale.
    pub fn mark(&mut self, pages: Range<u32>) {
        let mut page = pages.start;
        while page < pages.end {
            let index = self.terms.subregion_of(Lpn(page));
            let first = index * self.terms.subregion;
            let end = pages.end.min(first + self.terms.subregion);
            let subregion = &mut self.subregions[index as usize];
            if matches!(subregion.state, SubregionState::Valid | SubregionState::Issued) {
                subregion.dirty.insert_range((page - first) as usize..(end - first) as usize);
            }
            page = end;
        }
    }

    /// Replaces the entry of a page with an entry from the response to command `made`.
    pub fn replace(&mut self, lpn: Lpn, entry: u64, made: u64) {
        let index = self.terms.subregion_of(lpn);
        let subregion = &mut self.subregions[index as usize];
        if subregion.state == SubregionState::Valid && subregion.made < made {
            subregion.entries[(lpn.0 - index * self.terms.subregion) as usize] = entry;
            self.clean(lpn);
        }
    }

    /// Clears the mark of a page whose entry is newer than the last write to the page.
    pub fn clean(&mut self, lpn: Lpn) {
        let index = self.terms.subregion_of(lpn);
        self.subregions[index as usize]
            .dirty
            .remove((lpn.0 - index * self.terms.subregion) as usize);
    }

    /// Returns `true` if the region holds valid entries that were fetched before command `made`.
    pub fn has_entries_before(&self, region: u32, made: u64) -> bool {
        let before = |s: &Subregion| s.state == SubregionState::Valid && s.made < made;
        self.of_region(region).any(|s| before(&self.subregions[s as usize]))
    }

    /// Returns `true` if one more subregion may have memory.
    pub fn has_room(&self) -> bool {
        self.used < self.limit
    }

    /// Returns `true` if more subregions have memory than the limit allows.
    pub fn is_over_limit(&self) -> bool {
        self.used > self.limit
    }

    /// Gives memory to a subregion without memory.
    pub fn hold(&mut self, subregion: u32) {
        let region = self.region_of(subregion);
        let pages = self.terms.subregion as usize;
        let held = self.subregion(subregion);
        assert!(held.state == SubregionState::Unused, "subregion {subregion} is {:?}", held.state);
        (held.state, held.again) = (SubregionState::Invalid, false);
        held.dirty = FixedBitSet::with_capacity(pages);
        self.used += 1;
        self.most = self.most.max(self.used);
        let of = &mut self.regions[region as usize];
        of.held += 1;
        if !of.pinned {
            self.lru.touch(region);
        }
    }

    /// Returns the region to drop in favour of another, or `None` if no region may be dropped.
    ///
    /// Region `but`, regions with more than `reads_max` reads, and regions with a subregion that is
    /// being fetched are not dropped. Of the others, the least recently read region is returned.
    pub fn victim(&self, but: Option<u32>, reads_max: u32) -> Option<u32> {
        let issued = |r: u32| {
            self.of_region(r).any(|s| self.subregions[s as usize].state == SubregionState::Issued)
        };
        let fits = |r: &u32| {
            Some(*r) != but && self.regions[*r as usize].reads <= reads_max && !issued(*r)
        };
        self.lru.iter().find(fits)
    }

    /// Drops a region. A subregion that is being fetched stays until it arrives.
    pub fn drop_region(&mut self, region: u32) {
        for index in self.of_region(region) {
            if matches!(
                self.subregions[index as usize].state,
                SubregionState::Invalid | SubregionState::Valid
            ) {
                self.release(index);
            }
        }
    }

    /// Frees the memory of a subregion.
    pub fn release(&mut self, index: u32) {
        let subregion = &mut self.subregions[index as usize];
        subregion.state = SubregionState::Unused;
        (subregion.entries, subregion.dirty) = (Vec::new(), FixedBitSet::new());
        self.used -= 1;
        let region = self.region_of(index);
        let of = &mut self.regions[region as usize];
        of.held -= 1;
        if of.held == 0 {
            of.update = false;
            self.lru.remove(region);
        }
    }

    /// Returns the greatest numbers of bytes that were in use at the same time, for entries and for
    /// bits of pages.
    pub fn most_bytes(&self) -> (u64, u64) {
        let (entries, bits) = self.terms.host_bytes();
        (u64::from(self.most) * entries, u64::from(self.most) * bits)
    }
}
