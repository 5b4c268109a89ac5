//! `make bench`: throughput of the simulator, as a ratio to the throughput of the floor program.
//! Both are measured in one run on one core, because absolute numbers of a shared machine mean
//! little. This is not a test: the reader judges the numbers.

mod capacity;
mod checkpoint;
mod costs;
mod crash;
mod floor;
mod growth;
mod kernels;
mod layers;
mod log_blocks;
mod lookup;
mod maps;
mod plugins;
mod setup;
mod today;

use flashatlas_device::{Cmd, Device, Done, Reply, Ssd, Storage};
use flashatlas_host::STANDARD;
use flashatlas_sim::metrics::METRICS;
use flashatlas_types::{Entries, Lba, Lpn, Ps, Rng, Seed, Stamp, Tag};
use std::sync::OnceLock;
use std::time::Instant;

/// Returns the time. Benchmarks may read the clock; the simulator may not.
#[allow(clippy::disallowed_methods)]
pub fn now() -> Instant {
    Instant::now()
}

/// Returns the environment of runs in benchmarks.
fn environment(opener: &dyn flashatlas_sim::Opener) -> flashatlas_sim::Environment<'_> {
    let build = flashatlas_sim::Build { version: "bench", sources: "", commit: None };
    flashatlas_sim::Environment {
        registry: &STANDARD,
        workloads: flashatlas_workload::Registry::STANDARD,
        metrics: Entries::of(METRICS),
        opener,
        build,
        added: &[],
    }
}

/// Returns a TLC-like drive of `gib` GiB with 4 KiB units in 16 KiB pages, 8 dies and 7 %
/// over-provisioning.
/// A drive of any size has the same number of blocks; a block has 16 pages for each GiB. The
/// frontier and the reserve are therefore the same share of the blocks.
fn drive(gib: u64, extra: &[&str]) -> Ssd {
    // 8 dies x 1 plane x blocks x 16 pages x 16 KiB = 2 MiB x blocks for each GiB
    let blocks = (1024u64 * 107 / 100).div_ceil(2) + 8;
    let mut settings = vec![
        "drive.channels=4".into(),
        "drive.ways=2".into(),
        "drive.planes=1".into(),
        "drive.frame_planes=1".into(),
        format!("drive.pages={}", 16 * gib),
        format!("drive.blocks={blocks}"),
        format!("drive.logical_pages={}", gib << 18),
        "cache.bytes=16MiB".into(),
    ];
    settings.extend(extra.iter().map(|&s| s.to_owned()));
    STANDARD
        .load("tlc-nvme-1tb", None, &settings)
        .and_then(|c| c.build(Seed(1)))
        .unwrap_or_else(|e| panic!("{e}"))
}

/// Host that sends requests of one unit directly to the device. For each request it compares or
/// sets a stamp, as the oracle does.
struct Host {
    drive: Ssd,
    expected: Vec<Stamp>,
    rng: Rng,
    now: Ps,
    in_flight: usize,
    done: Vec<Done>,
    reply: Reply,
    content: u64,
}

impl Host {
    fn filled(mut drive: Ssd) -> Host {
        drive.fill(|l| Stamp(l.0 + 1)).unwrap();
        let expected = (0..drive.layout().logical_units).map(|l| Stamp(l + 1)).collect();
        let rng = Rng::stream(Seed(1), "bench");
        let reply = Reply::default();
        Host {
            drive,
            expected,
            rng,
            now: Ps::ZERO,
            in_flight: 0,
            done: Vec::new(),
            reply,
            content: 0,
        }
    }

    /// Makes a random write for each page of the drive, in no simulated time.
    fn age(&mut self) {
        let units = self.expected.len() as u64;
        self.drive.set_instant(true);
        for _ in 0..units {
            let lpn = self.rng.below(units) as u32;
            self.content += 1;
            let cmd = Cmd::Write {
                lba: Lba(u64::from(lpn) * 8),
                sectors: 8,
                fua: false,
                content: self.content,
                data: None,
            };
            self.drive.submit(Ps::ZERO, Tag(0), cmd, &mut self.reply).unwrap();
            self.expected[lpn as usize] = Stamp::whole(self.content, 0);
        }
        self.drive.set_instant(false);
    }

    /// Returns a random number below 100.
    fn percent(&mut self) -> u64 {
        self.rng.below(100)
    }

    fn any_page(&mut self) -> Lpn {
        Lpn(self.rng.below(self.expected.len() as u64) as u32)
    }

    /// Prefetches the memory that the next requests need: map entries of reads, and stamps.
    fn expect(&self, requests: &[(bool, Lpn)]) {
        let reads = requests.iter().filter(|(write, _)| !write);
        self.drive.prefetch(&reads.map(|&(_, lpn)| lpn).collect::<Vec<_>>());
        for (_, lpn) in requests {
            std::hint::black_box(self.expected[lpn.0 as usize]);
        }
    }

