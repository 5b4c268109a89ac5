//! A connection with a host that keeps the rules.

use crate::wire::{
    FLUSH, IO, READ, Response, SMALL, WRITE, Wire, connect, done, entry, pattern, with_buffer,
    with_capsule,
};
use flashatlas_nvme_tcp::pdu::{C2hData, Digests, IcReq, Pdu, R2t};
use flashatlas_nvme_tcp::{Limits, Phase, QueueShape};

#[test]
fn a_connection_begins_with_icreq_and_connect() {
    let mut wire = Wire::new(SMALL);
    assert_eq!(wire.connection.phase(), Phase::New);
    wire.send(Pdu::IcReq(IcReq::default()), &[]).expect("an ICReq");
    assert_eq!(wire.connection.phase(), Phase::Initialised);
    wire.replies();
    wire.command(connect(0, 0, 8), &[0; 1024]);
    // A Connect that is refused leaves the connection as it was.
    assert_eq!(wire.next().id(), 0);
    let mut refused = done(0);
    refused[14..].copy_from_slice(&(1 << 9 | 0x82u16 << 1).to_le_bytes());
    wire.connection.complete(refused, Vec::new());
    assert_eq!(wire.responses()[0].status, 1 << 9 | 0x82 << 1);
    assert_eq!(wire.connection.phase(), Phase::Initialised);
    wire.command(connect(1, 0, 8), &[0; 1024]);
    wire.next();
    wire.connection.establish(IO);
    assert_eq!(wire.connection.phase(), Phase::Established);
}

#[test]
fn data_in_the_capsule_arrives_with_the_command() {
    for mut wire in [Wire::io(), Wire::digested()] {
        let data = pattern(4096);
        wire.command(with_capsule(WRITE, 3, 4096), &data);
        let command = wire.next();
        assert_eq!(command.entry, with_capsule(WRITE, 3, 4096));
        assert_eq!((command.data, command.room), (data, 0));
        assert!(wire.replies().is_empty(), "the command is not complete");
        wire.connection.complete(done(3), Vec::new());
        assert_eq!(wire.responses(), [Response { id: 3, status: 0, head: 2 }]);
    }
}

#[test]
fn bytes_may_arrive_one_by_one() {
    let mut wire = Wire::digested();
    let data = pattern(100);
    let bytes = Pdu::CapsuleCmd(with_capsule(WRITE, 3, 100)).encode(&data, &wire.framing);
    for (at, byte) in bytes.iter().enumerate() {
        assert!(!wire.connection.has_command(), "after {at} bytes");
        wire.connection.receive(&[*byte]).expect("no fault");
    }
    assert_eq!(wire.next().data, data);
}

#[test]
fn a_large_write_is_asked_for_in_parts() {
    // The host supports 4 outstanding R2T PDUs, the controller 2; each asks for 16 KiB of 40.
    let request = IcReq { max_r2t: 3, ..IcReq::default() };
    let mut wire = Wire::established(SMALL, request, IO);
    let data = pattern(40 << 10);
    wire.command(with_buffer(WRITE, 5, 40 << 10), &[]);
    let first = wire.r2ts();
    let range = |r2ts: &[R2t]| r2ts.iter().map(|r| (r.offset, r.length)).collect::<Vec<_>>();
    assert_eq!(range(&first), [(0, 16 << 10), (16 << 10, 16 << 10)]);
    assert_ne!(first[0].tag, first[1].tag);
    wire.serve(first[0], &data);
    let second = wire.r2ts();
    assert_eq!(range(&second), [(32 << 10, 8 << 10)]);
    wire.serve(first[1], &data);
    assert!(!wire.connection.has_command());
    wire.serve(second[0], &data);
    assert_eq!(wire.next().data, data);
    wire.connection.complete(done(5), Vec::new());
    assert_eq!(wire.responses(), [Response { id: 5, status: 0, head: 2 }]);
}

#[test]
fn a_host_of_one_r2t_gets_one_at_a_time() {
    let mut wire = Wire::digested();
    let data = pattern(40 << 10);
    wire.command(with_buffer(WRITE, 5, 40 << 10), &[]);
    for part in 0..3 {
        let r2ts = wire.r2ts();
        assert_eq!(r2ts.len(), 1, "part {part}");
        wire.serve(r2ts[0], &data);
    }
    assert_eq!(wire.next().data, data);
}

