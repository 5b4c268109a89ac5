//! The SLC cache of the page-mapped FTL, compared with a naive model after each request.
//!
//! The model has one lane, and its units are whole frames. It follows only the documentation of the
//! cache (`docs/DESIGN.md`, and the parameters). It has lists of blocks and of pages, and searches
//! them from the start. It counts writes to the cache, direct writes, folds, folded pages, saved
//! pages, copies of collection, and erases.

use flashatlas_device::{Cmd, Device, Registry, Reply, Ssd, Storage};
use flashatlas_types::{Cause, Dur, Lba, Ps, Rng, Seed, Tag};

/// Counts of the model and of the drive.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Counts {
    writes: u64,
    direct: u64,
    folded: u64,
    saved: u64,
    held: u64,
    folds: u64,
    copies: u64,
    erases: u64,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Native,
    Static,
    Dynamic,
}

/// A block that is not erased. `None` stands for a page that is no longer needed.
struct Block {
    kind: Kind,
    pages: Vec<Option<u32>>,
}

impl Block {
    fn valid(&self) -> usize {
        self.pages.iter().flatten().count()
    }
}

/// The settings of a drive.
#[derive(Clone, Copy, Debug)]
struct Shape {
    blocks: usize,
    pages: usize,
    levels: usize,
    statics: usize,
    dynamics: usize,
    keep: usize,
    units: u32,
    /// Free blocks that idle time restores, and the most valid pages of its victims.
    idle_free: usize,
    idle_valid: usize,
}

const LOW_WATER: usize = 2;

struct Naive {
    shape: Shape,
    free: usize,
    free_statics: usize,
    host: Option<Block>,
    cache: Option<Block>,
    copies: Option<Block>,
    /// Full native blocks and full blocks in SLC mode, oldest first.
    closed: Vec<Block>,
    filled: Vec<Block>,
    counts: Counts,
}

impl Naive {
    fn new(shape: Shape) -> Naive {
        Naive {
            shape,
            free: shape.blocks - shape.statics,
            free_statics: shape.statics,
            host: None,
            cache: None,
            copies: None,
            closed: Vec::new(),
            filled: Vec::new(),
            counts: Counts::default(),
        }
    }

    fn write(&mut self, page: u32) {
        let cached = self.cache.is_some() || self.free_statics > 0 || self.may_open();
        if cached {
            if self.cache.is_none() {
                let kind = if self.free_statics > 0 { Kind::Static } else { Kind::Dynamic };
                let free =
                    if kind == Kind::Static { &mut self.free_statics } else { &mut self.free };
                *free -= 1;
                self.cache = Some(Block { kind, pages: Vec::new() });
            }
            self.forget(page);
            self.counts.writes += 1;
            let cache = self.cache.as_mut().unwrap();
            cache.pages.push(Some(page));
            if cache.pages.len() == self.shape.pages / self.shape.levels {
                self.filled.extend(self.cache.take());
            }
            return;
        }
        if self.host.is_none() {
            if self.free <= LOW_WATER {
                self.collect_to(LOW_WATER + 1);
            }
            assert!(self.free > 1, "the model has no room");
            self.free -= 1;
            self.host = Some(Block { kind: Kind::Native, pages: Vec::new() });
        }
        self.forget(page);
        self.counts.direct += 1;
        let host = self.host.as_mut().unwrap();
        host.pages.push(Some(page));
        if host.pages.len() == self.shape.pages {
            self.closed.extend(self.host.take());
        }
    }

    /// Drops the old version of a page, which is overwritten or trimmed. In SLC mode the old
    /// version then needs no fold.
    fn forget(&mut self, page: u32) {
        let open = [&mut self.host, &mut self.cache, &mut self.copies].into_iter().flatten();
        for block in open.chain(&mut self.closed).chain(&mut self.filled) {
            for old in block.pages.iter_mut().filter(|old| **old == Some(page)) {
                *old = None;
                self.counts.saved += u64::from(block.kind != Kind::Native);
            }
        }
    }

    fn may_open(&self) -> bool {
        let open = self.cache.iter().chain(&self.filled);
        let dynamics = open.filter(|block| block.kind == Kind::Dynamic).count();
        dynamics < self.shape.dynamics && self.free > LOW_WATER + 1
    }

    fn has_room(&self) -> bool {
        self.free > 0
    }

