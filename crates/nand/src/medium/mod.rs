//! States of blocks and frames, and the rules of NAND flash.
//!
//! A caller that breaks a rule has a bug, so the medium panics, in release builds too. A failure
//! that real flash reports (a failed erase, an unreadable page) is a [`MediumError`].

mod base;
pub(crate) mod cell;
pub(crate) mod cells;
mod check;
mod contents;
mod journal;
pub(crate) mod laid;
mod map_pages;
mod modes;
mod near;
pub(crate) mod power;
mod reading;
mod steps;

pub use cell::Spare;
pub use contents::Contents;
pub use journal::Change;
pub use map_pages::{MAP_HEADER_BYTES, MapContent, MapForm, MapOfBase};
pub use power::Cut;

use crate::errors::Errors;
use crate::{Counters, Nvm, Oob, OobRole, ProgramOrder, Rules};
use cell::{Header, PADDING};
use cells::Cells;
use flashatlas_types::{
    BlockId, BlockMode, ConfigError, FrameId, LaneId, Layout, Lpn, MediumError, Ppn, Rng, Seed,
    Stamp, TiSlice, TiVec, ti_vec,
};
use power::{Draw, Power};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The content of one mapping unit that is written to the medium or read from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The logical page, which the spare area contains.
    pub lpn: Lpn,
    /// The content, as a stamp.
    pub stamp: Stamp,
    /// The content as bytes, if the drive stores bytes (`nand.data = "ram"`).
    pub bytes: Option<Arc<[u8]>>,
}

/// State of the pages of one frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum FrameState {
    /// Ready to be programmed.
    Erased = 0,
    /// Holds data.
    Programmed = 1,
    /// A program or an erase was interrupted, or the frame became unreadable with its spare area.
    /// Its content must not be used, and it cannot be programmed.
    Torn = 2,
    /// Held data that cannot be corrected any more. The spare area, which has a stronger code, can
    /// be read.
    Lost = 3,
    /// Between two steps of a program: its content is in the controller alone. The number of its
    /// steps so far is added to this value, less one.
    Unfinished = 4,
}

#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Block {
    /// Index just after the last frame that is not erased. Under strict order, this is the next
    /// frame to program.
    pub next: u32,
    pub bad: bool,
    /// `true` if the next erase fails.
    pub erase_fails: bool,
    /// `true` if the next program fails.
    pub program_fails: bool,
    /// The role for which the block was opened. The spare areas of its pages contain it.
    pub role: OobRole,
    /// The mode in which the block was opened. The spare areas of its pages contain it.
    pub mode: BlockMode,
}

/// The cells of a drive.
#[derive(Clone, Debug)]
pub struct Medium {
    pub(crate) layout: Arc<Layout>,
    pub(crate) rules: Rules,
    pub(crate) blocks: TiVec<BlockId, Block>,
    /// Number of erases of each block.
    pub(crate) erases: TiVec<BlockId, u32>,
    /// Number of erases of each block that ended a cycle in SLC mode.
    pub(crate) slc_erases: TiVec<BlockId, u32>,
    pub(crate) cells: Cells,
    /// Bytes of map pages and, with `keep_bytes`, of other slots. The next field holds the encoded
    /// spare areas of frames, with `keep_bytes` only.
    pub(crate) bytes: FxHashMap<Ppn, Arc<[u8]>>,
    pub(crate) spare: FxHashMap<FrameId, Vec<u8>>,
    /// The storage of data bytes that are not in memory, and of their spare areas.
    pub(crate) elsewhere: Option<Arc<dyn Contents>>,
    /// Frames that were programmed but not yet written to `elsewhere`, which still holds their old
    /// content.
    pub(crate) not_elsewhere: FxHashSet<FrameId>,
    pub(crate) sequence: u64,
    /// `true` if frames may be between the steps of a program.
    pub(crate) stepped: bool,
    pub(crate) power: Power,
    /// The operation in which the power failed.
    pub(crate) cut: Option<Cut>,
    /// Changes since the last call of [`Medium::take_journal`]; `None` without a journal.
    pub(crate) journal: Option<Vec<Change>>,
    /// Frames that can be read only once (see [`crate::faults`]).
    pub(crate) fading: Vec<FrameId>,
    /// Number of programs up to and including the program that is planned to fail; 0 if no failure
    /// is planned.
    pub(crate) failing_program: u64,
    /// Number of erases up to and including the erase that is planned to fail; 0 if no failure is
    /// planned.
    pub(crate) failing_erase: u64,
    /// Number of spare blocks left in each lane (see [`crate::spares`]).
    pub(crate) spares: TiVec<LaneId, u32>,
    /// State of errors; `None` if nothing ever fails by itself.
    pub(crate) errors: Option<Box<Errors>>,
    /// `true` if every frame has one page of a native block on each plane, and nothing fails by
    /// itself. Reads and programs ask this once, and most drives then skip all other questions.
    pub(crate) is_plain: bool,
    /// The byte-addressable memory; empty if the drive has none.
    pub nvm: Nvm,
    /// Counts since the last reset.
    pub counters: Counters,
}

