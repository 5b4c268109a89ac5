//! Drives whose content before a run is computed, compared with drives on which it was programmed.

use crate::filled::drawn_settings;
use flashatlas_device::{Cmd, Device, DriveConfig, Registry, Reply, Ssd, Storage};
use flashatlas_fixtures::proofs;
use flashatlas_types::{Lba, Lpn, Ps, Rng, Seed, Stamp, StampSum, Tag};
use std::collections::BTreeMap;

const CASES: usize = 400;

/// Values of each setting. The first value is the default.
const SETTINGS: &[(&str, &[&str])] = &[
    ("map.unit", &["2KiB", "512", "4KiB"]),
    ("map.store", STORES),
    ("map.flush", &["none", "pages", "segments", "whole"]),
    ("map.page_bytes", &["1KiB", "512", "2KiB", "64"]),
    ("map.segment_bytes", &["1KiB", "4KiB", "256"]),
    ("map.entry_bytes", &["4", "4", "8"]),
    ("map.cache_bytes", &["8KiB", "4KiB", "16KiB"]),
    ("map.pack", &["true", "false"]),
    ("map.directory", &["spare", "page"]),
    ("map.lanes", &["0", "1", "2"]),
    ("map.roll_forward", &["true", "false"]),
    ("map.over_provisioning", &["1", "0.1"]),
    ("nvm.bytes", &["0", "2KiB", "16KiB"]),
    ("drive.planes", &["1", "2"]),
    ("drive.allocation", &["CWDP", "PDWC"]),
    ("drive.blocks", &["32", "24", "64"]),
    ("nand.factory_bad", &["0", "100000"]),
    ("nand.program_order", &["strict", "any"]),
    ("nand.spare_blocks", &["0", "2"]),
    ("nand.data", &["none", "none", "none", "none", "ram"]),
    ("cache.mode", &["write-back", "write-through"]),
    ("ftl.gc_mode", &["dual", "dual", "single"]),
    ("ftl.gc_pace", &["burst", "burst", "even", "paced"]),
    ("ftl.low_water", &["0", "4"]),
    ("ftl.classifier", &["none", "none", "none", "dac"]),
    ("ftl.wear_dynamic", &["true", "false"]),
    ("ftl.wear_static", &["false", "true"]),
    ("ftl.idle_free", &["0", "3"]),
    ("ftl.victim", &["greedy", "cost-benefit", "fifo", "random", "d-choices"]),
];

/// Map stores. Half of the drives have no map on flash.
const STORES: &[&str] = &[
    "dram",
    "dram",
    "dram",
    "dram",
    "dram",
    "nvm-hybrid",
    "nvm-hybrid",
    "demand",
    "dftl",
    "cdftl",
    "sftl",
    "tpftl",
    "leaftl",
    "learnedftl",
];

/// Settings with which nothing is computed.
const NEVER: &[&str] = &["nand.data=ram"];

fn stamp(lpn: Lpn) -> Stamp {
    Stamp(lpn.0 * 3 + 1)
}

