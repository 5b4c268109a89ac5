//! Bytes of each PDU, worked out by hand from the figures of section 3.6.2.

use crate::{Received, crc32c, decode};
use flashatlas_nvme_tcp::pdu::{
    Alignment, C2hData, Digests, Direction, FatalStatus, Fault, Framing, H2cData, IcReq, IcResp,
    Kind, Pdu, R2t, TermReq,
};

const BOTH: Digests = Digests { header: true, data: true };

fn aligned(field: u8) -> Alignment {
    Alignment::from_field(field).expect("at most 31")
}

/// Checks that `pdu` with `data` has these bytes, and that they decode to it again.
fn is(pdu: Pdu, data: &[u8], framing: Framing, bytes: &[u8]) {
    assert_eq!(pdu.encode(data, &framing), bytes, "{pdu:?}");
    let direction = pdu.kind().direction();
    let back = decode(direction, framing, bytes, bytes.len()).expect("no fault");
    assert_eq!(back, [Received { pdu, data: data.to_vec(), intact: true }]);
}

/// Returns `front`, filled up with zeros to `length` bytes.
fn padded(front: &[u8], length: usize) -> Vec<u8> {
    let mut bytes = front.to_vec();
    bytes.resize(length, 0);
    bytes
}

#[test]
fn the_digest_is_crc32c() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283, "the check value of CRC32C");
}

#[test]
fn icreq() {
    let pdu = Pdu::IcReq(IcReq { alignment: aligned(3), digests: BOTH, max_r2t: 0x0102_0304 });
    let front = [0x00, 0, 0x80, 0, 0x80, 0, 0, 0, 0, 0, 3, 0b11, 4, 3, 2, 1];
    is(pdu, &[], Framing::default(), &padded(&front, 128));
    // Digests apply to later PDUs only (section 3.3.1.1).
    is(pdu, &[], Framing { digests: BOTH, alignment: aligned(31) }, &padded(&front, 128));
}

#[test]
fn icresp() {
    let digests = Digests { header: false, data: true };
    let pdu = Pdu::IcResp(IcResp { alignment: aligned(31), digests, max_data: 0x2_0000 });
    let front = [0x01, 0, 0x80, 0, 0x80, 0, 0, 0, 0, 0, 31, 0b10, 0, 0, 2, 0];
    is(pdu, &[], Framing::default(), &padded(&front, 128));
}

#[test]
fn termination_requests_have_no_digests_and_carry_a_header() {
    let framing = Framing { digests: BOTH, alignment: aligned(7) };
    let term = TermReq::from(Fault::field(16));
    let header = [6, 0, 24, 24, 0xff];
    let mut bytes = padded(&[0x03, 0, 24, 0, 29, 0, 0, 0, 1, 0, 16, 0, 0, 0], 24);
    bytes.extend_from_slice(&header);
    is(Pdu::C2hTermReq(term), &header, framing, &bytes);

    let term = TermReq::from(Fault::header_digest(0xa1b2_c3d4));
    let bytes = padded(&[0x02, 0, 24, 0, 24, 0, 0, 0, 3, 0, 0xd4, 0xc3, 0xb2, 0xa1], 24);
    is(Pdu::H2cTermReq(term), &[], framing, &bytes);
    assert_eq!(term.fault(), Some(Fault::header_digest(0xa1b2_c3d4)));
    assert_eq!(TermReq { status: 7, information: 0 }.fault(), None, "07h is reserved");
}

#[test]
fn the_codes_of_the_fatal_status() {
    let codes = [
        (FatalStatus::InvalidHeaderField, 1),
        (FatalStatus::SequenceError, 2),
        (FatalStatus::HeaderDigest, 3),
        (FatalStatus::OutOfRange, 4),
        (FatalStatus::LimitExceeded, 5),
        (FatalStatus::UnsupportedParameter, 6),
    ];
    for (status, code) in codes {
        assert_eq!((status as u16, FatalStatus::from_code(code)), (code, Some(status)));
    }
}

#[test]
fn a_command_capsule_without_data() {
    let entry: [u8; 64] = std::array::from_fn(|i| i as u8 + 100);
    let mut bytes = vec![0x04, 0, 72, 0, 72, 0, 0, 0];
    bytes.extend_from_slice(&entry);
    is(Pdu::CapsuleCmd(entry), &[], Framing::default(), &bytes);

    // With digests: HDGSTF and HDGST, but no DDGST, as there is no data.
    let mut bytes = vec![0x04, 1, 72, 0, 76, 0, 0, 0];
    bytes.extend_from_slice(&entry);
    bytes.extend_from_slice(&crc32c(&bytes).to_le_bytes());
    is(Pdu::CapsuleCmd(entry), &[], Framing { digests: BOTH, alignment: aligned(7) }, &bytes);
}

