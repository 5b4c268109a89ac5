//! Hosts that break the rules: each is refused as the specification says.

use crate::Received;
use crate::wire::{
    FLUSH, READ, SMALL, WRITE, Wire, connect, done, entry, pattern, with_buffer, with_capsule,
};
use flashatlas_nvme_tcp::pdu::{FatalStatus, Fault, H2cData, IcReq, Pdu, R2t, TermReq};
use flashatlas_nvme_tcp::{End, Phase};

/// Checks that the connection is over, and that a C2HTermReq reports `fault`. The data of the
/// C2HTermReq must be `header`.
fn is_over(wire: &mut Wire, fault: Fault, header: &[u8]) {
    assert_eq!(wire.connection.phase(), Phase::Over(End::Fault(fault)));
    assert!(!wire.connection.wants_input());
    assert_eq!(wire.connection.receive(&[0; 128]), Err(End::Fault(fault)), "nothing is accepted");
    let last = wire.replies().pop().expect("a C2HTermReq");
    let term = TermReq { status: fault.status as u16, information: fault.information };
    let expected = Received { pdu: Pdu::C2hTermReq(term), data: header.to_vec(), intact: true };
    assert_eq!(last, expected);
    assert!(wire.connection.next_command().is_none(), "no command is carried out after it");
}

/// Sends a PDU that ends the connection.
fn refused(mut wire: Wire, pdu: Pdu, data: &[u8], fault: Fault) {
    let bytes = pdu.encode(data, &wire.framing);
    assert_eq!(wire.connection.receive(&bytes), Err(End::Fault(fault)), "{pdu:?}");
    is_over(&mut wire, fault, &bytes[..bytes[2].into()]);
}

#[test]
fn the_icreq_comes_first() {
    let cmd = Pdu::CapsuleCmd(connect(0, 0, 8));
    refused(Wire::new(SMALL), cmd, &[0; 1024], Fault::SEQUENCE);
    let data = H2cData { command: 0, tag: 0, offset: 0, length: 4, last: true };
    refused(Wire::new(SMALL), Pdu::H2cData(data), &[0; 4], Fault::SEQUENCE);
}

#[test]
fn the_icreq_comes_once() {
    let icreq = Pdu::IcReq(IcReq::default());
    refused(Wire::initialised(SMALL, IcReq::default()), icreq, &[], Fault::SEQUENCE);
    refused(Wire::io(), icreq, &[], Fault::SEQUENCE);
}

#[test]
fn an_unsupported_version_is_refused_with_its_offset() {
    let mut wire = Wire::new(SMALL);
    let mut bytes = Pdu::IcReq(IcReq::default()).encode(&[], &wire.framing);
    bytes[8] = 1;
    let fault = Fault { status: FatalStatus::UnsupportedParameter, information: 8 };
    assert_eq!(wire.connection.receive(&bytes), Err(End::Fault(fault)));
    is_over(&mut wire, fault, &bytes);
}

#[test]
fn a_pdu_of_the_controller_is_refused() {
    let mut wire = Wire::io();
    let r2t = Pdu::R2t(R2t { command: 0, tag: 0, offset: 0, length: 4 });
    let bytes = r2t.encode(&[], &wire.framing);
    assert_eq!(wire.connection.receive(&bytes), Err(End::Fault(Fault::field(0))));
    // The PDU is refused at its first byte: the header has arrived up to the length of the PDU.
    is_over(&mut wire, Fault::field(0), &bytes[..8]);
}

#[test]
fn a_termination_request_is_not_answered() {
    let mut wire = Wire::io();
    let term = TermReq::from(Fault::SEQUENCE);
    let end = End::Terminated(Some(term));
    assert_eq!(wire.send(Pdu::H2cTermReq(term), &[1, 2, 3]), Err(end));
    assert_eq!(wire.connection.phase(), Phase::Over(end));
    assert!(!wire.connection.has_output());

    // An H2CTermReq of a wrong length is ignored, and the connection is closed (section 3.5.1).
    let mut wire = Wire::io();
    let mut bytes = Pdu::H2cTermReq(term).encode(&[], &wire.framing);
    bytes[4] = 153;
    assert_eq!(wire.connection.receive(&bytes), Err(End::Terminated(None)));
    assert!(!wire.connection.has_output());
}

