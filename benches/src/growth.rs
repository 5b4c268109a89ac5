//! Costs that must not grow. `bench growth NAME SIZE COUNT` does work COUNT times on a structure of
//! a given size. The difference between two counts at the same size is the cost of the additional
//! work. `benches/tests/instructions.rs` counts instructions and bounds their growth; nothing here
//! reads a clock.

use crate::{Host, crash, kernels, layers};
use flashatlas_crash::CrashSpec;
use flashatlas_device::Storage;
use flashatlas_host::STANDARD;
use flashatlas_sim::RunSpec;
use flashatlas_sim::Stream;
use flashatlas_types::{Lpn, Rng, Seed};
use serde_json::json;

/// A structure: its name, its sizes, the two counts whose difference is the cost, and the work. The
/// work is a function of a size and a count; it returns the number of operations by which the cost
/// is divided.
type Growth = (&'static str, &'static [u64], [u64; 2], fn(u64, u64) -> u64);

const GROWTHS: [Growth; 11] = [
    ("lookup-entries", &[1 << 10, 1 << 16], [4000, 8000], |entries, count| {
        kernels::lookups(&[], entries as u32, count);
        count
    }),
    ("cache-kib", &[256, 2048, 16_384], [4000, 8000], |kib, count| {
        operations(&[format!("cache.bytes={kib}KiB")], 8, (true, 16), count)
    }),
    ("writes-in-flight", &[1, 64, 4096], [8000, 16_000], |depth, count| {
        operations(&[], 8, (true, depth as usize), count)
    }),
    ("reads-in-flight", &[1, 64, 4096], [8000, 16_000], |depth, count| {
        operations(&[], 8, (false, depth as usize), count)
    }),
    ("writes-to-dies", &[1, 8, 128], [8000, 16_000], |dies, count| {
        operations(&[], dies, (true, 256), count)
    }),
    ("reads-of-dies", &[1, 8, 128], [8000, 16_000], |dies, count| {
        operations(&[], dies, (false, 256), count)
    }),
    ("map-cache-kib", &[16, 256, 4096], [4000, 8000], map_cache),
    ("hard-pages", &[4096, 65_536], [2000, 4000], hard),
    ("log-blocks", &[8, 64], [16_000, 20_000], |blocks, count| {
        kernels::merges(16_384, blocks, count);
        count
    }),
    ("jobs", &[1, 16, 256], [4096, 8192], jobs),
    ("steps-of-a-cut", &[40, 160], [1, 2], cuts),
];

/// Prints a line for each structure, with its counts and its sizes.
pub fn list() {
    for (name, sizes, [less, more], _) in GROWTHS {
        let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
        println!("{name} {less} {more} {}", sizes.join(" "));
    }
}

/// Does the work on a structure of a size, and prints the number of operations.
pub fn work(name: &str, size: u64, count: u64) {
    let known = GROWTHS.iter().find(|(known, ..)| *known == name);
    let (.., work) = known.unwrap_or_else(|| panic!("structure `{name}` is not known"));
    println!("done {}", work(size, count));
}

/// Returns a host with a filled drive of 64 MiB in 4 KiB pages, of which it exports 7/8.
fn filled(dies: u64, extra: &[String]) -> Host {
    let channels = dies.min(8);
    let mut settings: Vec<String> = [
        "drive.dies=1",
        "drive.planes=1",
        "drive.frame_planes=1",
        "drive.page_bytes=4KiB",
        "drive.pages=16",
        "drive.logical_pages=14336",
        "map.unit=4KiB",
        "nand.endurance=1000000",
        "cache.bytes=1MiB",
    ]
    .map(str::to_owned)
    .to_vec();
    settings.extend([
        format!("drive.channels={channels}"),
        format!("drive.ways={}", dies / channels),
        format!("drive.blocks={}", 1024 / dies + 4),
    ]);
    settings.extend_from_slice(extra);
    let drive = STANDARD.load("tlc-nvme-1tb", None, &settings).and_then(|c| c.build(Seed(1)));
    Host::filled(drive.unwrap_or_else(|e| panic!("{e}")))
}

/// Returns the number of flash operations of `count` random requests to an aged drive, with `depth`
/// requests in flight.
fn operations(extra: &[String], dies: u64, (write, depth): (bool, usize), count: u64) -> u64 {
    let mut host = filled(dies, extra);
    host.age();
    host.drive.reset_counters();
    (0..count).for_each(|_| host.request(write, depth));
    crate::costs::flash_ops(&host.drive)
}

/// Makes `count` requests, half of them writes, to 512 pages whose entries fit into every cache.
/// Returns `count`.
fn map_cache(kib: u64, count: u64) -> u64 {
    let extra = ["map.store=dftl".to_owned(), format!("map.cache_bytes={kib}KiB")];
    let mut host = filled(8, &extra);
    for n in 0..count {
        let lpn = Lpn(host.rng.below(512) as u32);
        host.request_page(lpn, n % 2 == 0, 16);
    }
    count
}

/// Makes `count` reads that `hard` passes through, over a drive of `pages` pages. Returns `count`.
fn hard(pages: u64, count: u64) -> u64 {
    let settings = format!("drive.logical_pages={pages}");
    let (mut stack, _) = layers::stack("hard", &[&settings, "drive.blocks=40"]);
    layers::read(&mut stack, &mut Rng::stream(Seed(1), "growth"), count);
    count
}

/// Runs `jobs` fio jobs together, and returns the number of their requests.
fn jobs(jobs: u64, count: u64) -> u64 {
    let size = count / jobs * 4;
    let text = format!(
        "[job]\nrw=randread\ndirect=1\nbs=4k\nsize=64k\nio_size={size}k\nnumjobs={jobs}\n\
         group_reporting\n"
    );
    let open = move |_: &str| -> std::io::Result<Stream> {
        Ok((Box::new(std::io::Cursor::new(text.clone().into_bytes())), None))
    };
    let spec: RunSpec = serde_json::from_value(json!({
        "drive": "tlc-small", "precondition": "fill", "job": "jobs.fio",
        "set": ["drive.blocks=12", "drive.pages=32", "drive.logical_pages=8192"],
    }))
    .expect("made here");
    let outcome = flashatlas_sim::run(&spec, &crate::environment(&open), &mut |_| true)
        .unwrap_or_else(|e| panic!("{e}"));
    outcome.record["trace"]["requests"].as_u64().expect("a number")
}

/// Returns the number of mounts after power failures in workloads of `steps` steps.
fn cuts(steps: u64, seeds: u64) -> u64 {
    let plan = CrashSpec { steps: steps as u32, one_in: 20, seeds, ..crash::plan("random") };
    let report = flashatlas_crash::run(&STANDARD, &plan, &mut |_, _| true);
    report.expect("names that exist").rows.iter().map(|row| row.tally.mounts).sum()
}
