//! What was done to a medium, change by change, so that any part of it can be done again to a copy:
//! how power cuts are enumerated without running a workload more than once.
//!
//! A medium that keeps a journal notes every change that it carries out. [`Medium::redo`] carries a
//! change out on another medium in the same state; [`crate::faults`] leaves it
//! half done.

use crate::{Medium, OobRole, Unit};
use flashatlas_types::{BlockId, FrameId};

/// One change of a medium.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// An erased block was opened for a role. In the controller's memory until its first page is
    /// programmed.
    Open(BlockId, OobRole),
    /// A number was taken.
    Number(u64),
    /// A frame was programmed.
    Program {
        /// Which.
        frame: FrameId,
        /// The number of the program.
        sequence: u64,
        /// What it holds, slot by slot; the slots that follow are padding.
        units: Vec<Unit>,
    },
    /// A program failed: the frame holds nothing, and the block takes no more programs and no
    /// erase.
    ProgramFailed(FrameId),
    /// A block was erased.
    Erase(BlockId),
    /// The erase of a block failed: none of its pages can be read, and the next erase fails, too.
    EraseFailed(BlockId),
    /// A spare block has the number of this one from now on, and what it held ([`crate::spares`]).
    Replaced {
        /// Which.
        block: BlockId,
        /// The frame whose program failed, which is erased now; `None`: all of them are.
        failed: Option<FrameId>,
    },
    /// A block is bad.
    Retired(BlockId),
    /// Bytes were stored to the byte-addressable memory.
    Store {
        /// Where.
        address: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// What was stored became durable.
    Fence,
    /// A FLUSH or a write with FUA ended here: what is sent after its answer counts on everything
    /// before.
    Promised,
}

impl Change {
    /// Whether it takes time on a part, so that the power can fail in it; the others happen in the
    /// controller's memory.
    pub fn is_operation(&self) -> bool {
        !matches!(self, Change::Open(..) | Change::Number(_) | Change::Promised)
    }
}

impl Medium {
    /// From now on every change is noted.
    pub fn keep_journal(&mut self) {
        self.journal = Some(Vec::new());
    }

    /// What was noted since the last call; nothing where no journal is kept.
    pub fn take_journal(&mut self) -> Vec<Change> {
        self.journal.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What was noted since; from now on nothing is.
    pub fn end_journal(&mut self) -> Vec<Change> {
        self.journal.take().unwrap_or_default()
    }

    /// The drive answers that everything so far is durable.
    pub fn promise(&mut self) {
        self.note(|| Change::Promised);
    }

    /// Changes noted since [`Medium::take_journal`].
    pub fn journal_len(&self) -> usize {
        self.journal.as_ref().map_or(0, Vec::len)
    }

    /// Note a change, where a journal is kept.
    #[inline]
    pub(crate) fn note(&mut self, change: impl FnOnce() -> Change) {
        if let Some(journal) = &mut self.journal {
            journal.push(change());
        }
    }

    /// Carry a change out, and note it.
    pub(crate) fn change(&mut self, change: Change) {
        self.redo(&change);
        self.note(|| change);
    }

    /// Do again what was done to another medium that was in the same state. Takes no power
    /// and counts nothing.
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