impl Medium {
    /// Builds a new, erased medium. On average, `factory_bad` of a million blocks of each plane are
    /// bad. The worst plane of a lane decides how many FTL blocks the lane loses.
    ///
    /// # Errors
    /// Returns an error if the spare area cannot hold the OOB record.
    pub fn new(
        layout: Arc<Layout>,
        rules: Rules,
        factory_bad: u32,
        seed: Seed,
    ) -> Result<Medium, ConfigError> {
        let record = Oob::encoded_len(layout.slots_per_frame);
        let spare = layout.geometry.spare_bytes as usize * layout.pages_per_frame as usize;
        if record > spare {
            return Err(ConfigError::new(
                "drive.spare_bytes",
                format!(
                    "the spare area of a frame has {spare} bytes, but its OOB record needs {record}"
                ),
            ));
        }
        let mut blocks: TiVec<BlockId, Block> = ti_vec![Block::default(); layout.blocks() as usize];
        if factory_bad > 0 {
            let mut rng = Rng::stream(seed, "nand.factory_bad");
            for lane in blocks.raw.chunks_mut(layout.blocks_per_lane as usize) {
                let bad_in_plane =
                    |rng: &mut Rng| (0..lane.len()).filter(|_| rng.chance(factory_bad)).count();
                let worst =
                    (0..layout.planes_per_frame).map(|_| bad_in_plane(&mut rng)).max().unwrap_or(0);
                lane.iter_mut().rev().take(worst).for_each(|b| b.bad = true);
            }
        }
        Ok(Medium {
            rules,
            erases: ti_vec![0; blocks.len()],
            slc_erases: ti_vec![0; blocks.len()],
            blocks,
            cells: Cells::new(&layout),
            bytes: FxHashMap::default(),
            spare: FxHashMap::default(),
            elsewhere: None,
            not_elsewhere: FxHashSet::default(),
            sequence: 0,
            stepped: false,
            power: Power::ON,
            cut: None,
            journal: None,
            fading: Vec::new(),
            failing_program: 0,
            failing_erase: 0,
            spares: ti_vec![rules.spare_blocks; layout.lanes as usize],
            errors: Medium::new_errors(&rules, seed, layout.blocks() as usize),
            is_plain: Medium::begins_plain(&rules, &layout),
            nvm: Nvm::new(rules.nvm_bytes),
            counters: Counters::default(),
            layout,
        })
    }

    /// Returns the layout of the drive.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns a shared pointer to the layout of the drive.
    pub fn shared_layout(&self) -> Arc<Layout> {
        self.layout.clone()
    }

    /// Returns the rules of this flash.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// Returns the state of a frame.
    #[inline]
    pub fn state(&self, frame: FrameId) -> FrameState {
        self.cells.state(frame)
    }

    /// Returns whether a block is bad, so that no operation on it is allowed.
    #[inline]
    pub fn is_bad(&self, block: BlockId) -> bool {
        self.blocks[block].bad
    }

    /// Returns the number of blocks that are not bad.
    pub fn good_blocks(&self) -> u32 {
        self.blocks.iter().filter(|b| !b.bad).count() as u32
    }

    /// Returns the number of erases of a block so far.
    #[inline]
    pub fn erases(&self, block: BlockId) -> u32 {
        self.erases[block]
    }

    /// Returns the number of erases of every block.
    #[inline]
    pub fn erase_counts(&self) -> &TiSlice<BlockId, u32> {
        &self.erases
    }

    /// Returns the index just after the last frame of a block that is not erased. Under strict
    /// order, this is the next frame to program.
    #[inline]
    pub fn write_pointer(&self, block: BlockId) -> u32 {
        self.blocks[block].next
    }

    /// Returns the role for which a block was opened. The spare areas of the block's pages contain
    /// it. The role is [`OobRole::default`] while the block is erased and not opened.
    #[inline]
    pub fn oob_role(&self, block: BlockId) -> OobRole {
        self.blocks[block].role
    }

