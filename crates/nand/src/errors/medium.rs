//! The state of errors of a medium: its clock, and the age of its blocks.

use super::draw::{self, Places};
use super::models::AtCycles;
use super::parity::Part;
use super::{BitErrors, Correction, Ending, ErrorRules, Outcome};
use crate::{FrameState, Medium, Rules};
use flashatlas_types::content::mix;
use flashatlas_types::{BlockId, BlockMode, FrameId, Layout, Ps, Rng, Seed, TiVec, ti_vec};
use rustc_hash::FxHashMap;

/// Picoseconds of a second.
const SECOND: u64 = 1_000_000_000_000;

/// Seed of an image that was made without errors.
const UNSEEDED: u64 = u64::MAX;

/// Marks of the draws of failures, so that each kind has draws of its own.
const PROGRAM: u64 = 0x70;
const ERASE: u64 = 0x65;
const UNREADABLE: u64 = 0x75;

/// Errors of one block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockErrors {
    /// Time of the first program since the last erase, in seconds of the medium's clock.
    programmed_at: u32,
    /// Reads of pages since the last erase.
    reads: u64,
    /// The cycles for which the parts of the formula were computed; 0 before the first computation.
    worked_out: u32,
    at: AtCycles,
    /// The time and the reads for which the passing part was computed.
    passing_at: (u32, u64),
    passing: f64,
    /// The largest number of wrong bits that a codeword of the block carries from a copyback.
    pub carried: u16,
}

/// State of errors of a medium.
#[derive(Clone, Debug)]
pub struct Errors {
    pub(super) rules: ErrorRules,
    pub(super) seed: u64,
    /// Seconds of the medium's clock when simulated time was zero.
    base_s: u32,
    /// Seconds of the medium's clock.
    now_s: u32,
    pub(super) blocks: TiVec<BlockId, BlockErrors>,
    /// Wrong bits that the codewords of copybacks begin with, by frame.
    pub(super) carried: FxHashMap<FrameId, Box<[u16]>>,
    /// Dies whose part of a frame is lost, as bits, by frame.
    pub(super) lost_parts: FxHashMap<FrameId, u64>,
    /// `true` if blocks with a rebuilt page are due for reclaim.
    pub(super) reclaims_rebuilt: bool,
    /// Draws of failures at random so far.
    draws: u64,
    /// Number of reads after which a block is due for reclaim, and the blocks that have reached
    /// this number.
    reclaim_after: u64,
    pub(super) reclaim: Vec<BlockId>,
}

/// The part of errors that an image keeps: the seed, the clock, and two numbers of each block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Aged {
    /// Seed of the spread of blocks and of the wrong bits of codewords.
    pub seed: u64,
    /// Seconds of the clock.
    pub clock_s: u32,
    /// Seconds of the clock at the first program of each block since its last erase.
    pub programmed_at: Vec<u32>,
    /// Reads of pages of each block since its last erase.
    pub reads: Vec<u32>,
    /// Frames whose codewords began with wrong bits, because they are copybacks, with the wrong
    /// bits of each codeword. In ascending order.
    pub carried: Vec<(FrameId, Vec<u16>)>,
    /// Frames that can be read although the part on one of their dies is lost, with the number of
    /// this die in the frame. In ascending order.
    pub lost_parts: Vec<(FrameId, u32)>,
}

impl Default for Aged {
    /// Returns the age of an image that was made without errors: its blocks have no age, and its
    /// seed is not known.
    fn default() -> Aged {
        let (programmed_at, reads) = (Vec::new(), Vec::new());
        let (carried, lost_parts) = (Vec::new(), Vec::new());
        Aged { seed: UNSEEDED, clock_s: 0, programmed_at, reads, carried, lost_parts }
    }
}

/// Returns the seed of errors, drawn from the seed of a run.
fn drawn(seed: Seed) -> u64 {
    Rng::stream(seed, "nand.errors").below(UNSEEDED)
}

/// Returns reads rounded down to six significant bits, so that the rate of a block seldom changes.
fn rounded(reads: u64) -> u64 {
    let extra = (u64::BITS - reads.leading_zeros()).saturating_sub(6);
    reads >> extra << extra
}

