//! The rules that hold on a medium between two operations.

use super::FrameState;
use crate::Medium;
use flashatlas_types::Violation;

impl Medium {
    /// Checks that each block's write pointer is just after the last frame that is not erased, in
    /// O(n). A block that is as the base says needs no check.
    ///
    /// # Errors
    /// Returns the first violation.
    pub fn check(&self) -> Result<(), Violation> {
        for (id, block) in self.blocks.iter_enumerated().filter(|&(id, _)| !self.is_base(id)) {
            for index in 0..self.layout.frames_per_block {
                let erased = self.state(self.layout.frame_in(id, index)) == FrameState::Erased;
                let legal =
                    if index + 1 == block.next { !erased } else { index < block.next || erased };
                Violation::unless(
                    self.state(self.layout.frame_in(id, index)) != FrameState::Programmed
                        || index < self.layout.frames_in(block.mode),
                    "a block holds data in the frames of its mode",
                    || format!("block {id}, frame {index}, mode {:?}", block.mode),
                )?;
                Violation::unless(
                    legal,
                    "the last frame that is not erased is just below the write pointer",
                    || {
                        format!(
                            "block {id}, frame {index}, write pointer {}, erased {erased}",
                            block.next
                        )
                    },
                )?;
            }
        }
        Ok(())
    }
}
