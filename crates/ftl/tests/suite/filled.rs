//! A blank drive that is filled without its tables, compared with a drive that is written page by
//! page. Map pages are written at other times by the two, so no map is on flash here.

use flashatlas_device::{DriveConfig, Registry, Ssd, Storage};
use flashatlas_fixtures::proofs;
use flashatlas_nand::{Counters, Image, Unit};
use flashatlas_types::{Lpn, Ppn, Rng, Seed, Stamp};
use std::collections::BTreeMap;

const CASES: usize = 4_000;

/// Values of each setting. The first value is the default.
const SETTINGS: &[(&str, &[&str])] = &[
    ("map.unit", &["2KiB", "512", "4KiB"]),
    ("drive.planes", &["1", "2"]),
    ("drive.frame_channels", &["1", "2"]),
    ("drive.allocation", &["CWDP", "PDWC"]),
    ("drive.blocks", &["32", "24", "64"]),
    ("nand.factory_bad", &["0", "100000", "250000"]),
    ("nand.program_order", &["strict", "any"]),
    ("nand.data", &["none", "none", "none", "ram"]),
    ("ftl.scheme", &["page", "page", "page", "page", "page", "page", "fast"]),
    ("ftl.gc_mode", &["dual", "dual", "single"]),
    ("ftl.gc_pace", &["burst", "burst", "even", "paced"]),
    ("ftl.low_water", &["0", "4"]),
    ("ftl.streams", &["1", "1", "1", "2"]),
    ("ftl.classifier", &["none", "none", "none", "dac"]),
    ("ftl.wear_dynamic", &["true", "false"]),
    ("ftl.victim", &["greedy", "cost-benefit", "fifo"]),
];

/// Settings with which the result of a fill depends on more than the page order.
const BY_WRITES: &[&str] = &["ftl.classifier=dac", "ftl.scheme=fast", "ftl.streams=2"];

/// Draws a value of each key, and returns the settings that differ from the first value.
pub(crate) fn drawn_settings(rng: &mut Rng, choices: &[(&str, &[&str])]) -> Vec<String> {
    let chosen = choices.iter().filter_map(|&(key, values)| {
        let value = values[rng.below(values.len() as u64) as usize];
        (value != values[0]).then(|| format!("{key}={value}"))
    });
    chosen.collect()
}

/// Returns a drive with random settings that exports as many units as it can, or a few less.
///
/// Some of its lanes have more bad blocks than others, and may have to collect.
fn drawn(rng: &mut Rng) -> Option<(Vec<String>, DriveConfig)> {
    let mut settings = drawn_settings(rng, SETTINGS);
    let with = |units: u32| {
        let mut all = settings.clone();
        all.push(format!("drive.logical_pages={units}"));
        let config = Registry::DRIVES.load("tiny", None, &all).ok()?;
        config.build(Seed(1)).ok().map(|_| config)
    };
    let (mut most, mut too_many) = (0, 1 << 14);
    while too_many - most > 1 {
        let middle = (most + too_many) / 2;
        *(if with(middle).is_some() { &mut most } else { &mut too_many }) = middle;
    }
    let units = most.saturating_sub(if rng.chance(300_000) { 0 } else { rng.below(90) as u32 });
    let config = with(units)?;
    settings.push(format!("drive.logical_pages={units}"));
    Some((settings, config))
}

fn stamp(lpn: Lpn) -> Stamp {
    Stamp(lpn.0 * 3 + 1)
}

/// Returns the medium of a drive as an image, and the counters of the medium. If the drive keeps
/// bytes, which no image holds, returns all units with their bytes instead.
fn left(drive: Ssd) -> (Option<Image>, Vec<Option<Unit>>, Counters) {
    let medium = drive.into_medium();
    let counters = medium.counters;
    if !medium.rules().keep_bytes {
        return (Some(medium.into_image()), Vec::new(), counters);
    }
    let units: Vec<_> =
        (0..medium.layout().slots()).map(|slot| medium.unit(Ppn(slot)).ok()).collect();
    let bytes = |unit: &Unit| unit.bytes.is_some() || unit.lpn == Lpn::NONE;
    assert!(units.iter().flatten().all(bytes));
    (None, units, counters)
}

#[test]
fn a_blank_drive_holds_what_writes_of_every_page_leave() {
    let mut rng = Rng::stream(Seed(3), "filled");
    let (mut built, mut faster) = (0, 0);
    // for each setting, the numbers of drives that were filled page by page and by the faster way
    let mut seen: BTreeMap<String, [u32; 2]> = BTreeMap::new();
    for _ in 0..proofs::cases(CASES) {
        let Some((settings, config)) = drawn(&mut rng) else { continue };
        let mut blank = config.build(Seed(1)).unwrap();
        built += 1;
        let mut told = Vec::new();
        let filled = blank.fill_blank(&stamp, &mut |pages| {
            told.push(pages);
            true
        });
        for setting in &settings {
            seen.entry(setting.clone()).or_default()[usize::from(filled.is_some())] += 1;
        }
        let Some(all) = filled else {
            assert_eq!(blank.medium().sequence(), 0, "{settings:?}");
            continue;
        };
        assert!(all && !told.is_empty());
        faster += 1;
        let mut written = config.build(Seed(1)).unwrap();
        written.fill(stamp).unwrap_or_else(|e| panic!("{settings:?}: {e}"));
        assert_eq!(written.ftl_report().collected, [0; 3], "{settings:?}");
        blank.power_cycle(&config, Seed(1)).unwrap();
        written.power_cycle(&config, Seed(1)).unwrap();
        blank.check().unwrap();
        assert_eq!(left(blank), left(written), "{settings:?}");
    }
    assert!(built > 60 && 5 * faster > built, "{faster} of {built}");
    seen.retain(|setting, both| !setting.starts_with("drive.logical") && both[0] + both[1] > 20);
    for (setting, [by_writes, faster]) in seen {
        let never = BY_WRITES.contains(&setting.as_str());
        assert!(by_writes > 0 && (faster == 0) == never, "{setting}: {by_writes}, {faster}");
    }
}
