//! I/O commands: what they do, and each refusal.

use crate::ram::Ram;
use crate::{MediaShape, NamespaceId, ONE, Rig, SHAPE, Settings, new_durable};
use flashatlas_nvme::{Entry, MediaError, Place, Status, io, support};

const FUA: u32 = 1 << 30;
const DEAC: u32 = 1 << 25;

fn written(rig: &mut Rig, io: Place, first: u64, byte: u8) {
    let write = rig.io(io::WRITE, first, 8, 4096);
    assert_eq!(rig.status(io, write, &[byte; 4096]), Status::SUCCESS);
}

#[test]
fn data_is_read_as_it_was_written() {
    let mut rig = Rig::new();
    let (_, io) = rig.ready("a");
    written(&mut rig, io, 3, 5);
    let read = rig.io(io::READ, 2, 10, 5120);
    let (completion, out) = rig.run(io, read, &[]);
    assert_eq!(completion.status, Status::SUCCESS);
    assert_eq!(out[..512], [0; 512]);
    assert_eq!(out[512..4608], [5; 4096]);
    assert_eq!(out[4608..], [0; 512]);
    let same = rig.io(io::COMPARE, 3, 8, 4096);
    assert_eq!(rig.status(io, same, &[5; 4096]), Status::SUCCESS);
    let mut other = [5; 4096];
    other[4095] = 6;
    let different = rig.io(io::COMPARE, 3, 8, 4096);
    assert_eq!(rig.status(io, different, &other), Status::COMPARE_FAILURE);
    let verify = rig.io(io::VERIFY, 0, 1024, 0);
    assert_eq!(rig.status(io, verify, &[]), Status::SUCCESS);
}

#[test]
fn a_read_with_fua_is_of_durable_data() {
    for (opcode, bytes) in [(io::READ, 4096), (io::COMPARE, 4096), (io::VERIFY, 0)] {
        let mut rig = Rig::new();
        let (_, io) = rig.ready("a");
        written(&mut rig, io, 0, 5);
        let read = rig.io(opcode, 0, 8, bytes).dword(12, 7 | FUA);
        assert_eq!(rig.status(io, read, &[5; 4096]), Status::SUCCESS);
        assert_eq!(rig.ram.calls, "wfr", "opcode {opcode:02x}h");
        rig.ram.fails = Some(MediaError::Other);
        let read = rig.io(opcode, 0, 8, bytes).dword(12, 7 | FUA);
        assert_eq!(rig.status(io, read, &[5; 4096]), Status::WRITE_FAULT);
    }
}

#[test]
fn ranges_beyond_the_end_are_refused_without_overflow() {
    let mut rig = Rig::new();
    let (_, io) = rig.ready("a");
    let firsts = [1024, 1017, u64::from(u32::MAX), 1 << 32, u64::MAX, u64::MAX - 7, 1 << 63];
    for opcode in [io::READ, io::WRITE, io::COMPARE, io::VERIFY, io::WRITE_ZEROES] {
        let bytes = if matches!(opcode, io::VERIFY | io::WRITE_ZEROES) { 0 } else { 4096 };
        for first in firsts {
            let entry = rig.io(opcode, first, 8, bytes);
            let status = rig.status(io, entry, &[1; 4096]);
            assert_eq!(status, Status::LBA_OUT_OF_RANGE, "opcode {opcode:02x}h at {first}");
        }
        let last = rig.io(opcode, 1016, 8, bytes);
        assert_eq!(rig.status(io, last, &[0; 4096]), Status::SUCCESS, "opcode {opcode:02x}h");
    }
}

