//! The state that outlives power: the record, its damage, and when it is to be written.

use crate::ram::Ram;
use crate::{ENABLE, Rig, SHAPE, identity, new_durable, u64_at};
use flashatlas_nvme::{Durable, DurableError, Identity, Saved, Settings, Status, Totals, io, log};
use proptest::prelude::*;

fn full() -> Durable {
    let mut durable = new_durable();
    durable.saved = Saved { over: Some(330), under: Some(0), cache: Some(true) };
    durable.totals = Totals {
        units_read: 1,
        units_written: 2,
        reads: 3,
        writes: 4,
        power_cycles: 5,
        unsafe_shutdowns: 6,
        media_errors: 7,
        errors: 8,
        powered_ms: u64::MAX,
        percentage_used: 300,
    };
    durable.in_use = true;
    durable
}

#[test]
fn a_record_has_the_documented_layout() {
    let bytes = full().to_bytes();
    assert_eq!(bytes.len(), 560);
    assert_eq!(&bytes[..16], b"FANVMEST\x01\0\0\0\x1F\0\0\0");
    assert_eq!(&bytes[16..24], b"\x4A\x01\0\0\x2C\x01\0\0");
    let totals: Vec<u64> = (0..9).map(|index| u64_at(&bytes, 24 + index * 8)).collect();
    assert_eq!(totals, [1, 2, 3, 4, 5, 6, 7, 8, u64::MAX]);
    assert_eq!((&bytes[96..101], &bytes[116..126]), (&b"SN42\0"[..], &b"FlashAtlas"[..]));
    assert_eq!((&bytes[156..160], &bytes[164..168]), (&b"0.1\0"[..], &b"nqn."[..]));
    assert_eq!((&bytes[420..428], &bytes[428..434]), (&b"\x02EUI64!!"[..], &b"\x04NGUID"[..]));
    assert_eq!(bytes[444..556], [0; 112]);
    assert_eq!(Durable::from_bytes(&bytes), Ok(full()));
}

#[test]
fn another_version_and_length_are_refused_with_their_place() {
    let good = full().to_bytes();
    let error = Durable::from_bytes(&good[..559]).unwrap_err();
    assert_eq!(error, DurableError::Length { found: 559 });
    let mut bytes = good.clone();
    bytes[8] = 2;
    let error = Durable::from_bytes(&bytes).unwrap_err();
    assert_eq!(error, DurableError::Version { found: 2 });
    assert_eq!(error.to_string(), "NVMe state: byte 8: the version is 2, but this program reads 1");
    bytes[0] = b'X';
    assert_eq!(Durable::from_bytes(&bytes), Err(DurableError::Magic));
}

#[test]
fn texts_that_no_identity_has_are_refused() {
    let long = Identity { serial: "x".repeat(21), ..identity() };
    assert_eq!(Durable::new(long).unwrap_err().field, "serial");
    let strange = Identity { model: "ü".into(), ..identity() };
    assert_eq!(Durable::new(strange).unwrap_err().field, "model");
    for (at, byte) in [(164, b'x'), (96, 7), (116, 0xFF), (156, 7)] {
        let mut bytes = new_durable().to_bytes();
        bytes[at] = byte;
        let checksum = crc32c(&bytes[..556]);
        bytes[556..].copy_from_slice(&checksum.to_le_bytes());
        let error = Durable::from_bytes(&bytes).unwrap_err();
        assert!(matches!(error, DurableError::Field { offset, .. } if offset == at), "{error}");
    }
}

/// Computes CRC32C bit by bit, independently of the program under test.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0x82F6_3B78 * (crc & 1)))
    })
}

proptest! {
    /// Any damage of a byte is found.
    #[test]
    fn damage_is_found(at in 0usize..560, bits in 1u8..) {
        let mut bytes = full().to_bytes();
        bytes[at] ^= bits;
        prop_assert!(Durable::from_bytes(&bytes).is_err());
    }

    /// No bytes cause a panic.
    #[test]
    fn other_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..700)) {
        prop_assert!(Durable::from_bytes(&bytes).is_err());
    }
}

