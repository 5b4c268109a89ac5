//! Runs on drives whose content before the run is computed, most of them at their real capacity:
//! time and memory up to the first request, of the whole run, and of its end.
//!
//! Each run has a process of its own (`bench capacity NAME`), so that its peak of memory is its
//! own, and no other run has warmed the caches. Times are seconds of a core, because the clock of a
//! busy machine says little. On an idle machine, both are nearly equal.

use crate::{environment, now, peak_mib, setup};
use flashatlas_host::STANDARD;
use flashatlas_sim::{Column, Outcome, Progress, RunSpec, run};
use flashatlas_types::Layout;
use serde_json::{Value, json};
use std::process::Command;

/// 61.44 TB in units of 16 KiB, and 6.95 % more flash.
const LARGE: [&str; 3] = ["map.unit=16KiB", "drive.blocks=13600", "drive.logical_pages=3750000000"];

/// 100,000 requests, half of them writes.
const MIXED: &str = "uniform:requests=100000,size=16KiB,read=0.5";

/// As many requests as each lane of 1 TB needs to be collected at least twice.
const COLLECTING: &str = "uniform:requests=250000,size=16KiB,read=0.5";

/// The drives of 16 and 64 GiB, each with three counts of writes: the end of the cold part, the
/// begin of the warm part, and the end. In the warm part, nearly all blocks have been collected.
const WRITES: [(u32, [u64; 3]); 2] =
    [(16, [200_000, 3_000_000, 4_000_000]), (64, [200_000, 9_000_000, 11_000_000])];

/// Numbers of a run. Seconds are those of a core.
#[derive(Clone, Copy, Default)]
struct Found {
    /// Seconds up to the first request, from then to the last request, and after it.
    begin: f64,
    requests: f64,
    end: f64,
    /// Seconds of the requests of the cold part, and of the requests after the warm-up.
    cold: f64,
    warm: f64,
    /// MiB of memory that the process took at most, before the first request and in all.
    begin_mib: f64,
    mib: f64,
    programs: f64,
    erases: f64,
    /// Number of blocks that were erased at least in the lane with the fewest.
    fewest: f64,
}

/// Returns the seconds that cores have worked for this process, or for its children that have
/// ended, in steps of 10 ms (`proc(5)`).
fn core_seconds(of_children: bool) -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    // fields 14 to 17 of the page, of which the first two are before the bracket
    let ticks = fields.skip(if of_children { 13 } else { 11 }).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Returns the run of this name.
fn named(name: &str) -> (RunSpec, [u64; 3]) {
    let mut value = json!({ "drive": "tlc-nvme-1tb", "precondition": "steady" });
    let mut parts = [0; 3];
    match name.split('-').collect::<Vec<_>>()[..] {
        ["small"] => {
            value["drive"] = json!("tlc-small");
            value["workload"] = json!("uniform:requests=1,size=4KiB");
        }
        ["1tb"] => value["workload"] = json!("uniform:requests=1,size=4KiB"),
        ["1tb", "mixed"] => value["workload"] = json!(MIXED),
        ["1tb", "collecting"] => value["workload"] = json!(COLLECTING),
        ["61tb", "mixed"] => {
            value["set"] = json!(LARGE);
            value["workload"] = json!(MIXED);
        }
        [gib, base] => {
            let gib: u32 = gib.parse().expect("a number of GiB");
            let of_size = WRITES.iter().find(|(size, _)| *size == gib);
            parts = of_size.expect("a drive of this size").1;
            value["set"] = json!(setup::settings(gib));
            value["workload"] = json!(format!("uniform:requests={},size=4KiB", parts[2]));
            value["mode"] = json!("untimed");
            value["base"] = json!(base);
        }
        _ => panic!("{name} is no run"),
    }
    (serde_json::from_value(value).expect("a specification"), parts)
}

/// Returns the number of blocks that were erased at least in each lane, according to the last
/// picture of the blocks. A cell of the picture that belongs to two lanes counts for neither.
fn fewest_erases(outcome: &Outcome, layout: &Layout) -> f64 {
    let blocks = outcome.tables.iter().find(|table| table.name == "blocks").expect("a picture");
    let ints = |name: &str| match blocks.column(name) {
        Some(Column::Int(values)) => values,
        _ => panic!("{name} is no column of numbers"),
    };
    let Some(Column::Float(erases)) = blocks.column("erases") else { panic!("no erases") };
    let last = ints("frame").iter().max();
    let mut of_lanes = vec![0.0; layout.lanes as usize];
    let mut first = 0;
    for (row, frame) in ints("frame").iter().enumerate() {
        if Some(frame) != last {
            continue;
        }
        let count = ints("blocks")[row] as u32;
        let [from, to] =
            [first, first + count - 1].map(|block| (block / layout.blocks_per_lane) as usize);
        if from == to {
            of_lanes[from] += erases[row] * f64::from(count);
        }
        first += count;
    }
    of_lanes.into_iter().fold(f64::INFINITY, f64::min)
}

