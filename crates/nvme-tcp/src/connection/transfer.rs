//! Data from the host: R2T PDUs ask for it, H2CData PDUs bring it (section 3.3.2.2).

use crate::pdu::{ENTRY_BYTES, Fault, H2cData};
use std::collections::VecDeque;

/// An R2T whose data has not arrived in full.
struct Asked {
    tag: u16,
    start: u32,
    end: u32,
}

/// The data of a command, while it arrives.
pub(super) struct Transfer {
    pub entry: [u8; ENTRY_BYTES],
    data: Vec<u8>,
    total: u32,
    /// Bytes that R2T PDUs have asked for.
    asked: u32,
    open: VecDeque<Asked>,
    /// A data digest was wrong (section 3.5.2).
    damaged: bool,
}

impl Transfer {
    /// Returns a transfer of `total` bytes, for which there is room.
    pub fn new(entry: [u8; ENTRY_BYTES], total: u32) -> Transfer {
        let data = Vec::with_capacity(total as usize);
        Transfer { entry, data, total, asked: 0, open: VecDeque::new(), damaged: false }
    }

    /// Returns the range of the next R2T, of at most `most` bytes. Returns `None` if `outstanding`
    /// R2T PDUs are open, or if no data is left to ask for.
    pub fn ask(&mut self, tag: u16, most: u32, outstanding: u32) -> Option<(u32, u32)> {
        let length = most.min(self.total - self.asked);
        if length == 0 || self.open.len() >= outstanding as usize {
            return None;
        }
        let start = self.asked;
        self.asked += length;
        self.open.push_back(Asked { tag, start, end: self.asked });
        Some((start, length))
    }

    /// Checks the header of a PDU for this transfer.
    ///
    /// # Errors
    /// Returns the fault of a PDU outside of the range of its R2T, or out of order.
    pub fn check(&self, pdu: &H2cData) -> Result<(), Fault> {
        let asked = self.open.iter().find(|asked| asked.tag == pdu.tag).expect("the tag is known");
        // 64 bits: the sum may exceed 32.
        let end = u64::from(pdu.offset) + u64::from(pdu.length);
        if pdu.offset < asked.start || end > u64::from(asked.end) {
            return Err(Fault::OUT_OF_RANGE);
        }
        // The R2Ts of a command are served in order, each without gaps, and the last PDU of an R2T
        // has its last flag set.
        let in_order = self.open.front().is_some_and(|first| first.tag == pdu.tag)
            && pdu.offset as usize == self.data.len();
        if !in_order || pdu.last != (end == u64::from(asked.end)) {
            return Err(Fault::SEQUENCE);
        }
        Ok(())
    }

    /// Appends data of a PDU that was checked.
    pub fn append(&mut self, data: &[u8]) {
        self.data.extend_from_slice(data);
    }

    /// Ends a PDU, and returns the tag of its R2T if all data of the R2T has arrived.
    pub fn end(&mut self, intact: bool) -> Option<u16> {
        self.damaged |= !intact;
        let first = self.open.front().expect("a PDU has an R2T");
        if (self.data.len() as u64) < u64::from(first.end) {
            return None;
        }
        self.open.pop_front().map(|asked| asked.tag)
    }

    /// Returns whether all data has arrived.
    pub fn is_complete(&self) -> bool {
        self.data.len() == self.total as usize
    }

    /// Returns the data; `None` if some of it was damaged on its way.
    pub fn into_data(self) -> Option<Vec<u8>> {
        (!self.damaged).then_some(self.data)
    }
}
