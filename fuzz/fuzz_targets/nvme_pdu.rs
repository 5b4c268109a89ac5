//! PDUs of NVMe/TCP: any bytes are refused or decoded, with the same result in one piece and byte
//! by byte. A decoded PDU is the same after it was encoded and decoded again. The first two bytes
//! choose direction, digests and alignment.
#![no_main]

use flashatlas_nvme_tcp::pdu::{
    Alignment, Decoder, Digests, Direction, Fault, Framing, Pdu, Piece,
};

/// A PDU, its data, and whether the digest of the data is right.
type Whole = (Pdu, Vec<u8>, bool);

fn decode(
    direction: Direction,
    framing: Framing,
    bytes: &[u8],
    piece: usize,
) -> (Vec<Whole>, Option<Fault>) {
    let mut decoder = Decoder::new(direction);
    decoder.set_framing(framing);
    let mut all: Vec<Whole> = Vec::new();
    for mut part in bytes.chunks(piece) {
        loop {
            match decoder.next(&mut part) {
                Ok(None) => break,
                Ok(Some(Piece::Header(pdu, _))) => all.push((pdu, Vec::new(), true)),
                Ok(Some(Piece::Data(data))) => {
                    all.last_mut().expect("a header").1.extend_from_slice(data);
                }
                Ok(Some(Piece::End { intact })) => all.last_mut().expect("a header").2 = intact,
                Err(fault) => {
                    assert!(decoder.header().len() <= 128);
                    return (all, Some(fault));
                }
            }
        }
    }
    (all, None)
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let [choice, alignment, bytes @ ..] = data else { return };
    let direction = if choice & 1 == 0 { Direction::ToController } else { Direction::ToHost };
    let framing = Framing {
        digests: Digests { header: choice & 2 != 0, data: choice & 4 != 0 },
        alignment: Alignment::from_field(alignment & 31).expect("at most 31"),
    };
    let whole = decode(direction, framing, bytes, usize::MAX);
    assert_eq!(whole, decode(direction, framing, bytes, 1));
    // The last PDU may have lost the end of its data.
    let complete = whole.0.len().saturating_sub(1);
    for (pdu, data, _) in &whole.0[..complete] {
        let again = decode(direction, framing, &pdu.encode(data, &framing), 13);
        assert_eq!(again, (vec![(*pdu, data.clone(), true)], None));
    }
});