    fn request(&mut self, write: bool, depth: usize) {
        let lpn = self.any_page();
        self.request_page(lpn, write, depth);
    }

    fn request_page(&mut self, lpn: Lpn, write: bool, depth: usize) {
        while self.in_flight >= depth {
            self.now = self.drive.advance_to_completion(Ps::MAX, &mut self.done);
            assert!(!self.done.is_empty(), "something is in flight");
            self.in_flight -= self.done.len();
            self.done.clear();
        }
        let (lba, sectors) = (Lba(u64::from(lpn.0) * 8), 8);
        if write {
            self.content += 1;
            let cmd = Cmd::Write { lba, sectors, fua: false, content: self.content, data: None };
            self.drive.submit(self.now, Tag(0), cmd, &mut self.reply).unwrap();
            self.expected[lpn.0 as usize] = Stamp::whole(self.content, 0);
        } else {
            self.drive
                .submit(self.now, Tag(0), Cmd::Read { lba, sectors }, &mut self.reply)
                .unwrap();
            assert_eq!(self.reply.stamps, [self.expected[lpn.0 as usize]]);
        }
        self.in_flight += 1;
    }

    /// Completes everything in flight.
    fn finish(&mut self) {
        self.drive.advance(Ps::MAX, &mut self.done);
        self.in_flight -= self.done.len();
        self.done.clear();
        self.now = self.drive.drain();
    }

    fn rate(&mut self, requests: u64, write: bool, depth: usize) -> f64 {
        let begin = now();
        (0..requests).for_each(|_| self.request(write, depth));
        requests as f64 / begin.elapsed().as_secs_f64()
    }
}

fn steady_writes(gib: u64, measured: u64) -> (f64, f64) {
    let mut host = Host::filled(drive(gib, &[]));
    host.age();
    host.rate(measured / 4, true, 32);
    host.drive.reset_counters();
    let rate = host.rate(measured, true, 32);
    let programs: u64 = host.drive.medium().counters.programs.iter().sum();
    (rate, programs as f64 * 4.0 / measured as f64)
}

fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or("0 0");
    line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

fn writes() {
    let logical = 16u32 << 18;
    let (floor, floor_waf) = floor::rate(16 * 1024 * 107 / 100 / 4 + 8, 1024, logical, 6_000_000);
    println!(
        "floor, 16 GiB of 4 KiB units, 7 %     {:>9.0} k writes/s   WAF {floor_waf:.2}",
        floor / 1e3
    );
    let (rate, waf) = steady_writes(16, 2_000_000);
    println!(
        "event engine, the same, steady state  {:>9.0} k writes/s   WAF {waf:.2}   {:.3} of the \
         floor (goal 0.10)",
        rate / 1e3,
        rate / floor
    );
}

fn reads() {
    let mut host = Host::filled(drive(16, &[]));
    host.rate(500_000, false, 32);
    let rate = host.rate(4_000_000, false, 32);
    println!(
        "event engine, random reads, QD 32     {:>9.0} k reads/s    (goal 1,000 k)",
        rate / 1e3
    );
}

fn linear() {
    let mut first = 0.0;
    for gib in [1, 4, 16, 64] {
        let (rate, waf) = steady_writes(gib, 1_000_000);
        let ns = 1e9 / rate;
        first = if first == 0.0 { ns } else { first };
        println!(
            "steady writes, {gib:>2} GiB                 {ns:>9.0} ns a request   WAF {waf:.2}   \
             {:.2} of 1 GiB",
            ns / first
        );
    }
}

fn large_drive() {
    let begin = now();
    let config = STANDARD.load("tlc-nvme-1tb", None, &[]).unwrap();
    let mut drive = config.build(Seed(1)).unwrap();
    let built = begin.elapsed().as_secs_f64();
    let units = u64::from(drive.layout().logical_units);
    let mut expected = vec![Stamp::ZERO; units as usize];
    let stamp = |l: Lpn| Stamp::whole(u64::from(l.0), 0);
    assert!(drive.fill_blank(&stamp, &mut |_| true) == Some(true));
    drive.power_cycle(&config, Seed(1)).unwrap();
    expected.iter_mut().enumerate().for_each(|(l, e)| *e = Stamp::whole(l as u64, 0));
    let filled = begin.elapsed().as_secs_f64();
    println!(
        "tlc-nvme-1tb filled, oracle included  {filled:>9.1} s ({built:.1} s of it to build; goal \
         10)   {:.2} GiB (goal 7), {:.1} bytes a unit (goal 24)",
        peak_mib() / 1024.0,
        (peak_mib() - 64.0) * 1_048_576.0 / units as f64
    );
}

