//! Faults: the effects of a power failure during an operation, and failures of the flash parts
//! themselves.
//!
//! - *Cut before* and *cut after*: the operation has had no effect, or its full effect
//!   ([`Medium::redo`]).
//! - *Torn program, garbage*: the page is not erased any more, and its data and its spare area fail
//!   their checks. The arrays hold the content of another page there, so that tests detect a scheme
//!   that accepts a torn frame.
//! - *Cut between steps*: a frame that waits for a further step of its program is torn, because its
//!   content was in the controller alone. Capacitors (`nand.plp_bytes`) finish its steps.
//! - *Torn program, part*: the first pages of a frame (or the first part of a page) are correct,
//!   and the other pages are erased. The record in the spare area is spread over the whole frame
//!   and has one checksum. So the frame is not accepted, although the content of its first part is
//!   correct.
//! - *Torn program, once*: the page can be read once after the power failure, and then never again.
//!   A controller detects this by reading such a page twice ([`Medium::reread`]).
//! - *Torn erase*: some pages of the block are erased and the others are not. No page can be read,
//!   and no page may be programmed before the block is erased again.
//! - *Paired pages*: on flash with several bits a cell, a torn program of an upper page destroys
//!   the earlier pages of the same cells ([`Medium::paired_before`]). `drive.page_order` determines
//!   these pages.
//! - *Program failure*: the part reports that a program failed. The frame holds no data. The other
//!   pages of the block can be read, and the block's next program and next erase fail.
//! - *Erase failure*: the part reports that an erase failed, as at the end of a block's endurance.
//!   No page of the block can be read, and the next erase fails, too.
//! - *Grown bad blocks*: the effect of program and erase failures. A spare block replaces the
//!   failed block ([`crate::spares`]). If no spare block is left, a block that cannot be erased is
//!   bad, and a failed program is an error.
//! - *Factory-bad blocks*: see [`Medium::new`].
//! - *Uncorrectable read*: a page that was programmed cannot be read any more ([`Medium::decay`]).
//!   Its spare area is lost, too, unless wrong bits are the reason ([`FrameState::Lost`]).
//!   Errors that the controller corrects change only times ([`crate::errors`]).
//! - *NVM*: stores after the last fence are kept, lost or torn, line by line (see [`crate::nvm`]).

use crate::Change;
use crate::medium::cell::Header;
use crate::{FrameState, Medium};
use flashatlas_types::{BlockId, FrameId};

/// Effect of a power failure during an operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Torn {
    /// Program: the frame cannot be read.
    Garbage,
    /// Program: only the first part of the frame is written.
    Part,
    /// Program: the frame can be read once.
    Once,
    /// Program: the frame and the earlier pages of the same cells cannot be read.
    Paired,
    /// Erase: only some of the pages are erased.
    Erase,
    /// Store or fence: each line is new, old or torn. The number selects which.
    Lines(u8),
}

impl Torn {
    /// Returns the letter for this effect in the name of a cut. For [`Torn::Lines`], a number
    /// follows.
    pub fn letter(self) -> char {
        match self {
            Torn::Garbage => 'g',
            Torn::Part => 'p',
            Torn::Once => 'o',
            Torn::Paired => 'm',
            Torn::Erase => 'e',
            Torn::Lines(_) => 'l',
        }
    }

    /// Returns `true` if a power failure during `change` can have this effect.
    pub fn applies_to(self, change: &Change) -> bool {
        match self {
            Torn::Garbage => matches!(change, Change::Program { .. } | Change::Step { .. }),
            Torn::Part | Torn::Once | Torn::Paired => matches!(change, Change::Program { .. }),
            Torn::Erase => matches!(change, Change::Erase(_)),
            Torn::Lines(_) => matches!(change, Change::Store { .. } | Change::Fence),
        }
    }
}

impl Medium {
    /// Carries out a part of a change, as `torn` says. After that, the power must be switched off
    /// ([`Medium::power_off_drawing`]).
    ///
    /// # Panics
    /// Panics if a power failure during the change cannot have this effect ([`Torn::applies_to`]).
    pub fn begin(&mut self, change: &Change, torn: Torn) {
        match (torn, change) {
            (Torn::Garbage, Change::Program { frame, .. } | Change::Step { frame, .. }) => {
                self.tear_as_garbage(*frame);
            }
            (Torn::Part, Change::Program { frame, sequence, units }) => {
                let half = units.len().div_ceil(2);
                self.fill(*frame, *sequence, units[..half].iter());
                self.tear(*frame);
            }
            (Torn::Once, Change::Program { frame, .. }) => {
                self.redo(change);
                self.fading.push(*frame);
            }
            (Torn::Paired, Change::Program { frame, .. }) => {
                self.tear_as_garbage(*frame);
                for frame in self.paired_before(*frame) {
                    if self.state(frame) == FrameState::Programmed {
                        self.decay(frame);
                    }
                }
            }
            (Torn::Erase, Change::Erase(block)) => self.tear_erase(*block),
            (Torn::Lines(_), Change::Store { .. }) => self.redo(change),
            (Torn::Lines(_), Change::Fence) => {}
            _ => panic!("{change:?} cannot be left {torn:?}"),
        }
    }

