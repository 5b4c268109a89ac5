//! The header of a file.

use super::{HEADER_BYTES, MAGIC, VERSION, array, u32_at};
use crate::error::{Place, TraceError, excerpt};

/// Returns the header of every file.
pub(super) fn encode() -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..10].copy_from_slice(&VERSION.to_le_bytes());
    let crc = crc32c::crc32c(&header[..12]);
    header[12..].copy_from_slice(&crc.to_le_bytes());
    header
}

/// Checks that `head`, the start of a file, is a header that this reader supports.
///
/// # Errors
/// Returns an error for another format, another version, or a damaged header.
pub(super) fn check(head: &[u8]) -> Result<(), TraceError> {
    let shown = &head[..head.len().min(MAGIC.len())];
    let fault = |at: usize, why: &'static str, expected: &'static str, shown: &[u8]| TraceError {
        excerpt: excerpt(shown),
        ..TraceError::new(Place::Byte(at as u64), why, expected)
    };
    if !head.starts_with(&MAGIC) {
        return Err(fault(
            0,
            "not an atlas trace:",
            "a file that begins with \\x89FATR\\r\\n\\x1a",
            shown,
        ));
    }
    let Some(head) = head.first_chunk::<HEADER_BYTES>() else {
        return Err(fault(head.len(), "the trace is truncated in its header", "16 bytes", &[]));
    };
    if u32_at(head, 12) != crc32c::crc32c(&head[..12]) {
        return Err(fault(8, "a damaged header", "bytes that match its CRC", &[]));
    }
    let version = u16::from_le_bytes(array(head, 8));
    if version != VERSION {
        let why = format!("version {version} of the atlas format");
        return Err(TraceError::new(Place::Byte(8), why, "version 1, which this reader supports"));
    }
    if *head != encode() {
        return Err(fault(10, "a header with unknown flags", "zero", &[]));
    }
    Ok(())
}