impl Errors {
    fn new(rules: ErrorRules, seed: u64, blocks: usize) -> Errors {
        Errors {
            rules,
            seed,
            base_s: 0,
            now_s: 0,
            blocks: ti_vec![BlockErrors::default(); blocks],
            carried: FxHashMap::default(),
            lost_parts: FxHashMap::default(),
            reclaims_rebuilt: false,
            draws: 0,
            reclaim_after: u64::MAX,
            reclaim: Vec::new(),
        }
    }

    /// Returns the rates of a block by cycles, and by time and reads.
    fn rates(&mut self, layout: &Layout, block: BlockId, mode: BlockMode, wear: u32) -> (f64, f64) {
        let Some(bits) = &self.rules.bits else { return (0.0, 0.0) };
        let state = &mut self.blocks[block];
        let cycles = bits.cycles.saturating_add(wear);
        if state.worked_out != cycles {
            state.worked_out = cycles;
            state.at = bits.formula.at_cycles(cycles);
            state.passing_at = (u32::MAX, 0);
        }
        let time = self.now_s.saturating_sub(state.programmed_at);
        let reads = rounded(state.reads);
        if state.passing_at != (time, reads) {
            state.passing_at = (time, reads);
            let pages = f64::from(layout.frames_in(mode) * layout.pages_in(mode));
            let (time, reads) = (f64::from(time) / f64::from(bits.time_unit), reads as f64 / pages);
            state.passing = bits.formula.passing(&state.at, time, reads);
        }
        (state.at.lasting, state.passing)
    }

    /// Returns whether an operation at `place` fails at random. `rate` of a million such operations
    /// fail.
    #[inline]
    fn fails_at_random(&mut self, mark: u64, place: u32, rate: u32) -> bool {
        if rate == 0 {
            return false;
        }
        self.draws += 1;
        mix(draw::key(self.seed ^ mark, place, self.draws)) % 1_000_000 < rate.into()
    }

    /// Returns the factor by which the rate of a block differs from the mean.
    fn block_factor(&self, bits: &BitErrors, block: BlockId) -> f64 {
        let drawn = draw::unit(mix(self.seed).wrapping_add(u64::from(block.number())));
        1.0 + bits.block_spread * (2.0 * drawn - 1.0)
    }
}

impl Medium {
    /// Returns the errors that a new medium begins with.
    pub(crate) fn new_errors(rules: &Rules, seed: Seed, blocks: usize) -> Option<Box<Errors>> {
        rules.errors.map(|rules| Box::new(Errors::new(rules, drawn(seed), blocks)))
    }

    /// Returns the state of errors that `aged` describes.
    pub(crate) fn aged_errors(rules: &Rules, aged: &Aged, blocks: usize) -> Option<Box<Errors>> {
        let mut errors = Box::new(Errors::new(rules.errors?, aged.seed, blocks));
        (errors.base_s, errors.now_s) = (aged.clock_s, aged.clock_s);
        let known = aged.programmed_at.iter().zip(&aged.reads);
        for (block, (&at, &reads)) in errors.blocks.iter_mut().zip(known) {
            (block.programmed_at, block.reads) = (at, reads.into());
        }
        Some(errors)
    }

    /// Sets the seed of errors, unless the medium comes from an image that has one.
    pub fn seed_errors(&mut self, seed: Seed) {
        if let Some(errors) = &mut self.errors
            && errors.seed == UNSEEDED
        {
            errors.seed = drawn(seed);
        }
    }

    /// Sets the clock and the age of every block, for a medium that is rebuilt with
    /// [`Medium::redo`]. Its seed stays.
    pub fn lay_ages(&mut self, aged: &Aged) {
        if let Some(errors) = &self.errors {
            let aged = Aged { seed: errors.seed, ..aged.clone() };
            self.errors = Medium::aged_errors(&self.rules, &aged, self.blocks.len());
        }
    }

