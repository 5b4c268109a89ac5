//! Prepared drives whose map is on flash: their map is clean, and each of its pages is there once.

use crate::map_stores::{STORES, config};
use flashatlas_device::Storage;
use flashatlas_nand::{Medium, OobRole};
use flashatlas_types::{Lpn, Seed, Stamp};

fn stamp(lpn: Lpn) -> Stamp {
    Stamp(lpn.0 + 1)
}

/// Returns the map pages on flash, in the order of their programs.
fn map_programs(medium: &Medium) -> Vec<u32> {
    let layout = medium.layout();
    let is_map = |block: &_| medium.oob_role(*block) == OobRole::MAP;
    let mut found: Vec<(u64, Vec<u32>)> = Vec::new();
    for block in layout.block_ids().filter(is_map) {
        for frame in (0..medium.write_pointer(block)).map(|index| layout.frame_in(block, index)) {
            let spare = medium.spare(frame).unwrap();
            let mut pages: Vec<u32> = spare.lpns().map(|lpn| lpn.0).collect();
            pages.retain(|&page| page != Lpn::NONE.0);
            pages.dedup(); // a page of the map may take several slots
            found.push((spare.sequence, pages));
        }
    }
    found.sort_unstable();
    found.into_iter().flat_map(|(_, pages)| pages).collect()
}

#[test]
fn a_prepared_drive_has_each_map_page_once_and_in_order() {
    let mut steady = 0;
    for (number, settings) in STORES.iter().enumerate() {
        let roomy = [settings, &["drive.blocks=60"][..]].concat();
        let config = config(&roomy);
        for way in ["fill", "blank", "steady"] {
            let mut drive = config.build(Seed(1)).unwrap();
            let context = format!("{number}, {way}: {settings:?}");
            match way {
                "fill" => drive.fill(stamp).unwrap(),
                "blank" => {
                    assert_eq!(drive.fill_blank(&stamp, &mut |_| true), Some(true), "{context}");
                }
                _ => {
                    let made = drive.make_steady(&config, Seed(1), &stamp, &mut |_| true);
                    assert!(made.unwrap_or_else(|e| panic!("{context}: {e}")));
                    steady += 1;
                }
            }
            drive.write_map(&config, Seed(1)).unwrap();
            drive.power_cycle(&config, Seed(1)).unwrap();
            drive.check().unwrap();
            let report = drive.ftl_report();
            let mount = &report.mount;
            assert_eq!((mount.rolled_forward, mount.map_page_writes), (0, 0), "{context}");
            let programmed = map_programs(drive.medium());
            let pages = mount.map_page_reads as u32;
            let directory = u32::from(settings.contains(&"map.directory=page"));
            let one = settings.contains(&"map.lanes=1");
            let lanes = if one { 1 } else { drive.layout().lanes };
            let mut expected: Vec<u32> = (0..pages).collect();
            expected.sort_by_key(|page| (page % lanes, *page));
            expected.extend(pages..pages + directory); // a mount reads no page of the directory
            // a fill page by page has written map pages before
            let erased = drive.medium().erase_counts().iter().any(|&erases| erases > 0);
            assert!(way == "fill" || !erased && programmed.len() == expected.len(), "{context}");
            assert!(programmed.ends_with(&expected), "{context}: {programmed:?}, {expected:?}");
        }
    }
    assert_eq!(steady, STORES.len());
}