#[test]
fn writes_of_several_commands_may_interleave() {
    let mut wire = Wire::io();
    let data = [pattern(16 << 10), pattern(32 << 10).split_off(16 << 10)];
    wire.command(with_buffer(WRITE, 1, 16 << 10), &[]);
    wire.command(with_buffer(WRITE, 2, 16 << 10), &[]);
    let r2ts = wire.r2ts();
    for at in (0..16 << 10).step_by(4096) {
        let range = at as usize..at as usize + 4096;
        for (r2t, data) in r2ts.iter().zip(&data) {
            let last = at + 4096 == 16 << 10;
            wire.data(*r2t, at, &data[range.clone()], last).expect("data");
        }
    }
    assert_eq!([wire.next().data, wire.next().data], data);
}

#[test]
fn a_read_is_split_and_its_response_follows() {
    for mut wire in [Wire::io(), Wire::digested()] {
        let data = pattern(20 << 10);
        wire.command(with_buffer(READ, 6, 20 << 10), &[]);
        assert_eq!(wire.next().room, 20 << 10);
        wire.connection.complete(done(6), data.clone());
        let (pdus, whole, response) = wire.read();
        let command = 6;
        let (last, success) = (false, false);
        assert_eq!(
            pdus,
            [
                C2hData { command, offset: 0, length: 8192, last, success },
                C2hData { command, offset: 8192, length: 8192, last, success },
                C2hData { command, offset: 16384, length: 4096, last: true, success },
            ]
        );
        assert_eq!(whole, data);
        assert_eq!(response, Some(Response { id: 6, status: 0, head: 2 }));
    }
}

#[test]
fn without_flow_control_a_read_needs_no_response() {
    let shape = QueueShape { flow_control: false, ..IO };
    let mut wire = Wire::established(SMALL, IcReq::default(), shape);
    wire.command(with_buffer(READ, 6, 4096), &[]);
    wire.next();
    wire.connection.complete(done(6), pattern(4096));
    let (pdus, _, response) = wire.read();
    assert!(pdus[0].last && pdus[0].success && response.is_none());

    // A result or a status needs a response, and so does a command without data.
    for byte in [0, 14] {
        wire.command(with_buffer(READ, 7, 4096), &[]);
        wire.next();
        let mut completion = done(7);
        completion[byte] = 4;
        wire.connection.complete(completion, pattern(4096));
        let (pdus, _, response) = wire.read();
        assert!(pdus.iter().all(|pdu| !pdu.success), "byte {byte}");
        let response = response.expect("a response");
        assert_eq!((response.id, response.head), (7, 0), "byte {byte}");
        assert_eq!(pdus.is_empty(), byte == 14, "a command that fails has no data");
    }
    wire.command(entry(FLUSH, 8), &[]);
    wire.next();
    wire.connection.complete(done(8), Vec::new());
    assert_eq!(wire.responses(), [Response { id: 8, status: 0, head: 0 }]);
}

#[test]
fn the_head_of_the_queue_wraps() {
    let mut wire = Wire::io();
    for turn in 0..20u16 {
        wire.command(entry(FLUSH, turn), &[]);
        wire.next();
        wire.connection.complete(done(turn), Vec::new());
        assert_eq!(wire.responses()[0].head, (turn + 2) % 8);
    }
}

#[test]
fn commands_complete_in_any_order() {
    let mut wire = Wire::io();
    for id in [1, 2, 3] {
        wire.command(entry(FLUSH, id), &[]);
    }
    let ids: Vec<u16> = (0..3).map(|_| wire.next().id()).collect();
    assert_eq!(ids, [1, 2, 3]);
    for id in [2, 3, 1] {
        wire.connection.complete(done(id), Vec::new());
    }
    let ids: Vec<u16> = wire.responses().iter().map(|r| r.id).collect();
    assert_eq!(ids, [2, 3, 1]);
    assert_eq!(wire.connection.outstanding(), 0);
}

