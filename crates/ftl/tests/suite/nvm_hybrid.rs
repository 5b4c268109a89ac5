//! The DRAM+NVM map, FLUSH by FLUSH. The tests check which segments go to NVM and which to flash.
//! The expected results are calculated by hand from the paper's section 2 and the rules at the top
//! of `maps/nvm_hybrid.rs`. The last tests damage slots and map pages.
//!
//! The map has six segments of 16 pages each. A slot of NVM has 128 bytes: 64 for a segment and 64
//! for its header.

use flashatlas_device::Registry;
use flashatlas_device::{Cmd, Device, DriveConfig, Reply, Ssd, Storage};
use flashatlas_ftl::MountReport;
use flashatlas_nand::{Medium, OobRole};
use flashatlas_types::{Dur, Lba, Lpn, Ppn, Ps, Seed, Stamp, Tag};
use std::ops::Range;

struct Drive {
    config: DriveConfig,
    ssd: Ssd,
    pages: Vec<Stamp>,
    content: u64,
}

impl Drive {
    fn new(settings: &[&str]) -> Drive {
        let common = [
            "drive.ways=1",
            "drive.blocks=24",
            "drive.logical_pages=96",
            "cache.mode=write-through",
            "map.store=nvm-hybrid",
            "map.segment_bytes=64",
        ];
        let all: Vec<String> = common.iter().chain(settings).map(|&s| s.to_owned()).collect();
        let config = Registry::DRIVES.load("tiny", None, &all).unwrap_or_else(|e| panic!("{e}"));
        let ssd = config.build(Seed(1)).unwrap();
        Drive { config, ssd, pages: vec![Stamp::ZERO; 96], content: 0 }
    }

    /// Returns a drive with `slots` slots.
    fn with_slots(slots: u32) -> Drive {
        Drive::new(&[&format!("nvm.bytes={}", slots * 128)])
    }

    fn submit(&mut self, cmd: Cmd<'_>) {
        let now = self.ssd.drain();
        self.ssd.submit(now, Tag(0), cmd, &mut Reply::default()).unwrap_or_else(|e| panic!("{e}"));
        self.ssd.advance(Ps::MAX, &mut Vec::new());
    }

    fn write(&mut self, pages: Range<u32>) {
        self.content += 1;
        for page in pages.clone() {
            self.pages[page as usize] = Stamp::whole(self.content, (page - pages.start) * 4);
        }
        let (lba, sectors) = (Lba(u64::from(pages.start) * 4), pages.len() as u32 * 4);
        self.submit(Cmd::Write { lba, sectors, fua: false, content: self.content, data: None });
    }

    /// Sends a FLUSH. Returns the numbers of sparse, dense and full segments that it wrote to NVM,
    /// and then the numbers of full segments and of other segments that it wrote to flash.
    fn flush(&mut self) -> [u64; 5] {
        let before = self.segments();
        self.submit(Cmd::Flush);
        self.ssd.check().unwrap_or_else(|v| panic!("{v}"));
        let after = self.segments();
        std::array::from_fn(|i| after[i] - before[i])
    }

    fn segments(&self) -> [u64; 5] {
        ["nvm_sparse", "nvm_dense", "nvm_full", "flash_full", "flash_no_room"]
            .map(|name| self.detail(&format!("segments_to_{name}")))
    }

    fn detail(&self, name: &str) -> u64 {
        let details = self.ssd.ftl_report().map_details;
        details.iter().find(|d| d.0 == name).unwrap_or_else(|| panic!("{name}")).1
    }

    /// Idles for a second.
    fn idle(&mut self) {
        let now = self.ssd.drain();
        self.ssd.idle(now, now.after(Dur::from_us(1_000_000))).unwrap();
        self.ssd.drain();
        self.ssd.check().unwrap_or_else(|v| panic!("{v}"));
    }

    /// Mounts `medium` and compares every page.
    fn mounts(&self, medium: Medium) -> MountReport {
        let ssd = self.config.build_on(medium, Seed(1)).unwrap_or_else(|e| panic!("{e}"));
        ssd.check().unwrap_or_else(|v| panic!("{v}"));
        for (page, &stamp) in self.pages.iter().enumerate() {
            let held = ssd.peek(Lpn(page as u32)).unwrap().map_or(Stamp::ZERO, |u| u.stamp);
            assert_eq!(held, stamp, "page {page}");
        }
        ssd.ftl_report().mount
    }
}

