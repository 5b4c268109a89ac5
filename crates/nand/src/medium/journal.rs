//! A record of the changes of a medium. Any part of these changes can be repeated on a copy, so
//! power cuts are enumerated with a single run of a workload.
//!
//! A medium that keeps a journal notes every change that it carries out. [`Medium::redo`] carries a
//! change out on another medium in the same state, and [`crate::faults`] leaves a change half done.

use crate::{Medium, OobRole, Unit};
use flashatlas_types::{BlockId, FrameId};

/// One change of a medium.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// An erased block was opened for a role. The role is in the controller's memory until the
    /// block's first page is programmed.
    Open(BlockId, OobRole),
    /// A number was taken.
    Number(u64),
    /// A frame was programmed.
    Program {
        /// The frame.
        frame: FrameId,
        /// The number of the program.
        sequence: u64,
        /// The units, slot by slot; the slots that follow are padding.
        units: Vec<Unit>,
    },
    /// A program failed: the frame holds nothing, and the block takes no more programs and no
    /// erase.
    ProgramFailed(FrameId),
    /// A block was erased.
    Erase(BlockId),
    /// The erase of a block failed: none of its pages can be read, and the next erase fails, too.
    EraseFailed(BlockId),
    /// A spare block has taken the number and the content of this one ([`crate::spares`]).
    Replaced {
        /// The block.
        block: BlockId,
        /// The frame whose program failed, which is erased now; `None` if the whole block is
        /// erased.
        failed: Option<FrameId>,
    },
    /// A block is bad.
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
    /// A FLUSH or a write with FUA ended here. Commands after its completion rely on all earlier
    /// changes.
    Promised,
}

impl Change {
    /// Returns `true` if the change takes time on a part, so that the power can fail in it. The
    /// other changes happen in the controller's memory.
    pub fn is_operation(&self) -> bool {
        !matches!(self, Change::Open(..) | Change::Number(_) | Change::Promised)
    }
}

impl Medium {
    /// Starts a journal, which notes every later change.
    pub fn keep_journal(&mut self) {
        self.journal = Some(Vec::new());
    }

    /// Returns the changes noted since the last call; none if no journal is kept.
    pub fn take_journal(&mut self) -> Vec<Change> {
        self.journal.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Ends the journal and returns the changes noted since the last call of
    /// [`Medium::take_journal`].
    pub fn end_journal(&mut self) -> Vec<Change> {
        self.journal.take().unwrap_or_default()
    }

    /// Notes that the drive has promised that all data so far is durable.
    pub fn promise(&mut self) {
        self.note(|| Change::Promised);
    }

    /// Returns the number of changes noted since [`Medium::take_journal`].
    pub fn journal_len(&self) -> usize {
        self.journal.as_ref().map_or(0, Vec::len)
    }

    /// Notes a change, if a journal is kept.
    #[inline]
    pub(crate) fn note(&mut self, change: impl FnOnce() -> Change) {
        if let Some(journal) = &mut self.journal {
            journal.push(change());
        }
    }

    /// Carries a change out and notes it.
    pub(crate) fn change(&mut self, change: Change) {
        self.redo(&change);
        self.note(|| change);
    }

    /// Repeats a change of another medium that was in the same state. It draws no power and changes
    /// no counter.
    pub fn redo(&mut self, change: &Change) {
        match *change {
            Change::Open(block, role) => self.blocks[block.0 as usize].role = role,
            Change::Number(number) => self.sequence = self.sequence.max(number),
            Change::Program { frame, sequence, ref units } => {
                self.sequence = self.sequence.max(sequence);
                self.fill(frame, sequence, units.iter());
            }
            Change::ProgramFailed(frame) => {
                self.tear(frame);
                let block = &mut self.blocks[self.layout.block_of_frame(frame).0 as usize];
                (block.program_fails, block.erase_fails) = (true, true);
            }
            Change::Erase(block) => self.wipe(block),
            Change::EraseFailed(block) => {
                self.tear_erase(block);
                self.blocks[block.0 as usize].erase_fails = true;
            }
            Change::Replaced { block, failed } => self.put_spare(block, failed),
            Change::Retired(block) => self.blocks[block.0 as usize].bad = true,
            Change::Store { address, ref bytes } => self.nvm.store(address, bytes),
            Change::Fence => self.nvm.fence(),
            Change::Promised => {}
        }
    }
}
