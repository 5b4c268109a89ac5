//! The mapping tables (HARD, Fig. 14.2). They map logical pages to virtual pages and back. A list
//! holds the number of valid pages of each virtual superpage (VSP).
//!
//! A superpage is *free*, *closed* or *vacated*. A closed superpage holds valid pages. A vacated
//! superpage no longer holds valid pages, but a mount would still find mappings to it. So a vacated
//! superpage may be written only after the log has recorded that it is vacated.

use super::settings::Areas;
use flashatlas_ftl::victims::{Candidates, LaneShape, Moment, VictimDef, VictimPolicy};
use flashatlas_types::{LocalBlock, RawConfig, Rng, Seed, TiVec, Violation, ti_vec};
use std::collections::VecDeque;

/// Value for no page.
pub(super) const NONE: u32 = u32::MAX;

/// The tables.
pub(super) struct Map {
    /// Virtual page of each logical page, counted from the first data superpage.
    forward: Vec<u32>,
    /// Logical page that was written to each virtual page; stale if `forward` points elsewhere.
    reverse: Vec<u32>,
    /// Number of valid pages of each superpage.
    valid: TiVec<LocalBlock, u32>,
    pages: u32,
    pub free: VecDeque<u32>,
    pub vacated: Vec<u32>,
    policy: Box<dyn VictimPolicy>,
    /// Number of writes of each superpage, which the policy uses as its number of erases.
    rewrites: TiVec<LocalBlock, u32>,
    /// Number of pages written so far, and the time at which the current command arrived.
    pub at: Moment,
}

/// Returns a superpage as the policy has it: a block of its one lane.
fn as_block(superpage: u32) -> LocalBlock {
    LocalBlock::new(superpage)
}

fn policy(def: &VictimDef, areas: &Areas) -> Box<dyn VictimPolicy> {
    let defaults = RawConfig::default().resolve(&def.params.iter().collect::<Vec<_>>(), |_| None);
    let lane = LaneShape { blocks: areas.data, slots: areas.pages };
    (def.build)(
        &defaults.expect("every policy has defaults"),
        lane,
        Rng::stream(Seed(1), "hard.victim"),
    )
}

impl Map {
    /// Returns a map in which every superpage is free.
    pub fn new(areas: &Areas, victim: &VictimDef) -> Map {
        Map::loaded(areas, victim, vec![NONE; areas.exported as usize])
    }

    /// Returns the map after a mount, in which superpages without a valid page are free.
    pub fn loaded(areas: &Areas, victim: &VictimDef, forward: Vec<u32>) -> Map {
        let mut reverse = vec![NONE; (areas.data * areas.pages) as usize];
        let mut valid = ti_vec![0; areas.data as usize];
        for (&vpn, lpn) in forward.iter().zip(0..).filter(|(vpn, _)| **vpn != NONE) {
            reverse[vpn as usize] = lpn;
            valid[as_block(vpn / areas.pages)] += 1;
        }
        let (free, closed): (Vec<u32>, Vec<u32>) =
            (0..areas.data).partition(|&superpage| valid[as_block(superpage)] == 0);
        let (pages, policy) = (areas.pages, policy(victim, areas));
        let mut map = Map {
            forward,
            reverse,
            valid,
            pages,
            free: free.into(),
            vacated: Vec::new(),
            policy,
            rewrites: ti_vec![0; areas.data as usize],
            at: Moment::default(),
        };
        map.put_back(&closed);
        map
    }

    /// Returns the virtual page of a logical page, or `None` if it has none.
    #[inline]
    pub fn get(&self, lpn: u32) -> Option<u32> {
        Some(self.forward[lpn as usize]).filter(|&vpn| vpn != NONE)
    }

    /// Returns the valid pages of a superpage, each as a virtual page and a logical page.
    pub fn valid_pages(&self, superpage: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let first = superpage * self.pages;
        let all = (first..first + self.pages).map(|vpn| (vpn, self.reverse[vpn as usize]));
        all.filter(|&(vpn, lpn)| lpn != NONE && self.forward[lpn as usize] == vpn)
    }