/// Carries out the run of this name, and prints its numbers.
pub fn work(name: &str) {
    let (spec, [cold, warm, _]) = named(name);
    let (mut at_run, mut at_cold, mut at_warm, mut at_check) = (None, None, None, None);
    let mut begin_mib = 0.0;
    let mut progress = |progress: Progress| {
        let elapsed = core_seconds(false);
        match progress.phase {
            "precondition" => (at_run, begin_mib) = (Some(elapsed), peak_mib()),
            "run" => {
                if progress.requests >= cold {
                    at_cold.get_or_insert(elapsed);
                }
                if progress.requests >= warm {
                    at_warm.get_or_insert(elapsed);
                }
            }
            "check" => drop(at_check.get_or_insert(elapsed)),
            _ => {}
        }
        true
    };
    let nothing = |path: &str| Err(std::io::Error::other(path.to_owned()));
    let outcome = run(&spec, &environment(&nothing), &mut progress);
    let outcome = outcome.unwrap_or_else(|e| panic!("{e}"));
    let all = core_seconds(false);
    let [run, check] = [at_run, at_check].map(|at| at.expect("a phase of every run"));
    let [cold, warm] = [at_cold, at_warm].map(|at| at.unwrap_or(check));
    let sum = |value: &Value| -> u64 {
        value.as_object().into_iter().flatten().filter_map(|(_, n)| n.as_u64()).sum()
    };
    let config = STANDARD.load(&spec.drive, spec.drive_toml.as_deref(), &spec.set);
    let layout = config.and_then(|config| config.layout()).unwrap_or_else(|e| panic!("{e}"));
    let record = &outcome.record;
    println!(
        "{run} {} {} {} {} {begin_mib} {} {} {} {}",
        check - run,
        all - check,
        cold - run,
        check - warm,
        peak_mib(),
        sum(&record["nand"]["programs"]),
        sum(&record["nand"]["erases"]),
        fewest_erases(&outcome, &layout),
    );
}

/// Carries out the run of this name in a process of its own.
fn carried_out(name: &str) -> Found {
    let program = std::env::current_exe().expect("the path of this program");
    let done = Command::new(program).args(["capacity", name]).output().expect("a process");
    assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).expect("numbers");
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let [begin, requests, end, cold, warm, begin_mib, mib, programs, erases, fewest] = numbers[..]
    else {
        panic!("{name}: {text}")
    };
    Found { begin, requests, end, cold, warm, begin_mib, mib, programs, erases, fewest }
}

/// Returns the seconds of a core and of the clock that the whole command `flashatlas run` takes on
/// the large drive, if `.venv` has it.
fn command() -> Option<[f64; 2]> {
    let (began, before) = (now(), core_seconds(true));
    let settings = LARGE.iter().flat_map(|&setting| ["--set", setting]);
    let mut command = Command::new(".venv/bin/flashatlas");
    command.args(["run", "--drive", "tlc-nvme-1tb", "--precondition", "steady"]);
    command.args(["--workload", MIXED, "--quiet"]).args(settings);
    let done = command.output().ok()?;
    let seconds = [core_seconds(true) - before, began.elapsed().as_secs_f64()];
    done.status.success().then_some(seconds)
}

pub fn print() {
    let [small, large] = ["small", "1tb"].map(carried_out);
    println!(
        "computed, 1 TB, steady, to the first request {:>6.3} s (goal 0.1) and {:.1} MiB (goal 10) \
         more than tlc-small",
        large.begin - small.begin,
        large.begin_mib - small.begin_mib
    );
    for (name, what, goal) in [
        ("1tb-mixed", "1 TB, 100,000", 0.6),
        ("1tb-collecting", "1 TB, 250,000", 0.6),
        ("61tb-mixed", "61.44 TB in units of 16 KiB, 100,000", 0.5),
    ] {
        let Found { begin, requests, end, mib, programs, erases, fewest, .. } = carried_out(name);
        println!(
            "computed, {what} reads and writes of 16 KiB: begin {begin:.2} s, requests \
             {requests:.2} s, end {end:.2} s (goal of 1 TB 0.2); {:.2} GiB (goal {goal}); {:.0} k \
             programs, {erases:.0} erases (each plane counts), at least {fewest:.0} blocks erased \
             in each lane",
            mib / 1024.0,
            programs / 1e3,
        );
    }
    match command() {
        Some([core, clock]) => println!(
            "  the whole command on 61.44 TB {core:>6.2} s of a core (goal 3), {clock:.2} s of the \
             clock"
        ),
        None => println!("  the whole command on 61.44 TB: not measured, make build makes it"),
    }
    for (gib, [cold, warm, all]) in WRITES {
        let [computed, dense] =
            ["computed", "dense"].map(|base| carried_out(&format!("{gib}-{base}")));
        let ns = |seconds: f64, count: u64| seconds * 1e9 / count as f64;
        println!(
            "computed, {gib} GiB, untimed writes of 4 KiB: warm {:.0} ns, {:.2} of --base dense \
             (goal 1.15); cold {:.0} ns, {:.2} (no goal); begin {:.2} s, dense {:.2} s; {:.0} MiB, \
             dense {:.0} MiB; {:.0} k programs, {:.0} erases",
            ns(computed.warm, all - warm),
            computed.warm / dense.warm,
            ns(computed.cold, cold),
            computed.cold / dense.cold,
            computed.begin,
            dense.begin,
            computed.mib,
            dense.mib,
            computed.programs / 1e3,
            computed.erases
        );
    }
}
