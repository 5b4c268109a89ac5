//! Copies inside a die: the pages of whole frames are sensed and programmed into another frame,
//! and their data does not cross the channel.
//!
//! The OOB record of the new frame has a number of its own, so it is sent and takes the place of
//! the old one in the page register (copyback with data modification). The data is not corrected:
//! the new frame begins with the wrong bits of its sources (`errors/carried.rs`). So the record
//! counts the copybacks since the data was last corrected.

use crate::flash::DiePlace;
use crate::gang::gang;
use crate::{Change, Flash, Medium, Oob, ReadPart, Unit};
use flashatlas_types::{
    BlockMode, Cause, CopySource, FrameId, Layout, MediumError, OpId, OpKind, Ppn, SeededBug,
};
use smallvec::SmallVec;

/// Pages that one copyback senses on a die.
type Sources = SmallVec<[CopySource; 4]>;

impl Flash<'_> {
    /// Copies `sources`, which are whole frames, to `target` inside their dies, with one operation
    /// on each die of the frame. The slots of `target` get the slots of the sources in their order.
    /// Returns the first slot, and the operation that completes the copy.
    ///
    /// If the program fails, the data is read, corrected and programmed in a spare block.
    ///
    /// # Errors
    /// Returns the errors of [`Flash::program`], and [`MediumError::Unreadable`] if a source is not
    /// programmed.
    ///
    /// # Panics
    /// Panics if the sources are not in one block, and in another block of the same lane than
    /// `target`, if their slots are not exactly its slots, or if the program breaks a rule of
    /// programs.
    pub fn copyback(
        &mut self,
        sources: &[FrameId],
        target: FrameId,
        cause: Cause,
        after: &[OpId],
    ) -> Result<(Ppn, OpId), MediumError> {
        if let Some(why) = self.medium.refuses_copyback(sources, target) {
            panic!("{why}");
        }
        sources.iter().try_for_each(|&source| self.medium.must_be_readable(source))?;
        let units = self.medium.units_of(sources)?;
        let copies = self.medium.next_copyback(sources);
        let wrong = self.medium.wrong_bits_of(sources);
        match self.medium.program(target, units.iter()) {
            Ok(first) => {
                if SeededBug::CopybackKeepsNumber.is_active() {
                    self.medium.keep_number(sources[0], target);
                }
                self.medium.change(Change::Copied { frame: target, copies, wrong });
                Ok((first, self.push_copyback(sources, target, cause, after)))
            }
            Err(MediumError::ProgramFailed(_)) => {
                let mut last = self.copy_to_spare(target, after)?;
                for &source in sources {
                    let slots = self.medium.slots_mask(source);
                    match self.read(source, slots, ReadPart::Whole, cause, &[last]) {
                        Ok(sensed) => last = sensed,
                        Err(MediumError::Unreadable(_)) if self.medium.has_errors() => {}
                        Err(error) => return Err(error),
                    }
                }
                let units = self.medium.units_of(sources)?;
                self.program(target, units.iter(), cause, &[last])
            }
            Err(error) => Err(error),
        }
    }

    /// Adds the operations of a copyback. Returns the operation that joins them.
    fn push_copyback(
        &mut self,
        sources: &[FrameId],
        target: FrameId,
        cause: Cause,
        after: &[OpId],
    ) -> OpId {
        let layout = &*self.medium.layout;
        let block = layout.block_of_frame(target);
        let mode = self.medium.mode(block);
        for &source in sources {
            let mode = self.medium.mode(layout.block_of_frame(source));
            self.medium.counters.read(cause, mode, layout.pages_in(mode));
        }
        let pages = layout.pages_in(mode);
        self.medium.counters.program(cause, mode, pages);
        self.medium.counters.copybacks += u64::from(pages);
        if !self.plan.is_recording() {
            return OpId::NONE;
        }
        let on_die = layout.span.planes * layout.pages_at_once(mode);
        let bytes = on_die * record_bytes(layout, mode);
        let from = layout.block_of_frame(sources[0]);
        let source_mode = self.medium.mode(from);
        gang(layout, self.plan, cause.class(false), after, |die, plan, after| {
            let sensed: Sources =
                sources.iter().flat_map(|&s| pages_of(layout, source_mode, s, die)).collect();
            let DiePlace { die, block, page, level } =
                DiePlace::of(layout, mode, (block, target), die);
            let (first, count) = (0, 0);
            let kind = OpKind::Copyback { die, block, page, level, bytes, first, count };
            plan.push_copyback(kind, &sensed, cause, after)
        })
    }
}

