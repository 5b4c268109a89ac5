//! Asynchronous events: the limit, what masks and clears them, aborts.

use crate::{ONE, Rig, u32_at};
use flashatlas_nvme::{Health, MediaError, Place, Status, Step, admin, feature, io, log};

/// Submits a request for an event, and returns its identifier.
fn request(rig: &mut Rig, place: Place) -> flashatlas_nvme::CommandId {
    let entry = rig.admin(admin::ASYNC_EVENT_REQUEST);
    assert_eq!(rig.begin(place, &entry, &[]).0, Step::Held);
    entry.id()
}

/// Returns the completions that wait, as identifiers and values.
fn told(rig: &mut Rig, place: Place) -> Vec<(u16, u64)> {
    let completions = rig.subsystem.take_completions(place.controller);
    completions.iter().map(|one| (one.id.0, one.result)).collect()
}

#[test]
fn four_requests_wait_and_a_fifth_is_refused() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    for _ in 0..4 {
        request(&mut rig, admin);
    }
    let fifth = rig.admin(admin::ASYNC_EVENT_REQUEST);
    assert_eq!(rig.status(admin, fifth, &[]), Status::EVENT_LIMIT_EXCEEDED);
    assert!(
        rig.subsystem.may_fetch(admin.controller),
        "requests for events take no place in the window"
    );
}

#[test]
fn a_changed_namespace_is_told_once_until_its_log_is_read() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    rig.subsystem.resize(ONE, 1000);
    let id = request(&mut rig, admin);
    assert_eq!(told(&mut rig, admin), [], "the host did not ask for notices");
    assert_eq!(rig.set_feature(admin, feature::EVENTS, 1 << 8), Status::SUCCESS);
    rig.subsystem.resize(ONE, 900);
    assert_eq!(told(&mut rig, admin), [(id.0, 0x0004_0002)], "log 04h, notice");
    let id = request(&mut rig, admin);
    rig.subsystem.resize(ONE, 800);
    assert_eq!(told(&mut rig, admin), [], "masked");
    let retained = rig.get_log(log::CHANGED, 4096);
    let entry = retained.dword(10, retained.at(10) | 1 << 15);
    assert_eq!(u32_at(&rig.run(admin, entry, &[]).1, 0), 1);
    assert_eq!(told(&mut rig, admin), [], "retained");
    assert_eq!(u32_at(&rig.log(admin, log::CHANGED, 4096), 0), 1);
    assert_eq!(u32_at(&rig.log(admin, log::CHANGED, 4096), 0), 0, "read and cleared");
    assert_eq!(told(&mut rig, admin), [], "reading the log cleared the event of 800 blocks");
    rig.subsystem.resize(ONE, 700);
    assert_eq!(told(&mut rig, admin), [(id.0, 0x0004_0002)]);
    assert_eq!(u32_at(&rig.identify(admin, 0, ONE).unwrap(), 0), 700);
}

#[test]
fn an_event_waits_for_a_request() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    assert_eq!(rig.set_feature(admin, feature::EVENTS, 1 << 8), Status::SUCCESS);
    rig.subsystem.resize(ONE, 1000);
    rig.subsystem.resize(ONE, 1001);
    assert_eq!(told(&mut rig, admin), []);
    let id = request(&mut rig, admin);
    assert_eq!(told(&mut rig, admin), [(id.0, 0x0004_0002)]);
    request(&mut rig, admin);
    assert_eq!(told(&mut rig, admin), [], "two equal events count as one");
}

#[test]
fn critical_warnings_are_told_to_hosts_that_ask() {
    let mut rig = Rig::new();
    let (first, _) = rig.ready("a");
    let (second, _) = rig.ready("b");
    let (one, other) = (request(&mut rig, first), request(&mut rig, second));
    assert_eq!(rig.set_feature(first, feature::EVENTS, 0b11), Status::SUCCESS);
    let hot = Health { kelvins: 343, ..Health::default() };
    rig.subsystem.observe(&hot);
    assert_eq!(told(&mut rig, first), [(one.0, 0x0002_0101)], "log 02h, temperature, SMART");
    assert_eq!(told(&mut rig, second), []);
    rig.subsystem.observe(&hot);
    let one = request(&mut rig, first);
    assert_eq!(rig.log(first, log::SMART, 512)[0], 0, "the media say 25 °C now");
    assert_eq!(told(&mut rig, first), [], "a warning is reported once");
    let worn = Health { available_spare: 3, ..Health::default() };
    rig.subsystem.observe(&worn);
    assert_eq!(told(&mut rig, first), [(one.0, 0x0002_0201)], "spare below the threshold");
    assert_eq!(rig.set_feature(second, feature::EVENTS, 0xFF), Status::INVALID_FIELD);
    assert_eq!(rig.set_feature(second, feature::EVENTS, 0b1), Status::SUCCESS);
    rig.subsystem.observe(&worn);
    assert_eq!(
        told(&mut rig, second),
        [(other.0, 0x0002_0201)],
        "the warning holds when the host asks"
    );
}

