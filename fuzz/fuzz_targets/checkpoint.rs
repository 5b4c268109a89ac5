//! Checkpoints: any bytes are either refused with a place, or start a run. The drive is `tiny`; the
//! corpus contains a checkpoint of it.
#![no_main]

use flashatlas_host::STANDARD;
use flashatlas_sim::metrics::METRICS;
use flashatlas_sim::{Build, Environment, Opener, RunSpec, Stream, run};
use flashatlas_types::Entries;
use std::io::Cursor;

struct File(Vec<u8>);

impl Opener for File {
    fn open(&self, _: &str) -> std::io::Result<Stream> {
        Ok((Box::new(Cursor::new(self.0.clone())), None))
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let spec: RunSpec = serde_json::from_value(serde_json::json!({
        "drive": "tiny", "precondition": { "checkpoint": "fuzz" }, "mode": "untimed",
        "workload": "uniform:requests=20,size=2KiB,read=0.5"
    }))
    .expect("a valid specification");
    let file = File(data.to_vec());
    let env = Environment {
        registry: &STANDARD,
        workloads: flashatlas_workload::Registry::STANDARD,
        metrics: Entries::of(METRICS),
        opener: &file,
        build: Build { version: "fuzz", sources: "", commit: None },
        added: &[],
    };
    match run(&spec, &env, &mut |_| true) {
        Ok(outcome) => assert_eq!(outcome.record["oracle"]["violations"], 0),
        Err(error) => assert!(error.to_string().starts_with("fuzz: "), "{error}"),
    }
});
