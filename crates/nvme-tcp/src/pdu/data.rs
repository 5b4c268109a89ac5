//! The headers of PDUs that carry data, or ask for it (sections 3.6.2.8 to 3.6.2.10).

use super::fault::Fault;
use super::frame::{FLAG_LAST, FLAG_SUCCESS, Frame, flag};
use super::le::{put_u16, put_u32, u16_at, u32_at};

/// Offsets of the fields, for [`Fault::field`].
pub(crate) mod at {
    pub const FLAGS: u32 = 1;
    pub const COMMAND: u32 = 8;
    pub const TAG: u32 = 10;
    pub const OFFSET: u32 = 12;
    pub const LENGTH: u32 = 16;
}

/// Host to Controller Data: a part of the data that an R2T asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct H2cData {
    /// Identifier of the command (CCCID).
    pub command: u16,
    /// Transfer tag of the R2T (TTAG).
    pub tag: u16,
    /// First byte, from the start of the command's buffer; a multiple of 4 (DATAO).
    pub offset: u32,
    /// Bytes of data; a multiple of 4, not 0 (DATAL).
    pub length: u32,
    /// No PDU follows for the same R2T.
    pub last: bool,
}

impl H2cData {
    pub(super) fn decode(frame: &Frame, header: &[u8]) -> Result<H2cData, Fault> {
        let (offset, length) = range(header)?;
        if length as usize != frame.data_bytes() {
            return Err(Fault::field(at::LENGTH));
        }
        let (command, tag) = (u16_at(header, 8), u16_at(header, 10));
        Ok(H2cData { command, tag, offset, length, last: frame.has_flag(FLAG_LAST) })
    }

    pub(super) fn flags(&self) -> u8 {
        flag(self.last, FLAG_LAST)
    }

    pub(super) fn encode(&self, header: &mut [u8]) {
        encode(header, self.command, self.tag, self.offset, self.length);
    }
}

/// Controller to Host Data: a part of the data that a command returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct C2hData {
    /// Identifier of the command (CCCID).
    pub command: u16,
    /// First byte, from the start of the command's buffer; a multiple of 4 (DATAO).
    pub offset: u32,
    /// Bytes of data; a multiple of 4, not 0 (DATAL).
    pub length: u32,
    /// No data follows for the same command.
    pub last: bool,
    /// The command is complete and successful, and no CapsuleResp follows. Only with `last`.
    pub success: bool,
}

impl C2hData {
    pub(super) fn decode(frame: &Frame, header: &[u8]) -> Result<C2hData, Fault> {
        let (last, success) = (frame.has_flag(FLAG_LAST), frame.has_flag(FLAG_SUCCESS));
        if success && !last {
            return Err(Fault::field(at::FLAGS));
        }
        let (offset, length) = range(header)?;
        if length as usize != frame.data_bytes() {
            return Err(Fault::field(at::LENGTH));
        }
        Ok(C2hData { command: u16_at(header, 8), offset, length, last, success })
    }

    pub(super) fn flags(&self) -> u8 {
        flag(self.last, FLAG_LAST) | flag(self.success, FLAG_SUCCESS)
    }

    pub(super) fn encode(&self, header: &mut [u8]) {
        encode(header, self.command, 0, self.offset, self.length);
    }
}

/// Ready to Transfer: the controller asks for a part of a command's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct R2t {
    /// Identifier of the command (CCCID).
    pub command: u16,
    /// Transfer tag, which the H2CData PDUs repeat (TTAG).
    pub tag: u16,
    /// First byte, from the start of the command's buffer; a multiple of 4 (R2TO).
    pub offset: u32,
    /// Bytes of data; a multiple of 4, not 0 (R2TL).
    pub length: u32,
}

impl R2t {
    pub(super) fn decode(header: &[u8]) -> Result<R2t, Fault> {
        let (offset, length) = range(header)?;
        Ok(R2t { command: u16_at(header, 8), tag: u16_at(header, 10), offset, length })
    }

    pub(super) fn encode(&self, header: &mut [u8]) {
        encode(header, self.command, self.tag, self.offset, self.length);
    }
}

/// Returns offset and length, which are multiples of dwords. A length of 0 transfers nothing.
fn range(header: &[u8]) -> Result<(u32, u32), Fault> {
    let (offset, length) = (u32_at(header, 12), u32_at(header, 16));
    if offset % 4 != 0 {
        return Err(Fault::field(at::OFFSET));
    }
    if length % 4 != 0 || length == 0 {
        return Err(Fault::field(at::LENGTH));
    }
    Ok((offset, length))
}

fn encode(header: &mut [u8], command: u16, tag: u16, offset: u32, length: u32) {
    put_u16(header, 8, command);
    put_u16(header, 10, tag);
    put_u32(header, 12, offset);
    put_u32(header, 16, length);
}