/// Factor by which `--times` multiplies the requests of engine, costs, lookup and today.
static TIMES: OnceLock<u64> = OnceLock::new();

/// Returns `requests` times [`TIMES`]. If a result depends on the factor, it was not steady.
fn longer(requests: u64) -> u64 {
    requests * TIMES.get().unwrap_or(&1)
}

fn main() {
    let mut wanted: Vec<String> = std::env::args().skip(1).collect();
    if wanted.first().is_some_and(|first| first == "--times") {
        let times = wanted.drain(..wanted.len().min(2)).nth(1).and_then(|n| n.parse().ok());
        let Some(times @ 1..=1000) = times else {
            eprintln!(
                "--times: from 1 to 1000 times as many requests in engine, costs, lookup, today"
            );
            std::process::exit(2);
        };
        TIMES.set(times).expect("the factor is set once");
    }
    match &wanted.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["capacity", name] => return capacity::work(name),
        ["kernel"] => return kernels::list(),
        ["kernel", name, count] => {
            return kernels::work(name, count.parse().expect("bench kernel NAME COUNT"));
        }
        ["growth"] => return growth::list(),
        ["growth", name, size, count] => {
            let number = |text: &str| text.parse().expect("bench growth NAME SIZE COUNT");
            return growth::work(name, number(size), number(count));
        }
        _ => {}
    }
    let is_longer = |part: &String| ["engine", "costs", "lookup", "today"].contains(&part.as_str());
    let others = wanted.is_empty() || !wanted.iter().all(is_longer);
    if TIMES.get().is_some() && others {
        eprintln!(
            "--times is for the parts engine, costs, lookup and today: name some of them alone"
        );
        std::process::exit(2);
    }
    let parts: [(&str, fn()); 17] = [
        ("large", large_drive),
        ("writes", writes),
        ("reads", reads),
        ("linear", linear),
        ("costs", costs::print),
        ("engine", costs::engine),
        ("traces", traces::print),
        ("reading", reading::print),
        ("setup", setup::print),
        ("today", today::print),
        ("checkpoint", checkpoint::print),
        ("log-blocks", log_blocks::print),
        ("maps", maps::print),
        ("lookup", lookup::print),
        ("layers", layers::print),
        ("crash", crash::print),
        ("plugins", plugins::print),
    ];
    if let Some(unknown) = wanted.iter().find(|w| parts.iter().all(|(name, _)| name != w)) {
        let names: Vec<&str> = parts.iter().map(|&(name, _)| name).collect();
        eprintln!("{unknown} is no part of the benchmarks: {}", names.join(", "));
        std::process::exit(2);
    }
    for (name, part) in parts {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            part();
        }
    }
}

mod traces {
    //! Time to read and decode a trace, compared with the time to replay it.

    use flashatlas_sim::{Inputs, RunSpec, Stream};
    use flashatlas_workload::ReadOptions;

    fn open(path: &str) -> std::io::Result<Stream> {
        let file = std::fs::File::open(path)?;
        let length = file.metadata()?.len();
        Ok((Box::new(file), Some(length)))
    }

    /// Writes 400,000 records of a made-up CloudPhysics trace into a temporary file, and returns
    /// its path.
    fn synthetic() -> std::path::PathBuf {
        let mut bytes = Vec::new();
        let mut rng = flashatlas_types::Rng::stream(flashatlas_types::Seed(1), "trace");
        for n in 0..400_000u32 {
            bytes.extend(n.to_le_bytes());
            bytes.extend((4096u32 << rng.below(4)).to_le_bytes());
            bytes.extend(1u32.to_le_bytes());
            bytes.extend(if rng.below(10) < 4 { 0x28u16 } else { 0x2a }.to_le_bytes());
            bytes.extend(0x100u16.to_le_bytes());
            bytes.extend((rng.below(1 << 17) * 8).to_le_bytes());
            bytes.extend((u64::from(n) * 60).to_le_bytes());
        }
        let path =
            std::env::temp_dir().join(format!("flashatlas-bench-{}.vscsi", std::process::id()));
        std::fs::write(&path, bytes).expect("the temporary folder is writable");
        path
    }