#[test]
fn a_power_failure_is_an_unsafe_shutdown_unless_the_host_shut_down() {
    let smart = |record: Durable| {
        let mut rig = Rig::with(Settings::default(), Ram::new(SHAPE), record);
        let (admin, _) = rig.ready("a");
        let page = rig.log(admin, log::SMART, 512);
        (u64_at(&page, 112), u64_at(&page, 144), rig, admin)
    };
    let (cycles, lost, mut rig, admin) = smart(new_durable());
    assert_eq!((cycles, lost), (1, 0));
    let in_use = rig.subsystem.durable_changed().expect("enabling is written");
    assert!(in_use.in_use);
    assert_eq!(rig.subsystem.durable_changed(), None, "once");
    rig.set_property(admin, ENABLE | 1 << 14);
    let shut_down = rig.subsystem.durable_changed().expect("a shutdown is written");
    assert!(!shut_down.in_use);
    assert_eq!((smart(in_use).0, smart(shut_down.clone()).0), (2, 2));
    let (_, lost, mut rig, admin) = smart(shut_down);
    assert_eq!(lost, 0);
    // a shutdown by one host does not count as a shutdown while another host works
    let (second, _) = rig.ready("b");
    rig.set_property(admin, ENABLE | 1 << 14);
    let record = rig.subsystem.durable_changed().unwrap();
    assert!(record.in_use);
    assert_eq!(smart(record).1, 1);
    rig.set_property(second, ENABLE | 2 << 14);
    assert!(!rig.subsystem.durable_changed().unwrap().in_use);
}

#[test]
fn totals_are_at_most_32_mib_ahead_of_the_record() {
    let shape = crate::MediaShape { blocks: 4096, ..SHAPE };
    let mut rig = Rig::with(Settings::default(), Ram::new(shape), new_durable());
    let (_, io) = rig.ready("a");
    rig.subsystem.durable_changed().expect("enabling is written");
    let data = vec![0; 1 << 20];
    for number in 1..=64 {
        let write = rig.io(io::WRITE, 0, 2048, 1 << 20);
        assert_eq!(rig.status(io, write, &data), Status::SUCCESS);
        let record = rig.subsystem.durable_changed();
        assert_eq!(record.is_some(), number % 32 == 0, "{number} MiB");
    }
    let wrong = rig.admin(0xFF);
    let place = rig.connect("b");
    rig.set_property(place, ENABLE);
    assert_eq!(rig.status(place, wrong, &[]), Status::INVALID_OPCODE);
    let record = rig.subsystem.durable_changed().expect("a new error has a new number");
    assert_eq!((record.totals.errors, record.totals.units_written), (1, 64 * 2048));
}

#[test]
fn totals_that_a_host_has_seen_are_in_the_record_before_it_hears_of_them() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    rig.subsystem.durable_changed().expect("enabling is written");
    let write = rig.io(io::WRITE, 0, 8, 4096);
    assert_eq!(rig.status(io, write, &[1; 4096]), Status::SUCCESS);
    assert_eq!(rig.subsystem.durable_changed(), None, "nobody has seen the write");
    let page = rig.log(admin, log::SMART, 512);
    assert_eq!((u64_at(&page, 48), u64_at(&page, 80)), (1, 1));
    let record = rig.subsystem.durable_changed().expect("the host has seen the write");
    assert_eq!((record.totals.units_written, record.totals.writes), (8, 1));
    rig.log(admin, log::SMART, 512);
    assert_eq!(rig.subsystem.durable_changed(), None, "nothing is new");
}

#[test]
fn hours_add_up_over_power_cycles() {
    let mut record = new_durable();
    for cycle in 1..=3 {
        let mut rig = Rig::with(Settings::default(), Ram::new(SHAPE), record);
        let (admin, _) = rig.ready("a");
        rig.ram.health.powered = flashatlas_types::Ps(5_400 * 1_000_000_000_000);
        let page = rig.log(admin, log::SMART, 512);
        assert_eq!(u64_at(&page, 128), cycle * 90 / 60, "cycle {cycle} of 90 minutes");
        rig.set_property(admin, ENABLE | 1 << 14);
        record = rig.subsystem.durable_changed().expect("a shutdown is written");
        assert_eq!(record.totals.powered_ms, cycle * 5_400_000);
    }
}

#[test]
fn switching_the_power_off_in_order_is_no_unsafe_shutdown() {
    let mut rig = Rig::new();
    let (_, io) = rig.ready("a");
    let write = rig.io(io::WRITE, 0, 8, 4096);
    assert_eq!(rig.status(io, write, &[1; 4096]), Status::SUCCESS);
    rig.ram.health.powered = flashatlas_types::Ps(3_000_000_000);
    let record = rig.subsystem.power_off(&rig.ram.health);
    assert!(!record.in_use);
    assert_eq!((record.totals.units_written, record.totals.powered_ms), (8, 3));
    let mut rig = Rig::with(Settings::default(), Ram::new(SHAPE), record);
    let (admin, _) = rig.ready("a");
    let page = rig.log(admin, log::SMART, 512);
    assert_eq!((u64_at(&page, 112), u64_at(&page, 144)), (2, 0));
}
