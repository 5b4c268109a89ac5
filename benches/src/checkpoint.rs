//! Time to load a checkpoint of a 64 GiB drive, compared with the time to bring the drive into its
//! steady state by simulation.

use crate::environment;
use crate::now;
use flashatlas_sim::{Opener, RunSpec, Stream, run, save_checkpoint};
use serde_json::{Value, json};
use std::io::Cursor;
use std::sync::Arc;

/// Opener that returns the same file for every name.
struct Saved(Arc<Vec<u8>>);

struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Opener for Saved {
    fn open(&self, _: &str) -> std::io::Result<Stream> {
        Ok((Box::new(Cursor::new(Shared(Arc::clone(&self.0)))), Some(self.0.len() as u64)))
    }
}

const UNITS: u64 = 64 << 18;

fn spec(changes: Value) -> RunSpec {
    let mut value = json!({
        "drive": "tlc-nvme-1tb", "mode": "untimed", "precondition": "steady", "base": "dense",
        "workload": "uniform:requests=1",
        "set": ["drive.channels=4", "drive.ways=2", "drive.planes=1", "drive.frame_planes=1",
            "drive.pages=1024",
                "drive.blocks=556", format!("drive.logical_pages={UNITS}")],
    });
    for (key, change) in changes.as_object().expect("an object") {
        value[key] = change.clone();
    }
    serde_json::from_value(value).expect("a valid specification")
}

pub fn print() {
    let begin = now();
    let mut bytes = Vec::new();
    let nothing = Saved(Arc::default());
    save_checkpoint(&spec(json!({})), &environment(&nothing), ("memory", &mut bytes), &mut |_| {
        true
    })
    .unwrap_or_else(|e| panic!("{e}"));
    let (saved, mib) = (begin.elapsed().as_secs_f64(), bytes.len() >> 20);

    // measure until the phase `check`: by then the file is read, the drive is mounted, and one
    // request is carried out
    let file = Saved(Arc::new(bytes));
    let (begin, mut loaded) = (now(), f64::NAN);
    run(
        &spec(json!({ "precondition": { "checkpoint": "memory" } })),
        &environment(&file),
        &mut |p| {
            if p.phase == "check" && loaded.is_nan() {
                loaded = begin.elapsed().as_secs_f64();
            }
            true
        },
    )
    .unwrap_or_else(|e| panic!("{e}"));

    let (begin, mut simulated) = (now(), f64::NAN);
    let workload = format!("uniform:requests={}", 5 * UNITS);
    run(
        &spec(json!({ "precondition": "fill", "workload": workload })),
        &environment(&file),
        &mut |p| {
            if p.phase == "check" && simulated.is_nan() {
                simulated = begin.elapsed().as_secs_f64();
            }
            true
        },
    )
    .unwrap_or_else(|e| panic!("{e}"));
    println!(
        "64 GiB drive: steady state by model and saved ({mib} MiB) {saved:.1} s; loaded \
         {loaded:.1} s; fill and five drive writes {simulated:.0} s: loading is {:.0} times faster \
         (goal 20)",
        simulated / loaded
    );
}
