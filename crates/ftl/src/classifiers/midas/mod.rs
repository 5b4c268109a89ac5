//! MiDAS: a chain of groups. Each group is a queue of blocks with a quota.
//!
//! The host writes to HOT or to the first group. Pages that survive collection move to the next
//! group. A model chooses the number of groups and the size of each group. If the model was wrong,
//! groups are merged into one pool.
//!
//! A group is a stream in each lane, and its size is in blocks of each lane (a segment of the paper
//! is one block on every lane). This classifier also picks the block to collect
//! ([`Classifier::pick`]). It picks the oldest block of the first group above its quota. If no
//! group is above its quota, it picks a block of the pool. Points that the paper leaves open follow
//! its authors' simulator (sungkyun123/MiDAS-Simulation). Unlike the paper and the simulator, this
//! classifier has the exact ages of pages. So it need not correct lifetimes for the times outside
//! an epoch.

mod hot;
mod model;

use super::{Classifier, ClassifierDef, Collected, Filled, Page, Stream, Streams};
use crate::MemoryUse;
use crate::victims::Candidates;
use flashatlas_types::{
    BlockId, Index, LaneId, LocalBlock, MemoryKind, Param, StreamId, Text, TiVec,
};
use hot::HotFilter;
use model::{Configuration, Lifetimes, Situation};

pub const DEF: ClassifierDef = ClassifierDef {
    name: "midas",
    summary: "a chain of groups whose number and sizes a model of write amplification chooses",
    paper: "Oh et al., MIDAS: Minimizing Write Amplification in Log-Structured Systems through \
            Adaptive Group Number and Size Configuration (FAST 2024)",
    params: &[EPOCH.def, SAMPLE.def, POOL.def],
    streams: Some(Streams { host: 2, collection: GROUPS as u32 - 1 }),
    history: true,
    build: &|params, pages, _| {
        Box::new(Midas::new(
            pages,
            f64::from(params.get(EPOCH)),
            params.get(SAMPLE),
            Pool::parse(params.get(POOL)),
        ))
    },
};

const EPOCH: Param<u32> = Param::int(
    "ftl.midas_epoch",
    1,
    1000,
    "a configuration is chosen each time the host has written this number of drive capacities",
)
.or("4");

const SAMPLE: Param<u32> = Param::int(
    "ftl.midas_sample",
    1,
    1000,
    "lifetimes are counted for one page in this number of pages",
)
.or("100");

const POOL: Param<Text> = Param::choice(
    "ftl.midas_pool",
    &["cost-benefit", "greedy", "fifo"],
    "the rule that picks a block of the pool; cost-benefit: invalid pages times the square root of \
     the age, divided by valid pages",
)
.or("cost-benefit");

/// The largest number of groups: HOT, and the chain.
const GROUPS: usize = 6;
/// The number of age labels in the pool. A survivor moves to the next label.
const LABELS: usize = 4;
/// The number of bins for lifetimes in a segment.
const BINS: u32 = 4;
/// The smallest difference between the valid share and the expected valid share at which the model
/// of a group is wrong.
const WRONG: f64 = 0.1;
/// The share of an epoch after which groups are compared with the model.
const CHECKS: f64 = 0.3;
/// The number of victims for each lane without a host write in between. Above this number, the last
/// group before the pool joins the pool.
const ENDLESS: u32 = 25;
/// The valid share of collected HOT blocks above which no configuration is chosen. The second value
/// applies if HOT has at most one block on each lane.
const HOT_WRONG: [f64; 2] = [0.18, 0.3];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pool {
    CostBenefit,
    Greedy,
    Fifo,
}

impl Pool {
    fn parse(name: &str) -> Pool {
        match name {
            "greedy" => Pool::Greedy,
            "fifo" => Pool::Fifo,
            _ => Pool::CostBenefit,
        }
    }
}

/// A closed block.
#[derive(Clone, Copy, Debug)]
struct Closed {
    id: BlockId,
    block: LocalBlock,
    group: usize,
    /// The number of pages that the host had written when the block was closed.
    at: u64,
}

