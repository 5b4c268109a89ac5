//! Work whose cost is counted in instructions. `bench kernel NAME COUNT` does the same work COUNT
//! times after the same set-up. The difference between two counts is the cost of the additional
//! work. `benches/tests/instructions.rs` bounds the costs; nothing here reads a clock.

use crate::reading::{records, written};
use crate::{Host, environment};
use flashatlas_device::{Cmd, Device, DriveConfig, Reply, Ssd, Storage};
use flashatlas_host::STANDARD;
use flashatlas_lookup::hashes;
use flashatlas_lookup::study::{LookupRequest, Study, settings};
use flashatlas_sim::RunSpec;
use flashatlas_types::{Lba, Lpn, Ps, Rng, Seed, Tag};
use flashatlas_workload::{ReadOptions, open};
use serde_json::json;
use std::hint::black_box;

/// A piece of work: its name, the two counts whose difference is its cost, and the function.
type Kernel = (&'static str, [u64; 2], fn(u64));

/// All kernels. The first is the calibration, with which the others are compared.
const KERNELS: [Kernel; 14] = [
    ("calibration", [20, 60], calibration),
    ("write", [500, 1500], write),
    ("write-paced", [500, 1500], write_paced),
    ("read", [500, 2500], read),
    ("merge", [500, 1500], merge),
    ("demand-map", [500, 1500], demand_map),
    ("host-layer", [500, 1500], host_layer),
    ("lookup", [2000, 6000], lookup),
    ("lookup-abcd", [2000, 6000], lookup_abcd),
    ("cut", [10, 30], cut),
    ("trace-line", [2000, 6000], trace_line),
    ("trace-block", [2000, 6000], trace_block),
    ("run", [1000, 3000], run),
    ("explain", [1000, 3000], explain),
];

/// Prints a line for each kernel, with its two counts.
pub fn list() {
    KERNELS.iter().for_each(|(name, [less, more], _)| println!("{name} {less} {more}"));
}

/// Does the work of a kernel `count` times.
pub fn work(name: &str, count: u64) {
    let known = KERNELS.iter().find(|(known, ..)| *known == name);
    let (.., work) = known.unwrap_or_else(|| panic!("kernel `{name}` is not known"));
    work(count);
}

/// Does work that does not depend on the simulator: `count` times a thousand steps of a random
/// generator over a table of 64 KiB.
fn calibration(count: u64) {
    let mut table = vec![0u32; 1 << 14];
    let mut x = 88_172_645_463_325_252u64;
    for _ in 0..count * 1000 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        let entry = &mut table[(x >> 50) as usize];
        *entry = entry.wrapping_add(x as u32);
    }
    black_box(table);
}

/// Returns a configuration of 8 dies and 16 MiB with units and pages of 4 KiB; it exports 8 MiB.
fn config(extra: &[&str]) -> DriveConfig {
    let mut settings: Vec<String> = [
        "drive.channels=8",
        "drive.ways=1",
        "drive.dies=1",
        "drive.planes=1",
        "drive.frame_planes=1",
        "drive.page_bytes=4KiB",
        "drive.pages=32",
        "drive.blocks=16",
        "drive.logical_pages=2048",
        "map.unit=4KiB",
        "nand.endurance=1000000",
        "cache.bytes=256KiB",
        "cache.ahead=4",
        "ftl.gc_pace=burst",
    ]
    .map(str::to_owned)
    .to_vec();
    settings.extend(extra.iter().map(|&s| s.to_owned()));
    STANDARD.load("tlc-nvme-1tb", None, &settings).unwrap_or_else(|e| panic!("{e}"))
}

fn small(extra: &[&str]) -> Ssd {
    config(extra).build(Seed(1)).unwrap_or_else(|e| panic!("{e}"))
}

/// Makes timed writes of 4 KiB, 16 in flight; the drive must collect.
fn write(count: u64) {
    let mut host = Host::filled(small(&["drive.logical_pages=3000"]));
    host.age();
    (0..count).for_each(|_| host.request(true, 16));
}

/// Makes the same writes, with the pace of collection of the TLC presets.
fn write_paced(count: u64) {
    let paced = ["drive.logical_pages=3000", "ftl.gc_pace=paced", "cache.ahead=1"];
    let mut host = Host::filled(small(&paced));
    host.age();
    (0..count).for_each(|_| host.request(true, 16));
}

/// Makes timed reads of 4 KiB, 16 in flight.
fn read(count: u64) {
    let mut host = Host::filled(small(&[]));
    host.age();
    (0..count).for_each(|_| host.request(false, 16));
}

/// Makes untimed writes to FAST, which must merge.
fn merge(count: u64) {
    merges(4096, 16, count);
}

