//! The life of a controller: enable, reset, shutdown, and what each forgets.

use crate::{ENABLE, ONE, Rig, asks};
use flashatlas_nvme::{
    Entry, Lost, QueueId, Status, Step, admin, fabrics, feature, io, log, offset,
};

const SHUT_DOWN: u32 = ENABLE | 1 << 14;

#[test]
fn the_properties_say_what_the_controller_is() {
    let mut rig = Rig::new();
    let admin = rig.connect("a");
    let capabilities = rig.property(admin, offset::CAPABILITIES);
    assert_eq!(capabilities & 0xFFFF, 127, "queues of 128 entries");
    assert_eq!(capabilities >> 16 & 1, 1, "contiguous queues");
    assert_eq!(capabilities >> 24 & 0xFF, 60, "ready within 30 s");
    assert_eq!(capabilities >> 37 & 0xFF, 0x41, "the NVM Command Set, Identify CNS 1Ch");
    assert_eq!(capabilities >> 48 & 0xFF, 0, "pages of 4 KiB");
    assert_eq!(capabilities >> 59, 1, "ready with media");
    assert_eq!(rig.property(admin, offset::VERSION), 0x0002_0100);
    assert_eq!(rig.property(admin, offset::READY_TIMEOUTS), 60);
    assert_eq!(rig.property(admin, offset::CONFIGURATION), 0);
    assert_eq!(rig.property(admin, offset::STATUS), 0);
}

#[test]
fn properties_have_one_size_and_one_offset() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    for (offset, eight) in [(0, false), (4, false), (8, true), (0x14, true), (0x20, false)] {
        let entry = Entry::property_get(rig.id(), offset, eight);
        assert_eq!(rig.status(admin, entry, &[]), Status::INVALID_FIELD, "{offset:x}h");
    }
    for offset in [0, 0x1C, 0x20, 0x15] {
        let entry = Entry::property_set(rig.id(), offset, 1);
        assert_eq!(rig.status(admin, entry, &[]), Status::INVALID_FIELD, "{offset:x}h");
    }
    let entry = Entry::property_get(rig.id(), offset::STATUS, false);
    assert_eq!(rig.status(io, entry, &[]), Status::INVALID_FIELD, "of the admin queue");
    let entry = Entry::property_get(rig.id(), offset::STATUS, false).dword(10, 2);
    assert_eq!(rig.status(admin, entry, &[]), Status::INVALID_FIELD, "a reserved size");
}

#[test]
fn nothing_but_fabrics_commands_is_done_before_enable() {
    let mut rig = Rig::new();
    let admin = rig.connect("a");
    let identify = rig.admin(admin::IDENTIFY).transport_data(4096).dword(10, 1);
    assert_eq!(rig.status(admin, identify, &[]), Status::SEQUENCE_ERROR);
    rig.set_property(admin, ENABLE);
    assert_eq!(rig.status(admin, identify, &[]), Status::SUCCESS);
}

#[test]
fn an_unsupported_configuration_does_not_enable() {
    let mut rig = Rig::new();
    let admin = rig.connect("a");
    for wrong in [1 << 4, 7 << 4, 1 << 7, 1 << 11] {
        let entry = Entry::property_set(rig.id(), offset::CONFIGURATION, ENABLE | wrong);
        assert_eq!(rig.status(admin, entry, &[]), Status::INVALID_FIELD, "{wrong:x}h");
        assert_eq!(rig.property(admin, offset::STATUS), 0);
    }
    rig.set_property(admin, ENABLE | 6 << 4); // all supported command sets
    assert_eq!(rig.property(admin, offset::STATUS), 1);
}