    /// Returns the part of errors that an image keeps, or `None` if nothing ever fails.
    pub fn aged(&self) -> Option<Aged> {
        let errors = self.errors.as_ref()?;
        let frames = errors.carried.iter().map(|(&frame, wrong)| (frame, wrong.to_vec()));
        let mut carried: Vec<(FrameId, Vec<u16>)> = frames.collect();
        carried.sort_unstable();
        let reads = |block: &BlockErrors| u32::try_from(block.reads).unwrap_or(u32::MAX);
        Some(Aged {
            seed: errors.seed,
            clock_s: errors.now_s,
            programmed_at: errors.blocks.iter().map(|block| block.programmed_at).collect(),
            reads: errors.blocks.iter().map(reads).collect(),
            carried,
            lost_parts: self.lost_parts(),
        })
    }

    /// Returns `true` if operations of this medium may fail by themselves.
    #[inline]
    pub fn has_errors(&self) -> bool {
        self.errors.is_some()
    }

    /// Sets the clock to simulated time `now`. Time counts from the moment at which the drive was
    /// built.
    #[inline]
    pub fn set_now(&mut self, now: Ps) {
        if let Some(errors) = &mut self.errors {
            let seconds = u32::try_from(now.0 / SECOND).unwrap_or(u32::MAX);
            errors.now_s = errors.base_s.saturating_add(seconds);
        }
    }

    /// Lets the medium rest for some seconds while the drive is switched off.
    pub fn rest(&mut self, seconds: u32) {
        if let Some(errors) = &mut self.errors {
            errors.base_s = errors.base_s.saturating_add(seconds);
            errors.now_s = errors.now_s.saturating_add(seconds);
        }
    }

    /// Returns the seconds of the medium's clock; 0 if nothing ever fails.
    pub fn clock_s(&self) -> u32 {
        self.errors.as_ref().map_or(0, |errors| errors.now_s)
    }

    /// Notes a program of a block, which is about to change the block's write pointer.
    pub(crate) fn note_program(&mut self, block: BlockId) {
        if self.blocks[block].next == 0 {
            self.begin_age(block);
        }
    }

    /// Begins the age of a block with its first program since an erase.
    pub(crate) fn begin_age(&mut self, block: BlockId) {
        if let Some(errors) = &mut self.errors {
            errors.blocks[block].programmed_at = errors.now_s;
        }
    }

    /// Notes that a block was erased.
    pub(crate) fn note_erase(&mut self, block: BlockId) {
        self.forget_carried(block);
        self.forget_lost_parts(block);
        if let Some(errors) = &mut self.errors {
            errors.blocks[block] = BlockErrors::default();
        }
    }

    /// Returns the rates of a block by cycles, and by time and reads, with the factor of one of its
    /// pages ([`Medium::bit_error_rate`]). Returns `None` without bit errors.
    pub(super) fn rates_of(
        &mut self,
        block: BlockId,
        index: u32,
        of_line: u32,
    ) -> Option<(BitErrors, (f64, f64), f64)> {
        let (mode, wear) = (self.mode(block), self.wear_in_use(block));
        let errors = self.errors.as_mut()?;
        let bits = errors.rules.bits?;
        let rates = errors.rates(&self.layout, block, mode, wear);
        let place = bits.place_factor(&self.layout, mode, index, of_line);
        Some((bits, rates, place * errors.block_factor(&bits, block)))
    }

    /// Returns the raw bit error rate of a page, and its part by time and reads.
    ///
    /// `index` is the place of the page's frame in its block. If the frame is a whole word line,
    /// `of_line` is the number of the page on it, and otherwise 0. Both rates are 0 without bit
    /// errors.
    pub fn bit_error_rate(&mut self, block: BlockId, index: u32, of_line: u32) -> (f64, f64) {
        let Some((_, (lasting, passing), factor)) = self.rates_of(block, index, of_line) else {
            return (0.0, 0.0);
        };
        ((lasting + passing) * factor, passing * factor)
    }

    /// Returns the ending of a read of these codewords of a programmed frame. The read is not
    /// counted. The codewords belong to pages with number `of_line` on their word line.
    pub(super) fn ending(
        &mut self,
        frame: FrameId,
        of_line: u32,
        codewords: impl IntoIterator<Item = u32>,
    ) -> Outcome {
        self.ending_at(frame, of_line, codewords, Places::of)
    }