/// Returns a drive with random settings, which exports a part of its units.
fn drawn(rng: &mut Rng) -> Option<(Vec<String>, DriveConfig)> {
    let mut settings = drawn_settings(rng, SETTINGS);
    let set = |key: &str, value: &str| settings.iter().any(|s| *s == format!("{key}={value}"));
    let on_demand = &STORES[7..];
    let is_on_demand = on_demand.iter().any(|store| set("map.store", store));
    let is_hybrid = set("map.store", "nvm-hybrid");
    let of = |names: &[&str]| names.iter().any(|name| set("map.flush", name));
    let flushes_segments = !is_on_demand && (is_hybrid || of(&["segments", "whole"]));
    let writes = is_on_demand || is_hybrid || of(&["pages", "segments", "whole"]);
    // settings that the drawn store lacks or does not look at are left out
    settings.retain(|setting| match setting.split('=').next().expect("a key") {
        "map.flush" => !is_on_demand && !is_hybrid,
        "map.cache_bytes" => is_on_demand,
        "map.segment_bytes" => flushes_segments,
        "map.page_bytes" => writes && !flushes_segments,
        "map.roll_forward" | "map.directory" => writes && !is_on_demand,
        "nvm.bytes" => is_hybrid,
        "map.pack" | "map.lanes" | "map.over_provisioning" => writes,
        _ => true,
    });
    if writes {
        settings.push("drive.spare_bytes=256".into()); // several map pages fit into a frame
    }
    let config = Registry::DRIVES.load("tiny", None, &settings).ok()?;
    let slots = u64::from(config.layout().ok()?.slots());
    let units = slots * (50 + rng.below(30)) / 100 - rng.below(9);
    settings.push(format!("drive.logical_pages={units}"));
    let config = Registry::DRIVES.load("tiny", None, &settings).ok()?;
    config.build(Seed(1)).ok().map(|_| (settings, config))
}

/// Returns a drive whose content is computed, and one on which it was programmed. Both are filled,
/// or both are in the steady state. Returns `None` if the drive has no such state, or computes
/// none.
fn prepared(config: &DriveConfig, steady: bool) -> Option<[Ssd; 2]> {
    let mut laid = config.build(Seed(1)).ok()?;
    let mut dense = config.build(Seed(1)).ok()?;
    if steady {
        if !laid.lay_steady(config, Seed(1), stamp).ok()? {
            return None;
        }
        assert!(dense.make_steady(config, Seed(1), &stamp, &mut |_| true).unwrap());
    } else {
        if !laid.lay_filled(config, stamp) {
            return None;
        }
        assert_eq!(dense.fill_blank(&stamp, &mut |_| true), Some(true));
    }
    let mut both = [laid, dense];
    for drive in &mut both {
        drive.write_map(config, Seed(1)).unwrap();
        drive.power_cycle(config, Seed(1)).unwrap();
    }
    assert_eq!(
        both.each_ref().map(|drive| drive.medium().base_under_map().is_some()),
        [true, false]
    );
    assert!(both[0].sum_of_stamps().is_some_and(StampSum::has_changes_alone));
    Some(both)
}

/// Compares the tables of both drives, and the sums of both with the pages.
fn agree(both: &[Ssd; 2], settings: &[String]) {
    let units = both[0].layout().logical_units;
    both.iter().for_each(|drive| drive.check().unwrap_or_else(|e| panic!("{settings:?}: {e}")));
    let said = |drive: &Ssd| {
        let places: Vec<_> = (0..units).map(|lpn| drive.place(Lpn(lpn))).collect();
        let mut blocks = Vec::new();
        drive.for_each_block(&mut |block, role, valid| blocks.push((block, role, valid)));
        let report = drive.ftl_report();
        let map = (report.map, report.map_pages, report.map_details, report.mount);
        (places, blocks, drive.medium().counters.programs, format!("{map:?}"))
    };
    assert!(said(&both[0]) == said(&both[1]), "{settings:?}");
    let held = |drive: &Ssd, lpn| drive.peek_stamp(Lpn(lpn)).unwrap();
    let mut sums = [StampSum::default(), StampSum::default()];
    let has_changes_alone = both[0].sum_of_stamps().is_some_and(StampSum::has_changes_alone);
    for lpn in 0..units {
        let now = held(&both[0], lpn);
        assert_eq!(now, held(&both[1], lpn), "{settings:?}: page {lpn}");
        sums[1].add(Lpn(lpn), now);
        if has_changes_alone {
            sums[0].replace(Lpn(lpn), stamp(Lpn(lpn)), now);
        } else {
            sums[0].add(Lpn(lpn), now);
        }
    }
    if has_changes_alone {
        sums[0].count_changes_alone();
    }
    assert_eq!(both.each_ref().map(|drive| drive.sum_of_stamps().unwrap()), sums, "{settings:?}");
}