    /// Returns the states of the frames of a block below its write pointer.
    fn written(&self, block: BlockId) -> impl Iterator<Item = FrameState> {
        let indices = 0..self.write_pointer(block);
        indices.map(move |index| self.state(self.layout.frame_in(block, index)))
    }

    /// Returns whether the spare area of any frame of a block can be read.
    pub fn has_readable_spare(&self, block: BlockId) -> bool {
        self.written(block).any(FrameState::has_spare)
    }

    /// Returns the number of frames below a block's write pointer that are neither erased nor
    /// readable.
    pub fn unreadable_frames(&self, block: BlockId) -> u32 {
        if self.is_base(block) {
            return 0;
        }
        let is_lost = |state: &FrameState| matches!(state, FrameState::Torn | FrameState::Lost);
        let first = self.layout.frame_in(block, 0).0;
        match self.cells.plain_headers(first..first + self.write_pointer(block)) {
            Some(headers) => {
                let is_lost = |state: u8| {
                    (state == FrameState::Torn as u8) | (state == FrameState::Lost as u8)
                };
                headers.map(|header| u32::from(is_lost(header.state))).sum()
            }
            None => self.written(block).filter(is_lost).count() as u32,
        }
    }

    /// Returns the frame of a block that was programmed last among the frames with a readable spare
    /// area, or `None` if there is no such frame.
    pub fn last_programmed(&self, block: BlockId) -> Option<FrameId> {
        let first = self.layout.frame_in(block, 0).0;
        let written = (first..first + self.write_pointer(block)).map(FrameId).rev();
        let mut readable = written.filter(|&f| self.state(f).has_spare());
        match self.rules.order {
            ProgramOrder::Strict => readable.next(),
            ProgramOrder::Any if self.is_base(block) => readable.next(),
            ProgramOrder::Any => {
                readable.max_by_key(|&f| self.frame_sequence(f).expect("the frame can be read"))
            }
        }
    }

    /// Opens an erased block for `role` and in `mode`, which the spare areas of its pages contain
    /// from then on.
    ///
    /// # Panics
    /// Panics if the block is not erased.
    pub(crate) fn open(&mut self, block: BlockId, role: OobRole, mode: BlockMode) {
        if self.power.is_off() {
            return;
        }
        let next = self.blocks[block].next;
        assert!(next == 0, "block {block} is opened as {role:?}, but it is not erased");
        self.set_mode(block, role, mode);
        self.note(|| Change::Open(block, role, mode));
    }

    /// Returns the number of the last program.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Takes the next program number for another event, so that the event has a place in the order
    /// of programs.
    pub fn take_number(&mut self) -> u64 {
        self.sequence += 1;
        let number = self.sequence;
        self.note(|| Change::Number(number));
        number
    }

    /// Raises the number of the last program to `number`, which a mount found. Later numbers are
    /// larger.
    pub fn raise_number(&mut self, number: u64) {
        if number > self.sequence {
            self.sequence = number;
            self.note(|| Change::Number(number));
        }
    }

    /// Returns a description of the rule that a program of this frame would break, or `None` if the
    /// program is allowed.
    #[inline]
    pub fn refuses_program(&self, frame: FrameId) -> Option<String> {
        let block = self.layout.block_of_frame(frame);
        let index = self.layout.index_in(block, frame);
        let state = &self.blocks[block];
        let is_next = index >= state.next && self.cells.is_plainly(frame, FrameState::Erased);
        if is_next && !state.bad && state.mode == BlockMode::Native {
            return None;
        }
        self.refuses_odd_program(frame)
    }

    #[inline(never)]
    fn refuses_odd_program(&self, frame: FrameId) -> Option<String> {
        let block = self.layout.block_of_frame(frame);
        let index = self.layout.index_in(block, frame);
        let state = &self.blocks[block];
        if state.bad {
            return Some(format!("bad block {block} is programmed"));
        }
        if self.state(frame) != FrameState::Erased {
            return Some(format!(
                "frame {frame} (page {index} of block {block}) is programmed, but it is not erased"
            ));
        }
        if state.mode != BlockMode::Native && index >= self.layout.frames_in(state.mode) {
            return Some(format!(
                "program beyond the frames of mode {:?}: frame {index} of block {block}",
                state.mode
            ));
        }
        (self.rules.order == ProgramOrder::Strict && index < state.next).then(|| {
            format!(
                "frame {index} of block {block} is programmed out of order; the next frame is {}",
                state.next
            )
        })
    }

