//! Costs of a layer: nanoseconds of host CPU time for a read that passes through the layer, and
//! bytes of its maps for each page of the drive.

use super::now;
use flashatlas_device::{Cmd, DriveConfig, Reply, Stack};
use flashatlas_host::STANDARD;
use flashatlas_types::{ConfigError, Lba, Ps, Rng, Seed, Tag};

const DRIVE: &[&str] =
    &["drive.blocks=24", "drive.pages=32", "drive.logical_pages=32768", "cache.bytes=4MiB"];
/// Settings for layers that need a map loaded on demand: the caches in the drive and in the host
/// are large enough for the whole map.
const ON_DEMAND: &[&str] = &["map.store=demand", "map.cache_bytes=1MiB"];
const READS: u64 = 40_000;
const DEPTH: usize = 32;
const ROUNDS: usize = 8;
const STACKS: usize = 16;

fn config(layers: &str, store: &[&str]) -> Result<DriveConfig, ConfigError> {
    let mut settings: Vec<String> = DRIVE.iter().chain(store).map(|&s| s.to_owned()).collect();
    settings.push(format!("layers={layers}"));
    STANDARD.load("tlc-small", None, &settings)
}

pub fn stack(layers: &str, store: &[&str]) -> (Stack, u64) {
    let config = config(layers, store).unwrap_or_else(|e| panic!("{e}"));
    let mut stack = config.build_stack(Seed(1)).unwrap_or_else(|e| panic!("{e}"));
    stack.fill_while(|lpn| 1 << 62 | u64::from(lpn.0), &mut |_| true).unwrap();
    stack.power_cycle(&config, Seed(1)).unwrap();
    (stack, u64::from(config.layout().unwrap().logical_units))
}

/// Makes `reads` random reads.
pub fn read(stack: &mut Stack, rng: &mut Rng, reads: u64) {
    let pages = stack.top().sectors() / 8;
    let (mut at, mut in_flight, mut done, mut reply) =
        (stack.drain(), 0, Vec::new(), Reply::default());
    for n in 0..reads {
        while in_flight >= DEPTH {
            at = at.max(stack.next_event().expect("something is in flight"));
            stack.advance(at, &mut done);
            in_flight -= done.len();
            done.clear();
        }
        let cmd = Cmd::Read { lba: Lba(rng.below(pages) * 8), sectors: 8 };
        stack.submit(at, Tag(n), cmd, &mut reply).unwrap();
        in_flight += 1;
    }
    stack.advance(Ps(u64::MAX), &mut done);
}

/// Returns the nanoseconds of a random read.
fn read_ns(stack: &mut Stack, rng: &mut Rng) -> f64 {
    let begin = now();
    read(stack, rng, READS);
    begin.elapsed().as_secs_f64() * 1e9 / READS as f64
}

/// Returns the least nanoseconds of a read in each of two stacks, and the second stack with its
/// number of pages.
///
/// The two stacks are measured alternately, in many short rounds, and the fastest round counts: the
/// machine is shared, but other programs do not disturb every short round. Several pairs of stacks
/// are built, because the addresses of their tables make a difference.
fn side_by_side(one: (&str, &[&str]), other: (&str, &[&str])) -> ([f64; 2], Stack, u64) {
    let mut rng = Rng::stream(Seed(1), "bench");
    let (mut least, mut last) = ([f64::MAX; 2], None);
    for _ in 0..STACKS {
        let (mut left, _) = stack(one.0, one.1);
        let (mut right, pages) = stack(other.0, other.1);
        for _ in 0..ROUNDS {
            least[0] = least[0].min(read_ns(&mut left, &mut rng));
            least[1] = least[1].min(read_ns(&mut right, &mut rng));
        }
        last = Some((right, pages));
    }
    let (right, pages) = last.expect("there are stacks");
    (least, right, pages)
}

pub fn print() {
    for layer in STANDARD.layers.iter() {
        let store = if config(layer.name, &[]).is_ok() { &[] } else { ON_DEMAND };
        let (least, with, pages) = side_by_side(("", store), (layer.name, store));
        let memory = with.top().reports().remove(0).memory;
        let bytes: u64 =
            memory.iter().filter(|(table, _)| table.contains("map")).map(|(_, bytes)| bytes).sum();
        println!(
            "layer {:<10} passing reads through  {:>6.0} ns a request (goal 150), {:.0} without   \
             maps {:.2} bytes a page (goal 8.4)",
            layer.name,
            least[1] - least[0],
            least[0],
            bytes as f64 / pages as f64,
        );
    }
    wire_formats();
}

/// Prints the costs of encoding and decoding the messages between the two sides of HPB.
fn wire_formats() {
    const CACHED: &[&str] = &["hpb.protect=encrypted", "hpb.activation_reads=1"];
    for wire in ["jedec", "samsung", "paper"] {
        let format = format!("hpb.wire={wire}");
        let settings = |wire| [ON_DEMAND, CACHED, &[wire]].concat();
        let (off, on) = (settings("hpb.wire=off"), settings(&format));
        let (least, with, _) = side_by_side(("hpb-host", &off), ("hpb-host", &on));
        let counters = with.top().reports().remove(0).counters;
        let count = |name| counters.iter().find(|(key, _)| *key == name).expect("counted").1;
        println!(
            "wire  {wire:<10} reads with entries      {:>6.0} ns a request, {:.0} without   \
             {:.0} % of reads have one",
            least[1] - least[0],
            least[0],
            100.0 * count("hits") as f64 / count("reads") as f64,
        );
    }
}