struct Midas {
    pages: u32,
    epoch_drives: f64,
    sample: u32,
    pool: Pool,
    hot: HotFilter,
    /// The closed blocks of each lane, the block that was closed first at the front, and the number
    /// of closed blocks in HOT.
    lanes: TiVec<LaneId, Vec<Closed>>,
    in_hot: u32,
    /// The group of each closed block, indexed by block. A new configuration may move a block to
    /// another group than the group of its stream.
    groups: TiVec<BlockId, Option<u8>>,
    /// The number of slots of a block, and the number of closed blocks in the lane of the last
    /// victim.
    shape: Option<(u32, u32)>,
    /// Pages that the host wrote, and pages that collection moved. Then both counts at the end of
    /// the last measurement, and the write amplification that it found. A measurement takes one
    /// drive full of host writes.
    clock: u64,
    moved: u64,
    full: (u64, u64),
    measured: f64,
    /// The first group of the pool, whether the pool has age labels for its survivors, and the last
    /// group.
    border: usize,
    labels: bool,
    last: usize,
    config: Option<Configuration>,
    /// The number of host writes when the epoch began, and the factor by which the epoch is longer
    /// than `epoch_drives`.
    began: u64,
    stretch: f64,
    lifetimes: Vec<u64>,
    /// For each group, the collected blocks and the sum of their valid shares since the last
    /// comparison. Then the clock of the next comparison.
    collected: [(u32, f64); GROUPS],
    compare_at: u64,
    /// `true` if collection has erased a block of every group before the pool since the
    /// configuration was chosen. Only later blocks are compared with the model.
    armed: bool,
    /// The number of victims since the last host write.
    victims: u32,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    configurations: u64,
    merges: u64,
}

impl Midas {
    fn new(pages: u32, epoch_drives: f64, sample: u32, pool: Pool) -> Midas {
        Midas {
            pages,
            epoch_drives,
            sample,
            pool,
            hot: HotFilter::new(pages),
            lanes: TiVec::new(),
            in_hot: 0,
            groups: TiVec::new(),
            shape: None,
            clock: 0,
            moved: 0,
            full: (0, 0),
            measured: f64::INFINITY,
            border: 1,
            labels: true,
            last: LABELS,
            config: None,
            began: 0,
            stretch: 1.0,
            lifetimes: Vec::new(),
            collected: [(0, 0.0); GROUPS],
            compare_at: u64::MAX,
            armed: false,
            victims: 0,
            counts: Counts::default(),
        }
    }

    /// Returns the group of a block, or of the stream that writes the block. Pages that were
    /// written before the mount are in the last group.
    fn group(&self, block: Option<BlockId>, stream: Option<Stream>) -> usize {
        let known = block.and_then(|block| *self.groups.get(block)?);
        if let Some(group) = known {
            return usize::from(group).min(self.last);
        }
        let group = match stream {
            Some(Stream::Host(stream)) => stream.index(),
            Some(Stream::Collection(stream)) => stream.index() + 1,
            None => self.last,
        };
        group.min(self.last)
    }

    /// Returns the number of pages of a segment (a block on each lane), or `None` before the first
    /// pick.
    fn segment(&self) -> Option<f64> {
        self.shape.map(|(slots, _)| f64::from(slots) * self.lanes.len() as f64)
    }

    fn epoch(&self) -> u64 {
        (f64::from(self.pages) * self.epoch_drives * self.stretch) as u64
    }

    fn is_pool(&self, group: usize) -> bool {
        group >= self.border || self.border == 1
    }

    /// Notes the lifetime of a version that a host write supersedes.
    fn observe(&mut self, page: &Page) {
        let Some(segment) = self.segment() else { return };
        if page.lpn.0 % self.sample != 0 {
            return;
        }
        if let Some(age) = page.age {
            let most = (self.epoch() as f64 / segment * f64::from(BINS)) as usize + 1;
            let bin = ((age as f64 / segment * f64::from(BINS)) as usize).min(most);
            if self.lifetimes.len() <= bin {
                self.lifetimes.resize(bin + 1, 0);
            }
            self.lifetimes[bin] += 1;
        }
    }

    /// Does the work that is due: measures write amplification, compares groups with the model, or
    /// ends an epoch.
    fn look_around(&mut self) {
        if self.clock - self.full.0 >= u64::from(self.pages) {
            let (written, moved) = (self.clock - self.full.0, self.moved - self.full.1);
            self.measured = 1.0 + moved as f64 / written as f64;
            self.full = (self.clock, self.moved);
        }
        if self.clock >= self.compare_at {
            self.compare();
        }
        if self.clock >= self.began + self.epoch() {
            self.choose();
            self.began = self.clock;
            self.lifetimes.clear();
        }
    }

