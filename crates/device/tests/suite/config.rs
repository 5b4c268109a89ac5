//! Settings that a configuration accepts, and its messages about mistakes.

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
fn planes_that_are_read_together_are_not_independent() {
    let independent = "timing.plane_reads=independent";
    let why = error("tlc-nvme-1tb", &[independent]);
    assert!(why.starts_with("set: timing.plane_reads: a frame covers the 4 planes"), "{why}");
    // two frames side by side on a die are read independently
    let halves = [independent.to_owned(), "drive.frame_planes=2".to_owned()];
    assert!(Registry::DRIVES.load("tlc-nvme-1tb", None, &halves).is_ok());
}

#[test]
fn logs_that_cannot_work_say_what_would() {
    // the drive has 33792 blocks: 32768 for data, 2 for merges and 6 for trims; a trim record of 2
    // Mi pages needs 130 frames, which are 3 blocks of 64 frames, and there are two records
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
        assert!(
            refused(1023).contains("1023 log blocks are not possible: the scheme needs"),
            "{scheme}"
        );
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
                .contains("300 log blocks cannot be kept ready: the log has 256")
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
        "set: ftl.cold_blocks: with 10 and ftl.scheme=mast (`set`), ftl.log_blocks is refused: the \
         parts of the log have 106 log blocks in sum, but the log has 256: ftl.sequential_blocks \
         8, ftl.locality_blocks 24, ftl.hot_blocks 64, ftl.cold_blocks 10"
    );
    assert!(log(&["ftl.scheme=mast", "ftl.locality_blocks=1"]).ends_with("(allowed: 2 to 251)"));
    assert!(
        log(&["ftl.scheme=last", "ftl.hot_blocks=254"])
            .contains("254 and ftl.scheme=last (`set`), ftl.cold_blocks is refused: 0 log blocks")
    );
    assert!(
        log(&["ftl.scheme=faster", "ftl.isolation_blocks=254"]).ends_with("(allowed: 3 to 253)")
    );
    assert!(
        log(&["ftl.scheme=sast", "ftl.group_log_blocks=300"])
            .contains("all groups together have 256 (ftl.log_blocks)")
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
         header take 32832 bytes (give 0 for no NVM)"
    );
    assert!(
        hybrid(&["map.dense_share=0.9", "map.full_share=0.8"]).contains("is above map.full_share")
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
    assert!(large.contains("33554432 pages needs 134217728 bytes, but only 67108864"), "{large}");
    assert!(
        hybrid(&["map.segment_bytes=3000"])
            .contains("map pages of 3000 bytes do not fit: the size must be a power of two")
    );
    assert!(
        hybrid(&["map.lanes=5"]).contains("5 lanes for map pages are too many: the drive has 4")
    );
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
    // the low-water mark that the message names fits, and a mark higher by one does not
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
            .contains("which leaves room")
    );
}

/// Checks the numbers in the paper on the host-cached map: 128 GB, entries of 4 bytes, map pages of
/// 16 KB.
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
fn a_capacity_in_bytes_keeps_the_spare_share() {
    let shape = |drive: &str, file: Option<&str>, settings: &[&str]| {
        let settings: Vec<String> = settings.iter().map(|&s| s.to_owned()).collect();
        let config = Registry::DRIVES.load(drive, file, &settings).unwrap();
        let layout = config.layout().unwrap();
        assert_eq!(config.params.value("drive.capacity"), Some(&Value::Int(0)));
        (layout.logical_units, layout.geometry.blocks)
    };
    // 222 blocks of 1,152 pages of 4 units on 256 planes hold 1.07245 times the exported units; in
    // units of 16 KiB, a block on each plane holds 294,912 units
    let large =
        (3_750_000_000, (3.75e9 * 261_881_856.0 / 244_190_646.0 / 294_912f64).ceil() as u32);
    let one = "drive.capacity=61.44TB";
    assert_eq!(large.1, 13_637);
    assert_eq!(shape("tlc-nvme-1tb", None, &[one, "map.unit=16KiB"]), large);
    assert_eq!(shape("tlc-nvme-1tb", None, &["map.unit=16KiB", one]), large);
    // a share or a number of blocks beside it is honoured, in any order
    let tenth = (3_750_000_000, (3.75e9 * 1.1 / 294_912f64).ceil() as u32);
    let share = "drive.over_provisioning=0.1";
    assert_eq!(shape("tlc-nvme-1tb", None, &[one, share, "map.unit=16KiB"]), tenth);
    assert_eq!(shape("tlc-nvme-1tb", None, &[share, one, "map.unit=16KiB"]), tenth);
    let blocks = ["drive.blocks=14000", "map.unit=16KiB", one];
    assert_eq!(shape("tlc-nvme-1tb", None, &blocks), (3_750_000_000, 14_000));
    // what is not a whole unit is not exported
    assert_eq!(shape("tlc-small", None, &["drive.capacity=1073745919"]).0, 1 << 18);
    // the last of two says how much is exported; a file is changed as a preset is
    let pages = ["drive.capacity=1GiB", "drive.logical_pages=1000"];
    assert_eq!(shape("tlc-small", None, &pages), (1000, 104));
    let file = Some("[drive]\nbase = \"tlc-small\"\ncapacity = \"1GiB\"\n");
    assert_eq!(shape("mine.toml", file, &[]).0, 1 << 18);
    assert_eq!(shape("mine.toml", file, &["drive.capacity=2GiB"]).0, 1 << 19);
    assert_eq!(shape("mine.toml", file, &["drive.over_provisioning=0.25"]).0, 1 << 18);
    assert_eq!(shape("mine.toml", file, &["drive.logical_pages=720896"]), (720_896, 104));
    let config = Registry::DRIVES.load("tlc-small", None, &[]).unwrap();
    let half = config.with(&["drive.capacity=1408MiB".into()]).unwrap().layout().unwrap();
    assert_eq!((half.logical_units, half.geometry.blocks), (720_896 / 2, 52));
}