#[test]
fn a_reset_forgets_queues_features_events_and_errors() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    assert_eq!(rig.set_feature(admin, feature::EVENTS, 0x103), Status::SUCCESS);
    assert_eq!(rig.set_feature(admin, feature::TEMPERATURE, 350), Status::SUCCESS);
    assert_eq!(rig.set_feature(admin, feature::WRITE_ATOMICITY, 1), Status::SUCCESS);
    assert_eq!(rig.feature(admin, feature::WRITE_ATOMICITY, 0), 1);
    rig.subsystem.resize(ONE, 1000);
    let wrong = rig.admin(0xFF);
    assert_eq!(rig.status(admin, wrong, &[]), Status::INVALID_OPCODE);
    rig.set_property(admin, 0);
    assert_eq!(rig.property(admin, offset::STATUS), 0);
    assert_eq!(rig.property(admin, offset::CONFIGURATION), 0);
    assert_eq!(rig.subsystem.queue_entries(io), None, "I/O queues are gone");
    assert_eq!(rig.subsystem.queue_entries(admin), Some(32), "the association stays");
    rig.set_property(admin, ENABLE);
    let request = rig.admin(admin::ASYNC_EVENT_REQUEST);
    assert_eq!(rig.begin(admin, &request, &[]).0, Step::Held);
    assert_eq!(rig.subsystem.take_completions(admin.controller), [], "no event is left");
    assert_eq!(rig.feature(admin, feature::EVENTS, 0), 0);
    assert_eq!(rig.feature(admin, feature::WRITE_ATOMICITY, 0), 0);
    assert_eq!(rig.feature(admin, feature::TEMPERATURE, 0), 343, "the default: 70 °C");
    assert_eq!(rig.feature(admin, feature::KEEP_ALIVE, 0), 5000, "the value from Connect");
    assert_eq!(rig.log(admin, log::CHANGED, 4096), [0; 4096]);
    assert_eq!(rig.log(admin, log::ERRORS, 64), [0; 64]);
}

#[test]
fn a_normal_shutdown_flushes_and_then_only_fabrics_commands_are_done() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    let write = rig.io(io::WRITE, 0, 8, 4096);
    assert_eq!(rig.status(io, write, &[7; 4096]), Status::SUCCESS);
    let entry = Entry::property_set(rig.id(), offset::CONFIGURATION, SHUT_DOWN);
    let (step, _) = rig.begin(admin, &entry, &[]);
    let Step::Io(flush) = step else { panic!("{step:?}") };
    assert_eq!(rig.property(admin, offset::STATUS), 1 | 1 << 2, "the shutdown runs");
    let (_, completion, _) = rig.carry_out(&flush, &[]).expect("the host waits for the shutdown");
    assert_eq!(completion.status, Status::SUCCESS);
    assert_eq!(rig.property(admin, offset::STATUS), 1 | 2 << 2, "the shutdown is complete");
    rig.ram.lose_power(|| false);
    assert_eq!(rig.ram.content()[..4096], [7; 4096], "flushed");
    let write = rig.io(io::WRITE, 0, 8, 4096);
    assert_eq!(rig.status(io, write, &[8; 4096]), Status::SEQUENCE_ERROR);
    assert_eq!(rig.subsystem.keep_alive(admin.controller), None, "the timer is off");
    // a reset, then enable: commands are done again
    rig.set_property(admin, 0);
    assert_eq!(rig.property(admin, offset::STATUS), 0);
    rig.set_property(admin, ENABLE);
    assert_eq!(rig.property(admin, offset::STATUS), 1);
    assert_eq!(rig.subsystem.keep_alive(admin.controller), Some(5000));
}

#[test]
fn an_abrupt_shutdown_is_complete_at_once() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    rig.set_property(admin, ENABLE | 2 << 14);
    assert_eq!(rig.property(admin, offset::STATUS), 1 | 2 << 2);
    assert!(!rig.ram.calls.contains('f'));
}

#[test]
fn a_disabled_controller_starts_after_a_shutdown_with_one_write() {
    let mut rig = Rig::new();
    let admin = rig.connect("a");
    rig.set_property(admin, 1 << 14);
    assert_eq!(rig.property(admin, offset::STATUS), 2 << 2);
    rig.set_property(admin, ENABLE);
    assert_eq!(rig.property(admin, offset::STATUS), 1);
}

#[test]
fn a_shutdown_whose_flush_fails_is_a_fatal_state() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    rig.ram.fails = Some(flashatlas_nvme::MediaError::Other);
    let entry = Entry::property_set(rig.id(), offset::CONFIGURATION, SHUT_DOWN);
    let (completion, _) = rig.run(admin, entry, &[]);
    assert_eq!(completion.status.code, Status::WRITE_FAULT.code);
    assert_eq!(rig.property(admin, offset::STATUS), 1 | 1 << 1 | 1 << 2);
    let identify = rig.admin(admin::IDENTIFY).transport_data(4096).dword(10, 1);
    assert_eq!(rig.status(admin, identify, &[]), Status::SEQUENCE_ERROR);
}

