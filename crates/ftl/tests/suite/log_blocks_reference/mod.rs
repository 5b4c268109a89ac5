//! Log-block schemes compared with naive references. After every request both sides have the same
//! counts, the same sizes of the areas, and every page at the same index of the same block. Only
//! the numbers that the two sides give to blocks differ.

mod faster;
mod last;
mod mast;
mod sast;
mod superblock;

use crate::naive::{AreaSize, Counts, Reference, Shape};
use flashatlas_device::Registry;
use flashatlas_device::{Cmd, Device, Reply, Ssd, Storage};
use flashatlas_fixtures::proofs;
use flashatlas_ftl::Place;
use flashatlas_types::{Cause, Dur, Lba, Lpn, Ps, Rng, Seed, Stamp, Tag};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Number of sectors in a page of the preset.
const SECTORS: u32 = 4;
const REQUESTS: usize = 500;
/// Number of seeds for each setup in a complete run.
const SEEDS: usize = 30;
/// A time that is long enough for all idle work.
const LONG: Dur = Dur::from_us(1_000_000);

/// A drive without its log blocks.
#[derive(Clone, Copy, Debug)]
struct Frame {
    pages: u32,
    block_pages: u32,
    channels: u32,
    ways: u32,
}

const fn frame(pages: u32, block_pages: u32, channels: u32, ways: u32) -> Frame {
    Frame { pages, block_pages, channels, ways }
}

/// Drives of four shapes. The last logical block of the first two is short.
const FRAMES: [Frame; 4] =
    [frame(150, 8, 1, 1), frame(243, 16, 2, 2), frame(92, 4, 1, 1), frame(160, 8, 2, 2)];

/// The settings of a scheme.
trait Rules: Copy + Debug {
    /// Returns the number of log blocks of all kinds together.
    fn log_blocks(&self) -> usize;

    /// Returns the number of log blocks that idle time keeps free.
    fn idle_blocks(&self) -> usize;

    /// Returns the scheme, and each of its parameters that differs from the preset.
    fn settings(&self) -> Vec<(&'static str, String)>;

    fn reference(&self, shape: Shape) -> Box<dyn Reference>;
}

#[derive(Clone, Debug)]
struct Setup<R> {
    frame: Frame,
    rules: R,
    strict: bool,
    filled: bool,
}

impl<R: Rules> Setup<R> {
    fn settings(&self) -> Vec<String> {
        let Frame { pages, block_pages, channels, ways } = self.frame;
        let blocks = pages.div_ceil(block_pages) + self.rules.log_blocks() as u32 + 4;
        let order = if self.strict { "strict" } else { "any" };
        let common = [
            ("cache.mode", "write-through".to_owned()),
            ("drive.channels", channels.to_string()),
            ("drive.ways", ways.to_string()),
            ("drive.blocks", blocks.div_ceil(channels * ways).to_string()),
            ("drive.pages", block_pages.to_string()),
            ("drive.logical_pages", pages.to_string()),
            ("nand.program_order", order.to_owned()),
            ("ftl.log_blocks", self.rules.log_blocks().to_string()),
            ("ftl.idle_log_blocks", self.rules.idle_blocks().to_string()),
            // the choice among erased blocks does not affect the comparison
            ("ftl.wear_dynamic", self.strict.to_string()),
        ];
        common
            .into_iter()
            .chain(self.rules.settings())
            .map(|(key, value)| format!("{key}={value}"))
            .collect()
    }

    fn drive(&self) -> Ssd {
        let settings = self.settings();
        let config = Registry::DRIVES
            .load("tiny", None, &settings)
            .unwrap_or_else(|e| panic!("{settings:?}: {e}"));
        let mut drive = config.build(Seed(1)).unwrap();
        if self.filled {
            drive.fill(|lpn| Stamp(lpn.0 + 1)).unwrap();
            drive.reset_counters();
        }
        drive.set_instant(true);
        drive
    }