/// Returns the share of a frame's OOB record that each of its pages holds, in bytes, rounded up.
fn record_bytes(layout: &Layout, mode: BlockMode) -> u32 {
    (Oob::encoded_len(layout.slots_in(mode)) as u32).div_ceil(layout.pages_in(mode))
}

/// Returns the pages of a frame on one of its dies. Pages of several planes are sensed together,
/// and the pages of a word line one after the other.
fn pages_of(
    layout: &Layout,
    mode: BlockMode,
    frame: FrameId,
    die: u32,
) -> impl Iterator<Item = CopySource> {
    let place = DiePlace::of(layout, mode, (layout.block_of_frame(frame), frame), die);
    let DiePlace { block, page, level, .. } = place;
    let page_of = move |of_line| CopySource { block, page, level: level + of_line as u8 };
    (0..layout.pages_at_once(mode)).map(page_of)
}

impl Medium {
    /// Returns the number of copybacks that have brought the data of a frame here since it was last
    /// corrected; at most 255.
    pub fn copybacks_of(&self, frame: FrameId) -> u8 {
        self.cells.header(frame).copied
    }

    fn next_copyback(&self, sources: &[FrameId]) -> u8 {
        let most = sources.iter().map(|&source| self.copybacks_of(source)).max();
        most.unwrap_or(0).saturating_add(1)
    }

    /// Returns a description of the rule that a copyback of these frames would break, or `None` if
    /// the copyback stays on its planes and fills its frame.
    fn refuses_copyback(&self, sources: &[FrameId], target: FrameId) -> Option<String> {
        let block = |frame| self.layout.block_of_frame(frame);
        let slots = |frame| self.layout.slots_in(self.mode(block(frame)));
        let lane = |frame| self.layout.lane_of(block(frame));
        if self.layout.has_parity() {
            return Some("a frame with parity is copied: its parity is on another die".to_owned());
        }
        let from = block(*sources.first()?);
        let is_near = |&source: &FrameId| lane(source) == lane(target) && block(source) == from;
        if !sources.iter().all(is_near) || from == block(target) {
            return Some(format!(
                "frames {sources:?} are copied to frame {target}, which is not on their planes"
            ));
        }
        let given: u32 = sources.iter().map(|&source| slots(source)).sum();
        (given != slots(target)).then(|| {
            let has = slots(target);
            format!("{given} slots are copied to frame {target}, which has {has}")
        })
    }

    /// Returns the bits of all slots that a frame has in its mode.
    pub fn slots_mask(&self, frame: FrameId) -> u64 {
        let mode = self.mode(self.layout.block_of_frame(frame));
        u64::MAX >> (64 - self.layout.slots_in(mode))
    }

    fn units_of(&self, frames: &[FrameId]) -> Result<Vec<Unit>, MediumError> {
        let slots = frames.iter().flat_map(|&frame| {
            let first = self.layout.first_slot(frame).0;
            first..first + self.slots_mask(frame).count_ones()
        });
        slots.map(|slot| self.unit_or_lost(Ppn(slot))).collect()
    }

    /// Notes the number of copybacks of a frame, and the wrong bits that it begins with.
    pub(crate) fn set_copied(&mut self, frame: FrameId, copies: u8, wrong: &[u16]) {
        self.cells.set_copied(frame, copies);
        self.carry(frame, wrong);
    }