#[test]
fn a_command_capsule_with_data_digests_and_padding() {
    // Header 72, digest 4, padding to a multiple of 32: 96. Data 5, digest 4: 105.
    let entry = [0xee; 64];
    let mut bytes = vec![0x04, 0b11, 72, 96, 105, 0, 0, 0];
    bytes.extend_from_slice(&entry);
    bytes.extend_from_slice(&crc32c(&bytes).to_le_bytes());
    bytes.resize(96, 0);
    bytes.extend_from_slice(b"hello");
    bytes.extend_from_slice(&crc32c(b"hello").to_le_bytes());
    let framing = Framing { digests: BOTH, alignment: aligned(7) };
    is(Pdu::CapsuleCmd(entry), b"hello", framing, &bytes);
}

#[test]
fn a_response_capsule() {
    let entry: [u8; 16] = std::array::from_fn(|i| 0xf0 + i as u8);
    let mut bytes = vec![0x05, 0, 24, 0, 24, 0, 0, 0];
    bytes.extend_from_slice(&entry);
    is(Pdu::CapsuleResp(entry), &[], Framing::default(), &bytes);
}

#[test]
fn data_to_the_controller_as_in_figure_8() {
    // CPDA 0Fh is 64 bytes: 24 of header, 40 of padding.
    let pdu = H2cData { command: 0x1234, tag: 0xabcd, offset: 0x1000, length: 8, last: true };
    let mut bytes = vec![0x06, 0b100, 24, 64, 72, 0, 0, 0];
    bytes.extend_from_slice(&[0x34, 0x12, 0xcd, 0xab, 0, 0x10, 0, 0, 8, 0, 0, 0]);
    bytes.resize(64, 0);
    bytes.extend_from_slice(b"eight by");
    let framing = Framing { alignment: aligned(0x0f), ..Framing::default() };
    is(Pdu::H2cData(pdu), b"eight by", framing, &bytes);
}

#[test]
fn data_to_the_host_as_in_figure_9() {
    // HPDA 03h is 16 bytes: 24 of header, 8 of padding.
    let pdu = C2hData { command: 7, offset: 0x3e8, length: 4, last: true, success: true };
    let mut bytes = vec![0x07, 0b1100, 24, 32, 36, 0, 0, 0];
    bytes.extend_from_slice(&[7, 0, 0, 0, 0xe8, 3, 0, 0, 4, 0, 0, 0]);
    bytes.resize(32, 0);
    bytes.extend_from_slice(b"four");
    let framing = Framing { alignment: aligned(3), ..Framing::default() };
    is(Pdu::C2hData(pdu), b"four", framing, &bytes);
}

