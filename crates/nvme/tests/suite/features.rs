//! Features: values, the four selects, and each refusal.

use crate::{MediaShape, NamespaceId, ONE, Rig, SHAPE, u16_at};
use flashatlas_nvme::{Status, admin, feature, log, support};

const CURRENT: u32 = 0;
const DEFAULT: u32 = 1;
const SAVED: u32 = 2;
const CAPABILITIES: u32 = 3;
const SAVE: u32 = 1 << 31;

#[test]
fn capabilities_are_what_is_done() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    // saveable, of a namespace, changeable
    let expected = [
        (feature::ARBITRATION, 0b000),
        (feature::POWER, 0b100),
        (feature::TEMPERATURE, 0b101),
        (feature::WRITE_CACHE, 0b101),
        (feature::QUEUES, 0b100),
        (feature::WRITE_ATOMICITY, 0b100),
        (feature::EVENTS, 0b100),
        (feature::KEEP_ALIVE, 0b100),
        (feature::COMMAND_SETS, 0b000),
        (feature::HOST_ID, 0b000),
    ];
    for (feature, capabilities) in expected {
        assert_eq!(rig.feature(admin, feature, CAPABILITIES), capabilities, "{feature:02x}h");
    }
    for (feature, capabilities) in expected.into_iter().filter(|&(_, bits)| bits & 1 == 0) {
        let save = rig.admin(admin::SET_FEATURES).dword(10, u32::from(feature) | SAVE);
        let status = rig.status(admin, save, &[]);
        assert_eq!(status, Status::NOT_SAVEABLE, "{feature:02x}h {capabilities}");
    }
}

#[test]
fn features_that_are_not_there_are_refused() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    for row in support::rows(support::Kind::Feature).iter().filter(|row| !row.there(false)) {
        for opcode in [admin::SET_FEATURES, admin::GET_FEATURES] {
            let entry = rig.admin(opcode).dword(10, row.code.into());
            assert_eq!(rig.status(admin, entry, &[]), Status::INVALID_FIELD, "{}", row.name);
        }
    }
    let reserved = rig.admin(admin::GET_FEATURES).dword(10, 0x06 | 4 << 8);
    assert_eq!(rig.status(admin, reserved, &[]), Status::INVALID_FIELD, "a reserved select");
}

#[test]
fn a_saved_value_is_the_value_after_a_reset_and_after_power() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    rig.subsystem.durable_changed();
    let save = rig.admin(admin::SET_FEATURES).dword(10, 0x04 | SAVE).dword(11, 330);
    assert_eq!(rig.status(admin, save, &[]), Status::SUCCESS);
    let record = rig.subsystem.durable_changed().expect("the record must be written");
    assert_eq!(record.saved.over, Some(330));
    assert_eq!(rig.set_feature(admin, feature::TEMPERATURE, 340), Status::SUCCESS);
    assert_eq!(rig.feature(admin, feature::TEMPERATURE, CURRENT), 340);
    assert_eq!(rig.feature(admin, feature::TEMPERATURE, SAVED), 330);
    assert_eq!(rig.feature(admin, feature::TEMPERATURE, DEFAULT), 343);
    rig.set_property(admin, 0);
    rig.set_property(admin, crate::ENABLE);
    assert_eq!(rig.feature(admin, feature::TEMPERATURE, CURRENT), 330);
    let mut rig = Rig::with(Default::default(), crate::ram::Ram::new(SHAPE), record);
    let (admin, _) = rig.ready("b");
    assert_eq!(rig.feature(admin, feature::TEMPERATURE, CURRENT), 330);
    assert_eq!(rig.feature(admin, feature::WRITE_CACHE, SAVED), 1, "never saved: the default");
}

#[test]
fn temperature_thresholds_are_of_the_composite_temperature() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    let (under, all) = (1 << 20, 0xF << 16);
    assert_eq!(rig.set_feature(admin, feature::TEMPERATURE, under | 280), Status::SUCCESS);
    assert_eq!(rig.set_feature(admin, feature::TEMPERATURE, all | 350), Status::SUCCESS);
    let get = rig.admin(admin::GET_FEATURES).dword(10, 0x04).dword(11, under);
    assert_eq!(rig.run(admin, get, &[]).0.result, 280);
    assert_eq!(rig.feature(admin, feature::TEMPERATURE, CURRENT), 350);
    for wrong in [1 << 16, 2 << 20, 1 << 22] {
        let status = rig.set_feature(admin, feature::TEMPERATURE, wrong | 300);
        assert_eq!(status, Status::INVALID_FIELD, "{wrong:x}h");
    }
    let get = rig.admin(admin::GET_FEATURES).dword(10, 0x04).dword(11, 1 << 16);
    assert_eq!(rig.status(admin, get, &[]), Status::INVALID_FIELD, "no sensor 1");
    assert_eq!(rig.feature(admin, feature::TEMPERATURE, CURRENT), 350, "unchanged");
}