#[test]
fn namespaces_that_are_not_there_are_refused() {
    let mut rig = Rig::new();
    let (_, io) = rig.ready("a");
    for row in support::rows(support::Kind::Io).iter().filter(|row| row.there(false)) {
        for nsid in [NamespaceId::NONE, NamespaceId(2), NamespaceId(0xFFFF_FFFE)] {
            let entry = Entry::new(row.code, rig.id()).transport_data(4096).namespace(nsid);
            assert_eq!(rig.status(io, entry, &[0; 4096]), Status::INVALID_NAMESPACE);
        }
        let all = Entry::new(row.code, rig.id()).transport_data(4096).namespace(NamespaceId::ALL);
        let expected = if row.code == io::FLUSH { Status::SUCCESS } else { Status::INVALID_FIELD };
        assert_eq!(rig.status(io, all, &[0; 4096]), expected, "{}", row.name);
    }
    assert_eq!(rig.ram.calls, "f");
}

#[test]
fn commands_that_are_not_there_are_refused() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    let there =
        |kind, code: u8| support::rows(kind).iter().any(|row| row.code == code && row.there(false));
    for opcode in 0..=u8::MAX {
        for (place, kind) in [(admin, support::Kind::Admin), (io, support::Kind::Io)] {
            if opcode == flashatlas_nvme::fabrics::OPCODE || there(kind, opcode) {
                continue;
            }
            let entry = Entry::new(opcode, rig.id()).namespace(ONE);
            assert_eq!(rig.status(place, entry, &[]), Status::INVALID_OPCODE, "{opcode:02x}h");
        }
    }
    for kind in (0..=u8::MAX).filter(|&code| !there(support::Kind::Fabrics, code)) {
        let mut entry = Entry::new(flashatlas_nvme::fabrics::OPCODE, rig.id());
        entry.0[4] = kind;
        assert_eq!(rig.status(admin, entry, &[]), Status::INVALID_FIELD, "type {kind:02x}h");
    }
}

#[test]
fn options_that_are_not_there_are_refused() {
    let mut rig = Rig::new();
    let (_, io) = rig.ready("a");
    let limited_retry = 1 << 31;
    for (opcode, option, expected) in [
        (io::WRITE, FUA | limited_retry, Status::SUCCESS),
        (io::READ, FUA | limited_retry, Status::SUCCESS),
        (io::WRITE, 1 << 26, Status::INVALID_PROTECTION), // PRINFO
        (io::READ, 1 << 29, Status::INVALID_PROTECTION),
        (io::READ, 1 << 24, Status::INVALID_FIELD),  // STC
        (io::WRITE, 1 << 20, Status::INVALID_FIELD), // DTYPE: streams
        (io::WRITE_ZEROES, 1 << 23, Status::INVALID_FIELD), // NSZ
        (io::WRITE_ZEROES, DEAC | FUA, Status::SUCCESS),
    ] {
        let bytes = if opcode == io::WRITE_ZEROES { 0 } else { 4096 };
        let entry = rig.io(opcode, 0, 8, bytes).dword(12, 7 | option);
        assert_eq!(rig.status(io, entry, &[1; 4096]), expected, "{opcode:02x}h {option:x}h");
    }
    let mut fused = rig.io(io::COMPARE, 0, 8, 4096);
    fused.0[1] |= 1;
    assert_eq!(rig.status(io, fused, &[0; 4096]), Status::INVALID_FIELD);
}

