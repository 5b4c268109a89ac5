//! Whole runs on drives whose content before the run is computed, compared with runs on drives
//! that hold it in tables.

use crate::environment;
use flashatlas_fixtures::proofs;
use flashatlas_sim::{Opener, RunSpec, Stream, run, save_checkpoint};
use flashatlas_types::{Rng, Seed};
use serde_json::{Value, json};
use std::io::Cursor;

const CASES: usize = 300;

fn spec(value: &Value) -> RunSpec {
    serde_json::from_value(value.clone()).unwrap()
}

fn nothing(path: &str) -> std::io::Result<Stream> {
    Err(std::io::Error::other(path.to_owned()))
}

/// Returns a random run of a preconditioned drive.
fn drawn(rng: &mut Rng) -> Value {
    let mut maps_rng = Rng::stream(Seed(rng.below(1 << 40)), "maps");
    let mut pick = |values: &[&str]| values[rng.below(values.len() as u64) as usize].to_owned();
    let precondition = pick(&["fill", "steady"]);
    let mut set = vec![format!("map.unit={}", pick(&["2KiB", "512"]))];
    set.push(format!("ftl.victim={}", pick(&["greedy", "fifo", "random", "d-choices"])));
    set.push(format!("ftl.gc_mode={}", pick(&["dual", "dual", "single"])));
    set.push(format!("cache.mode={}", pick(&["write-back", "write-through"])));
    let maps: [&[&str]; 12] = [
        &["map.store=dram"],
        &["map.store=dram"],
        &["map.store=dram", "map.flush=pages"],
        &["map.store=dram", "map.flush=whole", "map.segment_bytes=4KiB", "map.roll_forward=false"],
        &["map.store=dram", "map.flush=segments", "map.segment_bytes=2KiB", "map.directory=page"],
        &["map.store=nvm-hybrid", "map.segment_bytes=2KiB", "nvm.bytes=8KiB"],
        &["map.store=demand", "map.cache_bytes=8KiB"],
        &["map.store=dftl", "map.cache_bytes=2KiB", "map.page_bytes=1KiB"],
        &["map.store=cdftl", "map.cache_bytes=8KiB", "map.lanes=1"],
        &["map.store=sftl", "map.cache_bytes=8KiB", "map.pack=false", "map.page_bytes=1KiB"],
        &["map.store=tpftl", "map.cache_bytes=2KiB"],
        &["map.store=leaftl", "map.cache_bytes=16KiB"],
    ];
    set.push("drive.spare_bytes=128".into()); // several map pages fit into a frame
    set.extend(maps[maps_rng.below(12) as usize].iter().map(|&setting| setting.to_owned()));
    let workload = pick(&[
        "uniform:requests=3000,size=2KiB,read=0.3",
        "mixed:requests=2000,read=0.3,sizes=1KiB/2KiB/8KiB,flush_every=50,trim=0.1",
        "hotcold:requests=3000,size=2KiB,read=0.2,trim=0.02,flush_every=100,range=0.5",
    ]);
    let mode = pick(&["untimed", "closed", "asap"]);
    json!({ "drive": "tiny", "precondition": precondition, "set": set, "workload": workload,
        "mode": mode, "seed": rng.below(5), "fingerprint": mode != "untimed" })
}

#[test]
fn a_run_does_not_depend_on_the_form_of_its_drive() {
    let mut rng = Rng::stream(Seed(1), "form");
    let mut by_base = [0, 0];
    for _ in 0..proofs::cases(CASES) {
        let mut value = drawn(&mut rng);
        // tables are compared as texts, because a missing number is equal to none
        let [computed, dense] = ["computed", "dense"].map(|base| {
            value["base"] = json!(base);
            let environment = environment(&nothing);
            let outcome = run(&spec(&value), &environment, &mut |_| true);
            let outcome = outcome.unwrap_or_else(|e| panic!("{value}: {e}"));
            let mut record = outcome.record;
            assert_eq!(record["oracle"]["violations"], 0, "{value}");
            // the ways in which units were looked at differ, and all units are in their sum
            let swept = record["sweep"].take();
            let units = |way: &str| swept[way].as_u64().unwrap();
            let all = units("one_by_one") + units("summed") + units("by_base");
            assert_eq!(record["oracle"]["units_swept"], all, "{value}");
            by_base[usize::from(base == "dense")] += units("by_base");
            (record.to_string(), format!("{:?}", outcome.tables))
        });
        assert_eq!(computed.0, dense.0, "{value}");
        assert!(computed.1 == dense.1, "{value}: the tables differ");
    }
    assert!(by_base[0] > 0 && by_base[1] == 0, "{by_base:?}");
}