#[test]
fn with_enough_nvm_every_segment_goes_there_whatever_its_state() {
    let mut drive = Drive::with_slots(7);
    drive.write(0..16); // segment 0: full
    drive.write(16..24); // segment 1: half, which is dense
    drive.write(32..33); // segment 2: sparse
    assert_eq!(drive.flush(), [1, 1, 1, 0, 0]);
    assert_eq!(drive.ssd.ftl_report().map_pages.writes, [0; 7], "no map page goes to flash");
    let nvm = drive.ssd.medium().nvm.counters;
    assert_eq!((nvm.stored, nvm.fences), (3 * 128, 3), "three slots with a fence for each");
    assert_eq!(drive.flush(), [0; 5], "nothing has changed since");
    // six segments and the spare slot need exactly seven slots
    drive.write(0..96);
    assert_eq!(drive.flush(), [0, 0, 6, 0, 0]);
    assert_eq!(drive.detail("nvm_slots_used"), 6);
    let mount = drive.mounts(drive.ssd.medium().clone());
    assert_eq!((mount.rolled_forward, mount.map_page_reads), (0, 0));
}

#[test]
fn a_segment_that_is_flushed_again_moves_to_the_spare_slot() {
    let mut drive = Drive::with_slots(2);
    for round in 1..=5 {
        drive.write(3..4);
        assert_eq!(
            drive.flush(),
            [1, 0, 0, 0, 0],
            "round {round}: the slot of the old copy does not count as free"
        );
        assert_eq!(drive.detail("nvm_slots_used"), 1);
        drive.mounts(drive.ssd.medium().clone());
    }
    // the two slots were used in turn: three stores to the first, two stores to the second
    assert_eq!(drive.ssd.medium().nvm.wear_max(), 3);
}

#[test]
fn when_nvm_is_short_sparse_goes_first_then_dense_and_full_to_flash() {
    let mut drive = Drive::with_slots(3);
    drive.write(0..16);
    drive.write(16..24);
    drive.write(32..33);
    // three segments need three slots and a spare slot, but there are only three
    assert_eq!(drive.flush(), [1, 1, 0, 1, 0], "full, dense and sparse in one FLUSH");
    assert_eq!(drive.ssd.ftl_report().map_pages.writes[1], 1, "one map page to flash");
    drive.mounts(drive.ssd.medium().clone());
    // only the spare slot is left: a new sparse segment goes to flash, but a segment with a slot is
    // copied to the spare slot
    drive.write(48..49);
    assert_eq!(drive.flush(), [0, 0, 0, 0, 1]);
    drive.write(33..34);
    assert_eq!(drive.flush(), [1, 0, 0, 0, 0]);
    // the two segments do not both fit, and the segment with a slot keeps a slot
    drive.write(48..49);
    drive.write(33..34);
    assert_eq!(drive.flush(), [1, 0, 0, 0, 1]);
    drive.mounts(drive.ssd.medium().clone());
}

#[test]
fn the_less_a_dense_segment_has_changed_the_sooner_it_gets_a_slot() {
    let mut drive = Drive::with_slots(2);
    drive.write(0..12); // segment 0: 12 of 16
    drive.write(16..25); // segment 1: 9 of 16
    assert_eq!(drive.flush(), [0, 1, 0, 0, 1]);
    // segment 1 has a slot and is flushed again; there is no room for segment 0
    drive.write(16..17);
    assert_eq!(drive.flush(), [1, 0, 0, 0, 0]);
}

#[test]
fn a_full_segment_that_goes_to_flash_gives_its_slot_back() {
    let mut drive = Drive::with_slots(2);
    drive.write(0..1);
    assert_eq!((drive.flush(), drive.detail("nvm_slots_used")), ([1, 0, 0, 0, 0], 1));
    drive.write(0..16);
    drive.write(16..17);
    // the two segments do not fit together: only the spare slot is left for the sparse segment, so
    // both segments go to flash
    assert_eq!((drive.flush(), drive.detail("nvm_slots_used")), ([0, 0, 0, 1, 1], 0));
    drive.mounts(drive.ssd.medium().clone());
    drive.write(17..18);
    assert_eq!((drive.flush(), drive.detail("nvm_slots_used")), ([1, 0, 0, 0, 0], 1));
}

