//! Random PDUs come back as they were; random bytes are refused or decoded, without a panic.

use crate::{Received, decode};
use flashatlas_nvme_tcp::pdu::{
    Alignment, C2hData, Digests, Direction, Framing, H2cData, IcReq, IcResp, Kind, Pdu, R2t,
    TermReq,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn framing() -> impl Strategy<Value = Framing> {
    (any::<[bool; 2]>(), 0..=Alignment::MAX).prop_map(|([header, data], field)| Framing {
        digests: Digests { header, data },
        alignment: Alignment::from_field(field).expect("at most the largest"),
    })
}

fn term() -> impl Strategy<Value = TermReq> {
    any::<(u16, u32)>().prop_map(|(status, information)| TermReq { status, information })
}

/// Returns PDUs of all types with their data.
fn pdu() -> impl Strategy<Value = (Pdu, Vec<u8>)> {
    let none = |pdu: Pdu| (pdu, Vec::new());
    let words = || vec(any::<[u8; 4]>(), 1..100).prop_map(|words| words.concat());
    prop_oneof![
        (framing(), any::<u32>()).prop_map(move |(f, max_r2t)| {
            none(Pdu::IcReq(IcReq { alignment: f.alignment, digests: f.digests, max_r2t }))
        }),
        (framing(), 1..=u32::MAX / 4).prop_map(move |(f, n)| {
            let (alignment, digests) = (f.alignment, f.digests);
            none(Pdu::IcResp(IcResp { alignment, digests, max_data: n * 4 }))
        }),
        (term(), vec(any::<u8>(), 0..=128)).prop_map(|(term, data)| (Pdu::H2cTermReq(term), data)),
        (term(), vec(any::<u8>(), 0..=128)).prop_map(|(term, data)| (Pdu::C2hTermReq(term), data)),
        (vec(any::<u8>(), 64), vec(any::<u8>(), 0..500)).prop_map(|(entry, data)| {
            (Pdu::CapsuleCmd(entry.try_into().expect("64 bytes")), data)
        }),
        any::<[u8; 16]>().prop_map(move |entry| none(Pdu::CapsuleResp(entry))),
        (any::<(u16, u16, bool)>(), 0..=u32::MAX / 4, words()).prop_map(
            |((command, tag, last), word, data)| {
                let (offset, length) = (word * 4, data.len() as u32);
                (Pdu::H2cData(H2cData { command, tag, offset, length, last }), data)
            }
        ),
        (any::<(u16, bool, bool)>(), 0..=u32::MAX / 4, words()).prop_map(
            |((command, last, success), word, data)| {
                let (offset, length) = (word * 4, data.len() as u32);
                let success = success && last;
                (Pdu::C2hData(C2hData { command, offset, length, last, success }), data)
            }
        ),
        (any::<(u16, u16)>(), 0..=u32::MAX / 4, 1..=u32::MAX / 4).prop_map(
            move |((command, tag), at, n)| {
                none(Pdu::R2t(R2t { command, tag, offset: at * 4, length: n * 4 }))
            }
        ),
    ]
}

proptest! {
    #[test]
    fn what_was_encoded_is_decoded(
        (pdu, data) in pdu(), framing in framing(), piece in 1usize..200
    ) {
        let bytes = pdu.encode(&data, &framing);
        let length = u32::from_le_bytes(bytes[4..8].try_into().expect("4 bytes"));
        prop_assert_eq!(bytes.len(), length as usize);
        let back = decode(pdu.kind().direction(), framing, &bytes, piece);
        prop_assert_eq!(back, Ok(vec![Received { pdu, data, intact: true }]));
    }

    #[test]
    fn a_flipped_bit_under_digests_is_found(
        (pdu, data) in pdu(), alignment in 0..=Alignment::MAX, bit in any::<prop::sample::Index>()
    ) {
        let digests = Digests { header: true, data: true };
        let alignment = Alignment::from_field(alignment).expect("at most the largest");
        let framing = Framing { digests, alignment };
        let framed = matches!(
            pdu.kind(),
            Kind::CapsuleCmd | Kind::CapsuleResp | Kind::H2cData | Kind::C2hData | Kind::R2t
        );
        prop_assume!(framed);
        let mut bytes = pdu.encode(&data, &framing);
        let bit = bit.index(bytes.len() * 8);
        let header = if pdu.kind() == Kind::CapsuleCmd { 76 } else { 28 };
        let padding = header..bytes[3].into();
        bytes[bit / 8] ^= 1 << (bit % 8);
        // A wrong length or type may leave the decoder waiting for bytes; it never returns a PDU.
        let intact = decode(pdu.kind().direction(), framing, &bytes, 64)
            .is_ok_and(|all| all.iter().any(|one| one.intact && one.data.len() == data.len()));
        // Only padding is under no digest (section 3.3).
        prop_assert_eq!(intact, padding.contains(&(bit / 8)));
    }

    #[test]
    fn random_bytes_are_refused_or_decoded(
        kind in 0usize..9,
        to_host in any::<bool>(),
        rest in vec(any::<u8>(), 0..400),
        framing in framing(),
        length in 0u32..400,
    ) {
        let kind = Kind::ALL[kind];
        let direction = if to_host { Direction::ToHost } else { Direction::ToController };
        let flags = u8::from(framing.digests.header) | u8::from(framing.digests.data) << 1;
        let mut bytes = vec![kind as u8, flags, kind.header_bytes() as u8, 76];
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&rest);
        let whole = decode(direction, framing, &bytes, usize::MAX);
        prop_assert_eq!(whole, decode(direction, framing, &bytes, 1), "pieces change nothing");
    }
}
