//! The O(n) rules of the page-mapped FTL.

use super::PageMapped;
use crate::blocks::{Role, check_names};
use flashatlas_nand::Medium;
use flashatlas_types::{Dealing, Lpn, Ppn, Violation};

/// Entries that are checked together.
const TOGETHER: usize = 1 << 22;

impl PageMapped {
    pub(super) fn check_tables(&self, medium: &Medium) -> Result<(), Violation> {
        medium.check()?;
        self.pool.blocks.check(&self.layout, medium)?;
        let mut mapped = 0;
        for first in (0..self.layout.logical_units).step_by(TOGETHER) {
            mapped += self.check_entries(medium, first)?;
        }
        let valid = self.pool.blocks.total() - self.map.check(medium, &self.pool)?;
        Violation::unless(mapped == valid, "every valid slot is mapped", || {
            format!("{mapped} mapped, {valid} valid")
        })?;
        self.check_roles()?;
        self.check_buffers()
    }

    /// Entries from `first` on lead nowhere or to valid slots of their pages; returns how many lead
    /// to one. Slots of one window of the medium are looked at one after the other.
    fn check_entries(&self, medium: &Medium, first: u32) -> Result<u64, Violation> {
        let end = self.layout.logical_units.min(first.saturating_add(TOGETHER as u32));
        let entry = |lpn| Some((lpn, self.map.peek(lpn).mapped()?));
        let mapped: Vec<(Lpn, Ppn)> = (first..end).map(Lpn).filter_map(entry).collect();
        let beside_windows = mapped.iter().map(|&entry| (Medium::window(entry.1), entry));
        for (lpn, ppn) in Dealing::sorted(Medium::windows(&self.layout), beside_windows) {
            Violation::unless(self.pool.blocks.is_valid(ppn), "a mapped slot is valid", || {
                format!("page {lpn}, slot {ppn}")
            })?;
            check_names(medium, ppn, lpn)?;
        }
        Ok(mapped.len() as u64)
    }

    /// Each block is in exactly the place that its role names.
    fn check_roles(&self) -> Result<(), Violation> {
        let mut free = 0;
        for (id, lane) in self.lanes.iter().enumerate() {
            for block in self.pool.listed(id as u32).iter() {
                free += 1;
                Violation::unless(
                    self.pool.blocks.role(block) == Role::Free,
                    "listed free blocks are free",
                    || format!("{block}"),
                )?;
            }
            for frontier in &lane.frontiers {
                let open = frontier.block.is_none_or(|b| self.pool.blocks.role(b) == Role::Open);
                Violation::unless(open, "a frontier's block is open", || {
                    format!("{:?}", frontier.block)
                })?;
            }
        }
        let count = |role| self.pool.blocks.count(role);
        Violation::unless(count(Role::Free) == free, "every free block is listed", || {
            format!("{} free, {free} listed", count(Role::Free))
        })?;
        let leaving: usize = self.lanes.iter().map(|l| l.leaving.len()).sum();
        Violation::unless(count(Role::Leaving) == leaving, "every leaving block is listed", || {
            format!("{} leaving, {leaving} listed", count(Role::Leaving))
        })
    }

    /// Buffers hold less than a frame, the index of buffered pages is exact, and counts of leaving
    /// blocks agree.
    fn check_buffers(&self) -> Result<(), Violation> {
        let mut host = 0;
        for (lane, l) in self.lanes.iter().enumerate() {
            for (f, frontier) in l.frontiers.iter().enumerate() {
                Violation::unless(
                    frontier.buffer.len() < self.layout.slots_per_frame as usize,
                    "a full buffer has been programmed",
                    || format!("lane {lane}, frontier {f}"),
                )?;
                for p in frontier.buffer.iter().filter(|p| p.is_host()) {
                    host += 1;
                    let entry = self.buffered.get(&p.unit.lpn);
                    Violation::unless(
                        entry == Some(&(lane as u32, f as u32)),
                        "a buffered page is indexed",
                        || format!("page {}: {entry:?}", p.unit.lpn),
                    )?;
                }
            }
            for leaving in &l.leaving {
                let from = |p: Ppn| p != Ppn::NONE && self.layout.block_of(p) == leaving.block;
                let found =
                    l.frontiers.iter().flat_map(|f| &f.buffer).filter(|p| from(p.from)).count();
                Violation::unless(
                    found == leaving.buffered as usize,
                    "a leaving block counts its buffered copies",
                    || {
                        format!(
                            "block {}: {} counted, {found} buffered",
                            leaving.block, leaving.buffered
                        )
                    },
                )?;
            }
        }
        Violation::unless(host == self.buffered.len(), "the index names no other page", || {
            format!("{host} buffered, {} indexed", self.buffered.len())
        })
    }
}
