//! The parts of a copyback that its node has no place for.

use flashatlas_types::{CopySource, DieBlock};
use smallvec::SmallVec;

/// An unfinished copyback. Its place among the others is the `value` of its node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copyback {
    pub sources: SmallVec<[CopySource; 4]>,
    /// Number of sources that have been sensed.
    pub sensed: usize,
    /// Number of erases of the source's block that were issued before the copyback.
    pub epoch: u32,
}

impl Copyback {
    /// Returns the block of the sources.
    pub fn from(&self) -> DieBlock {
        self.sources[0].block
    }

    /// Returns the kind of the page that is sensed next, or `None` if all are sensed.
    pub fn next_level(&self) -> Option<u8> {
        self.sources.get(self.sensed).map(|source| source.level)
    }
}