    /// Gives a frame the number of another program, as a copyback without data modification would.
    #[cold]
    fn keep_number(&mut self, source: FrameId, target: FrameId) {
        let number = self.cells.header(source).sequence;
        self.cells.set_number(target, number);
        if let Some(Change::Program { sequence, .. }) =
            self.journal.as_mut().and_then(|journal| journal.last_mut())
        {
            *sequence = number;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::draw::{Places, key};
    use crate::errors::models::Formula;
    use crate::errors::{BitErrors, Correction, FailureRates};
    use crate::{ErrorRules, FrameState, OobRole, Rules};
    use flashatlas_fixtures::layouts::{letters, tlc_on_two_planes};
    use flashatlas_types::{
        AllocationOrder, BlockId, Cell, DieBlock, Dur, Geometry, LaneId, Layout, Lpn, Plan,
        ProgramUnit, Seed, Span, Stamp,
    };

    /// Returns a medium with three blocks of six TLC pages on two planes. A page holds two units.
    fn medium(of: ProgramUnit, rules: Rules) -> Medium {
        let layout = tlc_on_two_planes(of, 24);
        Medium::new(layout.into(), rules, 0, Seed(1)).unwrap()
    }

    fn frame(m: &Medium, block: u32, index: u32) -> FrameId {
        m.layout.frame_in(BlockId::new(block), index)
    }

    /// Programs a frame with units of its own in all slots.
    fn program(m: &mut Medium, plan: &mut Plan, block: u32, index: u32) {
        let frame = frame(m, block, index);
        let count = m.slots_mask(frame).count_ones();
        let unit = |lpn| Unit { lpn: Lpn(lpn), stamp: Stamp(lpn + 100), bytes: None };
        let units: Vec<Unit> = (index * count..(index + 1) * count).map(unit).collect();
        Flash { medium: m, plan }.program(frame, units.iter(), Cause::Host, &[]).unwrap();
    }

    fn copy(m: &mut Medium, plan: &mut Plan, sources: &[(u32, u32)], to: (u32, u32)) {
        let sources: Vec<FrameId> = sources.iter().map(|&(b, i)| frame(m, b, i)).collect();
        let target = frame(m, to.0, to.1);
        Flash { medium: m, plan }.copyback(&sources, target, Cause::Gc, &[]).unwrap();
    }

    fn stamps(m: &Medium, frame: FrameId) -> Vec<u32> {
        m.units_of(&[frame]).unwrap().iter().map(|unit| unit.stamp.0).collect()
    }

    /// Page and kind of each source of a copyback, its bytes, and its block, page and kind.
    type Planned = (Vec<(u32, u8)>, u32, (DieBlock, u32, u8));

    /// Returns the first copyback of a plan.
    fn planned(plan: &Plan) -> Planned {
        let mut copybacks = plan.iter().filter_map(|(_, op, _)| match op.kind {
            OpKind::Copyback { block, page, level, bytes, .. } => {
                let sources = plan.sources(op.kind).iter().map(|s| (s.page, s.level)).collect();
                Some((sources, bytes, (block, page, level)))
            }
            _ => None,
        });
        copybacks.next().expect("a copyback")
    }

    #[test]
    fn a_copyback_is_one_operation_with_a_record_of_its_own() {
        let (mut m, mut plan) = (medium(ProgramUnit::Page, Rules::PLAIN), Plan::default());
        (0..3).for_each(|index| program(&mut m, &mut plan, 0, index));
        plan.clear();
        copy(&mut m, &mut plan, &[(0, 2)], (1, 0));
        // the upper page 2 goes to the lower page 0; a record of four slots has 4 + 8 + 16 + 4 = 32
        // bytes, half of it on each plane
        let place = (DieBlock::new(1), 0, 0);
        assert_eq!((plan.iter().count(), planned(&plan)), (1, (vec![(2, 2)], 32, place)));
        assert_eq!(stamps(&m, frame(&m, 1, 0)), [108, 109, 110, 111]);
        let sequence = m.frame_sequence(frame(&m, 1, 0));
        assert_eq!(sequence, Ok(4), "the fourth program");
        // two pages, on two planes
        let counters = &m.counters;
        let (reads, programs) = (counters.reads, counters.programs);
        assert_eq!((reads[Cause::Gc as usize], programs[Cause::Gc as usize]), (2, 2));
        assert_eq!(counters.copybacks, 2);
        m.check().unwrap();
    }

    #[test]
    fn copybacks_in_a_row_are_counted_until_the_data_is_programmed_anew() {
        let (mut m, mut plan) = (medium(ProgramUnit::Page, Rules::PLAIN), Plan::default());
        m.keep_journal();
        program(&mut m, &mut plan, 0, 0);
        copy(&mut m, &mut plan, &[(0, 0)], (1, 0));
        copy(&mut m, &mut plan, &[(1, 0)], (2, 0));
        copy(&mut m, &mut plan, &[(0, 0)], (2, 1));
        let counts = |m: &Medium| {
            [(0, 0), (1, 0), (2, 0), (2, 1)].map(|(b, i)| m.copybacks_of(frame(m, b, i)))
        };
        assert_eq!(counts(&m), [0, 1, 2, 1]);
        // a journal repeats them, and so does an image
        let mut again = medium(ProgramUnit::Page, Rules::PLAIN);
        m.take_journal().iter().for_each(|change| again.redo(change));
        assert_eq!(counts(&again), [0, 1, 2, 1]);
        let image = again.clone().into_image();
        let loaded = Medium::from_image(again.shared_layout(), Rules::PLAIN, image).unwrap();
        assert_eq!(counts(&loaded), [0, 1, 2, 1]);
        let mut flash = Flash { medium: &mut m, plan: &mut plan };
        flash.erase(BlockId::new(2), Cause::Gc, &[]).unwrap();
        assert_eq!(counts(&m), [0, 1, 0, 0]);
        program(&mut m, &mut plan, 2, 0);
        assert_eq!(counts(&m), [0, 1, 0, 0]);
    }

    #[test]
    fn word_lines_are_copied_whole_and_a_fold_takes_one_frame_of_each_kind() {
        let (mut m, mut plan) = (medium(ProgramUnit::WordLine, Rules::PLAIN), Plan::default());
        program(&mut m, &mut plan, 0, 0);
        plan.clear();
        copy(&mut m, &mut plan, &[(0, 0)], (1, 0));
        // a record of twelve slots has 64 bytes, on six pages: 11 bytes each
        let place = (DieBlock::new(1), 0, 0);
        assert_eq!(planned(&plan), (vec![(0, 0), (0, 1), (0, 2)], 66, place));
        m.open(BlockId::new(2), OobRole::default(), BlockMode::Slc);
        (0..2).for_each(|index| program(&mut m, &mut plan, 2, index));
        plan.clear();
        assert_eq!(m.slots_mask(frame(&m, 2, 0)).count_ones(), 4);
        let two = [frame(&m, 2, 0), frame(&m, 2, 1)];
        let why = m.refuses_copyback(&two, frame(&m, 1, 1)).unwrap();
        assert!(why.contains("8 slots are copied to frame 3, which has 12"), "{why}");
    }

    #[test]
    fn a_fold_of_three_pages_in_slc_mode_fills_a_word_line() {
        // nine pages are three word lines, and three frames in SLC mode
        let geometry = Geometry {
            channels: 2,
            ways: 1,
            dies: 1,
            planes: 1,
            blocks: 3,
            pages: 9,
            page_bytes: 1024,
            spare_bytes: 128,
            cell: Cell::Tlc,
        };
        let order = AllocationOrder::parse("CWDP").unwrap();
        let unit = ProgramUnit::WordLine;
        let layout = Layout::of_frames(geometry, Span::ONE, 512, order, 12, unit).unwrap();
        let mut m = Medium::new(layout.into(), Rules::PLAIN, 0, Seed(1)).unwrap();
        let mut plan = Plan::default();
        m.open(BlockId::new(0), OobRole::default(), BlockMode::Slc);
        (0..3).for_each(|index| program(&mut m, &mut plan, 0, index));
        plan.clear();
        copy(&mut m, &mut plan, &[(0, 0), (0, 1), (0, 2)], (1, 0));
        // a record of six slots has 40 bytes on three pages: 14 bytes each
        let place = (DieBlock::new(1), 0, 0);
        assert_eq!(planned(&plan), (vec![(0, 4), (1, 4), (2, 4)], 42, place));
        assert_eq!(stamps(&m, frame(&m, 1, 0)), [100, 101, 102, 103, 104, 105]);
        assert_eq!((m.counters.in_slc_mode, m.counters.copybacks), ([3, 3, 0], 3));
        // the other lane is on another die
        let other = m.layout.lane_blocks(LaneId::new(1)).next().unwrap();
        let three = [0, 1, 2].map(|index| frame(&m, 0, index));
        assert_eq!(m.refuses_copyback(&three, frame(&m, 1, 1)), None);
        let why = m.refuses_copyback(&three, m.layout.frame_in(other, 0)).unwrap();
        assert!(why.contains("which is not on their planes"), "{why}");
    }

    #[test]
    fn data_goes_over_the_channel_if_the_program_of_a_copyback_fails() {
        let rules = Rules { spare_blocks: 1, ..Rules::PLAIN };
        let (mut m, mut plan) = (medium(ProgramUnit::Page, rules), Plan::default());
        program(&mut m, &mut plan, 0, 0);
        copy(&mut m, &mut plan, &[(0, 0)], (1, 0));
        m.fail_program_after(0);
        plan.clear();
        copy(&mut m, &mut plan, &[(0, 0)], (1, 1));
        // the failed program, the page that the block had, and the data of the copy
        assert_eq!(letters(&plan), ['p', 'r', 'p', 'r', 'p']);
        assert_eq!(stamps(&m, frame(&m, 1, 1)), [100, 101, 102, 103]);
        // all of it was corrected
        assert_eq!([0, 1].map(|i| m.copybacks_of(frame(&m, 1, i))), [0, 0]);
        assert_eq!(m.counters.copybacks, 2);
        m.check().unwrap();
    }

    /// Returns rules with a rate that nothing changes, for codewords of 1 KiB without retries.
    fn errors(base: f64, correctable: u32) -> Rules {
        let none = [0.0; 3];
        let bits = BitErrors {
            formula: Formula { base, wear: [0.0; 2], retention: none, disturb: none },
            time_unit: 86_400,
            block_spread: 0.0,
            page_spread: 1.0,
            layer_spread: 1.0,
            slc_factor: 1.0,
            cycles: 0,
            correction: Correction {
                codeword: 1024,
                correctable,
                decode: Dur::ZERO,
                soft: None,
                steps: 0,
                gain: 1.0,
                overlap: false,
            },
        };
        let errors = ErrorRules {
            bits: Some(bits),
            rates: FailureRates::default(),
            rest_s: 0,
            rebuild: Dur::ZERO,
        };
        Rules { errors: Some(errors), ..Rules::PLAIN }
    }

    #[test]
    fn the_wrong_bits_of_a_copy_are_its_own_and_those_of_its_source() {
        let rate = 2e-3;
        let (mut m, mut plan) = (medium(ProgramUnit::Page, errors(rate, 80)), Plan::default());
        m.seed_errors(Seed(3));
        program(&mut m, &mut plan, 0, 0);
        // two pages of one codeword each; the draw of a program is of its frame and its number
        let seed = m.aged().unwrap().seed;
        let drawn = |m: &Medium, frame: FrameId| {
            let key = key(seed, frame.0, m.frame_sequence(frame).unwrap());
            [0, 1].map(|i| Places::of(key, [i]).wrong_bits(8192, rate).worst as u16)
        };
        let (a, b, c) = (frame(&m, 0, 0), frame(&m, 1, 0), frame(&m, 2, 0));
        let of_a = drawn(&m, a);
        assert_eq!(m.wrong_bits_of(&[a]), of_a);
        copy(&mut m, &mut plan, &[(0, 0)], (1, 0));
        let of_b = drawn(&m, b);
        assert_eq!(m.wrong_bits_of(&[b]), [of_a[0] + of_b[0], of_a[1] + of_b[1]]);
        copy(&mut m, &mut plan, &[(1, 0)], (2, 0));
        let of_c = drawn(&m, c);
        let all = [0, 1].map(|i| of_a[i] + of_b[i] + of_c[i]);
        assert_eq!(m.wrong_bits_of(&[c]), all);
        // of 80 bits: new data has 8192 bits at the rate, and refresh corrects the carried ones
        let carried = (0..2).map(|i| of_a[i] + of_b[i]).max().unwrap();
        let (lasting, passing) = m.shares_of_correctable(BlockId::new(2));
        assert!((lasting - 8192.0 * rate / 80.0).abs() < 1e-12, "{lasting}");
        assert!((passing - f64::from(carried) / 80.0).abs() < 1e-12, "{passing}");
        // a state that is saved keeps them, and an erase forgets them
        let image = m.clone().into_image();
        let mut loaded = Medium::from_image(m.shared_layout(), m.rules(), image).unwrap();
        assert_eq!(loaded.wrong_bits_of(&[c]), all);
        assert_eq!(loaded.shares_of_correctable(BlockId::new(2)), (lasting, passing));
        Flash { medium: &mut m, plan: &mut plan }.erase(BlockId::new(2), Cause::Gc, &[]).unwrap();
        assert_eq!(m.aged().unwrap().carried.len(), 1, "only the first copy is left");
    }

    #[test]
    fn copies_of_copies_become_unreadable_and_corrected_copies_do_not() {
        // about 25 wrong bits a program, of which 40 are corrected: one copyback is too many
        let rules = errors(0.003, 40);
        let (mut m, mut plan) = (medium(ProgramUnit::Page, rules), Plan::default());
        m.seed_errors(Seed(5));
        let read = |m: &mut Medium, at: FrameId| {
            let mut flash = Flash { medium: m, plan: &mut Plan::default() };
            flash.read(at, 0xf, ReadPart::Whole, Cause::Host, &[]).is_ok()
        };
        program(&mut m, &mut plan, 0, 0);
        copy(&mut m, &mut plan, &[(0, 0)], (1, 0));
        let (a, b) = (frame(&m, 0, 0), frame(&m, 1, 0));
        assert_eq!((read(&mut m, a), read(&mut m, b)), (true, false));
        assert_eq!(m.state(b), FrameState::Lost);
        program(&mut m, &mut plan, 2, 0);
        let c = frame(&m, 2, 0);
        assert!(read(&mut m, c), "the same data, corrected before it was programmed");
    }
}