    /// Ends an epoch and chooses a configuration.
    fn choose(&mut self) {
        let (Some(segment), Some((_, closed))) = (self.segment(), self.shape) else { return };
        let hot = self.hot.measured();
        if hot.valid > HOT_WRONG[usize::from(hot.segments <= 1.0)] {
            self.stretch = (2.0 * self.stretch).min(64.0);
            return;
        }
        let Some(lifetimes) = Lifetimes::new(&self.lifetimes, BINS) else { return };
        let situation = Situation {
            lifetimes: &lifetimes,
            // each group has one open block, and the first group has two
            segments: closed + GROUPS as u32 / 2,
            logical: f64::from(self.pages) / segment,
            horizon: self.epoch() as f64 / segment,
            hot,
        };
        if let Some(chosen) = situation.choose()
            && chosen.waf <= self.measured
        {
            self.take_over(chosen);
        }
    }

    fn take_over(&mut self, chosen: Configuration) {
        self.counts.configurations += 1;
        self.last = chosen.sizes.len() - 1;
        (self.border, self.labels) = (self.last, false);
        for lane in &mut self.lanes {
            for block in lane.iter_mut() {
                block.group = block.group.min(chosen.sizes.len() - 1);
                self.groups[block.id] = Some(block.group as u8);
            }
            // blocks above a quota move to the last group, without a copy
            for group in 0..chosen.sizes.len() - 1 {
                let has = lane.iter().filter(|b| b.group == group).count();
                let above = has.saturating_sub(chosen.quota(group));
                let oldest = lane.iter_mut().filter(|b| b.group == group).take(above);
                for block in oldest {
                    block.group = chosen.sizes.len() - 1;
                    self.groups[block.id] = Some(block.group as u8);
                }
            }
        }
        let hot = self.lanes.iter().flatten().filter(|block| block.group == 0);
        self.in_hot = hot.count() as u32;
        self.collected = [(0, 0.0); GROUPS];
        self.compare_at = self.clock + (CHECKS * self.epoch() as f64) as u64;
        (self.config, self.armed) = (Some(chosen), false);
    }

    /// Compares groups with the model. The first wrong group and all groups after it become a pool.
    fn compare(&mut self) {
        self.compare_at = self.clock + (CHECKS * self.epoch() as f64) as u64;
        let Some(config) = &self.config else { return };
        if !self.armed {
            self.armed = self.collected[..self.border].iter().all(|&(blocks, _)| blocks > 0);
            self.collected = [(0, 0.0); GROUPS];
            return;
        }
        let is_wrong = |&group: &usize| {
            let (blocks, valid) = self.collected[group];
            blocks > 0 && valid / f64::from(blocks) >= config.valid[group] + WRONG
        };
        let mut queues = if self.labels { 1..self.border } else { 1..self.border + 1 };
        let wrong = queues.find(is_wrong);
        self.collected = [(0, 0.0); GROUPS];
        if let Some(group) = wrong {
            self.merge(group);
        }
    }

    /// Merges the groups from `group` on into one pool with age labels for its survivors.
    fn merge(&mut self, group: usize) {
        self.counts.merges += 1;
        self.border = group.max(1);
        self.labels = true;
        self.last = (self.border + LABELS - 1).min(GROUPS - 1);
        if self.border == 1 {
            (self.config, self.compare_at) = (None, u64::MAX);
        }
    }

    /// Returns the score of a block of the pool. The block with the largest score is collected.
    fn score(&self, closed: &Closed, lane: &Candidates<'_>) -> f64 {
        let valid = f64::from(lane.valid[closed.block]);
        let invalid = f64::from(lane.slots) - valid;
        match self.pool {
            Pool::Greedy => invalid,
            Pool::Fifo => -(closed.at as f64),
            Pool::CostBenefit if valid == 0.0 => f64::INFINITY,
            Pool::CostBenefit => invalid * ((self.clock - closed.at) as f64 + 1.0).sqrt() / valid,
        }
    }
}

