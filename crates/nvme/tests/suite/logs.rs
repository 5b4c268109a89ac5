//! Log pages: fields, offsets and lengths, and each refusal.

use crate::ram::Ram;
use crate::{NamespaceId, ONE, Rig, SHAPE, new_durable, nqn, u16_at, u32_at, u64_at};
use flashatlas_nvme::{
    AddressFamily, Connect, ControllerId, DiscoveryEntry, Health, MediaError, QueueId, Settings,
    Status, Subsystem, admin, io, log, support,
};
use flashatlas_types::Ps;

#[test]
fn smart_counts_what_hosts_do() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    let data = [1; 8192];
    for _ in 0..63 {
        let write = rig.io(io::WRITE, 0, 16, 8192);
        assert_eq!(rig.status(io, write, &data), Status::SUCCESS);
    }
    let read = rig.io(io::READ, 0, 1, 512);
    assert_eq!(rig.status(io, read, &[]), Status::SUCCESS);
    let compare = rig.io(io::COMPARE, 0, 1, 512);
    assert_eq!(rig.status(io, compare, &data), Status::SUCCESS);
    let verify = rig.io(io::VERIFY, 0, 1000, 0);
    assert_eq!(rig.status(io, verify, &[]), Status::SUCCESS);
    rig.ram.fails = Some(MediaError::Unreadable);
    let lost = rig.io(io::READ, 0, 1, 512);
    assert_eq!(rig.status(io, lost, &[]), Status::UNRECOVERED_READ);
    let hours = 3 * 3600;
    rig.ram.health = Health {
        kelvins: 310,
        percentage_used: 7,
        available_spare: 9,
        powered: Ps(hours * 1_000_000_000_000),
        ..Health::default()
    };
    let page = rig.log(admin, log::SMART, 512);
    assert_eq!(page[0], 1, "spare below the threshold");
    assert_eq!(u16_at(&page, 1), 310);
    assert_eq!((page[3], page[4], page[5]), (9, 10, 7), "spare, threshold, used");
    assert_eq!(u64_at(&page, 32), 2, "1,002 units read, in thousands, rounded up");
    assert_eq!(u64_at(&page, 48), 2, "1,008 units written");
    assert_eq!((u64_at(&page, 64), u64_at(&page, 80)), (2, 63), "reads, writes");
    assert_eq!(u64_at(&page, 112), 1, "power cycles");
    assert_eq!(u64_at(&page, 128), 3, "hours");
    assert_eq!(u64_at(&page, 144), 0, "unexpected power losses");
    assert_eq!((u64_at(&page, 160), u64_at(&page, 176)), (1, 1), "media errors, log entries");
    for used in [254, 255, 256, u32::MAX] {
        rig.ram.health.percentage_used = used;
        assert_eq!(rig.log(admin, log::SMART, 512)[5], if used == 254 { 254 } else { 255 });
    }
}

#[test]
fn smart_is_of_the_controller_alone() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    let get = rig.get_log(log::SMART, 512);
    assert_eq!(rig.status(admin, get.namespace(NamespaceId::ALL), &[]), Status::SUCCESS);
    assert_eq!(rig.status(admin, get.namespace(ONE), &[]), Status::INVALID_FIELD);
}

#[test]
fn a_part_of_a_page_is_read_by_offset_and_length() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    let whole = rig.log(admin, log::EFFECTS, 4096);
    let part = rig.get_log(log::EFFECTS, 1024).dword(12, 1000);
    assert_eq!(rig.run(admin, part, &[]).1, whole[1000..2024]);
    let beyond = rig.get_log(log::EFFECTS, 64).dword(12, 4064);
    let (_, out) = rig.run(admin, beyond, &[]);
    assert_eq!((&out[..32], &out[32..]), (&whole[4064..], &[0; 32][..]), "zeros after the end");
    for (offset, upper) in [(4100, 0), (0, 1), (u32::MAX - 3, u32::MAX)] {
        let wrong = rig.get_log(log::EFFECTS, 64).dword(12, offset).dword(13, upper);
        assert_eq!(rig.status(admin, wrong, &[]), Status::INVALID_FIELD, "{offset} {upper}");
        let wrong = rig.get_log(log::SMART, 64).dword(12, offset).dword(13, upper);
        assert_eq!(rig.status(admin, wrong, &[]), Status::INVALID_FIELD, "{offset} {upper}");
    }
    let odd = rig.get_log(log::EFFECTS, 64).dword(12, 2);
    assert_eq!(rig.status(admin, odd, &[]), Status::INVALID_FIELD, "not a dword");
    let index = rig.get_log(log::EFFECTS, 64).dword(14, 1 << 23);
    assert_eq!(rig.status(admin, index, &[]), Status::INVALID_FIELD, "an index");
    let zoned = rig.get_log(log::EFFECTS, 64).dword(14, 2 << 24);
    assert_eq!(rig.status(admin, zoned, &[]), Status::COMMAND_SET_NOT_SUPPORTED);
    let long = rig.get_log(log::EFFECTS, (1 << 20) + 4);
    assert_eq!(rig.status(admin, long, &[]), Status::INVALID_FIELD, "beyond the largest transfer");
    let longest = rig.get_log(log::EFFECTS, 1 << 20);
    assert_eq!(rig.status(admin, longest, &[]), Status::SUCCESS);
}