    /// Tears a frame, like a power failure during its program. The frame is then not erased, and
    /// its content must not be used.
    pub fn tear(&mut self, frame: FrameId) {
        let block = self.layout.block_of_frame(frame);
        let index = self.layout.index_in(block, frame);
        let next = &mut self.blocks[block].next;
        *next = (*next).max(index + 1);
        self.cells.set_state(frame, FrameState::Torn);
    }

    fn tear_as_garbage(&mut self, frame: FrameId) {
        self.tear(frame);
        let first = self.layout.first_slot(frame).0;
        let (header, cells) = self.cells.change(frame);
        *header =
            Header { state: FrameState::Torn as u8, sequence: u32::MAX.into(), copied: 0 }.words();
        for (slot, cell) in (first..).zip(cells) {
            *cell = [(slot * 7 + 1) % self.layout.logical_units, u32::MAX];
        }
    }

    pub(crate) fn tear_erase(&mut self, block: BlockId) {
        self.blocks[block].next = self.layout.frames_per_block;
        for index in 0..self.layout.frames_per_block {
            self.cells.set_state(self.layout.frame_in(block, index), FrameState::Torn);
        }
        self.drop_bytes(block);
    }

    /// Makes a programmed frame permanently unreadable, with its spare area.
    ///
    /// # Panics
    /// Panics if the frame is not programmed.
    pub fn decay(&mut self, frame: FrameId) {
        assert!(self.state(frame) == FrameState::Programmed, "frame {frame} holds nothing");
        self.cells.set_state(frame, FrameState::Torn);
    }

    /// Makes the data of a programmed frame permanently unreadable. Its spare area stays.
    ///
    /// # Panics
    /// Panics if the frame is not programmed.
    pub(crate) fn lose_data(&mut self, frame: FrameId) {
        assert!(self.state(frame) == FrameState::Programmed, "frame {frame} holds nothing");
        self.cells.set_state(frame, FrameState::Lost);
    }

    /// Reads a frame a second time. If the frame can be read only once, it cannot be read from then
    /// on.
    pub fn reread(&mut self, frame: FrameId) {
        if let Some(at) = self.fading.iter().position(|&f| f == frame) {
            self.fading.swap_remove(at);
            // wrong bits may have taken its data before: now its spare area is gone, too
            self.cells.set_state(frame, FrameState::Torn);
        }
    }

    /// Makes every frame that can be read only once unreadable.
    pub fn fade(&mut self) {
        while let Some(&frame) = self.fading.last() {
            self.reread(frame);
        }
    }

    /// Flips a bit of the bytes in a slot without changing the checksum.
    ///
    /// # Panics
    /// Panics if no bytes of the slot are in memory.
    pub fn corrupt(&mut self, ppn: flashatlas_types::Ppn) {
        self.write_down_maps();
        let mut bytes = self.bytes[&ppn].to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        self.bytes.insert(ppn, bytes.into());
    }

    /// Makes the program that follows the next `programs` programs fail.
    pub fn fail_program_after(&mut self, programs: u64) {
        self.failing_program = programs + 1;
    }

    /// Returns `true` if a program of this block failed, so that its next program and erase fail,
    /// too.
    pub fn refuses_programs(&self, block: BlockId) -> bool {
        self.blocks[block].program_fails
    }

    /// Returns whether the current program, which is in `block`, fails.
    #[inline]
    pub(crate) fn program_fails(&mut self, block: BlockId) -> bool {
        match self.failing_program {
            0 => self.blocks[block].program_fails,
            left => {
                self.failing_program = left - 1;
                left == 1 || self.blocks[block].program_fails
            }
        }
    }

    /// Makes the erase that follows the next `erases` erases fail.
    pub fn fail_erase_after(&mut self, erases: u64) {
        self.failing_erase = erases + 1;
    }

    /// Returns whether the current erase, which is of `block`, fails.
    pub(crate) fn erase_fails(&mut self, block: BlockId) -> bool {
        if self.failing_erase > 0 {
            self.failing_erase -= 1;
            if self.failing_erase == 0 {
                return true;
            }
        }
        self.blocks[block].erase_fails || self.wear(block) >= self.rules.endurance
    }
}