#[test]
fn the_data_pointer_is_checked() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    let read = rig.io(io::READ, 0, 8, 4096);
    let with = |byte: usize, value: u8| {
        let mut entry = read;
        entry.0[byte] = value;
        entry
    };
    assert_eq!(rig.status(io, with(1, 0), &[]), Status::INVALID_FIELD, "PRPs");
    assert_eq!(rig.status(io, with(1, 0x80), &[]), Status::INVALID_FIELD, "metadata segments");
    for kind in [0x00, 0x10, 0x20, 0x40, 0x4F, 0x50, 0xFF] {
        assert_eq!(rig.status(io, with(39, kind), &[]), Status::SGL_TYPE_INVALID, "{kind:02x}h");
    }
    assert_eq!(rig.status(io, with(39, 1), &[]), Status::SGL_TYPE_INVALID, "a read in a capsule");
    assert_eq!(rig.status(io, read.transport_data(4095), &[]), Status::SGL_LENGTH_INVALID);
    assert_eq!(rig.status(io, read.transport_data(8192), &[]), Status::SUCCESS, "SGLS bit 18");
    let mut write = rig.io(io::WRITE, 0, 8, 4096);
    write.0[39] = 1;
    assert_eq!(rig.status(io, write, &[1; 4096]), Status::SUCCESS, "in the capsule");
    assert_eq!(rig.status(io, write, &[1; 4095]), Status::DATA_TRANSFER_ERROR, "too short");
    assert_eq!(rig.status(io, write, &[1; 8192]), Status::SUCCESS, "longer than needed");
    let identify = rig.admin(0x06).dword(10, 1).transport_data(4095);
    assert_eq!(rig.status(admin, identify, &[]), Status::SGL_LENGTH_INVALID);
}

#[test]
fn transfers_are_at_most_what_identify_says() {
    let settings = Settings { transfer_pages_log2: 1, ..Settings::default() };
    let mut rig = Rig::with(settings, Ram::new(SHAPE), new_durable());
    let (_, io) = rig.ready("a");
    let most = rig.io(io::READ, 0, 16, 8192);
    assert_eq!(rig.status(io, most, &[]), Status::SUCCESS);
    let more = rig.io(io::READ, 0, 17, 8704);
    assert_eq!(rig.status(io, more, &[]), Status::INVALID_FIELD);
    assert_eq!(rig.subsystem.wants(io, &more).unwrap_err().status.code, 2);
    // commands without a transfer have no such limit
    let zeroes = rig.io(io::WRITE_ZEROES, 0, 1024, 0);
    assert_eq!(rig.status(io, zeroes, &[]), Status::SUCCESS);
}

#[test]
fn the_transport_hears_what_to_fetch() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    let write = rig.io(io::WRITE, 0, 9, 1 << 20);
    assert_eq!(
        rig.subsystem.wants(io, &write),
        Ok(9 * 512),
        "the length of the write, not of the buffer"
    );
    let dsm = rig.io(io::DATASET_MANAGEMENT, 2, 1, 4096);
    assert_eq!(rig.subsystem.wants(io, &dsm), Ok(48), "three ranges");
    let read = rig.io(io::READ, 0, 8, 4096);
    assert_eq!(rig.subsystem.wants(io, &read), Ok(0));
    let set = rig.admin(0x09).dword(10, 2);
    assert_eq!(rig.subsystem.wants(admin, &set), Ok(0));
}

#[test]
fn zeroes_never_give_way_to_old_data() {
    for trims_survive in [false, true] {
        let mut rig = Rig::on(MediaShape { trims_survive, ..SHAPE });
        let (_, io) = rig.ready("a");
        for unit in 0..4 {
            written(&mut rig, io, unit * 8, 9);
        }
        let flush = rig.io(io::FLUSH, 0, 1, 0);
        assert_eq!(rig.status(io, flush, &[]), Status::SUCCESS);
        let zeroes = rig.io(io::WRITE_ZEROES, 4, 24, 0).dword(12, 23 | FUA);
        assert_eq!(rig.status(io, zeroes, &[]), Status::SUCCESS);
        let deallocate = rig.io(io::WRITE_ZEROES, 4, 24, 0).dword(12, 23 | FUA | DEAC);
        let expected = if trims_survive { Status::SUCCESS } else { Status::INVALID_FIELD };
        assert_eq!(rig.status(io, deallocate, &[]), expected);
        assert_eq!(rig.ram.calls.contains('t'), trims_survive);
        rig.ram.lose_power(|| false);
        let content = rig.ram.content();
        assert_eq!(content[..2048], [9; 2048]);
        assert_eq!(content[2048..28 * 512], [0; 24 * 512], "trims survive: {trims_survive}");
        assert_eq!(content[28 * 512..32 * 512], [9; 2048]);
    }
}