impl Classifier for Midas {
    fn written(&mut self, page: &Page) -> StreamId {
        self.observe(page);
        let known = page.from.map(|_| self.group(page.block, page.from));
        let hot = self.hot.written(page.lpn, known, page.age);
        (self.clock, self.victims) = (page.clock + 1, 0);
        if self.clock % 64 == 0 {
            let lanes = self.lanes.len().max(1);
            self.hot.step(f64::from(self.in_hot) / lanes as f64);
            self.look_around();
        }
        StreamId::new(u32::from(!hot))
    }

    fn moved(&mut self, page: &Page) -> StreamId {
        let group = self.group(page.block, page.from);
        self.hot.moved(page.lpn, group);
        self.moved += 1;
        StreamId::from((group + 1).min(self.last).max(1) - 1)
    }

    fn erased(&mut self, block: &Collected) {
        let group = self.group(Some(block.id), block.stream);
        if let Some(known) = self.groups.get_mut(block.id) {
            *known = None;
        }
        self.victims += 1;
        let valid = f64::from(block.valid) / f64::from(block.slots);
        let (blocks, sum) = self.collected[group];
        self.collected[group] = (blocks + 1, sum + valid);
        if group == 0 {
            self.hot.collected(block.age, valid);
        }
    }

    fn closed(&mut self, filled: &Filled) {
        let lane = filled.lane;
        if self.lanes.len() <= lane.index() {
            self.lanes.resize(lane.index() + 1, Vec::new());
        }
        let group = self.group(None, filled.stream);
        if self.groups.len() <= filled.id.index() {
            self.groups.resize(filled.id.index() + 1, None);
        }
        self.groups[filled.id] = Some(group as u8);
        self.in_hot += u32::from(group == 0);
        self.lanes[lane].push(Closed { id: filled.id, block: filled.block, group, at: self.clock });
    }

    fn removed(&mut self, lane: LaneId, block: LocalBlock) {
        let Some(lane) = self.lanes.get_mut(lane) else { return };
        if let Some(at) = lane.iter().position(|closed| closed.block == block) {
            self.in_hot -= u32::from(lane[at].group == 0);
            lane.remove(at);
        }
    }

    fn pick(&mut self, lane: LaneId, candidates: &Candidates<'_>) -> Option<LocalBlock> {
        if self.victims > ENDLESS * self.lanes.len() as u32 && self.border > 1 {
            self.merge(self.border - 1);
        }
        let closed = self.lanes.get(lane)?;
        self.shape = Some((candidates.slots, closed.len() as u32));
        let frees = |b: &&Closed| candidates.valid[b.block] < candidates.slots;
        if let Some(config) = &self.config {
            for group in 0..self.border {
                // each group has one open block, and the first group has two
                let quota = config.quota(group);
                let quota = quota.saturating_sub(if group == 1 { 2 } else { 1 }).max(1);
                let of_group = || closed.iter().filter(|b| b.group == group);
                if of_group().count() > quota
                    && let Some(oldest) = of_group().find(frees)
                {
                    return Some(oldest.block);
                }
            }
        }
        let best = |all: &mut dyn Iterator<Item = &Closed>| {
            let scored = all.map(|closed| (self.score(closed, candidates), closed.block));
            // among equal scores, the block that was closed first wins
            scored.reduce(|a, b| if b.0 > a.0 { b } else { a }).map(|(_, block)| block)
        };
        let pool = best(&mut closed.iter().filter(frees).filter(|b| self.is_pool(b.group)));
        pool.or_else(|| best(&mut closed.iter().filter(frees)))
    }

    fn memory(&self) -> Vec<MemoryUse> {
        let dram = |table, bytes| MemoryUse { table, memory: MemoryKind::Dram, bytes };
        let sampled = u64::from(self.pages.div_ceil(self.sample));
        vec![
            dram("MiDAS hot counters", self.hot.bytes()),
            // the time of the last write of each sampled page, and a counter for each bin
            dram("MiDAS lifetimes", 4 * (sampled + self.lifetimes.len() as u64)),
            // the group of each block, the next block in its queue, and the time at which the block
            // was closed
            dram("MiDAS queues", 13 * self.groups.len() as u64),
        ]
    }

    fn details(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("midas_configurations", self.counts.configurations),
            ("midas_merges", self.counts.merges),
            ("midas_groups", self.config.as_ref().map_or(0, |_| self.border as u64 + 1)),
        ]
    }

    fn reset_counters(&mut self) {
        self.counts = Counts::default();
    }
}
