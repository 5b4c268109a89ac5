//! The O(n) rules of the page-mapped FTL.

use super::{PageMapped, SlcCache};
use crate::blocks::Role;
use crate::units::check_names;
use flashatlas_nand::Medium;
use flashatlas_types::{Lpn, Ppn, Violation};

impl PageMapped {
    pub(super) fn check_tables(&self, medium: &Medium) -> Result<(), Violation> {
        medium.check()?;
        self.pool.blocks.check(&self.layout, medium)?;
        let (mapped, entries) = self.entries();
        let valid = self.pool.blocks.total() - self.map.check(medium, &self.pool)?;
        // following an entry to its slot waits for memory, so this is done only to find the wrong
        // entry
        let same = entries == self.valid_slots(medium);
        if !same {
            self.check_entries(medium)?;
        }
        Violation::unless(same && mapped == valid, "every valid slot is mapped", || {
            format!("{mapped} slots are mapped, but {valid} slots are valid")
        })?;
        self.check_roles()?;
        self.steps.as_ref().map_or(Ok(()), |steps| steps.check())?;
        self.check_buffers()
    }

    /// Checks that each entry is unmapped or points to a valid slot of its page.
    fn check_entries(&self, medium: &Medium) -> Result<(), Violation> {
        for lpn in (0..self.layout.logical_units).map(Lpn) {
            let Some(ppn) = self.map.peek(lpn).mapped() else { continue };
            Violation::unless(self.pool.blocks.is_valid(ppn), "a mapped slot is valid", || {
                format!("page {lpn} is in slot {ppn}")
            })?;
            check_names(medium, ppn, lpn)?;
        }
        Ok(())
    }

    /// Checks that each block is in the list that its role names.
    fn check_roles(&self) -> Result<(), Violation> {
        let mut free = 0;
        for (id, lane) in self.lanes.iter_enumerated() {
            let listed = self.pool.listed(id).iter().chain(self.pool.listed_static(id).iter());
            for block in listed {
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
            format!("{} blocks are free, but {free} blocks are listed", count(Role::Free))
        })?;
        if let Some(slc) = &self.slc {
            self.check_slc(slc)?;
        }
        let leaving: usize = self.lanes.iter().map(|l| l.leaving.len()).sum();
        Violation::unless(count(Role::Leaving) == leaving, "every leaving block is listed", || {
            format!("{} blocks are leaving, but {leaving} are listed", count(Role::Leaving))
        })
    }

    /// Checks that filled blocks in SLC mode are listed, and that their valid units are counted.
    fn check_slc(&self, slc: &SlcCache) -> Result<(), Violation> {
        let (mut filled, mut held) = (0, 0);
        for lane in self.layout.lane_ids() {
            for &block in slc.filled(lane) {
                filled += usize::from(self.pool.blocks.role(block) == Role::Slc);
            }
        }
        for block in self.layout.block_ids().filter(|&b| slc.holds(b)) {
            held += u64::from(self.pool.blocks.valid(block));
        }
        let counted = self.pool.blocks.count(Role::Slc);
        Violation::unless(filled == counted, "every filled block in SLC mode is listed", || {
            format!("{counted} filled, {filled} listed")
        })?;
        Violation::unless(held == slc.held(), "an SLC cache counts its valid units", || {
            format!("{held} valid, {} counted", slc.held())
        })
    }