    /// Returns the ending that [`Medium::ending`] returns, if `places` gives the codewords that
    /// decide it.
    fn ending_at<C: IntoIterator<Item = u32>>(
        &mut self,
        frame: FrameId,
        of_line: u32,
        codewords: C,
        places: impl Fn(u64, C) -> Places,
    ) -> Outcome {
        const CLEAN: Outcome = Outcome { ending: Ending::Corrected(0), corrected: 0 };
        let block = self.layout.block_of_frame(frame);
        let index = self.layout.index_in(block, frame);
        let sequence = self.cells.header(frame).sequence;
        let Some((bits, rates, factor)) = self.rates_of(block, index, of_line) else {
            return CLEAN;
        };
        let Some(errors) = &self.errors else { return CLEAN };
        let key = draw::key(errors.seed, frame.0, sequence);
        if let Some(carried) = errors.carried.get(&frame) {
            return bits.read_carried(key, codewords.into_iter(), carried, rates, factor);
        }
        bits.read(&places(key, codewords), rates, factor)
    }

    /// Reads codewords of a part of a programmed frame, and counts the read. Returns the ending of
    /// the read.
    pub(crate) fn read_codewords(
        &mut self,
        frame: FrameId,
        part: Part,
        codewords: impl IntoIterator<Item = u32>,
    ) -> Outcome {
        let mut outcome = self.ending(frame, part.of_line, codewords);
        let is_lost = self.is_part_lost(frame, part.die);
        let block = self.layout.block_of_frame(frame);
        let errors = self.errors.as_mut().expect("a medium with errors");
        let rate = errors.rules.rates.unreadable;
        let fails = !is_lost && errors.fails_at_random(UNREADABLE, frame.0, rate);
        if is_lost || fails {
            outcome = Outcome { ending: Ending::Uncorrectable, corrected: 0 };
        }
        if fails {
            self.counters.errors.failed_reads += 1;
        }
        let correction = errors.rules.bits.map(|bits| bits.correction);
        let further = correction.map_or(0, |correction| correction.further_reads(outcome.ending));
        self.count_reads(block, part.pages * (1 + further));
        self.counters.errors.count(outcome, part.pages, further);
        if fails && self.layout.has_parity() {
            self.lose_part(frame, part.die);
        }
        outcome
    }

    /// Counts reads of pages of a block.
    pub(super) fn count_reads(&mut self, block: BlockId, pages: u32) {
        let Some(errors) = &mut self.errors else { return };
        let state = &mut errors.blocks[block];
        let before = state.reads;
        state.reads += u64::from(pages);
        if before < errors.reclaim_after && state.reads >= errors.reclaim_after {
            errors.reclaim.push(block);
        }
    }

    /// Returns the correction, if the medium has bit errors.
    pub fn correction(&self) -> Option<Correction> {
        Some(self.errors.as_ref()?.rules.bits?.correction)
    }

    /// Reads every programmed frame, in no time and without counting reads, as a controller does
    /// before it builds its tables. A frame that no retry corrects cannot be read from then on.
    pub fn find_unreadable(&mut self) {
        let Some(correction) = self.correction() else { return };
        let layout = self.layout.clone();
        let of_a_page = layout.geometry.page_bytes / correction.codeword;
        let codewords = layout.planes_per_frame * of_a_page;
        for block in layout.block_ids() {
            for index in 0..self.write_pointer(block) {
                let frame = layout.frame_in(block, index);
                if self.state(frame) != FrameState::Programmed {
                    continue;
                }
                let mut pages = 0..layout.pages_at_once(self.mode(block));
                let is_lost = pages.any(|of_line| {
                    let those = of_line * codewords..(of_line + 1) * codewords;
                    let worst = self.ending_at(frame, of_line, those.clone(), Places::worst_of);
                    worst.ending == Ending::Uncorrectable
                        && !self.can_rebuild(frame, of_line, those)
                });
                if is_lost {
                    self.counters.errors.found_unreadable += 1;
                    self.lose(frame);
                }
            }
        }
    }