#[test]
fn commands_wait_for_room_in_order() {
    // 128 KiB of room: two writes of 48 KiB, then 32 KiB are left.
    let mut wire = Wire::io();
    let data = pattern(64 << 10);
    for id in [1, 2] {
        wire.command(with_buffer(WRITE, id, 48 << 10), &[]);
    }
    wire.command(with_buffer(READ, 3, 64 << 10), &[]);
    wire.command(with_buffer(READ, 4, 4096), &[]);
    wire.command(entry(FLUSH, 5), &[]);
    assert_eq!(wire.next().id(), 5, "a command without data never waits");
    assert!(wire.connection.next_command().is_none(), "command 4 does not overtake 3");
    let mut open = wire.r2ts();
    while let Some(r2t) = open.pop() {
        wire.serve(r2t, &data);
        open.extend(wire.r2ts());
    }
    assert_eq!([wire.next().id(), wire.next().id()], [2, 1]);
    assert!(wire.connection.next_command().is_none(), "data keeps its room until it is written");
    wire.connection.complete(done(2), Vec::new());
    assert_eq!([wire.next().id(), wire.next().id()], [3, 4]);
    // The data of a read keeps its room until it is sent.
    wire.connection.complete(done(3), data.clone());
    wire.command(with_buffer(READ, 6, 64 << 10), &[]);
    wire.command(with_buffer(READ, 7, 64 << 10), &[]);
    assert!(wire.connection.next_command().is_none());
    wire.replies();
    assert_eq!(wire.next().id(), 6);
}

#[test]
fn a_host_that_does_not_read_is_not_read_from() {
    let mut wire = Wire::io();
    let bad = with_capsule(READ, 1, 0); // refused: a read has no data in its capsule
    let mut sent = 0;
    while wire.connection.wants_input() {
        wire.command(bad, &[]);
        sent += 1;
        assert!(sent < 10_000, "the connection never stops to receive");
    }
    assert_eq!(wire.replies().len(), sent);
    assert!(wire.connection.wants_input());
}

#[test]
fn a_damaged_write_fails_and_the_connection_goes_on() {
    // Status 22h, Transient Transport Error, without Do Not Retry (section 3.5.2).
    let transient = 0x22 << 1;
    let mut wire = Wire::digested();
    let data = pattern(4096);
    let mut bytes = Pdu::CapsuleCmd(with_capsule(WRITE, 3, 4096)).encode(&data, &wire.framing);
    *bytes.last_mut().expect("a digest") ^= 1;
    wire.connection.receive(&bytes).expect("no fault");
    assert_eq!(wire.responses(), [Response { id: 3, status: transient, head: 2 }]);

    // 16 KiB in PDUs of 4 KiB, the second of which is damaged.
    wire.command(with_buffer(WRITE, 4, 16 << 10), &[]);
    let r2t = wire.r2ts()[0];
    let (command, tag) = (r2t.command, r2t.tag);
    for at in 0..4u32 {
        let pdu = flashatlas_nvme_tcp::pdu::H2cData {
            command,
            tag,
            offset: at * 4096,
            length: 4096,
            last: at == 3,
        };
        let mut bytes = Pdu::H2cData(pdu).encode(&data, &wire.framing);
        if at == 1 {
            bytes[200] ^= 0x80;
        }
        wire.connection.receive(&bytes).expect("no fault");
    }
    assert_eq!(wire.responses(), [Response { id: 4, status: transient, head: 3 }]);
    assert!(wire.connection.next_command().is_none(), "neither write reaches the controller");

    wire.command(with_capsule(WRITE, 3, 4096), &data);
    assert_eq!(wire.next().data, data);
}

#[test]
fn digests_may_be_used_one_by_one() {
    for (header, data) in [(true, false), (false, true)] {
        let digests = Digests { header, data };
        let request = IcReq { digests, ..IcReq::default() };
        let mut wire = Wire::established(SMALL, request, IO);
        wire.command(with_capsule(WRITE, 3, 8), b"eight by");
        assert_eq!(wire.next().data, b"eight by");
        wire.command(with_buffer(READ, 4, 8), &[]);
        wire.next();
        wire.connection.complete(done(4), b"by eight".to_vec());
        assert_eq!(wire.read().1, b"by eight");
    }
}

#[test]
fn the_default_bounds_fit_together() {
    let wire = Wire::new(Limits::DEFAULT);
    assert_eq!(wire.connection.phase(), Phase::New);
}