    fn collect_to(&mut self, target: usize) {
        for _ in 0..1000 {
            if self.free >= target {
                return;
            }
            assert!(self.has_room());
            if let Some(at) = self.filled.iter().position(|block| block.kind == Kind::Dynamic) {
                let block = self.filled.remove(at);
                self.fold(block);
                continue;
            }
            let Some(victim) = self.victim(self.shape.pages - 1) else { return };
            let victim = self.closed.remove(victim);
            self.counts.copies += victim.valid() as u64;
            self.empty(victim);
        }
        panic!("collection does not end");
    }

    /// Returns the closed block with the fewest valid pages, if these are at most `most`. Of
    /// several such blocks, it returns the oldest.
    fn victim(&self, most: usize) -> Option<usize> {
        let least = self
            .closed
            .iter()
            .map(Block::valid)
            .min()
            .filter(|&least| least <= most && least < self.shape.pages)?;
        self.closed.iter().position(|block| block.valid() == least)
    }

    fn fold(&mut self, block: Block) {
        self.counts.folds += 1;
        self.counts.folded += block.valid() as u64;
        self.empty(block);
    }

    fn empty(&mut self, block: Block) {
        for page in block.pages.into_iter().flatten() {
            if self.copies.is_none() {
                self.free -= 1;
                self.copies = Some(Block { kind: Kind::Native, pages: Vec::new() });
            }
            let copies = self.copies.as_mut().unwrap();
            copies.pages.push(Some(page));
            if copies.pages.len() == self.shape.pages {
                self.closed.extend(self.copies.take());
            }
        }
        self.counts.erases += 1;
        match block.kind {
            Kind::Static => self.free_statics += 1,
            _ => self.free += 1,
        }
    }

    fn idle(&mut self) {
        while self.fold_in_idle_time() || self.collect_in_idle_time() {}
    }

    fn fold_in_idle_time(&mut self) -> bool {
        if self.filled.len() <= self.shape.keep {
            return false;
        }
        if self.filled[0].kind == Kind::Static && self.free <= LOW_WATER {
            self.collect_to(LOW_WATER + 1);
            return self.free > LOW_WATER;
        }
        if !self.has_room() {
            return false;
        }
        let block = self.filled.remove(0);
        self.fold(block);
        true
    }

    fn collect_in_idle_time(&mut self) -> bool {
        if self.free >= self.shape.idle_free || !self.has_room() {
            return false;
        }
        let Some(victim) = self.victim(self.shape.idle_valid) else { return false };
        let victim = self.closed.remove(victim);
        self.counts.copies += victim.valid() as u64;
        self.empty(victim);
        true
    }

    fn counts(&self) -> Counts {
        let cached = self.cache.iter().chain(&self.filled);
        Counts { held: cached.map(|block| block.valid() as u64).sum(), ..self.counts }
    }
}

fn counts(drive: &Ssd) -> Counts {
    let details = drive.ftl_report().scheme_details;
    let of = |name: &str| details.iter().find(|(key, _)| *key == name).unwrap().1;
    let medium = drive.medium().counters;
    let copies = [Cause::Gc, Cause::Idle].map(|cause| medium.programs[cause as usize]);
    assert_eq!(medium.programs[Cause::Fold as usize], of("slc_folded"));
    assert_eq!(medium.erases[Cause::Fold as usize], of("slc_folds"));
    assert_eq!(medium.in_slc_mode[1..], [of("slc_writes"), of("slc_folds")]);
    Counts {
        writes: of("slc_writes"),
        direct: of("slc_direct"),
        folded: of("slc_folded"),
        saved: of("slc_saved"),
        held: of("slc_held"),
        folds: of("slc_folds"),
        copies: copies.iter().sum(),
        erases: medium.erases.iter().sum(),
    }
}

