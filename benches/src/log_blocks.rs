//! Log-block schemes on the uniform reference workload: host requests and flash operations a
//! second, compared with the page-mapped FTL. The runs are untimed: they use the schemes and the
//! medium, without the event engine.

use flashatlas_device::{Cmd, Device, Reply, Storage};
use flashatlas_host::STANDARD;
use flashatlas_types::{Lba, Ps, Seed, Stamp, Tag};

const PAGES: u64 = 16_384;
/// Writes in a round: the length of the reference workload.
const WRITES: u64 = 50_000;

/// Generator of the reference traces.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Returns host requests and flash operations a second.
fn rates(scheme: &str) -> (f64, f64) {
    let mut settings = vec!["drive.logical_pages=16384".to_owned(), format!("ftl.scheme={scheme}")];
    match scheme {
        // the spare blocks are the blocks of the log and the blocks that collection keeps free
        "page" => settings.extend(["drive.blocks=276".to_owned()]),
        "block" => {}
        _ => settings.push("ftl.log_blocks=16".to_owned()),
    }
    let config = STANDARD.load("mast-4gb", None, &settings).unwrap_or_else(|e| panic!("{e}"));
    let mut drive = config.build(Seed(1)).unwrap_or_else(|e| panic!("{e}"));
    drive.fill(|l| Stamp(l.0 + 1)).unwrap_or_else(|e| panic!("{e}"));
    drive.reset_counters();
    drive.set_instant(true);
    let (mut rng, mut reply) = (Lcg(1), Reply::default());
    let (begin, mut requests) = (super::now(), 0u64);
    // run whole rounds until a second has passed
    while requests == 0 || begin.elapsed().as_secs_f64() < 1.0 {
        for _ in 0..WRITES {
            requests += 1;
            let lba = Lba(rng.below(PAGES) * 4);
            let cmd = Cmd::Write { lba, sectors: 4, fua: false, content: requests, data: None };
            drive.submit(Ps::ZERO, Tag(0), cmd, &mut reply).unwrap_or_else(|e| panic!("{e}"));
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    let c = drive.medium().counters;
    let operations: u64 = [c.reads, c.programs, c.erases].iter().flatten().sum();
    (requests as f64 / seconds, operations as f64 / seconds)
}

pub fn print() {
    let mut yardstick = 0.0;
    for scheme in STANDARD.ftl.schemes.iter() {
        let (requests, operations) = rates(scheme.name);
        if scheme.name == "page" {
            yardstick = operations;
        }
        println!(
            "{:<12} uniform writes {:>8.0} k requests/s {:>8.1} M flash operations/s   {:.2} of \
             page mapping (goal 0.5)",
            scheme.name,
            requests / 1e3,
            operations / 1e6,
            operations / yardstick
        );
    }
}
