//! Modes of blocks, and the wear that they cause.

use crate::{Medium, OobRole, Rules};
use flashatlas_types::{BlockId, BlockMode, FrameId, Layout, ProgramUnit};

impl Medium {
    /// Returns `true` if a medium without blocks in SLC mode is plain (the field `is_plain`).
    pub(crate) fn begins_plain(rules: &Rules, layout: &Layout) -> bool {
        let is_simple = layout.program_unit == ProgramUnit::Page && !layout.has_parity();
        rules.errors.is_none() && is_simple
    }

    /// Sets the role and the mode of an erased block.
    #[inline]
    pub(crate) fn set_mode(&mut self, block: BlockId, role: OobRole, mode: BlockMode) {
        let state = &mut self.blocks[block];
        (state.role, state.mode) = (role, mode);
        self.is_plain &= mode == BlockMode::Native;
    }

    /// Returns the mode in which a block was opened. The spare areas of the block's pages contain
    /// it. The mode is [`BlockMode::Native`] while the block is erased and not opened.
    #[inline]
    pub fn mode(&self, block: BlockId) -> BlockMode {
        self.blocks[block].mode
    }

    /// Returns the number of frames that a block uses in its mode.
    #[inline]
    pub fn frames_of(&self, block: BlockId) -> u32 {
        self.layout.frames_in(self.mode(block))
    }

    /// Returns whether every frame that a block has in its mode is programmed or skipped.
    #[inline]
    pub fn is_full(&self, block: BlockId) -> bool {
        self.write_pointer(block) >= self.frames_of(block)
    }

    /// Returns the number of erases of a block that ended a cycle in SLC mode.
    #[inline]
    pub fn slc_erases(&self, block: BlockId) -> u32 {
        self.slc_erases[block]
    }

    /// Returns the wear of a block in native cycles, rounded up. A cycle in SLC mode counts as a
    /// share of a native cycle (`nand.slc_wear`).
    #[inline]
    pub fn wear(&self, block: BlockId) -> u32 {
        self.wear_of(self.erases[block], self.slc_erases[block])
    }

    /// Returns the wear of a block with the cycle that it is in, at least one cycle.
    pub(crate) fn wear_in_use(&self, block: BlockId) -> u32 {
        let (all, slc) = (self.erases[block], self.slc_erases[block]);
        let this = u32::from(self.mode(block) == BlockMode::Slc);
        self.wear_of(all.saturating_add(1), slc.saturating_add(this)).max(1)
    }

    #[inline]
    fn wear_of(&self, all: u32, slc: u32) -> u32 {
        if slc == 0 {
            return all;
        }
        let share = u64::from(slc) * u64::from(self.rules.slc_wear);
        all - slc + share.div_ceil(1000) as u32
    }

    /// Returns the frames that share the cells of a frame and were programmed before it. A frame of
    /// a block in SLC mode shares its cells with no other frame. A frame that is a whole word line
    /// also shares its cells with no other frame.
    pub fn paired_before(&self, frame: FrameId) -> impl Iterator<Item = FrameId> + use<> {
        let is_native = self.mode(self.layout.block_of_frame(frame)) == BlockMode::Native;
        is_native.then(|| self.layout.paired_before(frame)).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, Counters, Flash, FrameState, OobRole, ReadPart, Rules, Torn, Unit};
    use flashatlas_fixtures::layouts::tlc_on_two_planes;
    use flashatlas_types::{Cause, Lpn, OpId, OpKind, Plan, Ppn, ProgramUnit, Seed, Stamp};

    const BLOCK: BlockId = BlockId::new(1);

    /// Returns a medium with blocks of six TLC pages on two planes. A page holds two units.
    fn medium(of: ProgramUnit, rules: Rules) -> Medium {
        let layout = tlc_on_two_planes(of, 20);
        Medium::new(layout.into(), rules, 0, Seed(1)).unwrap()
    }

    fn units(from: u32, count: u32) -> Vec<Unit> {
        let unit = |lpn| Unit { lpn: Lpn(lpn), stamp: Stamp(lpn + 100), bytes: None };
        (from..from + count).map(unit).collect()
    }

    fn program(m: &mut Medium, plan: &mut Plan, index: u32, units: &[Unit]) -> OpId {
        let frame = m.layout.frame_in(BLOCK, index);
        Flash { medium: m, plan }.program(frame, units.iter(), Cause::Host, &[]).unwrap().1
    }

    fn erase(m: &mut Medium, plan: &mut Plan) {
        Flash { medium: m, plan }.erase(BLOCK, Cause::Gc, &[]).unwrap();
    }