fn drive(shape: Shape, more: &[&str]) -> Ssd {
    let Shape { blocks, pages, levels, statics, dynamics, keep, units, idle_free, idle_valid } =
        shape;
    let slc = ["", "static", "dynamic", "hybrid"]
        [usize::from(statics > 0) + 2 * usize::from(dynamics > 0)];
    let cell = ["", "", "mlc", "tlc", "qlc"][levels];
    let mut settings: Vec<String> = [
        "drive.channels=1",
        "drive.ways=1",
        "cache.mode=write-through",
        "timing.t_read_slc=20us",
        "timing.t_program_slc=75us",
    ]
    .map(str::to_owned)
    .to_vec();
    let idle_valid = idle_valid as f64 / pages as f64;
    settings.extend([
        format!("drive.blocks={blocks}"),
        format!("drive.pages={pages}"),
        format!("drive.cell={cell}"),
        format!("drive.logical_pages={units}"),
        format!("ftl.slc={slc}"),
        format!("ftl.slc_keep={keep}"),
        format!("ftl.idle_free={idle_free}"),
        format!("ftl.idle_valid={idle_valid}"),
    ]);
    settings.extend((statics > 0).then(|| format!("ftl.slc_static={statics}")));
    settings.extend((dynamics > 0).then(|| format!("ftl.slc_dynamic={dynamics}")));
    settings.extend(more.iter().map(|&s| s.to_owned()));
    let config = Registry::DRIVES.load("tiny", None, &settings);
    let mut drive = config.unwrap_or_else(|e| panic!("{settings:?}: {e}")).build(Seed(1)).unwrap();
    drive.set_instant(true);
    drive
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Write(u32),
    Trim(u32),
    Idle,
}

fn apply(drive: &mut Ssd, step: Step, content: u64) {
    let lba = |page: u32| Lba(u64::from(page) * 4);
    let cmd = match step {
        Step::Write(page) => {
            Cmd::Write { lba: lba(page), sectors: 4, fua: false, content, data: None }
        }
        Step::Trim(page) => Cmd::Trim { lba: lba(page), sectors: 4 },
        Step::Idle => {
            let until = Ps::ZERO.after(Dur::from_us(1_000_000));
            return drive.idle(Ps::ZERO, until).unwrap();
        }
    };
    drive.submit(Ps::ZERO, Tag(content), cmd, &mut Reply::default()).unwrap();
}

fn step(rng: &mut Rng, shape: Shape) -> Step {
    let hot = u64::from(shape.units / 4).max(1);
    let page = match rng.below(3) {
        0 => rng.below(hot),
        _ => rng.below(shape.units.into()),
    };
    match rng.below(40) {
        0 => Step::Idle,
        1..4 => Step::Trim(page as u32),
        _ => Step::Write(page as u32),
    }
}

/// Runs a random workload on the drive and on the model. A drive with few free blocks collects
/// under pressure. A drive with many free blocks folds only in idle time.
fn compare(shape: Shape, seed: u64) -> Counts {
    let (mut drive, mut naive) = (drive(shape, &[]), Naive::new(shape));
    let mut rng = Rng::stream(Seed(seed), "slc");
    for number in 1..=1500 {
        let step = step(&mut rng, shape);
        apply(&mut drive, step, number);
        match step {
            Step::Write(page) => naive.write(page),
            Step::Trim(page) => naive.forget(page),
            Step::Idle => naive.idle(),
        }
        let (found, expected) = (counts(&drive), naive.counts());
        assert_eq!(found, expected, "{shape:?}, seed {seed}, step {number}: {step:?}");
        let Counts { writes, folded, saved, held, .. } = found;
        assert_eq!(writes, folded + saved + held, "every unit left the cache in one way");
    }
    drive.check().unwrap();
    counts(&drive)
}

const SHAPE: Shape = Shape {
    blocks: 24,
    pages: 12,
    levels: 3,
    statics: 0,
    dynamics: 0,
    keep: 0,
    units: 160,
    idle_free: 4,
    idle_valid: 6,
};

#[test]
fn the_cache_counts_as_a_naive_model_does() {
    let mut all = Counts::default();
    for (case, (statics, dynamics, keep)) in
        [(3, 0, 0), (0, 4, 0), (2, 3, 0), (2, 3, 2), (1, 20, 1), (0, 20, 0)].into_iter().enumerate()
    {
        for (seed, levels) in [2, 3, 4].into_iter().enumerate() {
            let shape = Shape { statics, dynamics, keep, levels, ..SHAPE };
            let found = compare(shape, (10 * case + seed) as u64);
            assert!(
                found.writes > 0 && found.folded > 0 && found.saved > 0,
                "{shape:?}: {found:?}"
            );
            all.direct += found.direct;
            all.copies += found.copies;
        }
    }
    assert!(all.direct > 0 && all.copies > 0, "{all:?}");
}

