//! The wire of NVMe/TCP: bytes by hand, random bytes, hosts that break the rules, and whole
//! sessions over loopback.

mod pdu_bytes;
mod pdu_random;

use flashatlas_nvme_tcp::pdu::{Decoder, Direction, Fault, Framing, Pdu, Piece};

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

/// A PDU that was received whole.
#[derive(PartialEq, Eq, Debug)]
struct Received {
    pdu: Pdu,
    data: Vec<u8>,
    intact: bool,
}

/// Decodes the PDUs in `bytes`, which arrive in pieces of at most `piece` bytes.
fn decode(
    direction: Direction,
    framing: Framing,
    bytes: &[u8],
    piece: usize,
) -> Result<Vec<Received>, Fault> {
    let mut decoder = Decoder::new(direction);
    decoder.set_framing(framing);
    let mut whole: Vec<Received> = Vec::new();
    for mut part in bytes.chunks(piece) {
        while let Some(next) = decoder.next(&mut part)? {
            match next {
                Piece::Header(pdu, _) => {
                    whole.push(Received { pdu, data: Vec::new(), intact: true });
                }
                Piece::Data(data) => {
                    whole.last_mut().expect("a header comes first").data.extend_from_slice(data);
                }
                Piece::End { intact } => {
                    whole.last_mut().expect("a header comes first").intact = intact;
                }
            }
        }
    }
    Ok(whole)
}
