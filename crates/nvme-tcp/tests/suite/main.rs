//! The wire of NVMe/TCP: bytes by hand, random bytes, hosts that break the rules, and whole
//! sessions over loopback.

mod connection;
mod controller_core;
mod endings;
mod memory_target;
mod misbehaviour;
mod pdu_bytes;
mod pdu_random;
mod polling;
mod receive;
mod sessions;
mod wire;

use receive::{Received, decode};

/// Returns the CRC32C of `bytes`, bit by bit (RFC 3385: reflected polynomial 82F63B78h).
fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}
