//! What a configuration accepts, and what it says of mistakes.

use flashatlas_device::Registry;
use flashatlas_ftl::{ENTRY_BYTES, UNIT};
use flashatlas_types::{Seed, Value};

fn error(name: &str, settings: &[&str]) -> String {
    let settings: Vec<String> = settings.iter().map(|&s| s.to_owned()).collect();
    Registry::DRIVES.load(name, None, &settings).unwrap_err().to_string()
}

#[test]
fn mistakes_are_named() {
    assert!(error("tinny", &[]).contains("did you mean `tiny`?"));
    assert!(error("tiny", &["ftl.scheme=pgae"]).contains("did you mean `page`?"));
    assert!(
        error("tiny", &["ftl.victm=greedy"])
            .starts_with("set: ftl.victm: no such key; did you mean `ftl.victim`?")
    );
    assert!(error("tiny", &["ftl.d=3"]).contains("belongs to ftl.victim = d-choices"));
    assert!(error("tiny", &["ftl.spare_pages=3"]).contains("belongs to ftl.scheme = block"));
    assert!(error("tiny", &["drive.over_provisioning=0.0001"]).contains("do not fit"));
    assert!(error("tiny", &["drive.allocation=CWDX"]).contains("C, W, D and P"));
    assert!(error("tiny", &["drive.logical_pages=4000000000"]).contains("the flash holds"));
    assert!(error("tiny", &["cache.bytes=1"]).contains("at least two frames"));
    assert!(error("tiny", &["nonsense"]).contains("expected key=value"));
}

#[test]
fn logs_that_cannot_work_say_what_would() {
    // 33792 blocks, 32768 of them for data, 2 for merges, 6 for trims (of 2 Mi pages, 130
    // frames of 64 a block, twice)
    let log = |settings: &[&str]| error("mast-4gb", settings);
    for (scheme, least) in [
        ("bast", 1),
        ("sast", 2),
        ("fast", 2),
        ("faster", 6),
        ("superblock", 1),
        ("last", 4),
        ("mast", 7),
    ] {
        let scheme = format!("ftl.scheme={scheme}");
        let refused =
            |n: u32| log(&[&scheme, &format!("ftl.log_blocks={n}"), "ftl.idle_log_blocks=0"]);
        assert!(refused(1023).contains("1023 log blocks: the scheme needs at least"), "{scheme}");
        assert!(refused(1023).ends_with("to 1016)"), "{scheme}");
        if least > 2 {
            assert!(
                refused(least - 1).contains(&format!("(allowed: {least} to 1016)")),
                "{scheme}"
            );
        }
        let fits =
            [scheme.clone(), format!("ftl.log_blocks={least}"), "ftl.idle_log_blocks=0".into()];
        Registry::DRIVES.load("mast-4gb", None, &fits).unwrap_or_else(|e| panic!("{e}"));
        assert!(
            log(&[&scheme, "map.unit=1KiB"])
                .contains("must be the whole frame (2048 bytes), not 1024")
        );
        assert!(
            log(&[&scheme, "ftl.idle_log_blocks=300"])
                .contains("300 log blocks to keep ready, of 256 in all")
        );
        let full = log(&[&scheme, "drive.logical_pages=2162600"]);
        assert!(
            full.contains("leave no room for the log") && full.contains("33792 blocks"),
            "{full}"
        );
    }
    let sizes = log(&["ftl.scheme=mast", "ftl.cold_blocks=10"]);
    assert_eq!(
        sizes,
        "ftl.log_blocks: the parts of the log sum to 106 log blocks, not to 256: \
         ftl.sequential_blocks 8, ftl.locality_blocks 24, ftl.hot_blocks 64, ftl.cold_blocks 10"
    );
    assert!(log(&["ftl.scheme=mast", "ftl.locality_blocks=1"]).ends_with("(allowed: 2 to 251)"));
    assert!(
        log(&["ftl.scheme=last", "ftl.hot_blocks=254"])
            .contains("ftl.cold_blocks: 0 log blocks, of 256")
    );
    assert!(
        log(&["ftl.scheme=faster", "ftl.isolation_blocks=254"]).ends_with("(allowed: 3 to 253)")
    );
    assert!(
        log(&["ftl.scheme=sast", "ftl.group_log_blocks=300"])
            .contains("there are 256 (ftl.log_blocks)")
    );
    assert!(log(&["ftl.scheme=mast", "ftl.migrate_valid=1.5"]).ends_with("(allowed: 0 to 1)"));
    assert!(
        log(&["ftl.scheme=last", "ftl.migrate_valid=0.5"]).contains("belongs to ftl.scheme = mast")
    );
}