/// Returns a random command. Most touch whole units.
fn command(rng: &mut Rng, sectors: u64, content: u64) -> Cmd<'static> {
    let count = [1, 3, 4, 8, 8, 16, 64][rng.below(7) as usize];
    let lba = Lba(rng.below(sectors - u64::from(count)) / 8 * 8);
    match rng.below(20) {
        0..=12 => Cmd::Write { lba, sectors: count, fua: rng.chance(50_000), content, data: None },
        13..=16 => Cmd::Read { lba, sectors: count },
        17 | 18 => Cmd::Trim { lba, sectors: count },
        _ => Cmd::Flush,
    }
}

/// Switches both drives on again, after the power has failed in some operation.
fn mounted(both: [Ssd; 2], config: &DriveConfig) -> [Ssd; 2] {
    both.map(|drive| {
        let mut medium = drive.into_medium();
        medium.restore_power();
        config.build_on(medium, Seed(1)).unwrap()
    })
}

#[test]
fn a_computed_drive_does_what_a_programmed_one_does() {
    let mut rng = Rng::stream(Seed(7), "computed");
    let (mut compared, mut cuts, mut collected) = ([0; 2], 0, 0);
    // for each setting, the numbers of drives that compute nothing, and of those that do
    let mut seen: BTreeMap<String, [u32; 2]> = BTreeMap::new();
    for _ in 0..proofs::cases(CASES) {
        let one = (0..10).find_map(|_| drawn(&mut rng));
        let Some((mut settings, config)) = one else { continue };
        let steady = rng.chance(500_000);
        let prepared = prepared(&config, steady);
        if !steady {
            for setting in &settings {
                seen.entry(setting.clone()).or_default()[usize::from(prepared.is_some())] += 1;
            }
        }
        let Some(mut both) = prepared else { continue };
        compared[usize::from(steady)] += 1;
        settings.push(format!("steady={steady}"));
        agree(&both, &settings);
        let sectors = both[0].sectors();
        'drive: for round in 0..4 {
            both.iter_mut().for_each(|drive| drive.set_instant(true));
            let cut = rng.chance(500_000).then(|| rng.below(400));
            if let Some(operations) = cut {
                both.iter_mut().for_each(|drive| drive.faults().cut_power_after(operations));
            }
            for number in 0..400 {
                let cmd = command(&mut rng, sectors, round * 1000 + number);
                let mut replies = [Reply::default(), Reply::default()];
                let [first, second] =
                    [0, 1].map(|of| both[of].submit(Ps::ZERO, Tag(0), cmd, &mut replies[of]));
                assert_eq!(first, second, "{settings:?}");
                assert_eq!(replies[0].stamps, replies[1].stamps, "{settings:?}");
                if first.is_err() {
                    cuts += u32::from(cut.is_some());
                    if cut.is_none() {
                        break 'drive; // no space is left
                    }
                    break;
                }
            }
            collected += both[0].ftl_report().collected.iter().sum::<u64>();
            if cut.is_some() {
                both = mounted(both, &config);
            }
            both.iter_mut().for_each(|drive| drive.set_instant(false));
            agree(&both, &settings);
            if rng.chance(200_000) {
                both.iter_mut().for_each(|drive| drive.power_cycle(&config, Seed(1)).unwrap());
                agree(&both, &settings);
            }
        }
        let [laid, dense] = both.map(|drive| drive.into_medium().into_image());
        assert!(laid == dense, "{settings:?}");
    }
    let least = proofs::cases(CASES) as u32 / 20;
    assert!(compared.iter().all(|&count| count >= least), "{compared:?}");
    assert!(cuts > least && collected > u64::from(least), "{cuts}, {collected}");
    seen.retain(|setting, both| !setting.starts_with("drive.logical") && both[0] + both[1] > 20);
    for (setting, [_, computed]) in seen {
        let never = NEVER.contains(&setting.as_str());
        assert_eq!(computed == 0, never, "{setting}");
    }
}
