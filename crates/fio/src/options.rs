//! Options of a job. Names, aliases, units and defaults are taken from fio 3.33 (`fio
//! --cmdhelp=all`).

use super::distribution::{Distribution, Share};
use super::error::Position;
use super::replay::ReplayOptions;
use super::settling::Settling;
use super::value::{Amount, ByDir};
use super::zoning::Zoning;
use flashatlas_types::{Dur, Rng};
use flashatlas_workload::generators::math::ln;
use std::collections::BTreeMap;

/// Kinds and order of the requests of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// Name in job files, such as `randrw`.
    pub name: &'static str,
    /// `true` if the job reads.
    pub read: bool,
    /// `true` if the job writes.
    pub write: bool,
    /// `true` if the job trims.
    pub trim: bool,
    /// `true` if offsets are random.
    pub random: bool,
}

impl Pattern {
    /// Returns `true` if the job reads and writes, in the shares of `rwmixread`.
    pub fn mixed(&self) -> bool {
        self.read && self.write
    }

    /// Returns `true` if the job first trims each range and then writes it.
    pub fn trim_then_write(&self) -> bool {
        self.trim && self.write
    }
}

const fn pattern(name: &'static str, [read, write, trim]: [bool; 3], random: bool) -> Pattern {
    Pattern { name, read, write, trim, random }
}

/// Values of `rw`; the first is the default.
pub(super) const PATTERNS: &[Pattern] = &[
    pattern("read", [true, false, false], false),
    pattern("write", [false, true, false], false),
    pattern("trim", [false, false, true], false),
    pattern("randread", [true, false, false], true),
    pattern("randwrite", [false, true, false], true),
    pattern("randtrim", [false, false, true], true),
    pattern("rw", [true, true, false], false),
    pattern("readwrite", [true, true, false], false),
    pattern("randrw", [true, true, false], true),
    pattern("trimwrite", [false, true, true], false),
    pattern("randtrimwrite", [false, true, true], true),
];

/// Kind of an engine, by the requests that the engine queues.
///
/// The job waits for each request that the engine does not queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Engine {
    /// Queue of nothing: one request follows the other.
    Sync,
    /// Queue of reads and writes; the job waits for fsyncs and trims, which are system calls.
    Libaio,
    /// Queue of all requests except trims.
    IoUring,
    /// Queue of all requests.
    Null,
}

impl Engine {
    /// Returns `true` if more than one request can be in flight.
    pub fn queues(self) -> bool {
        self != Engine::Sync
    }

    /// Returns `true` if the job waits for an fsync before it goes on.
    pub fn waits_for_sync(self) -> bool {
        matches!(self, Engine::Sync | Engine::Libaio)
    }

    /// Returns `true` if the job waits for a trim before it goes on.
    pub fn waits_for_trim(self) -> bool {
        self != Engine::Null
    }
}

/// Order in which a job uses its files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileService {
    /// Each file in turn, for this number of requests.
    RoundRobin(u32),
    /// One file to its end, then the next file.
    Sequential,
    /// A file chosen at random, for this number of requests.
    Random(u32),
}

/// Offset of the requests between two random requests (`rw=randread:N`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sequencer {
    /// End of the last request.
    Sequential,
    /// Offset of the last request.
    Identical,
}

/// Source of random offsets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Generator {
    /// A random number generator, with a map of the used blocks.
    Random,
    /// A permutation of the blocks.
    Lfsr,
}

/// Numbers of requests that are sent and reaped at a time; by fio's defaults, one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batching {
    /// `iodepth_batch`; 0 means the value of `iodepth`.
    pub submit: u32,
    /// `iodepth_batch_complete_min`.
    pub complete_min: u32,
    /// `iodepth_batch_complete_max`; a value below `complete_min` counts as `complete_min`.
    pub complete_max: u32,
    /// `iodepth_low`; 0 means the value of `iodepth`.
    pub low: u32,
}

impl Default for Batching {
    fn default() -> Batching {
        Batching { submit: 1, complete_min: 1, complete_max: 0, low: 0 }
    }
}

/// Jobs that end together with a job whose `exitall` is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitWhat {
    /// Jobs of the same group.
    Group,
    /// Jobs that have started.
    Running,
    /// All jobs, including jobs that have not started.
    All,
}

/// Share of a job in the requests of all jobs with the same `flow_id`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FlowOptions {
    /// `flow`: the weight of the job; a job with weight 0 belongs to no flow.
    pub weight: u32,
    /// `flow_id`: the number of the flow.
    pub id: u32,
    /// `flow_sleep`: the time after which a job ahead of its share checks again. If it is zero, the
    /// job checks all the time.
    pub sleep: Dur,
}

