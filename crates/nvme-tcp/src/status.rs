//! Status of commands that the transport itself refuses (NVMe Base Specification 2.1, 4.2.3.1).

/// The last word of a completion: status above the phase tag, which is 0.
pub type Status = u16;

/// Do Not Retry: the same command would fail again.
const NEVER: Status = 1 << 15;

/// Invalid Field in Command; for a transfer beyond MDTS, too.
pub const INVALID_FIELD: Status = NEVER | 0x02 << 1;
/// Command ID Conflict.
pub const COMMAND_ID_CONFLICT: Status = NEVER | 0x03 << 1;
/// Data SGL Length Invalid.
pub const SGL_LENGTH_INVALID: Status = NEVER | 0x0f << 1;
/// SGL Descriptor Type Invalid.
pub const SGL_TYPE_INVALID: Status = NEVER | 0x11 << 1;
/// SGL Offset Invalid.
pub const SGL_OFFSET_INVALID: Status = NEVER | 0x16 << 1;
/// Transient Transport Error: a retry is likely to succeed.
pub const TRANSIENT_TRANSPORT_ERROR: Status = 0x22 << 1;
/// Connect Invalid Parameters (Base Specification, 6.3): command specific.
pub const CONNECT_INVALID_PARAMETERS: Status = NEVER | 1 << 9 | 0x82 << 1;
/// Connect Invalid Host (Base Specification, 6.3): command specific.
pub const CONNECT_INVALID_HOST: Status = NEVER | 1 << 9 | 0x84 << 1;

/// Returns the completion of command `id` with this status, and nothing else.
pub fn completion(id: u16, status: Status) -> [u8; 16] {
    let mut entry = [0; 16];
    entry[12..14].copy_from_slice(&id.to_le_bytes());
    entry[14..].copy_from_slice(&status.to_le_bytes());
    entry
}
