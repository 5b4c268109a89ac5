//! A frontier: the block that is being filled, and the frame that is being gathered for it.

use flashatlas_nand::Unit;
use flashatlas_types::{BlockId, Cause, OpId, Ppn};

/// A mapping unit on its way into a frame.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub unit: Unit,
    /// Where collection found it; [`Ppn::NONE`] for host data.
    pub from: Ppn,
    /// The operation that the program must wait for: the data's arrival.
    pub ready: OpId,
    pub cause: Cause,
}

impl Pending {
    pub fn is_host(&self) -> bool {
        self.from == Ppn::NONE
    }
}

/// One of a lane's write streams.
#[derive(Clone, Debug, Default)]
pub(super) struct Frontier {
    pub block: Option<BlockId>,
    pub next: u32,
    pub buffer: Vec<Pending>,
}

/// A block whose valid data is moving away. It is erased once every copy is programmed.
#[derive(Clone, Debug)]
pub(super) struct Leaving {
    pub block: BlockId,
    pub cause: Cause,
    /// Slots that were valid when it was picked.
    pub valid: u32,
    /// Units that were read, and wait in a buffer.
    pub buffered: u32,
    /// Every valid unit was read.
    pub read: bool,
    /// What the erase waits for: the copies. (That it waits for reads of the block is a rule of the
    /// medium.)
    pub after: Vec<OpId>,
}