#[test]
fn the_logs_of_what_is_there_are_the_table() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    let supported = rig.log(admin, log::SUPPORTED, 1024);
    let there: Vec<u8> = (0..=255).filter(|&id| supported[usize::from(id) * 4] & 1 != 0).collect();
    assert_eq!(there, [0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x12, 0x13, 0xC0]);
    for id in 0..=255 {
        let entry = rig.get_log(id, 64);
        let expected = if there.contains(&id) { Status::SUCCESS } else { Status::INVALID_LOG_PAGE };
        assert_eq!(rig.status(admin, entry, &[]), expected, "log {id:02x}h");
    }
    let effects = rig.log(admin, log::EFFECTS, 4096);
    let (namespace, controller) = (1 << 20, 1 << 21);
    assert_eq!(u32_at(&effects, 0x06 * 4), 1 | controller, "Identify");
    assert_eq!(u32_at(&effects, 0x7F * 4), 1, "Fabrics");
    assert_eq!(u32_at(&effects, 0x80 * 4), 0, "no Format NVM");
    assert_eq!(u32_at(&effects, 1024 + 4), 0b11 | namespace, "Write changes content");
    assert_eq!(u32_at(&effects, 1024 + 0x02 * 4), 0b01 | namespace, "Read does not");
    assert_eq!(u32_at(&effects, 1024 + 0x7D * 4), 0, "no Zone Append");
    let features = rig.log(admin, log::FEATURES, 1024);
    assert_eq!(u32_at(&features, 0x06 * 4), 1 | controller);
    assert_eq!(u32_at(&features, 0x05 * 4), 1 | namespace);
    assert_eq!(u32_at(&features, 0x10 * 4), 0);
    assert_eq!(rig.log(admin, log::MANAGEMENT, 4096), [0; 4096]);
    let firmware = rig.log(admin, log::FIRMWARE, 512);
    assert_eq!((firmware[0], &firmware[8..16]), (1, &b"0.1     "[..]));
}

#[test]
fn every_row_that_is_there_is_answered() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    for row in support::rows(support::Kind::Identify).iter().filter(|row| row.there(false)) {
        let nsid = if row.code == 0x01 { NamespaceId::NONE } else { ONE };
        assert!(rig.identify(admin, row.code.into(), nsid).is_ok(), "{}", row.name);
    }
    for row in support::rows(support::Kind::Feature).iter().filter(|row| row.there(false)) {
        let get = rig.admin(admin::GET_FEATURES).namespace(ONE).transport_data(16);
        let get = get.dword(10, row.code.into()).dword(11, u32::from(row.code == 0x81));
        assert_eq!(rig.status(admin, get, &[]), Status::SUCCESS, "{}", row.name);
    }
}

#[test]
fn refused_commands_are_in_the_error_log_newest_first() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    let first = rig.io(io::READ, 1024, 1, 512);
    assert_eq!(rig.run(io, first, &[]).0.status, Status::LBA_OUT_OF_RANGE.with_more());
    let second = rig.admin(admin::GET_FEATURES).dword(10, 0x06 | 7 << 8);
    assert_eq!(rig.run(admin, second, &[]).0.status, Status::INVALID_FIELD.with_more());
    let page = rig.log(admin, log::ERRORS, 4096);
    assert_eq!(u64_at(&page, 0), 2, "the second error");
    assert_eq!((u16_at(&page, 8), u16_at(&page, 10)), (0, second.id().0));
    assert_eq!(u16_at(&page, 12), 0xC004, "Invalid Field, More, Do Not Retry");
    assert_eq!(u16_at(&page, 14), 41, "dword 10, bit 8");
    assert_eq!((page[31], page[63]), (0x0A, 1), "opcode, version");
    let older = &page[64..128];
    assert_eq!((u64_at(older, 0), u16_at(older, 8)), (1, 1));
    assert_eq!((u64_at(older, 16), u32_at(older, 24)), (1024, 1), "block and namespace");
    assert_eq!(page[128..], [0; 4096 - 128]);
    for _ in 0..70 {
        let wrong = rig.admin(0xFF);
        assert_eq!(rig.status(admin, wrong, &[]), Status::INVALID_OPCODE);
    }
    let page = rig.log(admin, log::ERRORS, 4096);
    assert_eq!((u64_at(&page, 0), u64_at(&page, 4096 - 64)), (72, 9), "the last 64");
}

