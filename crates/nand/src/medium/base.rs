//! A medium that begins as a base says: a drive that was filled, or is in its steady state.
//!
//! The content of such a medium is computed when a caller asks for it. Every function of [`Medium`]
//! gives the same results as on a medium to which the content was programmed. Only memory and time
//! differ.

use super::laid::Laid;
use crate::Medium;
use flashatlas_types::base::Base;
use flashatlas_types::{BlockId, Cause, Lpn, Stamp};
use std::sync::Arc;

impl Medium {
    /// Brings an untouched medium into the state of a base, as if the host had programmed it.
    /// `stamp` returns the content of each page.
    ///
    /// # Panics
    /// Panics if the medium is not untouched, or if its operations may fail by themselves.
    pub fn lay(&mut self, base: Arc<Base>, stamp: fn(Lpn) -> Stamp) {
        assert!(self.is_untouched() && !self.has_errors(), "a base is laid on a blank medium");
        for block in self.layout.block_ids() {
            let programmed = base.programmed(block);
            self.blocks[block].next = programmed;
        }
        let programs = base.programs();
        self.sequence = programs;
        self.counters.programs[Cause::Host as usize] +=
            programs * u64::from(self.layout.pages_per_frame);
        if let Base::Filled(_) = &*base {
            let slots = programs * u64::from(self.layout.slots_per_frame);
            self.counters.padded_slots += slots - u64::from(self.layout.logical_units);
        }
        let is_programmed = |block| base.programmed(block) > 0;
        self.cells.lay(Laid { base: Arc::clone(&base), stamp }, is_programmed);
    }

    /// Returns the base of this medium, if every block is still as it says.
    pub fn untouched_base(&self) -> Option<&Arc<Base>> {
        let base = &self.cells.base.as_ref()?.base;
        let untouched = self.cells.is_untouched(|block| base.programmed(block) > 0, |_| false);
        untouched.then_some(base)
    }

    /// Returns whether a block is as the base says.
    #[inline]
    pub fn is_base(&self, block: BlockId) -> bool {
        self.cells.is_base(block)
    }

    /// Returns the stamp of a page in the base.
    ///
    /// # Panics
    /// Panics if the medium has no base.
    pub fn stamp_in_base(&self, lpn: Lpn) -> Stamp {
        (self.cells.base.as_ref().expect("a medium with a base").stamp)(lpn)
    }

    /// Gives a block memory of its own, because all of it is about to be read. This changes no
    /// content.
    pub fn take_from_base(&mut self, block: BlockId) {
        self.cells.take_from_base(block);
    }

    /// Gives every block that is not erased, and every map page, memory of its own. This changes no
    /// content.
    pub fn densify(&mut self) {
        self.write_down_maps();
        self.layout.block_ids().for_each(|block| self.cells.take_from_base(block));
        self.cells.base = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flash, FrameState, Image, ProgramOrder, Rules, Unit};
    use flashatlas_fixtures::layouts::lanes;
    use flashatlas_types::base::{Filled, Held, OLD, Steady};
    use flashatlas_types::{FrameId, Index, Layout, Plan, Ppn, Rng, Seed};

    fn stamp(lpn: Lpn) -> Stamp {
        Stamp(3 * lpn.0 + 1)
    }

    fn blank(layout: &Arc<Layout>, order: ProgramOrder) -> Medium {
        Medium::new(layout.clone(), Rules { order, ..Rules::PLAIN }, 0, Seed(1)).unwrap()
    }

    fn program(medium: &mut Medium, frame: FrameId, units: &[Unit]) {
        let mut plan = Plan::default();
        let mut flash = Flash { medium, plan: &mut plan };
        flash.program(frame, units.iter(), Cause::Host, &[]).unwrap();
    }

    /// Returns a layout, a steady state, and a medium to which it was programmed frame by frame.
    fn steady(order: ProgramOrder) -> (Arc<Layout>, Arc<Base>, Medium) {
        let layout = Arc::new(lanes(2, [9, 8, 4], 240));
        let full = [(3, 2), (12, 20), (17, 0), (0, 32), (4, 31), (13, 30), (8, 32), (9, 32)];
        let full = [&full[..], &[(1, 32), (10, 240 - 211)]].concat();
        let full: Vec<_> = full.iter().map(|&(block, v)| (BlockId::new(block), v)).collect();
        let base = Steady::new(&layout, &full, &mut Rng::stream(Seed(1), "test"));
        let mut medium = blank(&layout, order);
        let mut held = Vec::new();
        base.order().iter().for_each(|&block| base.decode(block, &mut held));
        for (place, held) in held.chunks(4).enumerate() {
            let block = base.order()[place / 8];
            let units = held.iter().map(|&held| match held {
                Held::Valid(lpn) => Unit { lpn, stamp: stamp(lpn), bytes: None },
                Held::Old(lpn) => Unit { lpn, stamp: OLD, bytes: None },
                Held::Padding => Unit { lpn: Lpn::NONE, stamp: OLD, bytes: None },
            });
            let frame = layout.frame_in(block, place as u32 % 8);
            program(&mut medium, frame, &units.collect::<Vec<_>>());
        }
        (layout, Arc::new(Base::Steady(base)), medium)
    }

    /// Returns a layout, the state after a fill, and a medium that was filled in order. Its last
    /// frame is padded, and one of its last blocks is full up to its fifth frame.
    fn filled(order: ProgramOrder) -> (Arc<Layout>, Arc<Base>, Medium) {
        let layout = Arc::new(lanes(2, [9, 8, 4], 165));
        let blocks = [[5, 2, 8], [10, 17, 9]];
        let blocks = blocks.map(|lane| lane.map(BlockId::from_number).to_vec());
        let mut medium = blank(&layout, order);
        assert!(medium.program_in_order(&blocks, &stamp, &mut |_| true));
        let base = Filled::new(&layout, &blocks);
        (layout, Arc::new(Base::Filled(base)), medium)
    }