#[test]
fn maps_that_cannot_work_say_what_would() {
    let hybrid =
        |settings: &[&str]| error("ufs-128gb", &[&["map.store=nvm-hybrid"], settings].concat());
    assert_eq!(
        hybrid(&["nvm.bytes=20000"]),
        "set: nvm.bytes: 20000 bytes are less than one slot: a segment of 32768 bytes and its \
         header take 32832 (give 0 for no NVM)"
    );
    assert!(
        hybrid(&["map.dense_share=0.9", "map.full_share=0.8"])
            .contains("lies above map.full_share")
    );
    assert_eq!(
        hybrid(&["map.entry_bytes=5"]),
        "set: map.entry_bytes: an entry of 5 bytes (allowed: 4, 8)"
    );
    assert_eq!(
        error("ufs-128gb", &["map.entry_bytes=6"]),
        "set: map.entry_bytes: an entry of 6 bytes (allowed: 4, 8)"
    );
    let large = hybrid(&["map.dram_bytes=64MiB"]);
    assert!(large.contains("33554432 pages needs 134217728 bytes, there are 67108864"), "{large}");
    assert!(
        hybrid(&["map.segment_bytes=3000"])
            .contains("map pages of 3000 bytes: expected a power of two")
    );
    assert!(hybrid(&["map.lanes=5"]).contains("5 lanes for map pages, the drive has 4"));
    for (store, least) in [
        ("demand", 16_384),
        ("dftl", 16),
        ("cdftl", 16_400),
        ("sftl", 18_774),
        ("tpftl", 44),
        ("learnedftl", 44),
        ("leaftl", 34_816),
    ] {
        let store = format!("map.store={store}");
        let refused = error("ufs-128gb", &[&store, &format!("map.cache_bytes={}", least - 1)]);
        assert!(refused.contains("are less than one request needs"), "{store}: {refused}");
        let fits = [store, format!("map.cache_bytes={least}")];
        Registry::DRIVES.load("ufs-128gb", None, &fits).unwrap_or_else(|e| panic!("{e}"));
    }
    assert!(error("ufs-128gb", &["map.gamma=1"]).contains("belongs to map.store = leaftl"));
    assert!(
        error("ufs-128gb", &["map.store=dftl", "map.flush=pages"])
            .contains("belongs to map.store = dram")
    );
    // the low water that is named fits, and one more does not
    let reserve = error("tiny", &["ftl.gc_mode=dual", "ftl.low_water=1000"]);
    assert!(reserve.starts_with("set: ftl.low_water: 640 logical units do not fit"), "{reserve}");
    let most: u64 =
        reserve.split("at most ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let with = |low: u64| {
        let settings = ["ftl.gc_mode=dual".to_owned(), format!("ftl.low_water={low}")];
        Registry::DRIVES.load("tiny", None, &settings)
    };
    assert!(with(most).is_ok() && with(most + 1).is_err(), "{reserve}");
    // a small drive has no room for that many map pages
    assert!(
        error("tiny", &["map.store=dftl", "map.over_provisioning=100"])
            .contains("map pages, which leaves room")
    );
}

/// The numbers of the host-cached map's paper: 128 GB, entries of 4 bytes, map pages of 16 KB.
#[test]
fn the_map_of_a_phone_has_the_size_that_its_paper_says() {
    let config = Registry::DRIVES.load("ufs-128gb", None, &["map.store=demand".into()]).unwrap();
    let units = u64::from(config.layout().unwrap().logical_units);
    let entry = u64::from(config.params.get(ENTRY_BYTES));
    let Some(&Value::Int(page)) = config.params.value("map.page_bytes") else {
        panic!("the store has map pages");
    };
    assert_eq!(units * entry, 128 << 20, "128 MB of map");
    assert_eq!(units * entry / page, 8192, "map pages");
    assert_eq!(page / entry * u64::from(config.params.get(UNIT)), 16 << 20, "16 MB each");
    let drive = config.build(Seed(1)).unwrap();
    let directory =
        drive.ftl_report().memory.iter().find(|m| m.table.contains("directory")).unwrap().bytes;
    assert_eq!(directory, 8192 * 4);
}

#[test]
fn the_capacity_is_what_was_said_last() {
    let units = |settings: &[&str]| {
        let settings: Vec<String> = settings.iter().map(|&s| s.to_owned()).collect();
        Registry::DRIVES.load("tlc-small", None, &settings).unwrap().layout().unwrap().logical_units
    };
    let slots = 8 * 104 * 128 * 2 * 4;
    assert_eq!(units(&[]), 720_896, "the preset's logical pages");
    assert_eq!(units(&["drive.over_provisioning=0.25"]), slots * 4 / 5);
    assert_eq!(units(&["drive.over_provisioning=0.25", "drive.logical_pages=1000"]), 1000);
    let both = "[drive]\nbase = \"tiny\"\nlogical_pages = 9\nover_provisioning = 0.5\n";
    let error = Registry::DRIVES.load("mine.toml", Some(both), &[]).unwrap_err().to_string();
    assert!(
        error.starts_with("mine.toml:3:1: drive.logical_pages: is given together with"),
        "{error}"
    );
}

#[test]
fn a_file_may_build_on_a_preset() {
    let config = Registry::DRIVES
        .load("mine.toml", Some("[drive]\nbase = \"tiny\"\nplanes = 2\n"), &[])
        .unwrap();
    assert_eq!(config.params.value("drive.planes"), Some(&Value::Int(2)));
    assert_eq!(config.params.value("drive.cell"), Some(&Value::Text("slc".into())));
    let wrong =
        |text: &str| Registry::DRIVES.load("mine.toml", Some(text), &[]).unwrap_err().to_string();
    let error = wrong("[drive]\nbase = \"tiny\"\n[ftl]\nvictim = \"gredy\"\n");
    assert!(
        error.starts_with("mine.toml:4:1: ftl.victim: victim policy `gredy` is not known"),
        "{error}"
    );
    let error = wrong("[drive]\nbase = \"tiny\"\n[ftl]\nscheme = \"pgae\"\n");
    assert!(error.starts_with("mine.toml:4:1: ftl.scheme: "), "{error}");
}