#[test]
fn one_command_comes_before_the_queue_exists() {
    let mut wire = Wire::initialised(SMALL, IcReq::default());
    wire.command(connect(0, 0, 8), &[0; 1024]);
    refused(wire, Pdu::CapsuleCmd(entry(FLUSH, 1)), &[], Fault::SEQUENCE);
}

#[test]
fn a_flood_of_commands_is_refused() {
    let mut wire = Wire::io();
    for id in 0..8 {
        wire.command(entry(FLUSH, id), &[]);
    }
    refused(wire, Pdu::CapsuleCmd(entry(FLUSH, 8)), &[], Fault::SEQUENCE);
}

#[test]
fn more_data_in_a_capsule_than_announced_is_refused() {
    let write = Pdu::CapsuleCmd(with_capsule(WRITE, 1, 4100));
    refused(Wire::io(), write, &[0; 4100], Fault::field(4));
    let connect = Pdu::CapsuleCmd(with_capsule(0x7f, 1, 8196));
    refused(Wire::initialised(SMALL, IcReq::default()), connect, &[0; 8196], Fault::field(4));
}

/// Returns a connection with one write of 40 KiB, and its two outstanding R2T PDUs of 16 KiB.
fn writing() -> (Wire, R2t, R2t) {
    let request = IcReq { max_r2t: 1, ..IcReq::default() };
    let mut wire = Wire::established(SMALL, request, crate::wire::IO);
    wire.command(with_buffer(WRITE, 5, 40 << 10), &[]);
    let r2ts = wire.r2ts();
    assert_eq!(r2ts.len(), 2);
    (wire, r2ts[0], r2ts[1])
}

/// Sends data for the first R2T of a write, after `before` bytes that are in order.
fn data_is_refused(before: u32, change: impl Fn(&mut H2cData, R2t), fault: Fault) {
    let (mut wire, first, second) = writing();
    let zeros = vec![0; 16 << 10];
    for at in (0..before).step_by(4096) {
        wire.data(first, at, &zeros[..4096], at + 4096 == 16 << 10).expect("data in order");
    }
    let (command, tag) = (first.command, first.tag);
    let mut pdu = H2cData { command, tag, offset: before, length: 4096, last: false };
    change(&mut pdu, second);
    let data = vec![0; pdu.length as usize];
    refused(wire, Pdu::H2cData(pdu), &data, fault);
}

#[test]
fn data_that_no_r2t_asked_for_is_refused() {
    // An unknown tag is reported with the offset of the tag, and another command with the offset of
    // the command.
    data_is_refused(0, |pdu, _| pdu.tag ^= 0x100, Fault::field(10));
    data_is_refused(0, |pdu, _| pdu.command = 6, Fault::field(8));
    // The tag of an R2T that was served is unknown again.
    data_is_refused(16 << 10, |pdu, _| pdu.last = true, Fault::field(10));
}

#[test]
fn data_out_of_order_is_refused() {
    data_is_refused(4096, |pdu, _| pdu.offset = 8192, Fault::SEQUENCE); // a gap
    data_is_refused(4096, |pdu, _| pdu.offset = 0, Fault::SEQUENCE); // the same again
    data_is_refused(4096, |pdu, _| pdu.offset = 2048, Fault::SEQUENCE); // an overlap
    let second_first = |pdu: &mut H2cData, second: R2t| {
        (pdu.tag, pdu.offset) = (second.tag, second.offset);
    };
    data_is_refused(0, second_first, Fault::SEQUENCE);
}

#[test]
fn data_out_of_the_range_of_its_r2t_is_refused() {
    let beyond = |pdu: &mut H2cData, _: R2t| pdu.offset = (16 << 10) - 2048;
    data_is_refused(12 << 10, beyond, Fault::OUT_OF_RANGE);
    data_is_refused(0, |pdu, _| pdu.offset = 16 << 10, Fault::OUT_OF_RANGE);
    data_is_refused(0, |pdu, _| pdu.offset = 0u32.wrapping_sub(4096), Fault::OUT_OF_RANGE);
    let before = |pdu: &mut H2cData, second: R2t| pdu.tag = second.tag;
    data_is_refused(4096, before, Fault::OUT_OF_RANGE);
}