#[test]
fn a_capacity_that_cannot_be_is_refused_by_name() {
    let said = error("tlc-small", &["drive.capacity=4095"]);
    assert!(said.starts_with("set: drive.capacity: 4095 bytes are less than a mapping"), "{said}");
    let said = error("tiny", &["drive.capacity=1024TiB"]);
    assert!(said.starts_with("set: drive.capacity: "), "{said}");
    assert!(said.contains("a plane has at most 1048576"), "{said}");
    // 15 thousand million units have no 32-bit number
    let said = error("tlc-nvme-1tb", &["drive.capacity=61.44TB"]);
    assert!(said.starts_with("set: drive.capacity: with 61.44TB, map.unit=4kib"), "{said}");
    let said = error("tlc-small", &["drive.capacity=4GiB", "drive.blocks=104"]);
    assert!(said.starts_with("set: drive.blocks: with 104 and drive.capacity=4GiB"), "{said}");
    let both = "[drive]\nbase = \"tiny\"\nlogical_pages = 9\ncapacity = \"1MiB\"\n";
    let said = Registry::DRIVES.load("mine.toml", Some(both), &[]).unwrap_err().to_string();
    assert!(said.starts_with("mine.toml:3:1: drive.logical_pages: is given together"), "{said}");
    assert!(said.contains("drive.capacity"), "{said}");
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
    let error = wrong("[drive]\nbase = \"tinny\"\n");
    assert!(error.starts_with("mine.toml:2:1: drive.base: drive `tinny` is not known"), "{error}");
    assert_eq!(
        wrong("[drive.base]\nname = \"tiny\"\n"),
        "mine.toml:1:8: drive.base: is a value, not a section: write `base = VALUE` \
         under [drive]"
    );
}