    fn open(m: &mut Medium, plan: &mut Plan) {
        Flash { medium: m, plan }.open_in(BLOCK, OobRole(3), BlockMode::Slc);
    }

    fn kinds(plan: &Plan) -> Vec<(char, u32, u8, u32)> {
        let kind = |kind: OpKind| match kind {
            OpKind::Read { page, level, bytes, .. } => Some(('r', page, level, bytes)),
            OpKind::Program { page, level, bytes, .. } => Some(('p', page, level, bytes)),
            OpKind::Erase { .. } => Some(('e', 0, 0, 0)),
            _ => None,
        };
        plan.iter().filter_map(|(_, op, _)| kind(op.kind)).collect()
    }

    #[test]
    fn a_block_in_slc_mode_is_full_after_a_page_of_each_word_line() {
        let (mut m, mut plan) = (medium(ProgramUnit::Page, Rules::PLAIN), Plan::default());
        open(&mut m, &mut plan);
        for index in 0..2 {
            assert!(!m.is_full(BLOCK));
            program(&mut m, &mut plan, index, &units(4 * index, 4));
        }
        assert!(m.is_full(BLOCK) && m.frames_of(BLOCK) == 2);
        assert_eq!(kinds(&plan), [('p', 0, 4, 2048), ('p', 1, 4, 2048)]);
        let beyond = m.refuses_program(m.layout.frame_in(BLOCK, 2)).unwrap();
        assert!(beyond.contains("beyond the frames of mode Slc"), "{beyond}");
        m.check().unwrap();
        plan.clear();
        erase(&mut m, &mut plan);
        assert_eq!((m.mode(BLOCK), m.slc_erases(BLOCK)), (BlockMode::Native, 1));
        // each on two planes: two programs and an erase
        assert_eq!(m.counters.in_slc_mode, [0, 4, 2]);
        for index in 0..6 {
            program(&mut m, &mut plan, index, &units(0, 4));
        }
        assert_eq!((m.is_full(BLOCK), m.counters.in_slc_mode), (true, [0, 4, 2]));
        assert_eq!(Counters::total(&m.counters.programs), 16);
    }

    #[test]
    fn a_word_line_is_programmed_at_once_and_read_by_kind_of_page() {
        let (mut m, mut plan) = (medium(ProgramUnit::WordLine, Rules::PLAIN), Plan::default());
        let read = |m: &mut Medium, plan: &mut Plan, slots: u64| {
            plan.clear();
            let frame = m.layout.frame_in(BLOCK, 1);
            let mut flash = Flash { medium: m, plan };
            flash.read(frame, slots, ReadPart::Whole, Cause::Host, &[]).unwrap();
            kinds(plan)
        };
        program(&mut m, &mut plan, 0, &units(0, 12));
        program(&mut m, &mut plan, 1, &units(0, 12));
        // two planes with three pages of 1 KiB each, in one operation
        assert_eq!(kinds(&plan), [('p', 0, 0, 6144), ('p', 1, 0, 6144)]);
        assert_eq!((m.is_full(BLOCK), Counters::total(&m.counters.programs)), (true, 12));
        // units 0 to 3 are in the lower pages of both planes, 4 to 7 in the middle, 8 to 11 in the
        // upper pages
        assert_eq!(read(&mut m, &mut plan, 0b1), [('r', 1, 0, 512)]);
        assert_eq!(read(&mut m, &mut plan, 0b1001 << 4), [('r', 1, 1, 1024)]);
        assert_eq!(read(&mut m, &mut plan, 0b1000_0000_1000), [('r', 1, 0, 512), ('r', 1, 2, 512)]);
        // one page, then a page on each of two planes, then two single pages
        assert_eq!(m.counters.reads[Cause::Host as usize], 5);
        assert_eq!(m.paired_before(m.layout.frame_in(BLOCK, 1)).count(), 0);
        plan.clear();
        erase(&mut m, &mut plan);
        open(&mut m, &mut plan);
        program(&mut m, &mut plan, 0, &units(0, 4));
        program(&mut m, &mut plan, 1, &units(4, 3));
        assert_eq!(kinds(&plan)[1..], [('p', 0, 4, 2048), ('p', 1, 4, 2048)]);
        assert_eq!((m.is_full(BLOCK), m.counters.padded_slots), (true, 1));
        assert_eq!(read(&mut m, &mut plan, 0b100), [('r', 1, 4, 512)]);
        m.check().unwrap();
    }

    #[test]
    #[should_panic(expected = "5 units were given for 4 slots")]
    fn a_frame_in_slc_mode_holds_a_page_of_each_plane() {
        let (mut m, mut plan) = (medium(ProgramUnit::WordLine, Rules::PLAIN), Plan::default());
        open(&mut m, &mut plan);
        program(&mut m, &mut plan, 0, &units(0, 5));
    }

