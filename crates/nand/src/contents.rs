//! Bytes of slots that are kept elsewhere than in memory: in an image.

use crate::{Change, Medium};
use flashatlas_types::{MediumError, Ppn};
use std::fmt::Debug;
use std::sync::Arc;

/// Where the bytes are that a medium does not hold in memory.
pub trait Contents: Debug + Send + Sync {
    /// The bytes in a slot, if it was programmed with any.
    ///
    /// # Errors
    /// [`MediumError::Damaged`]: what stands there is not what was programmed.
    fn bytes(&self, ppn: Ppn) -> Result<Option<Arc<[u8]>>, MediumError>;
}

impl Medium {
    /// From now on bytes of data that are not in memory are in `contents`.
    pub fn keep_bytes_in(&mut self, contents: Arc<dyn Contents>) {
        self.elsewhere = Some(contents);
    }

    /// These changes are where bytes are kept: those of data leave memory, unless their frame was
    /// programmed again since.
    pub fn let_go(&mut self, changes: &[Change]) {
        for change in changes {
            let Change::Program { frame, sequence, .. } = *change else { continue };
            if self.frame_sequence(frame) == Ok(sequence) && !self.holds_map(frame) {
                let first = self.layout.first_slot(frame).0;
                (first..first + self.layout.slots_per_frame)
                    .for_each(|slot| drop(self.bytes.remove(&Ppn(slot))));
            }
        }
    }
}
