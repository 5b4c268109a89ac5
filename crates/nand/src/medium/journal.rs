//! A record of the changes of a medium. Any first part of these changes can be repeated on a copy.
//! So one run of a workload is enough to test every power cut.
//!
//! A medium with a journal records every change that it carries out. [`Medium::redo`] repeats a
//! change on another medium in the same state. The functions of [`crate::faults`] carry out only a
//! part of a change.

use crate::{Medium, OobRole, Unit};
use flashatlas_types::{BlockId, BlockMode, FrameId};

/// One change of a medium.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// An erased block was opened for a role and in a mode. Both are only in the controller's
    /// memory until the block's first page is programmed.
    Open(BlockId, OobRole, BlockMode),
    /// A number was used for an event other than a program.
    Number(u64),
    /// A frame was programmed.
    Program {
        /// The frame.
        frame: FrameId,
        /// The number of the program.
        sequence: u64,
        /// The units, in order of slots. Further slots are padding.
        units: Vec<Unit>,
    },
    /// A step of a program was made which is not the last. The last one is a
    /// [`Change::Program`].
    Step {
        /// The frame.
        frame: FrameId,
        /// The number of the program.
        sequence: u64,
        /// The units, in order of slots. Further slots are padding.
        units: Vec<Unit>,
        /// The number of steps that the frame has had.
        done: u8,
    },
    /// The frame that was just programmed is a copyback. A power failure during the copyback is one
    /// during the program.
    Copied {
        /// The frame.
        frame: FrameId,
        /// Number of copybacks since the data was last corrected.
        copies: u8,
        /// Wrong bits that each codeword begins with; empty without bit errors.
        wrong: Vec<u16>,
    },
    /// A program failed. The frame holds no data, and the block's next program and erase fail, too.
    ProgramFailed(FrameId),
    /// A frame that was programmed cannot be read any more.
    Lost(FrameId),
    /// The part of a programmed frame on one of its dies cannot be read any more. The frame is lost
    /// with a second part.
    LostPart {
        /// The frame.
        frame: FrameId,
        /// The number of the die in the frame.
        die: u32,
    },
    /// A block was erased.
    Erase(BlockId),
    /// The erase of a block failed. None of its pages can be read, and the next erase fails, too.
    EraseFailed(BlockId),
    /// A spare block has taken the number and the content of a failed block ([`crate::spares`]).
    Replaced {
        /// The number of the block.
        block: BlockId,
        /// The frame whose program failed, which is erased now. `None` if the whole block is
        /// erased.
        failed: Option<FrameId>,
    },
    /// A block became bad.
    Retired(BlockId),
    /// Bytes were stored to the byte-addressable memory.
    Store {
        /// The address.
        address: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// All stored bytes became durable.
    Fence,
    /// A FLUSH or a write with FUA completed. Later commands rely on the durability of all earlier
    /// changes.
    Promised,
}

impl Change {
    /// Returns `true` if the change is an operation of a memory part, during which the power can
    /// fail. The other changes happen in the controller's memory.
    pub fn is_operation(&self) -> bool {
        !matches!(
            self,
            Change::Open(..)
                | Change::Number(_)
                | Change::Copied { .. }
                | Change::Lost(_)
                | Change::LostPart { .. }
                | Change::Promised
        )
    }
}

impl Medium {
    /// Starts a journal, which records every later change.
    pub fn keep_journal(&mut self) {
        self.write_down_maps();
        self.journal = Some(Vec::new());
    }

    /// Returns the changes recorded since the last call, or no changes if there is no journal.
    pub fn take_journal(&mut self) -> Vec<Change> {
        self.journal.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Ends the journal. Returns the changes recorded since the last call of
    /// [`Medium::take_journal`].
    pub fn end_journal(&mut self) -> Vec<Change> {
        self.journal.take().unwrap_or_default()
    }

    /// Records that the drive has promised the durability of all data so far.
    pub fn promise(&mut self) {
        self.note(|| Change::Promised);
    }

    /// Makes the data of a programmed frame unreadable, and records this. Its spare area stays.
    pub(crate) fn lose(&mut self, frame: FrameId) {
        self.change(Change::Lost(frame));
    }

    /// Returns the number of changes recorded since the last call of [`Medium::take_journal`].
    pub fn journal_len(&self) -> usize {
        self.journal.as_ref().map_or(0, Vec::len)
    }

    /// Records a change, if there is a journal.
    #[inline]
    pub(crate) fn note(&mut self, change: impl FnOnce() -> Change) {
        if let Some(journal) = &mut self.journal {
            journal.push(change());
        }
    }

    /// Carries out a change and records it.
    pub(crate) fn change(&mut self, change: Change) {
        self.redo(&change);
        self.note(|| change);
    }

    /// Repeats a change of another medium that was in the same state. The power cannot fail during
    /// this call, and no counter changes.
    pub fn redo(&mut self, change: &Change) {
        match *change {
            Change::Open(block, role, mode) => self.set_mode(block, role, mode),
            Change::Number(number) => self.sequence = self.sequence.max(number),
            Change::Program { frame, sequence, ref units } => {
                self.sequence = self.sequence.max(sequence);
                self.note_program(self.layout.block_of_frame(frame));
                self.fill(frame, sequence, units.iter());
            }
            Change::Step { frame, sequence, ref units, done } => {
                self.sequence = self.sequence.max(sequence);
                self.fill(frame, sequence, units.iter());
                self.leave_unfinished(frame, done);
            }
            Change::Copied { frame, copies, ref wrong } => self.set_copied(frame, copies, wrong),
            Change::ProgramFailed(frame) => {
                self.tear(frame);
                let block = &mut self.blocks[self.layout.block_of_frame(frame)];
                (block.program_fails, block.erase_fails) = (true, true);
            }
            Change::Lost(frame) => self.lose_data(frame),
            Change::LostPart { frame, die } => self.set_lost_part(frame, die),
            Change::Erase(block) => self.wipe(block),
            Change::EraseFailed(block) => {
                self.tear_erase(block);
                self.blocks[block].erase_fails = true;
            }
            Change::Replaced { block, failed } => self.put_spare(block, failed),
            Change::Retired(block) => self.blocks[block].bad = true,
            Change::Store { address, ref bytes } => self.nvm.store(address, bytes),
            Change::Fence => self.nvm.fence(),
            Change::Promised => {}
        }
    }
}