#[test]
fn write_amplification_is_given_by_cause() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    let page = rig.log(admin, log::AMPLIFICATION, 512);
    assert_eq!((u32_at(&page, 0), u32_at(&page, 4), u64_at(&page, 24)), (1, 13, 0));
    rig.ram.health.host_bytes = 8_000;
    rig.ram.health.programmed = [8_000, 0, 0, 3_000, 999, 0, 0, 0, 0, 0, 0, 0, 0];
    rig.ram.health.erases = 5;
    let page = rig.log(admin, log::AMPLIFICATION, 512);
    assert_eq!((u64_at(&page, 8), u64_at(&page, 16), u64_at(&page, 32)), (8_000, 11_999, 5));
    assert_eq!(u64_at(&page, 24), 1_499, "11,999 / 8,000 = 1.499…");
    assert_eq!((u64_at(&page, 64), u64_at(&page, 88), u64_at(&page, 96)), (8_000, 3_000, 999));
    rig.ram.health.programmed = [u64::MAX; 13];
    rig.ram.health.host_bytes = 1;
    assert_eq!(u64_at(&rig.log(admin, log::AMPLIFICATION, 512), 24), u64::MAX, "no overflow");
}

fn entry() -> DiscoveryEntry {
    DiscoveryEntry {
        family: AddressFamily::V4,
        address: "127.0.0.1".into(),
        service: "4420".into(),
        port: 1,
        nqn: nqn("drive"),
        admin_entries: 32,
    }
}

#[test]
fn the_discovery_log_lists_subsystems() {
    let mut rig = Rig::with(Settings::default(), Ram::new(SHAPE), new_durable());
    rig.subsystem = Subsystem::discovery(Settings::default(), vec![entry()]);
    let subsystem = rig.subsystem.nqn().clone();
    let asked = crate::asks("a", QueueId::ADMIN, ControllerId::DYNAMIC);
    let admin = rig.try_connect(&Connect { subsystem, ..asked }).unwrap().place;
    rig.set_property(admin, 1);
    let page = rig.log(admin, log::DISCOVERY, 2048);
    assert_eq!((u64_at(&page, 0), u64_at(&page, 8), u16_at(&page, 16)), (1, 1, 0));
    let one = &page[1024..];
    assert_eq!(one[..4], [3, 1, 2, 4], "TCP, IPv4, a subsystem, flow control may be off");
    assert_eq!((u16_at(one, 4), u16_at(one, 6), u16_at(one, 8)), (1, 0xFFFF, 32));
    assert_eq!(&one[32..38], b"4420  ");
    assert_eq!(&one[256..282], b"nqn.2026-11.example:drive\0");
    assert_eq!(&one[512..523], b"127.0.0.1  ");
    let identified = rig.identify(admin, 1, NamespaceId::NONE).unwrap();
    assert_eq!(identified[111], 2, "a discovery controller");
    assert_eq!(u32_at(&identified, 92), 1 << 31, "events for changes of the discovery log");
    assert_eq!(&identified[768..805], b"nqn.2014-08.org.nvmexpress.discovery\0");
    for wrong in [log::SMART, log::ERRORS, log::AMPLIFICATION] {
        let get = rig.get_log(wrong, 64);
        assert_eq!(rig.status(admin, get, &[]), Status::INVALID_LOG_PAGE);
    }
    assert_eq!(rig.identify(admin, 0, ONE), Err(Status::INVALID_FIELD));
    let request = rig.admin(admin::ASYNC_EVENT_REQUEST);
    assert_eq!(rig.begin(admin, &request, &[]).0, flashatlas_nvme::Step::Held);
    rig.subsystem.set_entries(vec![entry(), entry()]);
    let told = rig.subsystem.take_completions(admin.controller);
    assert_eq!(told[0].result, 0x0070_F002, "log 70h, F0h, notice");
    let page = rig.log(admin, log::DISCOVERY, 16);
    assert_eq!((u64_at(&page, 0), u64_at(&page, 8)), (2, 2));
}