/// Returns the parts of a record that do not depend on how its drive was preconditioned.
fn results(spec: &Value, files: &dyn Opener) -> String {
    let outcome = run(&self::spec(spec), &environment(files), &mut |_| true);
    let outcome = outcome.unwrap_or_else(|e| panic!("{spec}: {e}"));
    let mut record = outcome.record;
    assert_eq!(record["oracle"]["violations"], 0, "{spec}");
    let others =
        ["sweep", "config", "config_hash", "approximations", "random_streams", "checkpoint"];
    record.as_object_mut().unwrap().retain(|key, _| !others.contains(&key.as_str()));
    format!("{record} {:?}", outcome.tables)
}

#[test]
fn a_run_does_not_depend_on_the_form_of_its_checkpoint() {
    let mut rng = Rng::stream(Seed(2), "form");
    let mut layouts = [0, 0];
    for _ in 0..proofs::cases(CASES / 3) {
        let mut value = drawn(&mut rng);
        let direct = results(&value, &nothing);
        for base in ["computed", "dense"] {
            value["base"] = json!(base);
            let mut bytes = Vec::new();
            let saved = save_checkpoint(
                &spec(&value),
                &environment(&nothing),
                ("memory", &mut bytes),
                &mut |_| true,
            );
            saved.unwrap_or_else(|e| panic!("{value}: {e}"));
            layouts[usize::from(bytes[8] == 5)] += 1;
            let open = |_: &str| -> std::io::Result<Stream> {
                Ok((Box::new(Cursor::new(bytes.clone())), Some(bytes.len() as u64)))
            };
            for form in ["computed", "dense"] {
                let mut load = value.clone();
                load["precondition"] = json!({ "checkpoint": "drive.ckpt" });
                load["base"] = json!(form);
                let loaded = results(&load, &open);
                let at = loaded.bytes().zip(direct.bytes()).position(|(a, b)| a != b);
                let part =
                    |text: &str| text[at.unwrap_or(0).saturating_sub(200)..][..300].to_owned();
                assert!(
                    loaded == direct,
                    "{value} as {form}: {} not {}",
                    part(&loaded),
                    part(&direct)
                );
            }
        }
    }
    // every drive is computed, unless tables are asked for
    assert!(layouts[1] > 0 && layouts[0] == layouts[1], "{layouts:?}");
}

/// A checkpoint of `tiny` in its steady state (seed 3), written at commit b12f6818, before
/// checkpoints could hold a base.
const LAYOUT_4: &[u8] = include_bytes!("../data/steady.4.ckpt");

#[test]
fn a_checkpoint_of_layout_4_loads() {
    assert_eq!(LAYOUT_4[8], 4);
    let mut value = json!({ "drive": "tiny", "precondition": "steady", "seed": 3,
        "workload": "uniform:requests=2000,size=2KiB,read=0.3", "fingerprint": true });
    let direct = results(&value, &nothing);
    value["precondition"] = json!({ "checkpoint": "drive.ckpt" });
    let open = |_: &str| -> std::io::Result<Stream> {
        Ok((Box::new(Cursor::new(LAYOUT_4)), Some(LAYOUT_4.len() as u64)))
    };
    assert!(results(&value, &open) == direct);
}

#[test]
fn a_drive_that_needs_tables_says_which_setting_needs_them() {
    let why = |drive: &str, settings: &[&str]| {
        let settings: Vec<String> = settings.iter().map(|&setting| setting.into()).collect();
        let config = environment(&nothing).registry.load(drive, None, &settings);
        config.unwrap_or_else(|e| panic!("{e}")).why_tables()
    };
    for (drive, settings, key) in [
        ("tiny", &["map.store=lpmt"][..], "map.store"),
        ("tiny", &["nand.data=ram"], "nand.data"),
        ("tlc-small", &["errors.model=tlc-72l"], "errors"),
        ("mast-4gb", &["ftl.scheme=fast"], "ftl.scheme"),
        ("ufs-128gb", &["layers=hard", "drive.blocks=96", "drive.logical_pages=1048576"], "layers"),
    ] {
        assert!(why(drive, settings).unwrap().contains(key), "{settings:?}");
    }
    assert_eq!(why("tiny", &[]), None);
    for settings in [&["map.store=dftl"], &["map.store=nvm-hybrid"], &["map.flush=pages"]] {
        assert_eq!(why("tiny", settings), None, "{settings:?}");
    }
}
