//! The volatile write cache, switched off and on.

use crate::{Rig, SHAPE};
use flashatlas_nvme::{MediaError, Status, Step, admin, feature, io};

#[test]
fn the_switch_flushes_and_then_every_change_is_durable() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    let write = rig.io(io::WRITE, 0, 8, 4096);
    assert_eq!(rig.status(io, write, &[1; 4096]), Status::SUCCESS);
    assert_eq!(rig.feature(admin, feature::WRITE_CACHE, 0), 1);
    assert_eq!(rig.set_feature(admin, feature::WRITE_CACHE, 0), Status::SUCCESS);
    assert_eq!(rig.feature(admin, feature::WRITE_CACHE, 0), 0);
    let write = rig.io(io::WRITE, 8, 8, 4096);
    assert_eq!(rig.status(io, write, &[2; 4096]), Status::SUCCESS);
    let zeroes = rig.io(io::WRITE_ZEROES, 4, 2, 0);
    assert_eq!(rig.status(io, zeroes, &[]), Status::SUCCESS);
    let mut range = [0; 16];
    (range[4], range[8]) = (8, 8);
    let dsm = rig.io(io::DATASET_MANAGEMENT, 0, 1, 16).dword(11, 4).dword(12, 0);
    assert_eq!(rig.status(io, dsm, &range), Status::SUCCESS);
    assert_eq!(rig.ram.calls, "wfWWtf");
    rig.ram.lose_power(|| false);
    let content = rig.ram.content();
    assert_eq!((content[0], content[4 * 512], content[6 * 512], content[8 * 512]), (1, 0, 1, 0));
    assert_eq!(rig.set_feature(admin, feature::WRITE_CACHE, 1), Status::SUCCESS);
    let write = rig.io(io::WRITE, 0, 8, 4096);
    assert_eq!(rig.status(io, write, &[3; 4096]), Status::SUCCESS);
    assert_eq!(rig.ram.calls, "w", "cached again");
}

#[test]
fn a_switch_whose_flush_fails_leaves_the_cache_on() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    rig.ram.fails = Some(MediaError::Other);
    assert_eq!(rig.set_feature(admin, feature::WRITE_CACHE, 0), Status::WRITE_FAULT);
    assert_eq!(rig.feature(admin, feature::WRITE_CACHE, 0), 1);
    let write = rig.io(io::WRITE, 0, 8, 4096);
    assert_eq!(rig.status(io, write, &[1; 4096]), Status::SUCCESS);
    assert_eq!(rig.ram.calls, "fw", "as before the switch");
    assert_eq!(rig.set_feature(admin, feature::WRITE_CACHE, 0), Status::SUCCESS, "a retry");
}

/// A write that was in flight at the switch is volatile when it completes, but not when the switch
/// completes.
#[test]
fn the_switch_waits_for_what_is_in_flight() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    let write = rig.io(io::WRITE, 0, 8, 4096);
    let (step, _) = rig.begin(io, &write, &[1; 4096]);
    let Step::Io(early) = step else { panic!("{step:?}") };
    let off = rig.admin(admin::SET_FEATURES).dword(10, 0x06);
    assert_eq!(rig.begin(admin, &off, &[]).0, Step::Held);
    assert_eq!(rig.feature(admin, feature::WRITE_CACHE, 0), 1, "not yet");
    assert_eq!(rig.set_feature(admin, feature::WRITE_CACHE, 1), Status::SEQUENCE_ERROR);
    let write = rig.io(io::WRITE, 8, 8, 4096);
    assert_eq!(rig.status(io, write, &[2; 4096]), Status::SUCCESS);
    assert_eq!(rig.ram.calls, "W", "a write after the switch is durable immediately");
    assert_eq!(rig.carry_out(&early, &[1; 4096]).unwrap().1.status, Status::SUCCESS);
    assert_eq!(rig.ram.calls, "Ww");
    let flush = rig.ram.released.pop().expect("the switch goes on");
    let (place, completion, _) = rig.carry_out(&flush, &[]).expect("the host waits for the switch");
    assert_eq!((place, completion.id, completion.status), (admin, off.id(), Status::SUCCESS));
    assert_eq!(rig.ram.calls, "Wwf");
    rig.ram.lose_power(|| false);
    assert_eq!(rig.ram.content()[..4096], [1; 4096]);
    assert_eq!(rig.feature(admin, feature::WRITE_CACHE, 0), 0);
}

#[test]
fn a_saved_switch_is_written_before_its_completion() {
    let mut rig = Rig::new();
    let (admin, _) = rig.ready("a");
    rig.subsystem.durable_changed();
    let off = rig.admin(admin::SET_FEATURES).dword(10, 0x06 | 1 << 31);
    assert_eq!(rig.status(admin, off, &[]), Status::SUCCESS);
    let record = rig.subsystem.durable_changed().expect("the record must be written");
    assert_eq!(record.saved.cache, Some(false));
    let mut rig = Rig::with(Default::default(), crate::ram::Ram::new(SHAPE), record);
    let (admin, io) = rig.ready("a");
    assert_eq!(rig.feature(admin, feature::WRITE_CACHE, 0), 0, "off from the beginning");
    let write = rig.io(io::WRITE, 0, 8, 4096);
    assert_eq!(rig.status(io, write, &[1; 4096]), Status::SUCCESS);
    assert_eq!(rig.ram.calls, "W");
}

#[test]
fn the_switch_is_of_one_controller() {
    let mut rig = Rig::new();
    let (first, _) = rig.ready("a");
    let (second, io) = rig.ready("b");
    assert_eq!(rig.set_feature(first, feature::WRITE_CACHE, 0), Status::SUCCESS);
    assert_eq!(rig.feature(second, feature::WRITE_CACHE, 0), 1);
    let write = rig.io(io::WRITE, 0, 8, 4096);
    assert_eq!(rig.status(io, write, &[1; 4096]), Status::SUCCESS);
    assert_eq!(rig.ram.calls, "fw");
}

#[test]
fn a_reset_forgets_a_switch_that_waits() {
    let mut rig = Rig::new();
    let (admin, io) = rig.ready("a");
    let write = rig.io(io::WRITE, 0, 8, 4096);
    let (step, _) = rig.begin(io, &write, &[1; 4096]);
    let Step::Io(early) = step else { panic!("{step:?}") };
    let off = rig.admin(admin::SET_FEATURES).dword(10, 0x06);
    assert_eq!(rig.begin(admin, &off, &[]).0, Step::Held);
    rig.set_property(admin, 0);
    assert!(rig.carry_out(&early, &[1; 4096]).is_none());
    assert!(rig.ram.released.is_empty());
    rig.set_property(admin, crate::ENABLE);
    assert_eq!(rig.property(admin, flashatlas_nvme::offset::STATUS), 1);
    assert_eq!(rig.feature(admin, feature::WRITE_CACHE, 0), 1);
}