    /// Notes the next program, of `frame`, and returns whether it fails at random.
    #[cold]
    #[inline(never)]
    pub(crate) fn program_ages_or_fails(&mut self, frame: FrameId) -> bool {
        self.note_program(self.layout.block_of_frame(frame));
        let Some(errors) = &mut self.errors else { return false };
        let fails = errors.fails_at_random(PROGRAM, frame.0, errors.rules.rates.program);
        self.counters.errors.program_failures += u64::from(fails);
        fails
    }

    /// Returns whether the next erase, of `block`, fails at random.
    pub(crate) fn erase_fails_at_random(&mut self, block: BlockId) -> bool {
        let Some(errors) = &mut self.errors else { return false };
        let fails = errors.fails_at_random(ERASE, block.number(), errors.rules.rates.erase);
        self.counters.errors.erase_failures += u64::from(fails);
        fails
    }

    /// Returns the expected number of wrong bits in the worst page of a block, as shares of the
    /// bits that hard decoding corrects: the share that new data has, too, and the share by time
    /// and reads. The most bits that a codeword of the block carries from a copyback count as a
    /// share by time. Both are 0 without bit errors.
    pub fn shares_of_correctable(&mut self, block: BlockId) -> (f64, f64) {
        let Some(correction) = self.correction() else { return (0.0, 0.0) };
        // spreads are at least 1, and the last page of a block is of the last kind and on the last
        // word line in every order, so it has the largest rate
        let (frames, mode) = (self.frames_of(block), self.mode(block));
        let of_line = self.layout.pages_at_once(mode) - 1;
        let (rate, passing) = self.bit_error_rate(block, frames - 1, of_line);
        let of_rate = correction.share_of_rate();
        let carried = self.errors.as_ref().map_or(0, |errors| errors.blocks[block].carried);
        let carried = f64::from(carried) / f64::from(correction.correctable);
        ((rate - passing) * of_rate, passing * of_rate + carried)
    }

    /// Returns the share of its room for wrong bits that the worst page of a block has lost to time
    /// and reads. The room is what new data leaves of the bits that hard decoding corrects. Returns
    /// 0 if new data leaves no room.
    pub fn room_used_up(&mut self, block: BlockId) -> f64 {
        let (lasting, passing) = self.shares_of_correctable(block);
        if lasting < 1.0 { passing / (1.0 - lasting) } else { 0.0 }
    }

    /// Returns the largest share of the bits that hard decoding corrects that is expected to be
    /// wrong in new data: in the worst page of a native block, over all good blocks. Returns 0
    /// without bit errors.
    pub fn largest_lasting_share(&self) -> f64 {
        let Some(errors) = &self.errors else { return 0.0 };
        let Some(bits) = errors.rules.bits else { return 0.0 };
        let (mut known, mut most) = ((0, 0.0), 0.0_f64);
        for block in self.layout.block_ids().filter(|&block| !self.is_bad(block)) {
            let cycles = bits.cycles.saturating_add(self.wear(block).saturating_add(1));
            if known.0 != cycles {
                known = (cycles, bits.formula.at_cycles(cycles).lasting);
            }
            most = most.max(known.1 * errors.block_factor(&bits, block));
        }
        let (layout, native) = (&self.layout, BlockMode::Native);
        let of_line = layout.pages_at_once(native) - 1;
        let place = bits.place_factor(layout, native, layout.frames_in(native) - 1, of_line);
        most * place * bits.correction.share_of_rate()
    }

    /// Begins to note blocks that have been read `reclaim_after` times since their last erase.
    pub fn note_reads(&mut self, reclaim_after: u64) {
        if let Some(errors) = &mut self.errors {
            errors.reclaim_after = reclaim_after;
        }
    }

    /// Returns `true` if a block has reached the number of reads of [`Medium::note_reads`].
    pub fn has_blocks_to_reclaim(&self) -> bool {
        self.errors.as_ref().is_some_and(|errors| !errors.reclaim.is_empty())
    }

    /// Removes and returns the blocks that have reached the number of reads of
    /// [`Medium::note_reads`].
    pub fn take_blocks_to_reclaim(&mut self) -> Vec<BlockId> {
        self.errors.as_mut().map(|errors| std::mem::take(&mut errors.reclaim)).unwrap_or_default()
    }
}
