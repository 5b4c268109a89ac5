//! Maps on flash that age: what a mount does with their open blocks, and what is refused.

use crate::refresh::LINEAR;
use flashatlas_device::{Cmd, Device, DriveConfig, Registry, Reply, Ssd, Storage, SubmitError};
use flashatlas_types::{Cause, ConfigError, FtlError, Lba, Lpn, MediumError, Ps, Seed, Tag};

/// Settings over [`LINEAR`], with which the code corrects 72 bits and no more. After two days, 65.5
/// bits are wrong in the mean, with a deviation of 8: of the pages of two codewords, a third is
/// lost.
const HARD: [&str; 4] =
    ["cache.mode=write-through", "errors.block_spread=0", "ecc.code=ldpc", "ecc.retry_gain=1"];

fn config(more: &[&str]) -> Result<DriveConfig, ConfigError> {
    let settings: Vec<String> = LINEAR.iter().chain(&HARD).chain(more).map(|&s| s.into()).collect();
    Registry::DRIVES.load("tiny", None, &settings)
}

fn submit(drive: &mut Ssd, cmd: Cmd<'_>) -> Result<(), SubmitError> {
    drive.submit(Ps::ZERO, Tag(0), cmd, &mut Reply::default())
}

fn write(drive: &mut Ssd, unit: u64, content: u64) -> Result<(), SubmitError> {
    submit(drive, Cmd::Write { lba: Lba(4 * unit), sectors: 4, fua: false, content, data: None })
}

/// The blocks that were open before the rest would take new pages, which would count as old. Many
/// would be lost before they are read for the first time, and a lost page of the map ends the run.
#[test]
fn a_map_on_flash_goes_on_after_a_rest_in_blocks_that_are_young() {
    for store in ["demand", "dftl", "cdftl", "sftl", "tpftl", "leaftl", "learnedftl"] {
        let store_key = format!("map.store={store}");
        let config = config(&[&store_key, "map.cache_bytes=8KiB", "map.page_bytes=2KiB"]).unwrap();
        let mut drive = config.build(Seed(1)).unwrap();
        let units = u64::from(drive.layout().logical_units);
        drive.set_instant(true);
        for (content, unit) in (1..).zip((0..units).step_by(3)) {
            write(&mut drive, unit, content).unwrap();
        }
        submit(&mut drive, Cmd::Flush).unwrap();
        drive.faults().rest(2 * 86_400);
        drive.power_cycle(&config, Seed(1)).unwrap();
        drive.set_instant(true);
        let mut lost = 0;
        for round in 0..4_u64 {
            for unit in (0..units).step_by(5) {
                write(&mut drive, unit, 1000 + round * units + unit)
                    .unwrap_or_else(|e| panic!("{store}, round {round}, unit {unit}: {e}"));
                let other = (unit * 7 + round) % units;
                let read = submit(&mut drive, Cmd::Read { lba: Lba(4 * other), sectors: 4 });
                let is_lost = |e: &SubmitError| {
                    matches!(e, SubmitError::Ftl(FtlError::Medium(MediumError::Unreadable(_))))
                };
                assert!(read.as_ref().map_or_else(is_lost, |()| true), "{store}: {read:?}");
                lost += u32::from(read.is_err());
            }
            submit(&mut drive, Cmd::Flush).unwrap();
        }
        assert!(lost > 0, "{store}: data of before the rest is lost");
    }
}

/// Two map pages lie in one block. The program of the third fails, and a spare block takes the
/// block's place. Each read makes its page unreadable, also the reads of this copy. So both pages
/// are lost, and the store does not know it.
#[test]
fn a_map_page_that_is_lost_on_the_way_to_a_spare_block_is_found_when_it_is_needed() {
    let more = [
        "map.store=demand",
        "map.page_bytes=512",
        "map.cache_bytes=512",
        "map.lanes=1",
        "cache.mode=write-through",
        "nand.spare_blocks=1",
        "errors.unreadable=1000000",
    ]
    .map(str::to_owned);
    let config = Registry::DRIVES.load("tiny", None, &more).unwrap();
    let mut drive = config.build(Seed(1)).unwrap();
    drive.set_instant(true);
    // a page of the map has 128 entries, and memory has room for one
    for unit in [0, 128, 256] {
        write(&mut drive, unit, unit + 1).unwrap();
    }
    drive.check().unwrap();
    // the data of the next write, and then the page of the map that it displaces
    drive.faults().fail_program_after(1);
    write(&mut drive, 384, 385).unwrap();
    let counters = &drive.medium().counters;
    let replaced = Cause::Replace as usize;
    assert_eq!((counters.programs[replaced], counters.errors.failed_reads), (1, 2));
    drive.check().unwrap();
    let needed = submit(&mut drive, Cmd::Read { lba: Lba(0), sectors: 4 });
    let is_lost = |e: &SubmitError| {
        matches!(e, SubmitError::Ftl(FtlError::Medium(MediumError::Unreadable(_))))
    };
    assert!(needed.as_ref().is_err_and(is_lost), "{needed:?}");
    // spare areas of data have what the pages had
    drive.power_cycle(&config, Seed(1)).unwrap();
    assert_eq!(drive.ftl_report().mount.damaged_map_pages, 2);
    for unit in [0_u32, 128, 256, 384] {
        assert!(drive.peek(Lpn(unit)).unwrap().is_some(), "{unit}");
    }
    drive.check().unwrap();
}

#[test]
fn a_map_without_roll_forward_is_refused_where_its_pages_may_be_lost() {
    for store in ["map.store=dram", "map.store=nvm-hybrid"] {
        let of_dram = if store.ends_with("dram") { "map.flush=pages" } else { "nvm.bytes=4KiB" };
        let refused = config(&[store, of_dram, "map.roll_forward=false"]);
        assert_eq!(refused.unwrap_err().key, "map.roll_forward", "{store}");
    }
    let load = |rate: &str| {
        let more = ["map.flush=pages", "map.roll_forward=false", rate].map(str::to_owned);
        Registry::DRIVES.load("tiny", None, &more)
    };
    assert_eq!(load("errors.unreadable=1").unwrap_err().key, "map.roll_forward");
    load("errors.erase_failures=1").unwrap();
}