    /// Notes that the logical pages `lpns` were written to a free superpage.
    ///
    /// [`NONE`] in `lpns` stands for padding.
    pub fn written(&mut self, superpage: u32, lpns: &[u32]) {
        let first = superpage * self.pages;
        let mut valid = 0;
        for (vpn, &lpn) in (first..).zip(lpns) {
            self.reverse[vpn as usize] = lpn;
            if lpn != NONE {
                self.invalidate(lpn);
                self.forward[lpn as usize] = vpn;
                valid += 1;
            }
        }
        assert!(
            self.valid[as_block(superpage)] == 0,
            "superpage {superpage} is written over valid pages"
        );
        self.at.clock += u64::from(self.pages);
        self.rewrites[as_block(superpage)] += 1;
        self.valid[as_block(superpage)] = valid;
        if valid == 0 {
            self.vacated.push(superpage);
            return;
        }
        self.tell_policy(superpage);
    }

    /// Removes the mapping of a page that was trimmed.
    pub fn trimmed(&mut self, lpn: u32) {
        self.invalidate(lpn);
        self.forward[lpn as usize] = NONE;
    }

    fn invalidate(&mut self, lpn: u32) {
        let Some(vpn) = self.get(lpn) else { return };
        let superpage = vpn / self.pages;
        let valid = &mut self.valid[as_block(superpage)];
        *valid -= 1;
        if *valid > 0 {
            self.policy.invalidated(as_block(superpage), *valid, self.at);
        } else {
            self.policy.removed(as_block(superpage));
            self.vacated.push(superpage);
        }
    }

    /// Returns the superpage to reclaim next and the number of its valid pages, if there is one.
    pub fn victim(&mut self) -> Option<(u32, u32)> {
        let lane = Candidates {
            valid: &self.valid,
            slots: self.pages,
            erases: &self.rewrites,
            at: self.at,
        };
        self.policy.pick(&lane).map(|block| (block.number(), self.valid[block]))
    }

    /// Prevents the policy from picking this superpage until [`Map::put_back`] is called for it.
    pub fn set_aside(&mut self, superpage: u32) {
        self.policy.removed(as_block(superpage));
    }

    /// Allows the policy to pick superpages again that were set aside.
    pub fn put_back(&mut self, aside: &[u32]) {
        for &superpage in aside {
            self.tell_policy(superpage);
        }
    }

    /// Reports a closed superpage to the policy. Pages that hold padding are reported as
    /// invalidated.
    fn tell_policy(&mut self, superpage: u32) {
        self.policy.closed(as_block(superpage), self.pages, self.at);
        let valid = self.valid[as_block(superpage)];
        (valid..self.pages)
            .rev()
            .for_each(|left| self.policy.invalidated(as_block(superpage), left, self.at));
    }

    /// Returns the entries of a part of the map, for a checkpoint.
    pub fn entries(&self, from: u32, count: u32) -> &[u32] {
        let end = (from + count).min(self.forward.len() as u32);
        &self.forward[from.min(end) as usize..end as usize]
    }

    /// Returns the number of bytes of the two mapping tables.
    pub fn table_bytes(&self) -> u64 {
        4 * (self.forward.len() + self.reverse.len()) as u64
    }

    /// Returns the greatest number of bytes of the list of superpages.
    ///
    /// The victim policy's own tables are not counted.
    pub fn list_bytes(&self) -> u64 {
        4 * self.valid.len() as u64 + 4 * (self.free.capacity() + self.vacated.capacity()) as u64
    }

    /// Returns the number of valid pages.
    pub fn valid_count(&self) -> u64 {
        self.valid.iter().map(|&n| u64::from(n)).sum()
    }

    /// Checks the rules of the tables.
    pub fn check(&self) -> Result<(), Violation> {
        let mut counted = vec![0; self.valid.len()];
        for (&vpn, lpn) in self.forward.iter().zip(0u32..).filter(|(vpn, _)| **vpn != NONE) {
            let back = self.reverse[vpn as usize];
            Violation::unless(back == lpn, "the reverse map leads back", || {
                format!("page {lpn} is at {vpn}, but the reverse map has {back} there")
            })?;
            counted[(vpn / self.pages) as usize] += 1;
        }
        for (superpage, (&has, &valid)) in counted.iter().zip(&self.valid).enumerate() {
            Violation::unless(has == valid, "valid pages are counted", || {
                format!("superpage {superpage} has {has} valid pages, but the list says {valid}")
            })?;
        }
        let mut empty: Vec<u32> = self.free.iter().chain(&self.vacated).copied().collect();
        empty.sort_unstable();
        let expected = (0u32..)
            .zip(&self.valid)
            .filter(|(_, valid)| **valid == 0)
            .map(|(superpage, _)| superpage);
        Violation::unless(
            expected.eq(empty.iter().copied()),
            "a superpage without valid pages is free or vacated, once",
            || format!("{empty:?}"),
        )
    }
}