    #[test]
    fn a_mode_is_known_as_long_as_a_page_can_be_read() {
        let (mut m, mut plan) = (medium(ProgramUnit::Page, Rules::PLAIN), Plan::default());
        m.keep_journal();
        open(&mut m, &mut plan);
        let mut opened = m.clone();
        opened.power_off();
        assert_eq!(
            opened.mode(BLOCK),
            BlockMode::Native,
            "the mode was only in the controller's memory"
        );
        program(&mut m, &mut plan, 0, &units(0, 4));
        program(&mut m, &mut plan, 1, &units(4, 4));
        let journal = m.take_journal();
        let mut again = medium(ProgramUnit::Page, Rules::PLAIN);
        journal.iter().for_each(|change| again.redo(change));
        again.power_off();
        assert_eq!((again.mode(BLOCK), again.is_full(BLOCK)), (BlockMode::Slc, true));
        let held = again.clone().into_image();
        let image = Medium::from_image(again.shared_layout(), again.rules(), held).unwrap();
        assert_eq!(image.mode(BLOCK), BlockMode::Slc);
        // a torn second page destroys the first page only if they share cells
        let mut torn = medium(ProgramUnit::Page, Rules::PLAIN);
        journal[..2].iter().for_each(|change| torn.redo(change));
        torn.begin(&journal[2], Torn::Paired);
        torn.power_off();
        assert_eq!(
            (torn.unit(Ppn(24)).unwrap(), torn.mode(BLOCK)),
            (units(0, 1)[0].clone(), BlockMode::Slc)
        );
        let Change::Open(block, role, _) = journal[0] else { panic!("{:?}", journal[0]) };
        let mut native = medium(ProgramUnit::Page, Rules::PLAIN);
        native.redo(&Change::Open(block, role, BlockMode::Native));
        native.redo(&journal[1]);
        native.begin(&journal[2], Torn::Paired);
        assert_eq!(native.state(FrameId(6)), FrameState::Torn);
    }

    #[test]
    fn an_image_that_contradicts_its_modes_is_refused() {
        let (mut m, mut plan) = (medium(ProgramUnit::Page, Rules::PLAIN), Plan::default());
        for index in 0..3 {
            program(&mut m, &mut plan, index, &units(0, 4));
        }
        let of = |change: &dyn Fn(&mut crate::Image)| {
            let mut image = m.clone().into_image();
            change(&mut image);
            Medium::from_image(m.shared_layout(), m.rules(), image).map(drop)
        };
        of(&|_| {}).unwrap();
        let modes = |image: &mut crate::Image| image.modes = vec![0, 1, 0];
        assert!(
            of(&modes).unwrap_err().contains("frames of its mode"),
            "the block has three frames, but its mode has two"
        );
        assert!(of(&|image| image.modes = vec![7, 0, 0]).unwrap_err().contains("the mode `7`"));
        assert!(of(&|image| image.modes = vec![0]).unwrap_err().contains("1 modes"));
        assert!(
            of(&|image| image.slc_erases = vec![1, 0, 0]).unwrap_err().contains("only 0 erases")
        );
    }

    #[test]
    fn wear_counts_cycles_by_mode() {
        let rules = Rules { endurance: 2, slc_wear: 300, ..Rules::PLAIN };
        let (mut m, mut plan) = (medium(ProgramUnit::Page, rules), Plan::default());
        let mut worn = |slc: bool| {
            if slc {
                open(&mut m, &mut plan);
            }
            erase(&mut m, &mut plan);
            (m.erases(BLOCK), m.wear(BLOCK))
        };
        // 0.3, 0.6, 0.9 and 1.2 native cycles, rounded up
        let cycles = [(1, 1), (2, 1), (3, 1), (4, 2)];
        assert_eq!([(); 4].map(|()| worn(true)), cycles);
        let failed = Flash { medium: &mut m, plan: &mut plan }.erase(BLOCK, Cause::Gc, &[]);
        assert!(failed.is_err() && m.is_bad(BLOCK), "the endurance has ended");
        let (mut m, mut plan) = (medium(ProgramUnit::Page, Rules::PLAIN), Plan::default());
        open(&mut m, &mut plan);
        erase(&mut m, &mut plan);
        erase(&mut m, &mut plan);
        assert_eq!(
            (m.wear(BLOCK), m.slc_erases(BLOCK)),
            (2, 1),
            "by default a cycle in SLC mode is a full cycle"
        );
    }
}