/// Options of one section, including the options of global sections.
///
/// In arrays of three, index 0 is for reads, 1 for writes, and 2 for trims.
#[derive(Clone, Debug)]
pub struct Options {
    /// `name`; without this option, the job has the name of its section.
    pub name: Option<String>,
    /// `description`.
    pub description: String,
    /// `kb_base`.
    pub kb_base: u64,
    /// `rw`.
    pub pattern: Pattern,
    /// `rw=rand…:N`: one random offset every `N` requests; 1 makes every offset random.
    pub random_every: u64,
    /// `rw=…:N` of sequential patterns: number of bytes between a request and the next; with a
    /// negative number, the next request lies before this request.
    pub hole: i64,
    /// `rw_sequencer`.
    pub sequencer: Sequencer,
    /// `rwmixread`: percent.
    pub read_percent: u32,
    /// `bs`, `bsrange` or `bssplit`: smallest and largest size.
    pub sizes: ByDir<(u64, u64)>,
    /// `bssplit`; empty if the option is not given.
    pub split: ByDir<Vec<Share>>,
    /// `bs_unaligned`.
    pub sizes_unaligned: bool,
    /// `bs_is_seq_rand`: the first size is for sequential requests, and the second for random
    /// requests.
    pub sizes_by_order: bool,
    /// `blockalign`.
    pub align: ByDir<Option<u64>>,
    /// `size`.
    pub size: Option<Amount>,
    /// `io_size`.
    pub io_size: Option<Amount>,
    /// `filesize`: the size of every file.
    pub file_size: Option<u64>,
    /// `offset`.
    pub offset: Amount,
    /// `offset_increment`: the distance between the offsets of two clones.
    pub offset_increment: Amount,
    /// `offset_align`.
    pub offset_align: Option<u64>,
    /// `read_iolog` and its options.
    pub replay: ReplayOptions,
    /// `number_ios`.
    pub number_ios: Option<u64>,
    /// `filename`, split at its colons.
    pub filenames: Vec<String>,
    /// `directory`.
    pub directory: Option<String>,
    /// `nrfiles`.
    pub files: u32,
    /// `file_service_type`.
    pub service: FileService,
    /// `zonemode` and its options.
    pub zoning: Zoning,
    /// `numjobs`.
    pub clones: u32,
    /// `iodepth`, as written.
    pub depth: u32,
    /// `iodepth_batch`, `iodepth_low` and related options.
    pub batching: Batching,
    /// `ioengine`.
    pub engine: Engine,
    /// `direct`, or the opposite of `buffered`.
    pub direct: bool,
    /// `sync`: writes are durable when they complete.
    pub durable: bool,
    /// `fsync`: number of writes after which an fsync follows; 0 means no fsync.
    pub fsync: u64,
    /// `fdatasync`.
    pub fdatasync: u64,
    /// `end_fsync` or `fsync_on_close`.
    pub end_fsync: bool,
    /// `thinktime`.
    pub think: Dur,
    /// `thinktime_spin`: the part of a pause that keeps the processor busy. A pause is at least
    /// this long.
    pub think_spin: Dur,
    /// `thinktime_blocks`.
    pub think_blocks: Option<u64>,
    /// `thinktime_blocks_type=issue`: blocks are counted when issued, not when complete.
    pub think_issued: bool,
    /// `thinktime_iotime`; zero if the option is not given.
    pub think_after: Dur,
    /// `rate`: bytes per second; 0 means no limit.
    pub rate: ByDir<u64>,
    /// `rate_iops`.
    pub rate_iops: ByDir<u64>,
    /// `rate_process=poisson`: gaps are drawn at random, and their mean follows from the rate.
    pub poisson: bool,
    /// `rate_ignore_thinktime`.
    pub rate_ignores_think: bool,
    /// `random_distribution`.
    pub distribution: Distribution,
    /// `random_generator`.
    pub generator: Generator,
    /// `norandommap`.
    pub no_map: bool,
    /// `percentage_random`.
    pub percent_random: ByDir<u32>,
    /// `randrepeat`, `allrandrepeat`: every pass draws the same numbers.
    pub repeat: bool,
    /// `randseed`.
    pub seed: Option<u64>,
    /// `verify` with a method, or `verify_pattern`.
    pub verify: bool,
    /// `do_verify`.
    pub do_verify: bool,
    /// `verify_backlog`: number of writes after which these writes are read back. With 0, all
    /// writes are read back at the end of the pass.
    pub verify_backlog: u64,
    /// `verify_backlog_batch`: number of writes that are read back at a time; 0 means the value of
    /// `verify_backlog`.
    pub verify_batch: u64,
    /// `runtime`; zero means no limit.
    pub runtime: Dur,
    /// `time_based`.
    pub time_based: bool,
    /// `ramp_time`.
    pub ramp: Dur,
    /// `steadystate` and its options.
    pub settling: Settling,
    /// `startdelay`: shortest and longest delay.
    pub start_delay: (Dur, Dur),
    /// `loops`.
    pub loops: u64,
    /// `wait_for`: the job that must be over first.
    pub wait_for: Option<String>,
    /// `flow` and its options.
    pub flow: FlowOptions,
    /// `exitall`.
    pub exit_all: bool,
    /// `exit_what`.
    pub exit_what: ExitWhat,
    /// `stonewall`.
    pub stonewall: bool,
    /// `new_group`.
    pub new_group: bool,
    /// `group_reporting`.
    pub group_reporting: bool,
    /// Options with a value in the section itself, without the global sections: the name in fio's
    /// list, and the value.
    pub given: Vec<(String, String)>,
    /// Place where each option was given, by its name in fio's list.
    pub places: BTreeMap<&'static str, Position>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            name: None,
            description: String::new(),
            kb_base: 1024,
            pattern: PATTERNS[0],
            random_every: 1,
            hole: 0,
            sequencer: Sequencer::Sequential,
            read_percent: 50,
            sizes: [(4096, 4096); 3],
            split: Default::default(),
            sizes_unaligned: false,
            sizes_by_order: false,
            align: [None; 3],
            size: None,
            io_size: None,
            file_size: None,
            offset: Amount::Bytes(0),
            offset_increment: Amount::Bytes(0),
            offset_align: None,
            replay: ReplayOptions::default(),
            number_ios: None,
            filenames: Vec::new(),
            directory: None,
            files: 1,
            service: FileService::RoundRobin(1),
            zoning: Zoning::default(),
            clones: 1,
            depth: 1,
            batching: Batching::default(),
            engine: Engine::Sync,
            direct: false,
            durable: false,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            think: Dur::ZERO,
            think_spin: Dur::ZERO,
            think_blocks: None,
            think_issued: false,
            think_after: Dur::ZERO,
            rate: [0; 3],
            rate_iops: [0; 3],
            poisson: false,
            rate_ignores_think: false,
            distribution: Distribution::Random,
            generator: Generator::Random,
            no_map: false,
            percent_random: [100; 3],
            repeat: true,
            seed: None,
            verify: false,
            do_verify: true,
            verify_backlog: 0,
            verify_batch: 0,
            runtime: Dur::ZERO,
            time_based: false,
            ramp: Dur::ZERO,
            settling: Settling::default(),
            start_delay: (Dur::ZERO, Dur::ZERO),
            loops: 1,
            wait_for: None,
            flow: FlowOptions::default(),
            exit_all: false,
            exit_what: ExitWhat::Group,
            stonewall: false,
            new_group: false,
            group_reporting: false,
            given: Vec::new(),
            places: BTreeMap::new(),
        }
    }
}

