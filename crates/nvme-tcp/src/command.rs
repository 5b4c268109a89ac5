//! Commands as a connection hands them over, and the ways in which their data travels (section
//! 3.3.2).

use crate::limits::Limits;
use crate::pdu::{ENTRY_BYTES, u16_at, u32_at};
use crate::status::{self, Status};

/// A command with all of its data.
#[derive(PartialEq, Eq, Debug)]
pub struct Command {
    /// The submission queue entry.
    pub entry: [u8; ENTRY_BYTES],
    /// The data that the host sent.
    pub data: Vec<u8>,
    /// Bytes of data that the host has room for.
    pub room: u32,
}

impl Command {
    /// Returns the identifier (CID).
    pub fn id(&self) -> u16 {
        id(&self.entry)
    }
}

/// Opcode of all Fabrics commands.
pub(crate) const FABRICS: u8 = 0x7f;
/// A data block at an offset: the data is in the capsule (type 0h, sub type 1h).
const IN_CAPSULE: u8 = 0x01;
/// A transport data block: the data travels in PDUs of its own (type 5h, sub type Ah).
const TRANSPORT: u8 = 0x5a;

/// Direction and size of a command's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// There is no data, or it is in the capsule.
    Capsule,
    /// The host sends this many bytes, when the controller asks for them.
    FromHost(u32),
    /// The host has room for this many bytes.
    ToHost(u32),
}

/// Returns the identifier of the command (CID).
pub(crate) fn id(entry: &[u8; ENTRY_BYTES]) -> u16 {
    u16_at(entry, 2)
}

/// Returns the direction and the size of a command's data. The command's capsule carries `inside`
/// bytes of data.
///
/// Bits 1:0 of the opcode, or of the Fabrics command type, are the direction (Base Specification,
/// 3.1.3.4 and 6). The descriptor of a command without data is not read.
///
/// # Errors
/// Returns the status with which the command is refused: the descriptor does not describe the
/// data, or the command transfers more than MDTS allows.
pub(crate) fn way(
    entry: &[u8; ENTRY_BYTES],
    inside: usize,
    limits: &Limits,
) -> Result<Way, Status> {
    let opcode = if entry[0] == FABRICS { entry[4] } else { entry[0] };
    let (kind, length) = (entry[39], u32_at(entry, 32));
    let (from_host, to_host) = (opcode & 3 == 1, opcode & 3 == 2);
    if inside > 0 && !(from_host && kind == IN_CAPSULE) {
        return Err(status::SGL_LENGTH_INVALID); // data that the command does not describe
    }
    if !from_host && !to_host {
        return Ok(Way::Capsule);
    }
    match kind {
        IN_CAPSULE if from_host => {
            if entry[24..32] != [0; 8] {
                return Err(status::SGL_OFFSET_INVALID); // ICDOFF is 0 (section 3.3.1)
            }
            let right = length as usize == inside;
            if right { Ok(Way::Capsule) } else { Err(status::SGL_LENGTH_INVALID) }
        }
        TRANSPORT => {
            // PDUs carry dwords (sections 3.6.2.8 to 3.6.2.10).
            if length % 4 != 0 {
                return Err(status::SGL_LENGTH_INVALID);
            }
            if length > limits.transfer {
                return Err(status::INVALID_FIELD);
            }
            Ok(match (length, from_host) {
                (0, _) => Way::Capsule,
                (_, true) => Way::FromHost(length),
                (_, false) => Way::ToHost(length),
            })
        }
        _ => Err(status::SGL_TYPE_INVALID),
    }
}