#[test]
fn a_setting_that_does_not_go_with_the_preset_is_to_blame() {
    // 64 dies have one lane each, with 900,000 blocks of 1152 pages. A page of 16 KiB on four
    // planes has 16 units of 4 KiB. So there are 64 x 900,000 x 1152 x 16 units, and 32-bit numbers
    // can name 4.29 thousand million
    let units = 64_u64 * 900_000 * 1152 * 16;
    let toml = Registry::DRIVES.preset("tlc-nvme-1tb").unwrap().toml;
    let line = toml.lines().position(|line| line.starts_with("unit = ")).unwrap() + 1;
    let said = error("tlc-nvme-1tb", &["drive.blocks=900000"]);
    let begins = format!(
        "set: drive.blocks: with 900000, map.unit=4kib (devices/tlc-nvme-1tb.toml:{line}:1) is \
         refused: {units} physical units"
    );
    assert!(said.starts_with(&begins), "{said}");
    // settings that do not affect the error are not named, whatever their position
    let others = ["timing.t_read=1us", "drive.blocks=900000", "ftl.victim=fifo"];
    assert_eq!(error("tlc-nvme-1tb", &others), said);
    assert_eq!(error("tlc-nvme-1tb", &["drive.blocks=5", "drive.blocks=900000"]), said);
    // if two settings are wrong only together, both are named. One page of each lane has 1024 units
    // in all. So 2048 x 1152 = 2.4 million or 222 x 4096 = 0.9 million pages in a lane fit, but
    // 2048 x 4096 = 8.4 million do not
    let together = error("tlc-nvme-1tb", &["drive.blocks=2048", "drive.pages=4096"]);
    let begins =
        "set: drive.pages: with 4096 and drive.blocks=2048 (`set`), map.unit=4kib (devices/";
    assert!(together.starts_with(begins), "{together}");
    // a line of a file that builds on a preset counts like a setting
    let file = "[drive]\nbase = \"tlc-nvme-1tb\"\nblocks = 900000\n";
    let of_file = Registry::DRIVES.load("mine.toml", Some(file), &[]).unwrap_err().to_string();
    assert_eq!(of_file, said.replace("set: ", "mine.toml:3:1: "));
    // a file that builds on no preset is the base for a setting
    let whole = Registry::DRIVES.load("mine.toml", Some(toml), &["drive.blocks=900000".into()]);
    assert_eq!(
        whole.unwrap_err().to_string(),
        said.replace("devices/tlc-nvme-1tb.toml", "mine.toml")
    );
    // an error that is independent of the settings keeps its place
    let wrong = toml.replace("blocks = { value = 222", "blocks = { value = 900000");
    let alone = Registry::DRIVES.load("mine.toml", Some(&wrong), &["ftl.victim=fifo".into()]);
    let alone = alone.unwrap_err().to_string();
    assert!(alone.starts_with(&format!("mine.toml:{line}:1: map.unit: {units}")), "{alone}");
}

#[test]
fn every_check_of_several_keys_blames_what_was_set() {
    // the setting, and the key of the preset or default that contradicts it
    for (drive, setting, other) in [
        ("tlc-nvme-1tb", "drive.planes=2", "drive.frame_planes=4 (devices/"), // 4 of 2 planes
        ("tlc-nvme-1tb", "drive.page_bytes=512KiB", "map.unit=4kib (devices/"), // 512 units > 64
        ("tlc-nvme-1tb", "drive.blocks=100", "drive.logical_pages=244190646 (devices/"),
        ("tiny", "cache.high=0.1", "cache.low"), // the default 0.5 lies above
        ("tlc-nvme-1tb", "ftl.scheme=block", "map.unit=4kib (devices/"), // maps whole frames
        ("tlc-small", "drive.blocks=10", "drive.logical_pages=720896 (devices/"),
    ] {
        let said = error(drive, &[setting]);
        let (key, value) = setting.split_once('=').unwrap();
        let begins = format!("set: {key}: with {value}, {other}");
        assert!(said.starts_with(&begins), "{said}, not {begins}");
        assert!(said.contains(" is refused: "), "{said}");
    }
    // the error names the key to which the allowed range belongs
    let said = error("mast-4gb", &["ftl.scheme=mast", "ftl.locality_blocks=1"]);
    assert!(said.starts_with("set: ftl.locality_blocks: "), "{said}");
    let config = Registry::DRIVES.load("tlc-nvme-1tb", None, &[]).unwrap();
    let said = config.with(&["drive.blocks=900000".into()]).unwrap_err().to_string();
    assert!(
        said.starts_with("set: drive.blocks: with 900000, map.unit=4096 (tlc-nvme-1tb) is refused"),
        "{said}"
    );
}

#[test]
fn a_quick_look_accepts_what_load_accepts() {
    let registry = Registry::DRIVES;
    let (mut accepted, mut refused) = (0, 0);
    for preset in registry.presets.iter() {
        for settings in [
            &[][..],
            &["drive.capacity=64GB"],
            &["drive.capacity=64GB", "drive.over_provisioning=0.2"],
            &["ftl.streams=2", "ftl.gc_mode=single"],
            &["ftl.scheme=bast", "ftl.streams=2"],
            &["drive.blocks=1"],
            &["map.unit=2KiB", "map.unit=1KiB"],
            &["no.such_key=1"],
            &["cache.bytes"],
        ] {
            let settings: Vec<String> = settings.iter().map(|&text| text.into()).collect();
            let quick = registry.load_if_accepted(preset, &settings);
            let quick = quick.map(|config| format!("{:?}", config.pairs().collect::<Vec<_>>()));
            let slow = registry.load(preset.name, None, &settings).ok();
            let slow = slow.map(|config| format!("{:?}", config.pairs().collect::<Vec<_>>()));
            assert_eq!(quick, slow, "{} {settings:?}", preset.name);
            *if quick.is_some() { &mut accepted } else { &mut refused } += 1;
        }
    }
    assert!(accepted > 20 && refused > 20, "{accepted} accepted, {refused} refused");
}