#[test]
fn queues_are_allocated_once_and_before_they_are_used() {
    let mut rig = Rig::new();
    let admin = rig.connect("a");
    rig.set_property(admin, crate::ENABLE);
    assert_eq!(rig.feature(admin, feature::QUEUES, CURRENT), 15 | 15 << 16);
    for wrong in [0xFFFF, 0xFFFF_0000] {
        assert_eq!(rig.set_feature(admin, feature::QUEUES, wrong), Status::INVALID_FIELD);
    }
    let set = rig.admin(admin::SET_FEATURES).dword(10, 0x07).dword(11, 3 | 7 << 16);
    assert_eq!(rig.run(admin, set, &[]).0.result, 3 | 3 << 16, "four pairs");
    let again = rig.admin(admin::SET_FEATURES).dword(10, 0x07).dword(11, 9 | 9 << 16);
    assert_eq!(rig.run(admin, again, &[]).0.result, 3 | 3 << 16, "until a reset");
    let fifth = crate::asks("a", flashatlas_nvme::QueueId(5), admin.controller);
    assert_eq!(rig.try_connect(&fifth).unwrap_err().status, Status::CONNECT_INVALID);
    let fourth = crate::asks("a", flashatlas_nvme::QueueId(4), admin.controller);
    rig.try_connect(&fourth).expect("it was allocated");
    assert_eq!(rig.set_feature(admin, feature::QUEUES, 3 | 3 << 16), Status::SEQUENCE_ERROR);
}

#[test]
fn the_scope_of_a_feature_decides_what_namespaces_it_takes() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    let mut set = |feature: u8, nsid: NamespaceId| {
        let entry = rig.admin(admin::SET_FEATURES).namespace(nsid).dword(10, feature.into());
        rig.status(admin, entry, &[])
    };
    let power = feature::POWER;
    assert_eq!(set(power, NamespaceId::NONE), Status::SUCCESS);
    assert_eq!(set(power, NamespaceId::ALL), Status::SUCCESS);
    assert_eq!(set(power, ONE), Status::NOT_NAMESPACE_SPECIFIC);
    assert_eq!(set(power, NamespaceId(2)), Status::INVALID_NAMESPACE);
    let recovery = feature::ERROR_RECOVERY;
    assert_eq!(set(recovery, ONE), Status::SUCCESS, "the present value");
    assert_eq!(set(recovery, NamespaceId::ALL), Status::SUCCESS);
    assert_eq!(set(recovery, NamespaceId::NONE), Status::INVALID_NAMESPACE);
    let mut get = |feature: u8, nsid: NamespaceId| {
        let entry = rig.admin(admin::GET_FEATURES).namespace(nsid).dword(10, feature.into());
        rig.status(admin, entry, &[])
    };
    assert_eq!(get(power, ONE), Status::SUCCESS);
    assert_eq!(get(recovery, ONE), Status::SUCCESS);
    assert_eq!(get(recovery, NamespaceId::ALL), Status::INVALID_NAMESPACE);
    let entry = rig.admin(admin::GET_FEATURES).namespace(ONE).dword(10, 0x05 | 3 << 8);
    assert_eq!(rig.run(admin, entry, &[]).0.result, 0b010, "of a namespace");
}

#[test]
fn values_that_cannot_be_are_refused() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    assert_eq!(rig.set_feature(admin, feature::ARBITRATION, 0), Status::SUCCESS);
    assert_eq!(rig.set_feature(admin, feature::ARBITRATION, 7), Status::NOT_CHANGEABLE);
    assert_eq!(rig.set_feature(admin, feature::POWER, 1), Status::INVALID_FIELD);
    assert_eq!(rig.set_feature(admin, feature::POWER, 2 << 5), Status::SUCCESS);
    assert_eq!(rig.feature(admin, feature::POWER, CURRENT), 2 << 5, "the hint is kept");
    assert_eq!(rig.set_feature(admin, feature::EVENTS, 1 << 9), Status::INVALID_FIELD);
    assert_eq!(rig.set_feature(admin, feature::EVENTS, 1 << 31), Status::INVALID_FIELD);
    assert_eq!(rig.set_feature(admin, feature::COMMAND_SETS, 1), Status::COMBINATION_REJECTED);
    assert_eq!(rig.set_feature(admin, feature::HOST_ID, 1), Status::SEQUENCE_ERROR);
}

#[test]
fn the_host_identifier_is_what_connect_said() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("host-a");
    let get = rig.admin(admin::GET_FEATURES).transport_data(16).dword(10, 0x81);
    assert_eq!(rig.status(admin, get, &[]), Status::INVALID_FIELD, "64 bits are too few");
    // a host asks for 64 bits with room for 64 bits, or with none
    for (bytes, select) in [(8, CURRENT), (0, CURRENT), (8, DEFAULT), (8, 5)] {
        let get = rig.admin(admin::GET_FEATURES).dword(10, 0x81 | select << 8);
        let get = if bytes > 0 { get.transport_data(bytes) } else { get };
        assert_eq!(rig.status(admin, get, &[]), Status::INVALID_FIELD, "{bytes}, {select}");
        let place = u16_at(&rig.log(admin, log::ERRORS, 64), 14);
        let expected = if select == 5 { 41 } else { 44 };
        assert_eq!(place & 0xFF, expected, "dword 11, or the select in byte 41");
    }
    let short = rig.admin(admin::GET_FEATURES).transport_data(8).dword(10, 0x81).dword(11, 1);
    assert_eq!(rig.status(admin, short, &[]), Status::SGL_LENGTH_INVALID);
    let (completion, out) = rig.run(admin, get.dword(11, 1), &[]);
    assert_eq!(completion.status, Status::SUCCESS);
    assert_eq!(out, *b"host-a\0\0\0\0\0\0\0\0\0\0");
}

#[test]
fn without_a_volatile_cache_there_is_no_such_feature() {
    let mut rig = Rig::on(MediaShape { volatile_cache: false, ..SHAPE });
    let (admin, _) = rig.ready("a");
    assert_eq!(rig.set_feature(admin, feature::WRITE_CACHE, 0), Status::INVALID_FIELD);
    let get = rig.admin(admin::GET_FEATURES).dword(10, 0x06);
    assert_eq!(rig.status(admin, get, &[]), Status::INVALID_FIELD);
}