    /// Checks that buffers have less than a frame of units, that the index of buffered pages is
    /// exact, and that the counts of leaving blocks agree.
    fn check_buffers(&self) -> Result<(), Violation> {
        let mut host = 0;
        for (lane, l) in self.lanes.iter_enumerated() {
            for (f, frontier) in l.frontiers.iter_enumerated() {
                Violation::unless(
                    frontier.buffer.len() < self.frame_len(f),
                    "a full buffer has been programmed",
                    || format!("lane {lane}, frontier {f}"),
                )?;
                for p in frontier.buffer.iter().filter(|p| p.is_host()) {
                    host += 1;
                    let entry = self.buffered.get(&p.unit.lpn);
                    Violation::unless(
                        entry == Some(&(lane, f)),
                        "a buffered page is indexed",
                        || format!("the index entry of page {} is {entry:?}", p.unit.lpn),
                    )?;
                }
            }
            for leaving in &l.leaving {
                let from = |p: Ppn| p != Ppn::NONE && self.layout.block_of(p) == leaving.block;
                let mut found =
                    l.frontiers.iter().flat_map(|f| &f.buffer).filter(|p| from(p.from)).count();
                if let Some(steps) = &self.steps {
                    found += steps.copies_of(&self.layout, leaving.block);
                }
                Violation::unless(
                    found as u32 == leaving.buffered,
                    "a leaving block counts its buffered copies",
                    || {
                        format!(
                            "block {} counts {} buffered copies, but {found} are found",
                            leaving.block, leaving.buffered
                        )
                    },
                )?;
            }
        }
        Violation::unless(host == self.buffered.len(), "the index names no other page", || {
            format!("{host} pages are buffered, but {} pages are indexed", self.buffered.len())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::DEF;
    use super::*;
    use crate::schemes::SchemeConfig;
    use crate::{Command, Copies, Ftl, FtlContext, Outcome, PARAMS, Registry};
    use flashatlas_fixtures::layouts::lanes;
    use flashatlas_nand::{Flash, Rules, Unit};
    use flashatlas_types::{Cause, OpId, Plan, RawConfig, Seed, Stamp};
    use std::sync::Arc;

    const PAGES: u32 = 24;

    /// Returns a drive on which all pages were written, and every second page twice.
    fn written() -> (PageMapped, Medium) {
        let mut raw = RawConfig::default();
        raw.set("map.unit", "512", "test");
        let of_scheme = (DEF.params)(&Registry::STANDARD, &|_| None).unwrap();
        let of_flash = PARAMS.iter().chain(flashatlas_nand::PARAMS);
        let defs: Vec<_> = of_flash.chain(of_scheme).collect();
        let params = raw.resolve(&defs, |_| None).unwrap();
        let layout = lanes(1, [12, 8, 1], PAGES);
        let mut medium = Medium::new(Arc::new(layout), Rules::PLAIN, 0, Seed(1)).unwrap();
        let mut plan = Plan::default();
        plan.set_recording(false);
        let command = Command { oldest_unfinished: OpId::NONE, ..Command::UNTIMED };
        let (mut copies, mut outcome) = (Copies::default(), Outcome::default());
        let flash = Flash { medium: &mut medium, plan: &mut plan };
        let mut cx = FtlContext::new(flash, &command, &mut copies, &mut outcome);
        let config = SchemeConfig { params: &params, parts: &Registry::STANDARD };
        let mut ftl = PageMapped::mount(&config, &mut cx, Seed(1)).unwrap();
        for lpn in (0..PAGES).chain((0..PAGES).step_by(2)).map(Lpn) {
            let unit = Unit { lpn, stamp: Stamp(lpn.0 + 1), bytes: None };
            ftl.write(&mut cx, &[unit], Cause::Host, &[]).unwrap();
        }
        ftl.flush(&mut cx).unwrap();
        (ftl, medium)
    }

    #[test]
    fn entries_and_valid_slots_say_the_same() {
        let broken = |spoil: &dyn Fn(&mut PageMapped, &mut Medium)| {
            let (mut ftl, mut medium) = written();
            ftl.check(&medium).unwrap();
            spoil(&mut ftl, &mut medium);
            ftl.check(&medium).unwrap_err().rule
        };
        let at = |ftl: &PageMapped, lpn| ftl.map.peek(Lpn(lpn));
        // the entries of two pages are swapped
        let named = broken(&|ftl, _| {
            let [three, four] = [3, 4].map(|lpn| at(ftl, lpn));
            ftl.map.restore(Lpn(3), four, 0);
            ftl.map.restore(Lpn(4), three, 0);
        });
        assert_eq!(named, "the spare area of a mapped slot names its page");
        // an entry points to the previous version
        let valid = broken(&|ftl, medium| {
            let is_old = |&slot: &Ppn| medium.lpn(slot) == Ok(Lpn(4)) && slot != at(ftl, 4);
            let old = (0..PAGES).map(Ppn).find(is_old).unwrap();
            ftl.map.restore(Lpn(4), old, 0);
        });
        assert_eq!(valid, "a mapped slot is valid");
        // the previous version is valid too
        let mapped = broken(&|ftl, medium| {
            let is_old = |&slot: &Ppn| medium.lpn(slot) == Ok(Lpn(4)) && slot != at(ftl, 4);
            ftl.pool.blocks.set_valid((0..PAGES).map(Ppn).find(is_old).unwrap());
        });
        assert_eq!(mapped, "every valid slot is mapped");
        // the slot of an entry is unreadable
        let read = broken(&|ftl, medium| medium.tear(ftl.layout.frame_of(at(ftl, 3))));
        assert_eq!(read, "the spare area of a mapped slot names its page");
    }
}
