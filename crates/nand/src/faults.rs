//! Faults: the state that an operation leaves if the power fails in it, and failures of the flash
//! parts themselves.
//!
//! - *Cut before* and *cut after*: the operation has done nothing, or all of its work
//!   ([`Medium::redo`]).
//! - *Torn program, garbage*: the page is not erased any more, and neither its data nor its spare
//!   area pass their checks. The arrays hold another page's content in its place, so that tests
//!   find a scheme that accepts a torn frame.
//! - *Torn program, part*: the first pages of a frame (or the first part of a page) are correct,
//!   and the rest is erased. The record in the spare area is spread over the whole frame and has
//!   one checksum. So the frame is not accepted, although the content of its first part is correct.
//! - *Torn program, once*: the page can be read once when the power is back, and then never again.
//!   A controller detects this by reading such a page twice ([`Medium::reread`]).
//! - *Torn erase*: some pages of the block are erased and the others are not. No page can be read,
//!   and no page may be programmed before the block is erased again.
//! - *Paired pages*: on flash with several bits a cell, a torn program of an upper page destroys
//!   the pages of the same cells that were programmed before it. On this flash, they are the pages
//!   just before it in the block.
//! - *Program failure*: the part reports that a program failed. The frame holds nothing; other
//!   pages of the block can be read, and its next program and its next erase fail.
//! - *Erase failure*: the part reports that an erase failed, as at the end of a block's endurance.
//!   No page of the block can be read, and the next erase fails, too.
//! - *Grown bad blocks*: the effect of such failures. A spare block takes the place of the block
//!   ([`crate::spares`]). If none is left, a block that cannot be erased is bad, and a failed
//!   program is an error.
//! - *Factory-bad blocks*: see [`Medium::new`].
//! - *Uncorrectable read*: a page that was programmed cannot be read any more ([`Medium::decay`]).
//!   Errors that the controller corrects are not modelled, because no layer above could see them.
//! - *NVM*: stores that no fence followed are lost or torn, line by line (see [`crate::nvm`]).

use crate::Change;
use crate::{FrameState, Medium};
use flashatlas_types::{BlockId, FrameId};

/// The state that an operation leaves if the power fails in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Torn {
    /// Program: the frame cannot be read.
    Garbage,
    /// Program: only the first part of the frame is written.
    Part,
    /// Program: the frame can be read once.
    Once,
    /// Program: the frame cannot be read, nor can the earlier pages of the same cells.
    Paired,
    /// Erase: only some of the pages are erased.
    Erase,
    /// Store or fence: lines are new, old or torn as this number draws them.
    Lines(u8),
}

impl Torn {
    /// Returns the letter in the name of a cut; [`Torn::Lines`] has a number after it.
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

    /// Returns whether `change` can be left this way.
    pub fn applies_to(self, change: &Change) -> bool {
        match self {
            Torn::Garbage | Torn::Part | Torn::Once | Torn::Paired => {
                matches!(change, Change::Program { .. })
            }
            Torn::Erase => matches!(change, Change::Erase(_)),
            Torn::Lines(_) => matches!(change, Change::Store { .. } | Change::Fence),
        }
    }
}

impl Medium {
    /// Leaves a change half done in the way of `torn`. The power has to go off afterwards
    /// ([`Medium::power_off_drawing`]).
    ///
    /// # Panics
    /// Panics if the change cannot be left this way ([`Torn::applies_to`]).
    pub fn begin(&mut self, change: &Change, torn: Torn) {
        match (torn, change) {
            (Torn::Garbage, Change::Program { frame, .. }) => self.tear_as_garbage(*frame),
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
                for frame in self.layout.paired_before(*frame) {
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

    /// Tears a frame, as a power failure during its program does. The frame is not erased, and its
    /// content must not be used.
    pub fn tear(&mut self, frame: FrameId) {
        let block = self.layout.block_of_frame(frame);
        let index = self.layout.index_in(block, frame);
        let next = &mut self.blocks[block.0 as usize].next;
        *next = (*next).max(index + 1);
        self.state[frame.0 as usize] = FrameState::Torn as u8;
    }

    fn tear_as_garbage(&mut self, frame: FrameId) {
        self.tear(frame);
        let first = self.layout.first_slot(frame).0 as usize;
        for slot in first..first + self.layout.slots_per_frame as usize {
            let lpn = (slot as u32 * 7 + 1) % self.layout.logical_units;
            self.slots[slot] = [lpn, u32::MAX];
        }
        (self.sequence_low[frame.0 as usize], self.sequence_high[frame.0 as usize]) = (u32::MAX, 0);
    }

    pub(crate) fn tear_erase(&mut self, block: BlockId) {
        let state = &mut self.blocks[block.0 as usize];
        state.next = self.layout.frames_per_block;
        let first = self.layout.frame_in(block, 0).0 as usize;
        self.state[first..first + self.layout.frames_per_block as usize]
            .fill(FrameState::Torn as u8);
        self.drop_bytes(block);
    }

    /// Makes a programmed frame unreadable for good.
    ///
    /// # Panics
    /// Panics if the frame is not programmed.
    pub fn decay(&mut self, frame: FrameId) {
        assert!(self.state(frame) == FrameState::Programmed, "frame {frame} holds nothing");
        self.state[frame.0 as usize] = FrameState::Torn as u8;
    }

    /// Reads a frame a second time. A frame that can be read only once cannot be read from then on.
    pub fn reread(&mut self, frame: FrameId) {
        if let Some(at) = self.fading.iter().position(|&f| f == frame) {
            self.fading.swap_remove(at);
            self.decay(frame);
        }
    }

    /// Makes every frame that can be read only once unreadable.
    pub fn fade(&mut self) {
        while let Some(&frame) = self.fading.last() {
            self.reread(frame);
        }
    }

    /// Flips a bit of the bytes in a slot and leaves the checksum as it is.
    ///
    /// # Panics
    /// Panics if no bytes are kept there.
    pub fn corrupt(&mut self, ppn: flashatlas_types::Ppn) {
        let mut bytes = self.bytes[&ppn].to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        self.bytes.insert(ppn, bytes.into());
    }

    /// Makes the program after the next `programs` programs fail.
    pub fn fail_program_after(&mut self, programs: u64) {
        self.failing_program = programs + 1;
    }

    /// Returns `true` if a program of this block failed, so that it takes no more programs and no
    /// erase.
    pub fn refuses_programs(&self, block: BlockId) -> bool {
        self.blocks[block.0 as usize].program_fails
    }

    /// Returns whether the current program, in `block`, fails.
    #[inline]
    pub(crate) fn program_fails(&mut self, block: BlockId) -> bool {
        match self.failing_program {
            0 => self.blocks[block.0 as usize].program_fails,
            left => {
                self.failing_program = left - 1;
                left == 1 || self.blocks[block.0 as usize].program_fails
            }
        }
    }

    /// Makes the erase after the next `erases` erases fail.
    pub fn fail_erase_after(&mut self, erases: u64) {
        self.failing_erase = erases + 1;
    }

    /// Returns whether the current erase, of `block`, fails.
    pub(crate) fn erase_fails(&mut self, block: BlockId) -> bool {
        if self.failing_erase > 0 {
            self.failing_erase -= 1;
            if self.failing_erase == 0 {
                return true;
            }
        }
        self.blocks[block.0 as usize].erase_fails || self.erases(block) >= self.rules.endurance
    }
}