    pub fn print() {
        let path = synthetic();
        let name = path.to_str().expect("a plain path").to_owned();
        let begin = super::now();
        let standard = flashatlas_workload::Registry::STANDARD;
        let inputs = Inputs::new(&open, standard, ReadOptions::default());
        let mut input = inputs.trace(&name, None, true).unwrap_or_else(|e| panic!("{e}"));
        let mut count = 0u64;
        while input.next_record().unwrap_or_else(|e| panic!("{e}")).is_some() {
            count += 1;
        }
        let reading = begin.elapsed().as_secs_f64();
        let spec: RunSpec = serde_json::from_value(serde_json::json!({
            "drive": "tlc-nvme-1tb", "trace": name, "precondition": "none",
            "set": ["drive.channels=4", "drive.ways=2", "drive.blocks=32", "drive.pages=256",
                "drive.logical_pages=400000"],
        }))
        .expect("a valid specification");
        let begin = super::now();
        flashatlas_sim::run(&spec, &crate::environment(&open), &mut |_| true)
            .unwrap_or_else(|e| panic!("{e}"));
        let replaying = begin.elapsed().as_secs_f64();
        println!(
            "trace file (vscsi), {count} requests   reading {:>6.2} M/s, replaying {:.2} M/s: \
             reading is {:.2} of the time (goal 0.33)",
            count as f64 / reading / 1e6,
            count as f64 / replaying / 1e6,
            reading / replaying
        );
        drop(std::fs::remove_file(path));
    }
}

mod reading {
    //! Decoding of traces on one core without replay, in requests a second for each format.

    use flashatlas_types::{HostOp, Lba, Ps, Request, Rng, Seed};
    use flashatlas_workload::{
        Opened, ReadOptions, Record, TraceSummary, WriteOptions, create, open,
    };
    use std::io::{Cursor, Write};
    use std::sync::{Arc, Mutex};

    const REQUESTS: u64 = 2_000_000;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("one thread").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Returns reads and writes of 4 to 32 KiB at random addresses, some of them sequential,
    /// microseconds apart.
    pub fn records(count: u64) -> Vec<Record> {
        let mut rng = Rng::stream(Seed(1), "reading");
        let (mut at, mut end) = (0, 0);
        let each = (0..count).map(|_| {
            let lba = if rng.below(3) == 0 { end } else { rng.below(1 << 24) * 8 };
            let sectors = 8 << rng.below(4);
            (at, end) = (at + rng.below(200) * 1_000_000, lba + u64::from(sectors));
            let op = if rng.below(10) < 4 { HostOp::Read } else { HostOp::Write };
            Record {
                request: Request { at: Ps(at), op, lba: Lba(lba), sectors, fua: false },
                device: 0,
            }
        });
        each.collect()
    }

    pub fn written(format: &str, records: &[Record]) -> Vec<u8> {
        let shared = Shared::default();
        let mut sink = create(format, Box::new(shared.clone()), "none", &WriteOptions::default())
            .unwrap_or_else(|e| panic!("{e}"));
        records.iter().for_each(|record| sink.put(record).unwrap_or_else(|e| panic!("{e}")));
        sink.finish().unwrap_or_else(|e| panic!("{e}"));
        std::mem::take(&mut *shared.0.lock().expect("one thread"))
    }

    fn rate(bytes: Vec<u8>, format: &str, each: &mut dyn FnMut(&Record)) -> f64 {
        let begin = super::now();
        let reader = Box::new(Cursor::new(bytes));
        let Opened { mut source, .. } =
            open(reader, Some(format), &ReadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        let mut count = 0u64;
        while let Some(record) = source.next().unwrap_or_else(|e| panic!("{e}")) {
            each(&record);
            count += 1;
        }
        count as f64 / begin.elapsed().as_secs_f64() / 1e6
    }

    pub fn print() {
        let records = records(REQUESTS);
        let columns = "columns:time=0:ps,op=1,offset=2:sectors,size=3:sectors,header=1";
        let formats = [
            ("atlas", "atlas", "atlas", 5.0),
            ("atlas without zstd", "atlas:zstd=0", "atlas", 5.0),
            ("csv", "csv", "csv", 1.0),
            ("columns", "csv", columns, 1.0),
            ("spc", "spc", "spc", 1.0),
            ("msr", "msr", "msr", 1.0),
            ("mqsim", "mqsim", "mqsim", 1.0),
            ("iolog", "iolog", "iolog", 1.0),
        ];
        for (name, write, read, goal) in formats {
            let begin = super::now();
            let bytes = written(write, &records);
            let writing = records.len() as f64 / begin.elapsed().as_secs_f64() / 1e6;
            let size = bytes.len() as f64 / records.len() as f64;
            let reading = rate(bytes, read, &mut |_| {});
            println!(
                "{name:<20} reading {reading:>6.2} M requests/s (goal {goal}), writing \
                 {writing:>5.2} M/s, {size:>4.1} bytes a request"
            );
        }
        let mut summary = TraceSummary::new();
        let reading = rate(written("atlas", &records), "atlas", &mut |record| summary.add(record));
        println!("atlas, summed up     reading {reading:>6.2} M requests/s");
    }
}