#[test]
fn without_nvm_every_changed_segment_goes_to_flash() {
    let mut drive = Drive::with_slots(0);
    drive.write(0..16);
    drive.write(20..21);
    assert_eq!(drive.flush(), [0, 0, 0, 1, 1]);
    assert_eq!(drive.ssd.ftl_report().map_pages.writes[1], 2);
    drive.mounts(drive.ssd.medium().clone());
}

#[test]
fn thresholds_are_parameters() {
    let mut drive = Drive::new(&["nvm.bytes=1KiB", "map.dense_share=0.25", "map.full_share=0.5"]);
    drive.write(0..3); // 3 of 16
    drive.write(16..20); // 4
    drive.write(32..40); // 8
    assert_eq!(drive.flush(), [1, 1, 1, 0, 0]);
}

#[test]
fn idle_time_moves_segments_to_flash_and_the_longest_held_first() {
    let mut drive = Drive::with_slots(7);
    for segment in [2, 0, 1] {
        drive.write(segment * 16..segment * 16 + 1);
        drive.flush();
    }
    // segments move from 200 ms on; a program takes 200 us and its transfer, so only one program
    // begins before the idle time ends at 200.1 ms
    let now = drive.ssd.drain();
    drive.ssd.idle(now, now.after(Dur::from_us(200_100))).unwrap();
    assert_eq!((drive.detail("segments_to_flash_idle"), drive.detail("nvm_slots_used")), (1, 2));
    let on_flash = |drive: &Drive, segment: u32| {
        map_pages(drive.ssd.medium()).iter().any(|&(page, _)| page == segment)
    };
    assert!(on_flash(&drive, 2) && !on_flash(&drive, 0) && !on_flash(&drive, 1));
    drive.idle();
    assert_eq!((drive.detail("segments_to_flash_idle"), drive.detail("nvm_slots_used")), (3, 0));
    let mount = drive.mounts(drive.ssd.medium().clone());
    assert_eq!((mount.map_page_reads, mount.rolled_forward), (3, 0));
}

#[test]
fn an_update_races_the_write_back() {
    let mut drive = Drive::with_slots(7);
    drive.write(0..1);
    drive.flush();
    // an update after the last FLUSH goes to flash with its segment, and then there is nothing left
    // to flush
    drive.write(1..2);
    drive.idle();
    assert_eq!((drive.detail("segments_to_flash_idle"), drive.detail("nvm_slots_used")), (1, 0));
    assert_eq!(drive.flush(), [0; 5]);
    // an update after the write-back stays in DRAM until the next FLUSH writes it to NVM, which
    // then has the newer copy
    drive.write(2..3);
    assert_eq!(drive.flush(), [1, 0, 0, 0, 0]);
    let mount = drive.mounts(drive.ssd.medium().clone());
    assert_eq!((mount.map_page_reads, mount.rolled_forward), (1, 0));
    // in the opposite order, flash has the newer copy after the next write-back
    drive.write(2..3);
    drive.idle();
    drive.mounts(drive.ssd.medium().clone());
}

#[test]
fn a_flush_waits_for_nvm_and_for_flash() {
    // PCM: a slot takes 150 ns and 128 bytes at 2.55 GB/s (50 ns) to store, and 150 ns to fence
    let time = |slots: u32| {
        let mut drive = Drive::with_slots(slots);
        drive.write(0..1);
        let (now, mut done) = (drive.ssd.drain(), Vec::new());
        drive.ssd.submit(now, Tag(7), Cmd::Flush, &mut Reply::default()).unwrap();
        drive.ssd.advance(Ps::MAX, &mut done);
        done[0].at.since(now)
    };
    assert_eq!(time(2).0 / 1000, 350);
    // without NVM: a map page on the channel (2 KiB at 40 MB/s: 51.2 us) and a program of 200 us
    assert_eq!(time(0).0 / 1000, 251_200);
}

