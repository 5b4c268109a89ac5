//! Tests of a map store in C. The template is compared with the built-in store `dram`, and stores
//! with faults are refused.

use crate::build::{self, loaded, played, registry};
use flashatlas_crash::{CrashSpec, run as crash};
use serde_json::{Value, json};

/// Returns the template, as a store called `mine`.
fn source() -> String {
    build::example("store.c.in").replace("{{NAME}}", "mine").replace("{{IDENT}}", "mine")
}

fn spec(store: &str) -> Value {
    json!({ "drive": "tiny", "precondition": "fill", "set": [format!("map.store={store}")],
        "workload": "uniform:requests=8000,size=2KiB,read=0.4,trim=0.02,flush_every=50" })
}

#[test]
fn a_store_in_c_is_as_right_as_ours_and_takes_the_time_that_it_says() {
    let mine = registry(&loaded(&source()));
    let (ours, theirs) =
        (played(&mine, spec("dram")).unwrap(), played(&mine, spec("mine")).unwrap());
    for record in [&ours, &theirs] {
        assert_eq!(record["oracle"]["violations"], 0);
    }
    let counted = |record: &Value| {
        let map = &record["map"];
        [&map["lookups"], &map["updates"], &record["waf"]].map(Value::to_string)
    };
    assert_eq!(counted(&ours), counted(&theirs));
    assert_eq!(theirs["memory_bytes"]["tables"]["cache of entries"], 2 * 4 * 1024);
    // each entry that is not in SRAM takes 100 us, and only one request is in flight at a time
    let iops = |lines: u32| {
        let mut spec = spec("mine");
        let lines = format!("map.mine_lines={lines}");
        spec["set"] = json!(["map.store=mine", "memory.dram_latency=100us", lines]);
        (spec["depth"], spec["mode"]) = (json!(1), json!("closed"));
        played(&mine, spec).unwrap()["iops"].as_f64().unwrap()
    };
    assert!(iops(1024) > 1.05 * iops(1), "{} {}", iops(1024), iops(1));
}

#[test]
fn a_store_in_c_is_cut_everywhere() {
    let mine = registry(&loaded(&source()));
    let plan = CrashSpec {
        stores: vec!["mine".into()],
        one_in: 40,
        depth: 2,
        steps: 60,
        ..CrashSpec::default()
    };
    let report = crash(&mine, &plan, &mut |_, _| true).unwrap();
    assert!(report.found.is_empty() && report.rows.iter().map(|r| r.cuts).sum::<u64>() > 1000);
}

#[test]
fn a_wrong_answer_of_a_map_is_named() {
    for (good, bad, expected) in [
        ("return of->entries[lpn];", "return of->entries[lpn ^ 1];", "`get`: page "),
        (
            "return before;",
            "return before + 1;",
            "`set`: page 0 is nowhere, but the plug-in returned page 0 of the flash",
        ),
        ("FA_SRAM : FA_DRAM", "FA_SRAM : 7", "an access names a memory that is not an fa_memory"),
        (
            "touch(of, at, lpn, false);",
            "for (int i = 0; i < 1 << 20; i++) touch(of, at, lpn, false);",
            "more than 65536 accesses and did not end",
        ),
    ] {
        let text = source();
        assert_eq!(text.matches(good).count(), 1, "{good}");
        let mine = registry(&loaded(&text.replace(good, bad)));
        let error = played(&mine, spec("mine")).unwrap_err();
        assert_eq!(error.kind(), "part", "{error}");
        let said = error.to_string();
        assert!(said.contains("plug-in mine: mine") && said.contains(expected), "{said}");
    }
}