#[test]
fn the_last_pdu_of_an_r2t_says_so() {
    data_is_refused(0, |pdu, _| pdu.last = true, Fault::SEQUENCE); // short
    data_is_refused(12 << 10, |pdu, _| pdu.last = false, Fault::SEQUENCE); // no last flag
}

#[test]
fn more_data_in_a_pdu_than_announced_is_refused() {
    data_is_refused(0, |pdu, _| pdu.length = 8192, Fault::LIMIT);
}

/// Checks that a command is completed with this status, and does not end the connection.
fn completed_with(entry: [u8; 64], data: &[u8], status: u16) {
    let mut wire = Wire::io();
    wire.command(entry, data);
    let responses = wire.responses();
    assert_eq!((responses.len(), responses[0].status), (1, status), "{entry:?}");
    assert!(wire.connection.next_command().is_none());
    assert_eq!(wire.connection.phase(), Phase::Established);
    wire.command(with_capsule(WRITE, 3, 4), b"more");
    assert_eq!(wire.next().data, b"more");
}

#[test]
fn descriptors_that_do_not_fit_their_data_are_refused() {
    let never = 1 << 15;
    let (length, kind, offset) = (0x0f << 1 | never, 0x11 << 1 | never, 0x16 << 1 | never);
    completed_with(with_capsule(WRITE, 1, 512), &[0; 508], length);
    completed_with(with_capsule(WRITE, 1, 508), &[0; 512], length);
    completed_with(with_capsule(WRITE, 1, 512), &[], length);
    completed_with(with_buffer(WRITE, 1, 512), &[0; 512], length);
    completed_with(with_buffer(READ, 1, 512), &[0; 512], length);
    completed_with(entry(FLUSH, 1), &[0; 4], length);
    completed_with(with_buffer(WRITE, 1, 510), &[], length);
    completed_with(with_buffer(READ, 1, 3), &[], length);
    completed_with(with_capsule(READ, 1, 512), &[], kind);
    for other in [0x00, 0x10, 0x40, 0x5f] {
        let mut write = with_buffer(WRITE, 1, 512);
        write[39] = other;
        completed_with(write, &[], kind);
    }
    let mut write = with_capsule(WRITE, 1, 4);
    write[24] = 4;
    completed_with(write, b"four", offset);
}

#[test]
fn a_transfer_beyond_mdts_is_refused_before_anything_is_stored() {
    let invalid_field = 0x02 << 1 | 1 << 15;
    for bytes in [(64 << 10) + 4, 1 << 31, u32::MAX - 3] {
        completed_with(with_buffer(WRITE, 1, bytes), &[], invalid_field);
        completed_with(with_buffer(READ, 1, bytes), &[], invalid_field);
    }
}

#[test]
fn an_identifier_in_use_is_a_conflict() {
    let mut wire = Wire::io();
    wire.command(entry(FLUSH, 4), &[]);
    wire.command(with_capsule(WRITE, 4, 16), &pattern(16));
    let responses = wire.responses();
    assert_eq!((responses.len(), responses[0].status), (1, 0x03 << 1 | 1 << 15));
    assert_eq!(wire.next().entry, entry(FLUSH, 4));
    wire.connection.complete(done(4), Vec::new());
    assert_eq!(wire.responses()[0].status, 0);
    wire.command(entry(FLUSH, 4), &[]);
    assert_eq!(wire.next().id(), 4, "the identifier is free again");
}

#[test]
fn commands_in_flight_may_complete_after_the_end() {
    let mut wire = Wire::io();
    wire.command(entry(FLUSH, 4), &[]);
    wire.command(entry(FLUSH, 5), &[]);
    wire.next();
    wire.send(Pdu::IcReq(IcReq::default()), &[]).expect_err("a second ICReq");
    assert_eq!(wire.connection.outstanding(), 1);
    wire.connection.complete(done(4), Vec::new());
    assert_eq!(wire.replies().len(), 1, "the C2HTermReq is the last PDU");
}