#[test]
fn a_warning_is_told_when_the_state_changes_and_not_when_the_log_is_read() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    let id = request(&mut rig, admin);
    assert_eq!(rig.set_feature(admin, feature::EVENTS, 0b11), Status::SUCCESS);
    rig.ram.health.available_spare = 9; // a block went bad, below the threshold of 10 %
    let write = rig.io(io::WRITE, 0, 8, 4096);
    assert_eq!(rig.status(io, write, &[0; 4096]), Status::SUCCESS);
    assert_eq!(told(&mut rig, admin), [(id.0, 0x0002_0201)], "log 02h, spare, SMART");
    assert_eq!(rig.log(admin, log::SMART, 512)[0], 1);

    let id = request(&mut rig, admin);
    assert_eq!(rig.set_feature(admin, feature::TEMPERATURE, 299), Status::SUCCESS);
    assert_eq!(told(&mut rig, admin), [], "298 K is below");
    assert_eq!(rig.set_feature(admin, feature::TEMPERATURE, 298), Status::SUCCESS);
    assert_eq!(told(&mut rig, admin), [(id.0, 0x0002_0101)], "temperature");

    let (second, _) = rig.ready("b");
    let id = request(&mut rig, second);
    assert_eq!(rig.set_feature(second, feature::EVENTS, 1), Status::SUCCESS);
    assert_eq!(
        told(&mut rig, second),
        [(id.0, 0x0002_0201)],
        "the warning holds when the host asks"
    );
}

#[test]
fn media_that_cannot_go_on_are_an_event_of_every_host() {
    let mut rig = Rig::new();
    let (first, io) = rig.ready("a");
    let (second, _) = rig.ready("b");
    let (one, other) = (request(&mut rig, first), request(&mut rig, second));
    rig.ram.fails = Some(MediaError::PowerLost);
    let read = rig.io(io::READ, 0, 8, 4096);
    assert_eq!(rig.status(io, read, &[]), Status::INTERNAL_ERROR);
    assert_eq!(told(&mut rig, first), [(one.0, 0x0001_0300)], "log 01h, internal error");
    assert_eq!(told(&mut rig, second), [(other.0, 0x0001_0300)]);
}

#[test]
fn a_request_is_aborted_and_other_commands_are_not() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    let id = request(&mut rig, admin);
    let abort = |rig: &mut Rig, queue: u16, id: u16| {
        let entry = rig.admin(admin::ABORT).dword(10, u32::from(queue) | u32::from(id) << 16);
        let (completion, _) = rig.run(admin, entry, &[]);
        assert_eq!(completion.status, Status::SUCCESS);
        completion.result
    };
    let read = rig.io(io::READ, 0, 8, 4096);
    let (step, _) = rig.begin(io, &read, &[]);
    let Step::Io(command) = step else { panic!("{step:?}") };
    assert_eq!(abort(&mut rig, 1, read.id().0), 1, "the media carry out the read");
    assert_eq!(abort(&mut rig, 0, 0x7777), 1, "not found");
    assert_eq!(abort(&mut rig, 0, id.0), 0, "aborted");
    let aborted = rig.subsystem.take_completions(admin.controller);
    assert_eq!((aborted[0].id, aborted[0].status), (id, Status::ABORT_REQUESTED));
    assert!(rig.carry_out(&command, &[]).is_some());
}

#[test]
fn commands_without_a_namespace_take_none() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    for opcode in [admin::ASYNC_EVENT_REQUEST, admin::ABORT, admin::KEEP_ALIVE] {
        let entry = rig.admin(opcode).namespace(ONE);
        assert_eq!(rig.status(admin, entry, &[]), Status::INVALID_FIELD, "{opcode:02x}h");
    }
}
