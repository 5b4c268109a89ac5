//! Whole runs on drives whose content before the run is computed, compared with runs on drives
//! that hold it in tables.

use crate::environment;
use flashatlas_fixtures::proofs;
use flashatlas_sim::{RunSpec, Stream, run};
use flashatlas_types::{Rng, Seed};
use serde_json::{Value, json};

const CASES: usize = 300;

fn spec(value: &Value) -> RunSpec {
    serde_json::from_value(value.clone()).unwrap()
}

fn nothing(path: &str) -> std::io::Result<Stream> {
    Err(std::io::Error::other(path.to_owned()))
}

/// Returns a random run of a preconditioned drive.
fn drawn(rng: &mut Rng) -> Value {
    let mut pick = |values: &[&str]| values[rng.below(values.len() as u64) as usize].to_owned();
    let precondition = pick(&["fill", "steady"]);
    let mut set = vec![format!("map.unit={}", pick(&["2KiB", "512"]))];
    set.push(format!("ftl.victim={}", pick(&["greedy", "fifo", "random", "d-choices"])));
    set.push(format!("ftl.gc_mode={}", pick(&["dual", "dual", "single"])));
    set.push(format!("cache.mode={}", pick(&["write-back", "write-through"])));
    set.push(format!("map.store={}", pick(&["dram", "dram", "dram", "dftl"])));
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
    for _ in 0..proofs::cases(CASES) {
        let mut value = drawn(&mut rng);
        // tables are compared as texts, because a missing number is equal to none
        let [computed, dense] = ["computed", "dense"].map(|base| {
            value["base"] = json!(base);
            let environment = environment(&nothing);
            let outcome = run(&spec(&value), &environment, &mut |_| true);
            let outcome = outcome.unwrap_or_else(|e| panic!("{value}: {e}"));
            assert_eq!(outcome.record["oracle"]["violations"], 0, "{value}");
            (outcome.record.to_string(), format!("{:?}", outcome.tables))
        });
        assert_eq!(computed.0, dense.0, "{value}");
        assert!(computed.1 == dense.1, "{value}: the tables differ");
    }
}
