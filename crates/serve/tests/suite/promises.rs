//! Test of a power failure after which each lane has lost its operations from a random point on.
//!
//! If a command was sent after the answer to a FLUSH or FUA, its data is never there without the
//! data of that FLUSH or FUA.

use crate::drives_on;
use flashatlas_crash::recording::{SEED, held};
use flashatlas_device::{Cmd, DriveConfig, Reply, Stack};
use flashatlas_serve::{CutMode, Image, Memory, Verify};
use flashatlas_types::{Lba, Ps, Rng, Seed, Stamp, Tag};
use serde_json::Map;
use std::collections::BTreeSet;

/// Mounts a drive with an image on `disk`.
fn mounted(config: &DriveConfig, disk: Memory) -> (Stack, Image<Memory>) {
    let mut medium = config.build(SEED).expect("a drive").into_medium();
    let opened = Image::open(disk, "tiny", &Map::new(), &mut medium, Verify::New, None);
    let (image, _) = opened.unwrap_or_else(|e| panic!("{e}"));
    let mut drive = config.build_stack(SEED).expect("a drive");
    drive.remount([medium], config, SEED).unwrap_or_else(|e| panic!("{e}"));
    drive.set_instant(true);
    drive.ssd_mut().faults().keep_journal();
    (drive, image)
}

/// Returns whether units 0 and 1 are there after a power failure that `seed` determines.
///
/// The units are written in this order, each with FUA, as a layer may do for one command of a
/// client.
fn left(config: &DriveConfig, seed: u64) -> (bool, bool) {
    let disk = Memory::default();
    let (mut drive, mut image) = mounted(config, disk.clone());
    let sectors = drive.unit_sectors();
    for content in 1..=2 {
        let lba = Lba((content - 1) * u64::from(sectors));
        let write = Cmd::Write { lba, sectors, fua: true, content, data: None };
        drive.submit(Ps::ZERO, Tag(0), write, &mut Reply::default()).expect("there is room");
    }
    let mut rng = Rng::stream(Seed(seed), "promises");
    let lost = image.lose_power(drive.ssd_mut().faults(), CutMode::Subset, &mut rng);
    lost.expect("memory takes it");
    let (drive, _) = mounted(config, disk);
    let there = |unit| held(&drive, unit).expect("it was mounted") != Stamp::ZERO;
    (there(0), there(1))
}

#[test]
fn what_is_sent_after_a_promise_is_not_there_without_what_came_before_it() {
    for (name, config) in drives_on("lanes").into_iter().filter(|(name, _)| name == "-/page:dram") {
        let seen: BTreeSet<_> = (0..60).map(|seed| left(&config, seed)).collect();
        let in_order = [(false, false), (true, false), (true, true)];
        assert_eq!(seen, BTreeSet::from(in_order), "{name}");
    }
}