/// The media may still carry out a write when its host is gone. A later write must not be undone.
#[test]
fn a_controller_is_not_ready_before_writes_from_before_are_done() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    let mut late = Vec::new();
    for number in 0..2 {
        let write = rig.io(io::WRITE, number * 8, 8, 4096);
        let (step, _) = rig.begin(io, &write, &[1; 4096]);
        let Step::Io(command) = step else { panic!("{step:?}") };
        late.push(command);
    }
    rig.set_property(admin, 0);
    assert_eq!(rig.property(admin, offset::STATUS), 1, "busy until the media are done");
    assert!(rig.carry_out(&late[0], &[1; 4096]).is_none(), "nobody waits");
    assert_eq!(rig.subsystem.lost(admin), Lost::Association);
    let admin = rig.connect("b");
    rig.set_property(admin, ENABLE);
    assert_eq!(rig.property(admin, offset::STATUS), 0, "not ready");
    let queue = asks("b", QueueId(1), admin.controller);
    assert!(rig.try_connect(&queue).is_err());
    assert!(rig.carry_out(&late[1], &[1; 4096]).is_none());
    assert_eq!(rig.property(admin, offset::STATUS), 1, "ready");
    rig.try_connect(&queue).expect("now the controller is ready");
}

#[test]
fn a_queue_ends_with_disconnect_when_nothing_is_in_flight() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    let mut disconnect = rig.admin(fabrics::OPCODE);
    disconnect.0[4] = fabrics::DISCONNECT;
    assert_eq!(rig.status(admin, disconnect, &[]), Status::INVALID_QUEUE_TYPE);
    let read = rig.io(io::READ, 0, 1, 512);
    let (step, _) = rig.begin(io, &read, &[]);
    let Step::Io(read) = step else { panic!("{step:?}") };
    assert_eq!(rig.status(io, disconnect, &[]), Status::CONTROLLER_BUSY);
    assert!(rig.carry_out(&read, &[]).is_some());
    let format = disconnect.dword(10, 1);
    assert_eq!(rig.status(io, format, &[]), Status::INCOMPATIBLE_FORMAT);
    assert_eq!(rig.status(io, disconnect, &[]), Status::SUCCESS);
    let flush = rig.io(io::FLUSH, 0, 1, 0);
    assert_eq!(rig.status(io, flush, &[]), Status::SEQUENCE_ERROR, "the queue is gone");
    rig.try_connect(&asks("a", QueueId(1), admin.controller))
        .expect("the queue may be created again");
}

#[test]
fn commands_of_a_lost_queue_do_not_answer_on_its_successor() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    let read = rig.io(io::READ, 0, 1, 512);
    let (step, _) = rig.begin(io, &read, &[]);
    let Step::Io(late) = step else { panic!("{step:?}") };
    assert_eq!(rig.subsystem.lost(io), Lost::Queue);
    rig.try_connect(&asks("a", QueueId(1), admin.controller)).unwrap();
    assert!(rig.carry_out(&late, &[]).is_none());
}

#[test]
fn the_fetch_window_counts_what_the_media_carry_out() {
    let mut rig = Rig::new();
    let (_, io) = rig.ready("a");
    let mut flying = Vec::new();
    for _ in 0..32 {
        assert!(rig.subsystem.may_fetch(io.controller));
        let read = rig.io(io::READ, 0, 1, 512);
        let (step, _) = rig.begin(io, &read, &[]);
        let Step::Io(command) = step else { panic!("{step:?}") };
        flying.push(command);
    }
    assert!(!rig.subsystem.may_fetch(io.controller), "32 are in flight");
    assert!(rig.carry_out(&flying[0], &[]).is_some());
    assert!(rig.subsystem.may_fetch(io.controller));
}

#[test]
fn an_expired_keep_alive_ends_the_association() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    assert_eq!(rig.subsystem.keep_alive(admin.controller), Some(5000));
    assert_eq!(rig.set_feature(admin, feature::KEEP_ALIVE, 1), Status::SUCCESS);
    assert_eq!(rig.subsystem.keep_alive(admin.controller), Some(100), "rounded up");
    assert_eq!(rig.set_feature(admin, feature::KEEP_ALIVE, 0), Status::SUCCESS);
    assert_eq!(rig.subsystem.keep_alive(admin.controller), None, "switched off");
    let keep_alive = rig.admin(admin::KEEP_ALIVE);
    assert_eq!(rig.status(admin, keep_alive, &[]), Status::SUCCESS);
    rig.subsystem.expire(admin.controller);
    assert_eq!(rig.subsystem.controllers().count(), 0);
}
