//! Connect: each check, and what it establishes.

use crate::ram::Ram;
use crate::{ENABLE, Rig, SHAPE, asks, new_durable, nqn};
use flashatlas_nvme::{
    CommandId, Connect, ControllerId, Lost, QueueId, Settings, Status, Subsystem, io, offset,
};

const DYNAMIC: ControllerId = ControllerId::DYNAMIC;

/// Offset of a wrong parameter in the data, as dword 0 of the completion has it.
const IN_DATA: u64 = 1 << 16;

fn refused(rig: &mut Rig, connect: &Connect) -> (Status, u64) {
    let completion = rig.try_connect(connect).expect_err("it is refused");
    (completion.status, completion.result)
}

#[test]
fn an_admin_queue_makes_a_controller_and_io_queues_join_it() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    assert_eq!((admin.queue, io.queue), (QueueId(0), QueueId(1)));
    assert_eq!(admin.controller, io.controller);
    assert_eq!(rig.subsystem.queue_entries(io), Some(32));
    let second = rig.ready("b").0;
    assert_ne!(admin.controller, second.controller);
    assert_eq!(rig.subsystem.controllers().count(), 2);
}

#[test]
fn each_parameter_of_an_admin_queue_is_checked() {
    let mut rig = Rig::new();
    let good = asks("a", QueueId::ADMIN, DYNAMIC);
    let invalid = |byte| (Status::CONNECT_INVALID, byte);
    let with = |change: fn(&mut Connect)| {
        let mut connect = good.clone();
        change(&mut connect);
        connect
    };
    let cases = [
        (with(|one| one.subsystem = nqn("other")), invalid(256 | IN_DATA)),
        (with(|one| one.controller = ControllerId(0)), invalid(16 | IN_DATA)),
        (with(|one| one.controller = ControllerId(0xFFF0)), invalid(16 | IN_DATA)),
        (with(|one| one.controller = ControllerId(0xFFFE)), invalid(16 | IN_DATA)),
        (with(|one| one.entries = 1), invalid(44)),
        (with(|one| one.entries = 33), invalid(44)),
    ];
    for (connect, expected) in cases {
        assert_eq!(refused(&mut rig, &connect), expected, "{connect:?}");
    }
    let (mut entry, data) = good.write(CommandId(9));
    assert_eq!(
        rig.subsystem.connect(&entry, &data[..1023]).unwrap_err().status,
        Status::SGL_LENGTH_INVALID
    );
    let mut no_name = data.clone();
    no_name[512] = b'x';
    let completion = rig.subsystem.connect(&entry, &no_name).unwrap_err();
    assert_eq!((completion.status, completion.result), invalid(512 | IN_DATA));
    let mut no_end = data.clone();
    no_end[256..512].fill(b'n');
    let completion = rig.subsystem.connect(&entry, &no_end).unwrap_err();
    assert_eq!((completion.status, completion.result), invalid(256 | IN_DATA));
    entry.0[40] = 1; // record format
    let completion = rig.subsystem.connect(&entry, &data).unwrap_err();
    assert_eq!(completion.status, Status::INCOMPATIBLE_FORMAT);
    assert_eq!(rig.subsystem.controllers().count(), 0);
}