    /// Programs a frame with units, at most one for each slot. The other slots are padding. Returns
    /// the frame's first slot.
    ///
    /// # Errors
    /// Returns [`MediumError::ProgramFailed`] if the program fails. The frame then holds no data,
    /// and the block's next program and erase fail, too. Returns [`MediumError::PowerLost`] if the
    /// power fails.
    ///
    /// # Panics
    /// Panics if the block is bad, the frame is not erased, or the program is out of order under
    /// [`ProgramOrder::Strict`].
    pub(crate) fn program<'a>(
        &mut self,
        frame: FrameId,
        units: impl ExactSizeIterator<Item = &'a Unit>,
    ) -> Result<Ppn, MediumError> {
        match self.draw_power_for(Cut::Program(frame)) {
            Draw::On => {}
            Draw::Fails => {
                self.tear(frame);
                return Err(MediumError::PowerLost);
            }
            Draw::Off => return Err(MediumError::PowerLost),
        }
        if let Some(why) = self.refuses_program(frame) {
            panic!("{why}");
        }
        let block = self.layout.block_of_frame(frame);
        let slots = self.layout.slots_in(self.mode(block));
        assert!(
            units.len() <= slots as usize,
            "{} units were given for {slots} slots",
            units.len()
        );
        let at_random = self.errors.is_some() && self.program_ages_or_fails(frame);
        if at_random || self.program_fails(block) {
            self.change(Change::ProgramFailed(frame));
            return Err(MediumError::ProgramFailed(frame));
        }
        self.sequence += 1;
        assert!(self.sequence < 1 << 40, "the 40-bit program sequence is used up");
        self.counters.padded_slots += u64::from(slots) - units.len() as u64;
        if self.journal.is_none() {
            return Ok(self.fill(frame, self.sequence, units));
        }
        let units: Vec<Unit> = units.cloned().collect();
        let first = self.fill(frame, self.sequence, units.iter());
        if self.elsewhere.is_some() {
            self.not_elsewhere.insert(frame);
        }
        let sequence = self.sequence;
        self.note(|| Change::Program { frame, sequence, units });
        Ok(first)
    }

    /// Changes the arrays as a program does. Returns the frame's first slot.
    #[inline]
    pub(crate) fn fill<'a>(
        &mut self,
        frame: FrameId,
        sequence: u64,
        units: impl Iterator<Item = &'a Unit>,
    ) -> Ppn {
        let layout = &self.layout;
        let block = layout.block_of_frame(frame);
        let index = layout.index_in(block, frame);
        let first = layout.first_slot(frame);
        let state = &mut self.blocks[block];
        state.next = state.next.max(index + 1);
        let (header, cells) = self.cells.change(frame);
        *header = Header { state: FrameState::Programmed as u8, sequence, copied: 0 }.words();
        let mut used = 0;
        for unit in units {
            cells[used] = [unit.lpn.0, unit.stamp.0];
            if let Some(bytes) = &unit.bytes {
                self.bytes.insert(Ppn(first.0 + used as u32), bytes.clone());
            }
            used += 1;
        }
        cells[used..].fill(PADDING);
        if self.rules.keep_bytes && self.elsewhere.is_none() {
            let lpns = cells.iter().map(|&[lpn, _]| Lpn(lpn)).collect();
            self.spare
                .insert(frame, Oob { role: state.role, mode: state.mode, sequence, lpns }.encode());
        }
        first
    }

    /// Erases a block.
    ///
    /// # Errors
    /// Returns [`MediumError::EraseFailed`] if the block's endurance has ended or a fault was
    /// planned, and no spare block is left. The block is bad from then on. Returns
    /// [`MediumError::PowerLost`] if the power fails.
    ///
    /// # Panics
    /// Panics if the block is bad already.
    pub(crate) fn erase(&mut self, block: BlockId) -> Result<(), MediumError> {
        if self.draw_power_for(Cut::Erase(block)) != Draw::On {
            return Err(MediumError::PowerLost);
        }
        assert!(!self.is_bad(block), "bad block {block} is erased");
        if self.erase_fails(block) || self.erase_fails_at_random(block) {
            self.change(Change::EraseFailed(block));
            return self.replace(block, None);
        }
        self.wipe(block);
        self.note(|| Change::Erase(block));
        Ok(())
    }

    /// Changes the arrays as an erase does.
    pub(crate) fn wipe(&mut self, block: BlockId) {
        self.erases[block] += 1;
        self.note_erase(block);
        let state = &mut self.blocks[block];
        state.next = 0;
        if std::mem::take(&mut state.mode) == BlockMode::Slc {
            self.slc_erases[block] += 1;
        }
        let role = std::mem::take(&mut state.role);
        self.cells.wipe(block);
        if self.rules.keep_bytes || role.has_bytes() {
            self.drop_bytes(block);
        }
    }
}