    fn image(medium: &Medium) -> Image {
        medium.clone().into_image()
    }

    /// Compares all that two media say of their blocks, frames and slots.
    fn agree(laid: &Medium, dense: &Medium) {
        laid.check().unwrap();
        let layout = laid.layout();
        for block in layout.block_ids() {
            let said = |medium: &Medium| {
                (
                    (medium.write_pointer(block), medium.last_programmed(block)),
                    (medium.has_readable_spare(block), medium.unreadable_frames(block)),
                )
            };
            assert_eq!(said(laid), said(dense), "block {block}");
        }
        for frame in (0..layout.frames()).map(FrameId) {
            let said = |medium: &Medium| {
                let spare = medium.spare(frame);
                let spare = spare.map(|spare| (spare.sequence, spare.lpns().collect::<Vec<Lpn>>()));
                (medium.state(frame), spare)
            };
            assert_eq!(said(laid), said(dense), "frame {frame}");
        }
        for slot in (0..layout.slots()).map(Ppn) {
            let said = |medium: &Medium| (medium.lpn(slot), medium.unit(slot));
            assert_eq!(said(laid), said(dense), "slot {slot}");
        }
        assert_eq!(laid.sequence(), dense.sequence());
        assert_eq!(laid.counters, dense.counters);
    }

    #[test]
    fn a_base_is_the_medium_that_programs_make_and_stays_so_under_changes() {
        let mut rng = Rng::stream(Seed(1), "base");
        for turn in 0..40 {
            let order = [ProgramOrder::Strict, ProgramOrder::Any][turn / 2 % 2];
            let (layout, base, mut dense) =
                if turn % 2 == 0 { steady(order) } else { filled(order) };
            let mut laid = blank(&layout, order);
            laid.lay(base.clone(), stamp);
            assert!(laid.untouched_base().is_some());
            agree(&laid, &dense);
            for _ in 0..30 {
                let frame = FrameId(rng.below(layout.frames().into()) as u32);
                let block = layout.block_of_frame(frame);
                let act = rng.below(7);
                let lpn = Lpn(rng.below(layout.logical_units.into()) as u32);
                for medium in [&mut laid, &mut dense] {
                    match act {
                        0 | 1 => {
                            let mut plan = Plan::default();
                            let mut flash = Flash { medium, plan: &mut plan };
                            flash.erase(block, Cause::Gc, &[]).unwrap();
                        }
                        2 | 3 if medium.refuses_program(frame).is_none() => {
                            program(medium, frame, &[Unit { lpn, stamp: OLD, bytes: None }]);
                        }
                        4 if medium.state(frame) != FrameState::Erased => medium.tear(frame),
                        5 => medium.restore_power(),
                        _ => medium.take_from_base(block),
                    }
                }
            }
            agree(&laid, &dense);
            assert!(laid.untouched_base().is_none());
            assert_eq!(image(&laid), image(&dense));
            laid.densify();
            assert!(layout.block_ids().all(|block| !laid.is_base(block)));
            agree(&laid, &dense);
        }
    }

    #[test]
    fn a_block_has_memory_while_it_is_changed_and_not_erased() {
        let (layout, base, _) = steady(ProgramOrder::Strict);
        let mut medium = blank(&layout, ProgramOrder::Strict);
        let own = |medium: &Medium| medium.cells.own_blocks();
        medium.lay(base, stamp);
        assert_eq!(own(&medium), 0);
        let block = BlockId::new(3);
        medium.take_from_base(block);
        assert_eq!((own(&medium), medium.untouched_base().is_some()), (1, false));
        let mut plan = Plan::default();
        let mut flash = Flash { medium: &mut medium, plan: &mut plan };
        flash.erase(block, Cause::Gc, &[]).unwrap();
        assert_eq!((own(&medium), medium.untouched_base().is_some()), (0, false));
        program(&mut medium, layout.frame_in(block, 0), &[]);
        assert_eq!(own(&medium), 1);
    }

    #[test]
    fn a_medium_over_a_base_is_restored_from_the_arrays_of_its_blocks() {
        let order = ProgramOrder::Strict;
        for (layout, base, dense) in [steady(order), filled(order)] {
            let mut laid = blank(&layout, order);
            laid.lay(base.clone(), stamp);
            let (image, found) = laid.clone().into_image_over_base().expect("it is untouched");
            assert!(image.lpns.is_empty() && image.state.is_empty());
            assert_eq!(found.parts(), base.parts());
            let restored = |image: Image| {
                let rules = Rules { order, ..Rules::PLAIN };
                Medium::from_image_over_base(layout.clone(), rules, image, (base.clone(), stamp))
            };
            let mut again = restored(image.clone()).unwrap();
            again.counters = dense.counters; // an image has none
            agree(&again, &dense);
            assert!(again.untouched_base().is_some());
            let used = layout.block_ids().find(|&block| base.programmed(block) > 0).unwrap();
            let at = usize::from(used);
            let refused = |change: &dyn Fn(&mut Image)| {
                let mut image = image.clone();
                change(&mut image);
                restored(image).is_err()
            };
            assert!(refused(&|image| image.next[at] -= 1), "a frame less than the base");
            assert!(refused(&|image| image.roles[at] = 1), "a block of map pages");
            assert!(refused(&|image| image.health[at] = crate::image::BAD), "a bad block");
            assert!(refused(&|image| image.sequence += 1), "a program more than the base");
            assert!(refused(&|image| image.lpns.push(0)), "an array of slots");
            laid.take_from_base(used);
            assert!(laid.into_image_over_base().is_err(), "one block is its own");
        }
    }
}