#[test]
fn each_parameter_of_an_io_queue_is_checked() {
    let mut rig = Rig::new();
    let admin = rig.connect("a");
    let good = asks("a", QueueId(1), admin.controller);
    let invalid = |byte| (Status::CONNECT_INVALID, byte);
    assert_eq!(refused(&mut rig, &good), invalid(42), "the controller is disabled");
    rig.set_property(admin, ENABLE & 1);
    assert_eq!(refused(&mut rig, &good), invalid(42), "no entry sizes");
    rig.set_property(admin, 0);
    rig.set_property(admin, ENABLE);
    let with = |change: fn(&mut Connect)| {
        let mut connect = good.clone();
        change(&mut connect);
        connect
    };
    let cases = [
        (with(|one| one.controller = ControllerId(7)), invalid(16 | IN_DATA)),
        (with(|one| one.controller = DYNAMIC), invalid(16 | IN_DATA)),
        (with(|one| one.host = nqn("b")), invalid(512 | IN_DATA)),
        (with(|one| one.host_id = [9; 16]), invalid(IN_DATA)),
        (with(|one| one.queue = QueueId(17)), invalid(42)),
        (with(|one| one.queue = QueueId(0xFFFF)), invalid(42)),
        (with(|one| one.entries = 129), invalid(44)),
    ];
    for (connect, expected) in cases {
        assert_eq!(refused(&mut rig, &connect), expected, "{connect:?}");
    }
    let without_id = with(|one| one.host_id = [0; 16]);
    rig.try_connect(&without_id).expect("a host identifier of zeros is ignored");
    assert_eq!(refused(&mut rig, &good).0, Status::SEQUENCE_ERROR, "the queue exists already");
    let flags = asks("a", QueueId(2), admin.controller);
    let connected = rig.try_connect(&Connect { without_flow_control: true, ..flags }).unwrap();
    assert!(!connected.flow_control);
}

#[test]
fn hosts_are_admitted_by_name_and_controllers_are_finite() {
    let settings =
        Settings { hosts: Some(vec![nqn("a"), nqn("b")]), controllers: 2, ..Settings::default() };
    let mut rig = Rig::with(settings, Ram::new(SHAPE), new_durable());
    let unknown = asks("c", QueueId::ADMIN, DYNAMIC);
    assert_eq!(refused(&mut rig, &unknown), (Status::CONNECT_INVALID_HOST, 0));
    let first = rig.connect("a");
    rig.connect("b");
    let third = asks("a", QueueId::ADMIN, DYNAMIC);
    assert_eq!(refused(&mut rig, &third).0, Status::CONTROLLER_BUSY);
    assert_eq!(rig.subsystem.lost(first), Lost::Association);
    assert_ne!(rig.connect("a").controller, first.controller, "a new identifier");
}

#[test]
fn an_association_goes_on_without_an_io_queue_and_ends_with_the_admin_queue() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    assert_eq!(rig.subsystem.lost(io), Lost::Queue);
    assert_eq!(rig.subsystem.queue_entries(io), None);
    rig.set_property(admin, ENABLE | 1 << 14); // as Linux does: queues first, then the shutdown
    rig.set_property(admin, 0);
    rig.set_property(admin, ENABLE);
    rig.try_connect(&asks("a", QueueId(1), admin.controller))
        .expect("the queue may be created again");
    assert_eq!(rig.subsystem.lost(admin), Lost::Association);
    assert_eq!(rig.subsystem.controllers().count(), 0);
    let entry = rig.io(io::FLUSH, 0, 1, 0);
    assert_eq!(rig.status(admin, entry, &[]), Status::SEQUENCE_ERROR, "the association has ended");
    assert_eq!(rig.subsystem.lost(io), Lost::Association, "the association has already ended");
}

#[test]
fn a_discovery_service_becomes_ready_and_has_no_io_queues() {
    let mut rig = Rig::new();
    rig.subsystem = Subsystem::discovery(Settings::default(), Vec::new());
    let discovery = rig.subsystem.nqn().clone();
    let asked = |queue, controller| Connect {
        subsystem: discovery.clone(),
        ..asks("a", queue, controller)
    };
    let admin = rig.try_connect(&asked(QueueId::ADMIN, DYNAMIC)).unwrap().place;
    assert_eq!(rig.property(admin, offset::CAPABILITIES) >> 59, 1, "ready with media");
    assert_eq!(rig.property(admin, offset::READY_TIMEOUTS), 60, "which Linux reads before enable");
    rig.set_property(admin, 1);
    let io = asked(QueueId(1), admin.controller);
    assert_eq!(refused(&mut rig, &io), (Status::CONNECT_INVALID, 16 | IN_DATA));
}
