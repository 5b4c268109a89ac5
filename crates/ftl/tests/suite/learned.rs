//! Features that a map store may request from page mapping: the choice of the frontier of a page,
//! sorted copies in collection, and notices of full blocks. `learnedftl` requests all three.

use flashatlas_device::{Cmd, Device, Registry, Reply, Ssd, Storage};
use flashatlas_types::{BlockId, Lba, Ppn, Ps, Rng, Seed, Tag};

fn drive(more: &[&str]) -> Ssd {
    let own = [
        "drive.channels=1",
        "drive.ways=1",
        "drive.blocks=40",
        "drive.pages=16",
        "drive.logical_pages=400",
        "cache.mode=write-through",
        "map.page_bytes=64",
        "map.cache_bytes=200",
    ];
    let settings: Vec<String> = own.iter().chain(more).map(|&s| s.to_owned()).collect();
    let config = Registry::DRIVES.load("tiny", None, &settings).unwrap_or_else(|e| panic!("{e}"));
    let mut drive = config.build(Seed(1)).unwrap();
    flashatlas_device::Storage::set_instant(&mut drive, true);
    drive
}

fn write(drive: &mut Ssd, unit: u64, content: u64) {
    let write = Cmd::Write { lba: Lba(unit * 4), sectors: 4, fua: false, content, data: None };
    drive.submit(Ps::ZERO, Tag(0), write, &mut Reply::default()).unwrap();
}

fn random_writes(drive: &mut Ssd, count: u64) {
    let mut rng = Rng::stream(Seed(4), "learned");
    (1..=count).for_each(|content| write(drive, rng.below(400), content));
}

/// Returns the logical pages of each block, in the order in which they were programmed.
fn blocks(drive: &Ssd) -> Vec<Vec<u32>> {
    let (layout, medium) = (drive.layout(), drive.medium());
    let of_block = |block| {
        let first = layout.block_slot(BlockId::new(block)).0;
        let slots = (first..first + layout.slots_per_block).map(Ppn);
        let data = slots.filter(|&slot| !medium.holds_map(layout.frame_of(slot)));
        data.map_while(|slot| medium.lpn(slot).ok()).map(|lpn| lpn.0).collect()
    };
    (0..layout.blocks()).map(of_block).collect()
}

#[test]
fn pages_of_a_group_share_blocks_with_no_other_group() {
    let groups = |store: &str, pages: &str| {
        let mut drive = drive(&[store, pages, "ftl.streams=2"]);
        random_writes(&mut drive, 2000);
        let mixed = |block: &Vec<u32>| {
            let group = |lpn: &u32| lpn / 16 % 2;
            block.iter().any(|lpn| group(lpn) != group(&block[0]))
        };
        let all = blocks(&drive);
        (all.iter().filter(|b| mixed(b)).count(), all.iter().filter(|b| b.len() > 1).count())
    };
    let (mixed, used) = groups("map.store=learnedftl", "map.group_pages=1");
    assert!(mixed == 0 && used > 20, "{mixed} of {used} blocks");
    // a store that does not choose frontiers mixes the groups in blocks
    let (mixed, used) = groups("map.store=tpftl", "map.prefetch_threshold=3");
    assert!(mixed > used / 2, "{mixed} of {used} blocks");
}

#[test]
fn collection_sorts_what_it_moves() {
    // the share of neighbouring pages in a block whose numbers ascend; with random writes it is one
    // half
    let ascending = |store: &str| {
        let mut drive = drive(&[store]);
        random_writes(&mut drive, 4000);
        let (mut up, mut all) = (0, 0);
        for pair in blocks(&drive).iter().flat_map(|block| block.windows(2)) {
            (up, all) = (up + u32::from(pair[0] < pair[1]), all + 1);
        }
        f64::from(up) / f64::from(all)
    };
    let (sorted, unsorted) = (ascending("map.store=learnedftl"), ascending("map.store=tpftl"));
    assert!((0.45..0.55).contains(&unsorted), "{unsorted}");
    // here about two pages in three are copies, in runs of about ten
    assert!(sorted > 0.65, "{sorted}");
}

#[test]
fn a_block_that_is_full_is_known_and_its_pages_are_read_without_the_map() {
    let mut drive = drive(&["map.store=learnedftl", "map.cache_bytes=44"]);
    (0..320).for_each(|unit| write(&mut drive, unit, 1));
    let count = |drive: &Ssd, key: &str| {
        let details = drive.ftl_report().map_details;
        details.iter().find(|(name, _)| *name == key).unwrap().1
    };
    assert_eq!(count(&drive, "pages_known"), 320, "twenty blocks of sixteen pages");
    drive.reset_counters();
    for unit in 0..320u64 {
        let read = Cmd::Read { lba: Lba(unit * 4), sectors: 4 };
        drive.submit(Ps::ZERO, Tag(0), read, &mut Reply::default()).unwrap();
    }
    let report = drive.ftl_report();
    let (hits, loads) = (count(&drive, "model_hits"), report.map_pages.loads);
    // two entries are in memory, and all other entries are predicted
    assert!(hits >= 318 && loads == 0, "{hits} predictions, {loads} map pages");
    // a page that is written loses its prediction, and no other page does
    write(&mut drive, 7, 2);
    assert_eq!((count(&drive, "pages_known"), count(&drive, "forgotten")), (319, 1));
}