#[test]
fn ready_to_transfer() {
    let pdu = R2t { command: 2, tag: 0x0301, offset: 0x0bb8, length: 0x2000 };
    let mut bytes = vec![0x09, 1, 24, 0, 28, 0, 0, 0];
    bytes.extend_from_slice(&[2, 0, 1, 3, 0xb8, 0x0b, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(&crc32c(&bytes).to_le_bytes());
    let digests = Digests { header: true, data: false };
    is(Pdu::R2t(pdu), &[], Framing { digests, ..Framing::default() }, &bytes);
}

/// Returns the fault of `bytes` as the first PDU of the host, or of the controller.
fn fault(direction: Direction, framing: Framing, bytes: &[u8]) -> Fault {
    decode(direction, framing, bytes, 1).expect_err("a fault")
}

#[test]
fn each_wrong_field_is_refused_with_its_offset() {
    use Direction::{ToController, ToHost};
    let plain = Framing::default();
    let ic = Pdu::IcReq(IcReq::default()).encode(&[], &plain);
    let resp = IcResp { alignment: aligned(0), digests: Digests::default(), max_data: 4096 };
    let resp = Pdu::IcResp(resp).encode(&[], &plain);
    let capsule = Pdu::CapsuleCmd([0; 64]).encode(&[1; 500], &plain);
    let h2c = H2cData { command: 0, tag: 0, offset: 0, length: 8, last: false };
    let h2c = Pdu::H2cData(h2c).encode(&[0; 8], &plain);
    let c2h = C2hData { command: 0, offset: 0, length: 8, last: false, success: false };
    let c2h = Pdu::C2hData(c2h).encode(&[0; 8], &plain);
    let r2t = Pdu::R2t(R2t { command: 0, tag: 0, offset: 0, length: 4 }).encode(&[], &plain);

    let field = Fault::field;
    type Case<'a> = (Direction, &'a [u8], usize, u8, Fault);
    let cases: &[Case<'_>] = &[
        (ToController, &ic, 0, 0x08, field(0)),   // a reserved opcode
        (ToController, &ic, 0, 0x01, field(0)),   // the other direction
        (ToHost, &resp, 0, 0x00, field(0)),       // the other direction
        (ToController, &capsule, 1, 1, field(1)), // a digest that was not agreed on
        (ToController, &capsule, 1, 2, field(1)), // a digest that was not agreed on
        (ToController, &ic, 2, 127, field(2)),
        (ToController, &capsule, 3, 71, field(3)), // data inside of the header
        (ToController, &capsule, 3, 74, field(3)), // not aligned
        (ToController, &capsule, 5, 0, field(4)),  // 60 bytes: shorter than its header
        (ToController, &h2c, 4, 24, field(4)),     // no data
        (ToController, &ic, 4, 129, field(4)),
        (ToHost, &r2t, 4, 28, field(4)), // data in an R2T
        (ToController, &ic, 8, 1, Fault::unsupported(8)),
        (ToController, &ic, 10, 32, field(10)),
        (ToHost, &resp, 12, 2, field(12)), // MAXH2CDATA of 4098
        (ToHost, &resp, 13, 0, field(12)), // MAXH2CDATA of 0
        (ToController, &h2c, 12, 2, field(12)),
        (ToController, &h2c, 16, 6, field(16)),
        (ToController, &h2c, 16, 4, field(16)), // less than the PDU has
        (ToController, &h2c, 17, 1, field(16)), // more than the PDU has
        (ToHost, &c2h, 1, 8, field(1)),         // success before the last PDU
        (ToHost, &c2h, 16, 12, field(16)),
        (ToHost, &r2t, 12, 1, field(12)),
        (ToHost, &r2t, 16, 0, field(16)), // an R2T for nothing
    ];
    for &(direction, bytes, at, value, expected) in cases {
        let mut bytes = bytes.to_vec();
        bytes[at] = value;
        let kind = Kind::from_opcode(bytes[0]);
        let found = fault(direction, plain, &bytes);
        assert_eq!(found, expected, "{kind:?}: byte {at} is {value}");
    }
}

#[test]
fn a_pdu_of_4_gib_is_refused_at_its_header() {
    let mut header = Pdu::CapsuleResp([0; 16]).encode(&[], &Framing::default());
    header[4..8].fill(0xff);
    let common = &header[..8];
    assert_eq!(fault(Direction::ToHost, Framing::default(), common), Fault::field(4));
}

#[test]
fn a_termination_request_has_24_to_152_bytes() {
    let bytes = |length: u8| padded(&[0x02, 0, 24, 0, length, 0, 0, 0, 2], length.into());
    for length in [24, 152] {
        let direction = Direction::ToController;
        assert!(decode(direction, Framing::default(), &bytes(length), 1).is_ok());
    }
    for length in [8, 23, 153] {
        let found = fault(Direction::ToController, Framing::default(), &bytes(length));
        assert_eq!(found, Fault::field(4), "{length} bytes");
    }
}

#[test]
fn a_wrong_header_digest_is_fatal_and_reported() {
    let framing = Framing { digests: BOTH, ..Framing::default() };
    let whole = Pdu::CapsuleCmd([1; 64]).encode(b"some", &framing);
    let digest = u32::from_le_bytes(whole[72..76].try_into().expect("4 bytes"));
    for at in [3, 5, 8, 71] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        let found = fault(Direction::ToController, framing, &bytes);
        assert_eq!(found, Fault::header_digest(digest), "byte {at}");
    }
    let mut bytes = whole.clone();
    bytes[75] ^= 1;
    let found = fault(Direction::ToController, framing, &bytes);
    assert_eq!(found, Fault::header_digest(digest ^ 0x0100_0000));
}

#[test]
fn a_wrong_data_digest_is_not_fatal() {
    let framing = Framing { digests: BOTH, ..Framing::default() };
    let whole = Pdu::CapsuleCmd([1; 64]).encode(b"some", &framing);
    for at in [76, 79, 80, 83] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        bytes.extend_from_slice(&whole);
        let both = decode(Direction::ToController, framing, &bytes, 7).expect("no fault");
        let intact: Vec<bool> = both.iter().map(|one| one.intact).collect();
        assert_eq!(intact, [false, true], "byte {at}");
    }
}