/// Returns the map pages on the medium, oldest first, each with its number and its first slot.
fn map_pages(medium: &Medium) -> Vec<(u32, Ppn)> {
    let layout = medium.layout();
    let is_map = |slot: &Ppn| {
        medium.oob_role(layout.block_of(*slot)) == OobRole::MAP && medium.lpn(*slot).is_ok()
    };
    let mut found: Vec<Ppn> = (0..layout.slots()).map(Ppn).filter(is_map).collect();
    found.sort_by_key(|&slot| medium.frame_sequence(layout.frame_of(slot)).unwrap());
    found.into_iter().map(|slot| (medium.lpn(slot).unwrap().0, slot)).collect()
}

#[test]
fn a_damaged_slot_is_found_and_mended_from_spare_areas() {
    let mut drive = Drive::with_slots(7);
    drive.write(0..40);
    drive.flush();
    drive.write(5..6);
    drive.flush();
    // one byte of each field of the header, or of the entries, is damaged in turn; segment 0 is in
    // the fourth slot
    for at in [0, 4, 8, 12, 16, 24, 32, 40, 64, 100, 127] {
        let mut medium = drive.ssd.medium().clone();
        medium.nvm.corrupt(3 * 128 + at);
        let mount = drive.mounts(medium);
        assert_eq!(mount.damaged_nvm_slots, 1, "byte {at}");
        assert!(mount.rolled_forward > 0, "byte {at}: the entries are read from spare areas");
    }
}

#[test]
fn a_damaged_map_page_is_found_and_mended_from_an_older_one_and_spare_areas() {
    let mut drive = Drive::with_slots(0);
    drive.write(0..40);
    drive.flush();
    drive.write(5..6);
    drive.flush();
    let mut medium = drive.ssd.medium().clone();
    let pages = map_pages(&medium);
    let (page, newest) = *pages.last().unwrap();
    assert_eq!(
        (page, pages.iter().filter(|p| p.0 == 0).count()),
        (0, 2),
        "flash has an older version"
    );
    medium.corrupt(newest);
    let mount = drive.mounts(medium.clone());
    assert_eq!((mount.damaged_map_pages, mount.rolled_forward), (1, 1));
    // the older version is damaged too, so every entry comes from spare areas
    medium.corrupt(pages.iter().find(|p| p.0 == 0).unwrap().1);
    let mount = drive.mounts(medium);
    assert_eq!((mount.damaged_map_pages, mount.rolled_forward), (2, 16));
}

#[test]
fn damage_that_nothing_mends_is_reported_and_never_another_pages_data() {
    let mut drive = Drive::new(&["nvm.bytes=0", "map.roll_forward=false"]);
    drive.write(0..40);
    drive.flush();
    let mut medium = drive.ssd.medium().clone();
    let (_, at) = map_pages(&medium)[0];
    medium.corrupt(at);
    let ssd = drive.config.build_on(medium, Seed(1)).unwrap();
    assert_eq!(ssd.ftl_report().mount.damaged_map_pages, 1);
    ssd.check().unwrap_or_else(|v| panic!("{v}"));
}

#[test]
fn a_map_page_that_is_damaged_while_the_drive_runs_is_an_error() {
    let settings =
        ["map.store=demand", "map.page_bytes=64", "map.cache_bytes=64", "drive.logical_pages=96"];
    let all: Vec<String> = settings.iter().map(|&s| s.to_owned()).collect();
    let config = Registry::DRIVES.load("tiny", None, &all).unwrap_or_else(|e| panic!("{e}"));
    let mut ssd = config.build(Seed(1)).unwrap();
    ssd.fill(|lpn| Stamp(lpn.0 + 1)).unwrap();
    ssd.set_instant(true);
    let read = |ssd: &mut Ssd| {
        ssd.submit(Ps::ZERO, Tag(0), Cmd::Read { lba: Lba(0), sectors: 4 }, &mut Reply::default())
    };
    read(&mut ssd).unwrap();
    // another map page replaces the page in memory, which has room for only one
    let other = Cmd::Read { lba: Lba(90 * 4), sectors: 4 };
    ssd.submit(Ps::ZERO, Tag(0), other, &mut Reply::default()).unwrap();
    let (_, at) = *map_pages(ssd.medium()).iter().rev().find(|p| p.0 == 0).unwrap();
    ssd.faults().corrupt(at);
    let error = read(&mut ssd).unwrap_err().to_string();
    assert_eq!(error, format!("the content of physical page {at} does not match its checksum"));
}