/// Makes untimed writes to FAST over `pages` pages of 2 KiB, with `log_blocks` log blocks.
pub fn merges(pages: u64, log_blocks: u64, count: u64) {
    let set = [
        format!("drive.logical_pages={pages}"),
        "ftl.scheme=fast".to_owned(),
        format!("ftl.log_blocks={log_blocks}"),
    ];
    let config = STANDARD.load("mast-4gb", None, &set);
    let drive = config.and_then(|c| c.build(Seed(1))).unwrap_or_else(|e| panic!("{e}"));
    let mut host = Host::filled(drive);
    host.drive.set_instant(true);
    let (mut rng, mut reply) = (Rng::stream(Seed(1), "kernel"), Reply::default());
    for content in 1..=count {
        let lba = Lba(rng.below(pages) * 4);
        let cmd = Cmd::Write { lba, sectors: 4, fua: false, content, data: None };
        host.drive.submit(Ps::ZERO, Tag(0), cmd, &mut reply).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// Makes requests to a drive whose map is loaded on demand. Half of them are writes, and nine in
/// ten go to a tenth of the drive.
fn demand_map(count: u64) {
    let mut host = Host::filled(small(&["map.store=dftl", "map.cache_bytes=4KiB"]));
    for n in 0..count {
        let within = if host.rng.below(10) > 0 { 205 } else { 2048 };
        let lpn = Lpn(host.rng.below(within) as u32);
        host.request_page(lpn, n % 2 == 0, 16);
    }
}

/// Makes reads through the driver of HPB.
fn host_layer(count: u64) {
    let on_demand = &["map.store=demand", "map.cache_bytes=1MiB"];
    let (mut stack, _) = crate::layers::stack("hpb-host", on_demand);
    crate::layers::read(&mut stack, &mut Rng::stream(Seed(1), "kernel"), count);
}

/// Makes timed lookups in 2^12 entries.
fn lookup(count: u64) {
    lookups(&[], 1 << 12, count);
}

/// Makes timed lookups as `lookup` does, with one burst from each bank in turn.
fn lookup_abcd(count: u64) {
    lookups(&["lookup.probe=abcd".into()], 1 << 12, count);
}

/// Makes timed lookups in `entries` entries.
pub fn lookups(given: &[String], entries: u32, count: u64) {
    let mut study = settings(hashes::STANDARD, given)
        .and_then(|params| Study::new(hashes::STANDARD, &params))
        .unwrap_or_else(|e| panic!("{e}"));
    for la in 0..entries {
        study.ask(LookupRequest::Pages(la, 1)).unwrap_or_else(|e| panic!("{e}"));
    }
    let mut rng = Rng::stream(Seed(1), "kernel");
    let asks: Vec<LookupRequest> =
        (0..count).map(|_| LookupRequest::Pages(rng.below(entries.into()) as u32, 1)).collect();
    study.ask_all(&asks).unwrap_or_else(|e| panic!("{e}"));
}

/// Makes writes, each with a power failure and a mount after it.
fn cut(count: u64) {
    let config = config(&[]);
    let mut host = Host::filled(small(&[]));
    host.age();
    for seed in 1..=count {
        host.request(true, 1);
        host.finish();
        host.drive.power_on(&config, Seed(seed)).unwrap_or_else(|e| panic!("{e}"));
    }
}

fn decoded(format: &str, count: u64) {
    let bytes = written(format, &records(count));
    let reader = Box::new(std::io::Cursor::new(bytes));
    let mut opened =
        open(reader, Some(format), &ReadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    while let Some(record) = opened.source.next().unwrap_or_else(|e| panic!("{e}")) {
        black_box(record);
    }
}

/// Makes, writes and reads lines of a trace in CSV.
fn trace_line(count: u64) {
    decoded("csv", count);
}

/// Makes, writes and reads requests of a compact trace.
fn trace_block(count: u64) {
    decoded("atlas", count);
}

fn simulated(count: u64, explain: bool) {
    let nothing = |_: &str| Err(std::io::Error::other("no file is read here"));
    let mut spec = json!({
        "drive": "tlc-small", "precondition": "fill", "mode": "closed", "depth": 16,
        "set": ["drive.blocks=12", "drive.pages=32", "drive.logical_pages=8192"],
        "workload": format!("uniform:requests={count},size=4KiB,read=50%"),
    });
    if explain {
        spec["explain"] = json!("p99");
    }
    let spec: RunSpec = serde_json::from_value(spec).expect("made here");
    flashatlas_sim::run(&spec, &environment(&nothing), &mut |_| true)
        .unwrap_or_else(|e| panic!("{e}"));
}

/// Makes a whole run with reads and writes, every metric and the oracle.
fn run(count: u64) {
    simulated(count, false);
}

/// Makes the same run, and records critical paths.
fn explain(count: u64) {
    simulated(count, true);
}