/// A block has twelve pages, and four of them in SLC mode. Two blocks in SLC mode take eight
/// writes, and the ninth write finds no room. Pages 0 to 7 are in the cache. The ninth and the
/// tenth write overwrite pages 0 and 1, and page 2 is trimmed. So idle time copies five pages, and
/// erases two blocks.
#[test]
fn what_is_overwritten_or_trimmed_in_the_cache_is_not_folded() {
    let shape = Shape { statics: 2, ..SHAPE };
    let mut drive = drive(shape, &[]);
    let steps = (0..8).chain([0, 1]).map(Step::Write);
    for (number, step) in (1..).zip(steps.chain([Step::Trim(2)])) {
        apply(&mut drive, step, number);
    }
    let before = Counts { writes: 8, direct: 2, saved: 3, held: 5, ..Counts::default() };
    assert_eq!(counts(&drive), before);
    apply(&mut drive, Step::Idle, 0);
    let folded = Counts { folded: 5, held: 0, folds: 2, erases: 2, ..before };
    assert_eq!(counts(&drive), folded);
    // the cache is empty: the next eight writes find room
    (20..29).for_each(|number| apply(&mut drive, Step::Write(20 + number as u32), number));
    let again = Counts { writes: 16, direct: 3, held: 8, ..folded };
    assert_eq!(counts(&drive), again);
}

#[test]
fn a_dynamic_cache_shrinks_as_the_drive_fills() {
    let shape = Shape { dynamics: 24, ..SHAPE };
    let room = |pages: u32| {
        let mut drive = drive(shape, &[]);
        for page in 0..pages {
            apply(&mut drive, Step::Write(page), u64::from(page) + 1);
            apply(&mut drive, Step::Idle, 0);
        }
        let before = counts(&drive).direct;
        let mut took = 0;
        while counts(&drive).direct == before {
            apply(&mut drive, Step::Write(pages + took), u64::from(pages + took) + 1);
            took += 1;
        }
        took - 1
    };
    // 24 blocks, three of which stay free: 21 in SLC mode, with four pages each
    assert_eq!(room(0), 84);
    // sixty pages take five native blocks
    let left = room(60);
    assert!((56..=68).contains(&left), "{left}");
}

#[test]
fn what_does_not_combine_is_refused_by_name() {
    let refused = |settings: &[&str]| {
        let slc = ["drive.cell=tlc", "drive.pages=12", "ftl.slc=dynamic"];
        let times = ["timing.t_read_slc=20us", "timing.t_program_slc=75us"];
        let all = slc.iter().chain(&times).chain(settings).map(|&s| s.to_owned());
        let error = Registry::DRIVES.load("tiny", None, &all.collect::<Vec<_>>());
        error.map(|config| config.name).map_err(|e| e.to_string())
    };
    refused(&[]).unwrap();
    refused(&["ftl.wear_static=true"]).unwrap();
    refused(&["ftl.slc=none", "ftl.slc_keep=1", "ftl.slc_static=2"]).unwrap();
    for (settings, key, says) in [
        (&["drive.cell=slc"][..], "drive.cell", "mlc, tlc or qlc"),
        (&["drive.pages=2"], "drive.pages", "each 3"),
        (&["timing.t_read_slc=0"], "timing.t_read_slc", "ftl.slc needs"),
        (&["timing.t_program_slc=0"], "timing.t_program_slc", "ftl.slc needs"),
        (&["ftl.slc_static=2"], "ftl.slc_static", "static or hybrid"),
        (&["ftl.slc=static"], "ftl.slc_static", "at least one block"),
        (&["ftl.slc=static", "ftl.slc_static=1", "ftl.slc_dynamic=1"], "ftl.slc_dynamic", "hybrid"),
        (&["ftl.gc_mode=single"], "ftl.slc", "ftl.gc_mode = dual"),
        (&["ftl.gc_pace=paced"], "ftl.slc", "ftl.gc_pace = burst"),
        (&["ftl.gc_pace=even"], "ftl.slc", "ftl.gc_pace = burst"),
        (&["ftl.streams=2"], "ftl.slc", "ftl.streams = 1"),
        (&["ftl.streams=2", "ftl.classifier=dac"], "ftl.slc", "ftl.classifier = none"),
        (&["ftl.slc=static", "ftl.slc_static=30"], "drive.over_provisioning", "ftl.slc_static"),
        (&["ftl.scheme=block"], "ftl.slc", "ftl.scheme = page"),
        (&["drive.program_unit=word-line", "map.unit=6KiB"], "map.unit", "one page a plane"),
    ] {
        let why = refused(settings).expect_err(key);
        assert!(why.contains(key) && why.contains(says), "{settings:?}: {why}");
    }
}