    fn reference(&self) -> Box<dyn Reference> {
        let Frame { pages, block_pages, .. } = self.frame;
        let shape = Shape { pages, block_pages, strict: self.strict };
        let mut reference = self.rules.reference(shape);
        if self.filled {
            (0..pages).step_by(64).for_each(|first| reference.write(first, 64.min(pages - first)));
            reference.reset_counts();
        }
        reference
    }
}

#[derive(Clone, Copy, Debug)]
enum Request {
    Write { first: u32, pages: u32 },
    Trim { first: u32, pages: u32 },
    Idle,
}

/// Returns requests in phases. Each phase has another kind of requests.
fn requests(frame: Frame, seed: u64) -> Vec<Request> {
    let mut rng = Rng::stream(Seed(seed), "requests");
    let mut below = |bound: u32| rng.below(u64::from(bound)) as u32;
    let block = frame.block_pages;
    let run = |first: u32, pages: u32| {
        let first = first % frame.pages;
        (first, pages.clamp(1, frame.pages - first))
    };
    let (mut list, mut kind, mut cursor) = (Vec::new(), 0, 0);
    while list.len() < REQUESTS {
        if list.len() % 25 == 0 {
            kind = below(8);
        }
        let usual = match kind {
            0 | 1 => run(below(frame.pages), 1),
            // nine of ten writes go to a tenth of the drive
            2 | 3 if below(10) > 0 => run(below(frame.pages / 10), 1),
            2 | 3 => run(below(frame.pages), 1),
            4 => run(below(frame.pages), 1 + below(2 * block)),
            5 => run(below(frame.pages.div_ceil(block)) * block, 1 + below(2 * block)),
            // small requests that continue each other until the address jumps
            6 => {
                let first = match below(6) {
                    0 => below(frame.pages),
                    1 => below(frame.pages.div_ceil(block)) * block,
                    _ => cursor,
                };
                run(first, 1 + below(3))
            }
            _ => run(below(frame.pages), [1, 1, 1, 2, 5, block][below(6) as usize]),
        };
        let request = match below(40) {
            0 => {
                let (first, pages) = run(below(frame.pages), 1 + below(3 * block));
                Request::Trim { first, pages }
            }
            1 => Request::Trim { first: below(frame.pages), pages: 1 },
            2 => Request::Idle,
            _ => {
                cursor = usual.0 + usual.1;
                Request::Write { first: usual.0, pages: usual.1 }
            }
        };
        list.push(request);
    }
    list
}

fn serve_drive(drive: &mut Ssd, request: Request, content: u64) {
    let cmd = match request {
        Request::Write { first, pages } => Cmd::Write {
            lba: Lba(u64::from(first * SECTORS)),
            sectors: pages * SECTORS,
            fua: false,
            content,
            data: None,
        },
        Request::Trim { first, pages } => {
            Cmd::Trim { lba: Lba(u64::from(first * SECTORS)), sectors: pages * SECTORS }
        }
        Request::Idle => return drive.idle(Ps::ZERO, Ps::ZERO.after(LONG)).unwrap(),
    };
    drive.submit(Ps::ZERO, Tag(content), cmd, &mut Reply::default()).unwrap();
}

fn serve_reference(reference: &mut dyn Reference, request: Request) {
    match request {
        Request::Write { first, pages } => reference.write(first, pages),
        Request::Trim { first, pages } => {
            (first..first + pages).for_each(|page| reference.trim(page))
        }
        Request::Idle => reference.idle(),
    }
}

fn counts_of(drive: &Ssd) -> Counts {
    let merges = drive.ftl_report().merges.expect("the scheme merges");
    let medium = &drive.medium().counters;
    let [data_switch, data_partial, data_full] = merges.data_blocks;
    let [log_switch, log_partial, log_full, log_dead, log_moved] =
        merges.log_blocks.unwrap_or_default();
    Counts {
        data_switch,
        data_partial,
        data_full,
        log_switch,
        log_partial,
        log_full,
        log_dead,
        log_moved,
        sequential_full: merges.sequential_full,
        copies: merges.copies,
        moved_pages: merges.moved_pages,
        migrated: merges.migrated_blocks,
        in_place: merges.in_place,
        order_detours: merges.order_detours,
        erases: without_records(&medium.erases),
        programs: without_records(&medium.programs),
    }
}

/// Returns the total without trim records, because the papers have no trim records.
fn without_records(by_cause: &[u64]) -> u64 {
    by_cause.iter().sum::<u64>() - by_cause[Cause::Map as usize]
}

fn areas_of(drive: &Ssd) -> Vec<AreaSize> {
    drive
        .ftl_report()
        .areas
        .iter()
        .map(|a| (a.name, a.budget as usize, a.blocks as usize))
        .collect()
}

/// Returns the first difference as an error.
fn compare(drive: &Ssd, reference: &dyn Reference, pages: u32) -> Result<(), String> {
    let layout = drive.layout();
    let (mut to_real, mut to_naive) = (BTreeMap::new(), BTreeMap::new());
    for page in 0..pages {
        let real = match drive.place(Lpn(page)) {
            Place::Nowhere => None,
            Place::Flash(ppn) => {
                Some((layout.block_of(ppn).number(), ppn.0 % layout.frames_per_block))
            }
            Place::Buffer(_) => return Err(format!("page {page} waits in a buffer")),
        };
        let naive = reference.place(page);
        let same = match (real, naive) {
            (None, None) => true,
            (Some((real, i)), Some((naive, j))) => {
                i == j
                    && *to_real.entry(naive).or_insert(real) == real
                    && *to_naive.entry(real).or_insert(naive) == naive
            }
            _ => false,
        };
        if !same {
            let known = real.and_then(|(block, _)| to_naive.get(&block));
            return Err(format!(
                "page {page}: real (block, index) {real:?}, reference {naive:?}; that real block \
                 is the reference's {known:?}"
            ));
        }
    }
    let (real, naive) = (counts_of(drive).list(), reference.counts().list());
    let differ: Vec<_> = real.iter().zip(&naive).filter(|(real, naive)| real != naive).collect();
    if !differ.is_empty() {
        return Err(format!("counts (real, reference): {differ:?}"));
    }
    let (real, naive) = (areas_of(drive), reference.areas());
    if real != naive {
        return Err(format!("areas (name, budget, blocks): real {real:?}, reference {naive:?}"));
    }
    Ok(())
}

/// The counts of a run without a difference, and the sequence of its budgets.
struct Outcome {
    counts: Counts,
    budgets: Vec<Vec<usize>>,
}

/// Number of the request after which the two sides differ, and the difference.
type Difference = (usize, String);

fn run<R: Rules>(setup: &Setup<R>, requests: &[Request]) -> Result<Outcome, Difference> {
    let (mut drive, mut reference) = (setup.drive(), setup.reference());
    let mut budgets = vec![budgets_of(&*reference)];
    for (number, &request) in requests.iter().enumerate() {
        serve_drive(&mut drive, request, number as u64 + 1);
        serve_reference(&mut *reference, request);
        compare(&drive, &*reference, setup.frame.pages).map_err(|what| (number, what))?;
        let now = budgets_of(&*reference);
        if budgets.last() != Some(&now) {
            budgets.push(now);
        }
    }
    Ok(Outcome { counts: reference.counts(), budgets })
}

fn budgets_of(reference: &dyn Reference) -> Vec<usize> {
    reference.areas().iter().map(|&(_, budget, _)| budget).collect()
}

/// Returns traces in which some requests from `at` on are removed or have fewer pages.
fn shorter_traces(trace: &[Request], at: usize) -> Vec<Vec<Request>> {
    let with = |removed: usize, instead: Option<Request>| {
        let mut shorter = trace.to_vec();
        shorter.splice(at..at + removed, instead);
        shorter
    };
    let mut list: Vec<_> = [16, 4, 2, 1]
        .into_iter()
        .filter(|n| at + n <= trace.len())
        .map(|n| with(n, None))
        .collect();
    if let Request::Write { first, pages: pages @ 2.. } = trace[at] {
        let half = pages / 2;
        let parts = [
            (first + half, pages - half),
            (first, half),
            (first, pages - 1),
            (first + 1, pages - 1),
        ];
        list.extend(parts.map(|(first, pages)| with(1, Some(Request::Write { first, pages }))));
    }
    list
}

/// Removes requests that the difference does not need, from the last to the first, until no more
/// can be removed.
fn shorten<R: Rules>(
    setup: &Setup<R>,
    (mut trace, mut what): (Vec<Request>, String),
) -> (Vec<Request>, String) {
    let mut again = true;
    while std::mem::take(&mut again) {
        let mut at = trace.len();
        while at > 0 {
            at = (at - 1).min(trace.len() - 1);
            let fails = |shorter: Vec<Request>| {
                let (number, what) = run(setup, &shorter).err()?;
                Some((shorter[..=number].to_vec(), what))
            };
            if let Some(found) = shorter_traces(&trace, at).into_iter().find_map(fails) {
                (trace, what) = found;
                again = true;
            }
        }
    }
    (trace, what)
}

fn explain<R: Rules>(
    setup: &Setup<R>,
    seed: u64,
    requests: &[Request],
    (number, what): Difference,
) -> String {
    let mut text = format!("{:#?}, filled: {}\n", setup.settings(), setup.filled);
    text += &format!("seed {seed}, request {number}, {:?}: {what}\n", requests[number]);
    let (trace, what) = shorten(setup, (requests[..=number].to_vec(), what));
    text += &format!("these {} requests are enough:\n", trace.len());
    trace.iter().for_each(|request| text += &format!("  {request:?}\n"));
    text + &what
}

/// Sums over all runs.
struct Summary {
    counts: BTreeMap<&'static str, u64>,
    /// Budgets before and after each change of a size.
    resized: Vec<(Vec<usize>, Vec<usize>)>,
}

fn run_all<R: Rules>(variants: &[R]) -> Summary {
    let mut summary = Summary { counts: BTreeMap::new(), resized: Vec::new() };
    let mut seen = BTreeMap::new();
    for &rules in variants {
        let before = summary.counts.clone();
        for frame in FRAMES {
            for (strict, filled) in [(false, false), (false, true), (true, false), (true, true)] {
                run_seeds(&Setup { frame, rules, strict, filled }, &mut summary);
            }
        }
        let own: Vec<u64> =
            summary.counts.iter().map(|(name, sum)| sum - before.get(name).unwrap_or(&0)).collect();
        if let Some(other) = seen.insert(own, rules) {
            panic!("no request shows the difference between {rules:?} and {other:?}");
        }
    }
    summary
}

fn run_seeds<R: Rules>(setup: &Setup<R>, summary: &mut Summary) {
    for seed in 0..proofs::cases(SEEDS) as u64 {
        let requests = requests(setup.frame, seed);
        let Outcome { counts, budgets } = run(setup, &requests)
            .unwrap_or_else(|found| panic!("{}", explain(setup, seed, &requests, found)));
        let left = counts.log_switch
            + counts.log_partial
            + counts.log_full
            + counts.log_dead
            + counts.log_moved;
        let blocks = setup.rules.log_blocks() as u64;
        assert!(
            left > 4 * blocks,
            "{setup:?}, seed {seed}: only {left} reclamations in a log of {blocks} blocks"
        );
        for (name, count) in counts.list() {
            *summary.counts.entry(name).or_insert(0) += count;
        }
        summary.resized.extend(budgets.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())));
    }
}
