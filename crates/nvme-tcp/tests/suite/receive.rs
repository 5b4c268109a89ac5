//! Whole PDUs out of a stream of bytes.

use flashatlas_nvme_tcp::pdu::{Decoder, Direction, Fault, Framing, Pdu, Piece};

/// A PDU that was received whole.
#[derive(PartialEq, Eq, Debug)]
pub struct Received {
    pub pdu: Pdu,
    pub data: Vec<u8>,
    pub intact: bool,
}

/// Decodes the PDUs in `bytes`, which arrive in pieces of at most `piece` bytes.
pub fn decode(
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