#[test]
fn deallocation_checks_every_range_first() {
    let mut rig = Rig::new();
    let (_, io) = rig.ready("a");
    written(&mut rig, io, 0, 9);
    let mut ranges = vec![0; 48];
    ranges[4..8].copy_from_slice(&8u32.to_le_bytes()); // blocks 0 to 7
    ranges[16 + 4..16 + 8].copy_from_slice(&u32::MAX.to_le_bytes());
    ranges[16 + 8..16 + 16].copy_from_slice(&u64::MAX.to_le_bytes());
    let dsm = |rig: &mut Rig, count: u32, attributes: u32| {
        let entry = rig.io(io::DATASET_MANAGEMENT, 0, 1, 4096);
        entry.dword(10, count - 1).dword(11, attributes).dword(12, 0)
    };
    let all = dsm(&mut rig, 3, 4);
    assert_eq!(rig.status(io, all, &ranges), Status::LBA_OUT_OF_RANGE);
    assert_eq!(rig.ram.content()[..4096], [9; 4096], "nothing was trimmed");
    let hints = dsm(&mut rig, 1, 3);
    assert_eq!(rig.status(io, hints, &ranges), Status::SUCCESS);
    assert_eq!(rig.ram.content()[..4096], [9; 4096], "hints trim nothing");
    let short = dsm(&mut rig, 4, 4);
    assert_eq!(rig.status(io, short, &ranges), Status::DATA_TRANSFER_ERROR);
    let first = dsm(&mut rig, 1, 4);
    assert_eq!(rig.status(io, first, &ranges), Status::SUCCESS);
    assert_eq!(rig.ram.content()[..4096], [0; 4096]);
    ranges[16..].fill(0);
    let empty = dsm(&mut rig, 3, 4);
    assert_eq!(rig.status(io, empty, &ranges), Status::SUCCESS, "ranges of no block");
}

#[test]
fn what_media_report_becomes_a_status() {
    let mut rig = Rig::new();
    let (_, io) = rig.ready("a");
    let write = io::WRITE;
    for (opcode, error, expected) in [
        (io::READ, MediaError::Unreadable, Status::UNRECOVERED_READ),
        (io::COMPARE, MediaError::Unreadable, Status::UNRECOVERED_READ),
        (io::READ, MediaError::PowerLost, Status::INTERNAL_ERROR),
        (io::READ, MediaError::Other, Status::INTERNAL_ERROR),
        (write, MediaError::OutOfSpace, Status::CAPACITY_EXCEEDED),
        (write, MediaError::ReadOnly, Status::WRITE_PROTECTED),
        (write, MediaError::PowerLost, Status::INTERNAL_ERROR),
        (write, MediaError::Other, Status::WRITE_FAULT),
    ] {
        rig.ram.fails = Some(error);
        let entry = rig.io(opcode, 0, 8, 4096);
        assert_eq!(rig.status(io, entry, &[1; 4096]), expected, "{opcode:02x}h {error:?}");
        assert!(rig.ram.fails.is_none());
    }
}

#[test]
fn an_identifier_in_use_is_refused() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    let read = rig.io(io::READ, 0, 8, 4096);
    let (step, _) = rig.begin(io, &read, &[]);
    let flashatlas_nvme::Step::Io(command) = step else { panic!("{step:?}") };
    assert_eq!(rig.status(io, read, &[]), Status::COMMAND_ID_CONFLICT);
    let elsewhere = Entry::new(0x18, read.id());
    assert_eq!(rig.status(admin, elsewhere, &[]), Status::SUCCESS, "another queue");
    assert!(rig.carry_out(&command, &[]).is_some());
    assert_eq!(rig.status(io, read, &[]), Status::SUCCESS);
}
