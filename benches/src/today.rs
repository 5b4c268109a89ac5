//! Speed of a TLC drive with everything that a drive of today has beside plain flash, as a ratio to
//! the speed of the same drive without it.

use super::{environment, longer, now};
use flashatlas_sim::{Progress, RunSpec, run};
use serde_json::{Value, json};

/// Settings of a drive without an SLC cache.
const PLAIN: &[&str] = &["ftl.slc=none", "ftl.slc_dynamic=0"];

/// Bits that go wrong after 2,000 cycles and a year of rest, refresh, read reclaim, failures at
/// random, copies inside dies, and planes that read alone. The SLC cache is the drive's own.
const ALL: &[&str] = &[
    "errors.model=tlc-72l",
    "errors.cycles=2000",
    "errors.rest_days=365",
    "errors.program_failures=100",
    "errors.erase_failures=500",
    "errors.unreadable=10",
    "nand.spare_blocks=40",
    "ftl.refresh=0.5",
    "ftl.read_reclaim=2000",
    "ftl.copyback=same-plane",
    "timing.plane_reads=independent",
];

const REQUESTS: u64 = 1_000_000;
const ROUNDS: usize = 3;

/// Returns the seconds that the requests of a run take, and the run record.
fn timed(settings: &[&str]) -> (f64, Value) {
    let requests = longer(REQUESTS);
    let spec: RunSpec = serde_json::from_value(json!({
        "drive": "tlc-slc-small", "set": settings, "precondition": "fill",
        "mode": "closed", "depth": 16,
        "workload": format!("uniform:requests={requests},size=4KiB,read=0.5"),
    }))
    .expect("a specification");
    let (mut begin, mut end) = (None, None);
    let mut progress = |progress: Progress| {
        match progress.phase {
            "run" => drop(begin.get_or_insert_with(now)),
            "check" => drop(end.get_or_insert_with(now)),
            _ => {}
        }
        true
    };
    let nothing = |path: &str| Err(std::io::Error::other(path.to_owned()));
    let outcome = run(&spec, &environment(&nothing), &mut progress);
    let record = outcome.unwrap_or_else(|e| panic!("{e}")).record;
    let [begin, end] = [begin, end].map(|at| at.expect("a phase of every run"));
    (end.duration_since(begin).as_secs_f64(), record)
}

pub fn print() {
    let parts = [PLAIN, &[], ALL];
    let mut least = [f64::INFINITY; 3];
    let mut last = Value::Null;
    for _ in 0..ROUNDS {
        for (least, settings) in least.iter_mut().zip(parts) {
            let (seconds, record) = timed(settings);
            *least = least.min(seconds);
            last = record;
        }
    }
    let [plain, cache, all] = least;
    let rate = |seconds: f64| longer(REQUESTS) as f64 / seconds / 1e3;
    println!(
        "today, tlc-slc-small: {:.0} k requests/s without a cache, {:.0} k with the SLC cache, \
         {:.0} k with errors and all else: {:.2} and {:.2} of them (goal 0.5)",
        rate(plain),
        rate(cache),
        rate(all),
        plain / all,
        cache / all
    );
    println!("  faults: {}", last["faults"]);
}