impl Options {
    /// Returns the number of commands that the job keeps in flight: 1 for a synchronous engine.
    pub fn effective_depth(&self) -> u32 {
        if self.engine.queues() { self.depth } else { 1 }
    }

    /// Returns the rate limit in direction `dir` in bytes per second; 0 means no limit.
    ///
    /// A limit by `rate_iops` is converted with the smallest block size.
    pub fn bytes_per_second(&self, dir: usize) -> u64 {
        match self.rate[dir] {
            0 => self.rate_iops[dir].saturating_mul(self.sizes[dir].0),
            rate => rate,
        }
    }

    /// Draws the gap between two requests in direction `dir`, for requests at random times.
    ///
    /// The mean is rounded down to whole microseconds, as in fio (fio 3.33, `backend.c`:
    /// `usec_for_io`). The gap is zero if there is no rate.
    pub fn drawn_gap(&self, dir: usize, rng: &mut Rng) -> Dur {
        let per_second = self.bytes_per_second(dir) / self.sizes[dir].0;
        let mean = 1_000_000u64.checked_div(per_second).unwrap_or(0);
        Dur::from_us((mean as f64 * -ln(1.0 - rng.unit())) as u64)
    }

    /// Returns `true` if the writes of each pass are read back.
    pub fn reads_back(&self) -> bool {
        self.verify && self.do_verify
    }

    /// Returns the alignment of random offsets in bytes.
    pub fn alignment(&self, dir: usize) -> u64 {
        self.align[dir].unwrap_or(self.sizes[dir].0)
    }

    /// Returns `true` if the job keeps a map of the blocks that it has used.
    ///
    /// With the map, a pass uses each block once.
    pub fn keeps_map(&self) -> bool {
        let aligned = (0..3).any(|dir| self.alignment(dir) != self.sizes[dir].0);
        self.pattern.random
            && !self.no_map
            && !aligned
            && self.distribution == Distribution::Random
            && self.generator == Generator::Random
    }

    /// Returns the smallest size of a request in any direction, including directions that are not
    /// used.
    pub fn smallest(&self) -> u64 {
        self.sizes.iter().map(|s| s.0).min().expect("there are three")
    }

    /// Returns the largest size of a request in any direction, including directions that are not
    /// used.
    pub fn largest(&self) -> u64 {
        self.sizes.iter().map(|s| s.1).max().expect("there are three")
    }
}
