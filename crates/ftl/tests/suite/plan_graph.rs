//! The plan graph of random short workloads. At a power cut, any downward-closed subset of the
//! graph may be complete. In each subset every page must have a version, and a command may be
//! complete only after the data that it promises is on flash.
//!
//! The tests use `Ssd::plan` and `Ssd::is_complete`. They do not cover idle collection, because one
//! call makes several plans in a row.

use flashatlas_device::Registry;
use flashatlas_device::{Cmd, Device, Reply, Ssd};
use flashatlas_nand::OobRole;
use flashatlas_types::{
    BlockId, DieBlock, Dur, Lba, Lpn, OpId, OpKind, Ppn, Ps, Rng, Seed, Stamp, Tag,
};
use std::collections::{BTreeSet, HashMap};

const DRIVES: &[&[&str]] = &[
    &["cache.mode=write-through"],
    &["cache.mode=write-through", "ftl.gc_mode=single"],
    &["cache.mode=write-through", "ftl.gc_pace=even"],
    &["cache.bytes=8KiB", "map.unit=512", "ftl.gc_pace=even"],
    &["cache.mode=write-through", "ftl.gc_pace=paced"],
    &["cache.bytes=8KiB", "map.unit=512", "ftl.gc_pace=paced", "ftl.gc_step=1"],
    &["cache.mode=write-through", "ftl.throttle_from=64", "ftl.throttle_rate=1MB"],
    &["cache.bytes=8KiB", "map.unit=512", "ftl.throttle_from=9", "ftl.throttle_rate=1MB"],
    &["cache.mode=write-through", "map.unit=512"],
    &["cache.mode=write-through", "drive.frame_channels=2", "map.unit=4KiB"],
    &["cache.mode=write-through", "ftl.scheme=block"],
    &["cache.mode=write-through", "ftl.scheme=block", "ftl.spare_pages=2", "ftl.coalesce=false"],
    &["cache.bytes=16KiB"],
    &["cache.bytes=4KiB", "cache.high=1", "cache.low=1"],
    &["cache.bytes=4KiB", "map.unit=512"],
    &[
        "cache.bytes=8KiB",
        "map.unit=1KiB",
        "ftl.streams=2",
        "ftl.classifier=dac",
        "drive.blocks=15",
    ],
    &["cache.bytes=8KiB", "map.unit=512", "ftl.gc_mode=single"],
    &["cache.bytes=32KiB", "drive.frame_channels=2", "drive.frame_ways=2", "map.unit=8KiB"],
    &["cache.bytes=8KiB", "ftl.scheme=block", "nand.program_order=any"],
    &["cache.mode=write-through", "ftl.scheme=bast", "ftl.log_blocks=2"],
    &["cache.bytes=8KiB", "ftl.scheme=sast", "ftl.log_blocks=4", "nand.program_order=any"],
    &["cache.mode=write-through", "ftl.scheme=fast", "ftl.log_blocks=3"],
    &[
        "cache.bytes=8KiB",
        "ftl.scheme=fast",
        "ftl.log_blocks=4",
        "drive.frame_channels=2",
        "map.unit=4KiB",
    ],
    &["cache.mode=write-through", "ftl.scheme=faster", "ftl.log_blocks=6"],
    &["cache.bytes=8KiB", "ftl.scheme=faster", "ftl.log_blocks=7", "nand.program_order=any"],
    &["cache.bytes=8KiB", "ftl.scheme=superblock", "ftl.log_blocks=3"],
    &[
        "cache.mode=write-through",
        "ftl.scheme=superblock",
        "ftl.log_blocks=2",
        "ftl.superblock_blocks=2",
    ],
    &["cache.mode=write-through", "ftl.scheme=last", "ftl.log_blocks=4", "nand.program_order=any"],
    &["cache.bytes=8KiB", "ftl.scheme=last", "ftl.log_blocks=7", "ftl.sequential_pages=2"],
    &["cache.mode=write-through", "ftl.scheme=mast", "ftl.log_blocks=7", "nand.program_order=any"],
    &[
        "cache.bytes=8KiB",
        "ftl.scheme=mast",
        "ftl.log_blocks=7",
        "ftl.resize_window=16",
        "ftl.migrate_valid=0.3",
    ],
];

/// Requests go to the first sectors of the drive, so that they overlap often.
const SECTORS: u64 = 160;

/// A set of operations: `true` for the number of each member. Number 0 stands for the state at the
/// start.
type Ops = Vec<bool>;

fn add_all(to: &mut Ops, from: &Ops) {
    to.resize(to.len().max(from.len()), false);
    to.iter_mut().zip(from).for_each(|(a, b)| *a |= b);
}

fn has(ops: &Ops, op: u64) -> bool {
    op == 0 || ops.get(op as usize) == Some(&true)
}

/// One version of a page in one block. The version exists from the end of all `programs` until the
/// erase of the block.
struct Copy {
    lpn: u32,
    version: usize,
    block: BlockId,
    programs: Vec<u64>,
}

/// The mark of an erase, stored instead of a page.
const ERASE: Option<u32> = Some(u32::MAX);

/// An operation of a plan: its number, its kind, and the operations that it waits for.
type Op = (u64, OpKind, Vec<u64>);

/// The numbers of interesting cases in a run.
#[derive(Clone, Copy, Default)]
struct Counted {
    /// Programs of data that were in flight when an erase was planned, although the erase did not
    /// wait for them.
    spared: usize,
    /// Reads of a page at its old place while its copy was in flight.
    past: usize,
}

struct World {
    drive: Ssd,
    unit: u64,
    /// For each operation, the operations that complete before it, and the operation itself.
    before: Vec<Ops>,
    /// For each block of a die, the operations since its last erase. A program has its page.
    groups: HashMap<DieBlock, Vec<(u64, Option<u32>)>>,
    /// Programs of each page of a block of a die, in order.
    programs: HashMap<(DieBlock, u32), Vec<u64>>,
    copies: Vec<Copy>,
    /// Erases of each block of the FTL.
    erases: HashMap<BlockId, Vec<u64>>,
    /// Operations that only join other operations, with the operations that they wait for.
    joins: HashMap<u64, Vec<u64>>,
    counted: Counted,
    /// The versions of each page, in the order of the host's writes and trims. Each version has its
    /// stamp (zero for a trim) and the transfers of its data.
    versions: Vec<Vec<(Stamp, BTreeSet<u64>)>>,
    /// The transfer with the data of each sector.
    arrivals: Vec<u64>,
    /// Newest version of each page that a completed command wrote.
    confirmed: Vec<usize>,
    pending: HashMap<u64, Vec<(u32, usize)>>,
    /// The number of commands so far. A command's number is its tag and the content that it writes.
    commands: u64,
    now: Ps,
}

impl World {
    fn new(settings: &[&str], seed: u64) -> World {
        let common = ["drive.blocks=8", "drive.over_provisioning=1.7", "host.link_rate=100MB"];
        let settings: Vec<String> = common.iter().chain(settings).map(|&s| s.to_owned()).collect();
        let mut drive =
            Registry::DRIVES.load("tiny", None, &settings).unwrap().build(Seed(seed)).unwrap();
        drive.fill(|lpn| Stamp(lpn.0 + 1)).unwrap();
        let unit = u64::from(drive.unit_sectors());
        let layout = drive.layout().clone();
        let copies = (0..layout.slots()).map(Ppn).filter_map(|ppn| {
            let lpn = drive.medium().lpn(ppn).ok().filter(|&l| l != Lpn::NONE)?;
            Some(Copy { lpn: lpn.0, version: 0, block: layout.block_of(ppn), programs: Vec::new() })
        });
        let copies = copies.collect();
        let versions =
            (0..layout.logical_units).map(|l| vec![(Stamp(l + 1), BTreeSet::new())]).collect();
        World {
            unit,
            before: vec![Vec::new()],
            groups: HashMap::new(),
            programs: HashMap::new(),
            copies,
            erases: HashMap::new(),
            joins: HashMap::new(),
            counted: Counted::default(),
            versions,
            arrivals: vec![0; drive.sectors() as usize],
            confirmed: vec![0; layout.logical_units as usize],
            pending: HashMap::new(),
            commands: 0,
            now: Ps::ZERO,
            drive,
        }
    }

    /// Lets time pass, and notes the versions that completed commands confirm.
    fn advance(&mut self, by: Dur) {
        self.now = self.now.after(by);
        let mut done = Vec::new();
        self.drive.advance(self.now, &mut done);
        for (lpn, version) in
            done.iter().flat_map(|d| self.pending.remove(&d.tag.0).unwrap_or_default())
        {
            self.confirmed[lpn as usize] = version.max(self.confirmed[lpn as usize]);
        }
    }

    fn submit(&mut self, cmd: Cmd<'_>) -> Result<bool, String> {
        let complete: Ops =
            (0..self.before.len() as u64).map(|op| self.drive.is_complete(OpId(op))).collect();
        let accepted = self.drive.submit(self.now, Tag(self.commands), cmd, &mut Reply::default());
        accepted.map_err(|e| format!("{cmd:?}: {e}"))?;
        let plan = self.drive.plan().iter();
        let ops: Vec<Op> = plan
            .map(|(id, op, after)| (id.0, op.kind, after.iter().map(|d| d.0).collect()))
            .collect();
        ops.iter().for_each(|(id, kind, after)| self.order(*id, *kind, after));
        let joins = ops.iter().filter(|op| matches!(op.1, OpKind::Join));
        self.joins.extend(joins.map(|(id, _, after)| (*id, after.clone())));
        let mut must = Vec::new();
        match cmd {
            Cmd::Write { lba, sectors, fua, content, .. } => {
                let written = self.write(lba.0, u64::from(sectors), content, &ops);
                must.extend(written.iter().copied().filter(|_| fua));
                self.pending.insert(self.commands, written);
            }
            Cmd::Trim { lba, sectors } => {
                for u in lba.0.div_ceil(self.unit)..(lba.0 + u64::from(sectors)) / self.unit {
                    self.versions[u as usize].push((Stamp::ZERO, BTreeSet::new()));
                    self.arrivals[(u * self.unit) as usize..][..self.unit as usize].fill(0);
                }
            }
            Cmd::WriteUnits { .. } => unreachable!("hosts name the content"),
            Cmd::HpbRead { .. } | Cmd::ReadBuffer { .. } | Cmd::WriteBuffer { .. } => {
                unreachable!("the drive exports no map")
            }
            Cmd::Flush => must.extend((0..).zip(self.confirmed.iter().copied())),
            Cmd::Read { .. } => {}
        }
        let layout = self.drive.layout().clone();
        let mut erased = Vec::new();
        for (i, (id, kind, _)) in ops.iter().enumerate() {
            if let OpKind::Erase { block, .. } = *kind {
                let block = layout.block_on_die(block);
                self.erases.entry(block).or_default().push(*id);
                erased.push((*id, block));
            } else if let OpKind::Program { block, page, .. } = *kind {
                if ops[i..]
                    .iter()
                    .any(|op| matches!(op.1, OpKind::Erase { block: b, .. } if b == block))
                {
                    return Ok(false); // its old content is no longer available
                }
                self.programmed(*id, layout.block_on_die(block), page, &complete)?;
            }
        }
        for (id, block) in erased {
            let after = &ops.iter().find(|op| op.0 == id).expect("the plan has this operation").2;
            if let Some(program) =
                self.programs_in(after).find(|&p| !self.concerns(p, block, ops[0].0))
            {
                return Err(format!(
                    "erase {id} of block {block} waits for program {program}, which supersedes \
                     and copies nothing of it"
                ));
            }
            let earlier = self.copies.iter().flat_map(|c| &c.programs).filter(|&&p| p < id);
            let known = |op: &&u64| has(&complete, **op) || has(&self.before[id as usize], **op);
            self.counted.spared += earlier.filter(|op| !known(op)).collect::<BTreeSet<_>>().len();
            // before the erase, everything that the block ever stored must be elsewhere or
            // superseded
            let mut state = self.before[id as usize].clone();
            add_all(&mut state, &complete);
            let held = |c: &&Copy| c.block == block && c.programs.last().is_none_or(|&p| p < id);
            if let Some(c) =
                self.copies.iter().filter(held).find(|c| !self.survives(c.lpn, c.version, &state))
            {
                return Err(format!(
                    "erase {id} of block {block}: page {} without version {}",
                    c.lpn, c.version
                ));
            }
        }
        let Some((id, ..)) = ops.iter().find(|(_, kind, _)| matches!(kind, OpKind::Complete(_)))
        else {
            return Err(format!("{cmd:?} is never complete"));
        };
        let mut state = self.before[*id as usize].clone();
        if let Cmd::Write { sectors, .. } | Cmd::Read { sectors, .. } = cmd {
            let into = matches!(cmd, Cmd::Write { .. });
            let moved = ops.iter().filter(|op| has(&state, op.0)).map(|op| match op.1 {
                OpKind::Link { inbound, bytes } if inbound == into => bytes,
                _ => 0,
            });
            if moved.sum::<u64>() != u64::from(sectors) * 512 {
                return Err(format!("{cmd:?} is complete before its data has crossed the link"));
            }
        }
        add_all(&mut state, &complete);
        if let Cmd::Read { lba, sectors } = cmd {
            let late = |s: &&u64| !has(&state, **s);
            if let Some(op) = self.arrivals[lba.0 as usize..(lba.0 + u64::from(sectors)) as usize]
                .iter()
                .find(late)
            {
                return Err(format!("{cmd:?} returns data before its transfer {op} is complete"));
            }
        }
        match must.into_iter().find(|&(lpn, version)| !self.survives(lpn, version, &state)) {
            Some((lpn, v)) => {
                Err(format!("{cmd:?} is complete, but version {v} of page {lpn} is not on flash"))
            }
            None => Ok(true),
        }
    }

    /// Returns the programs of data among `after`, including the programs that joins wait for.
    fn programs_in(&self, after: &[u64]) -> impl Iterator<Item = u64> {
        let mut open = after.to_vec();
        let mut found = BTreeSet::new();
        while let Some(op) = open.pop() {
            match self.joins.get(&op) {
                Some(joined) => open.extend(joined),
                None if self.copies.iter().any(|c| c.programs.contains(&op)) => {
                    found.insert(op);
                }
                None => {}
            }
        }
        found.into_iter()
    }

    /// Returns `true` if `program` wrote a page that `block` stores, in the same version or a newer
    /// version. Only pages that were written to `block` after its last erase count. Only erases
    /// before operation `first`, with which the plan begins, are considered.
    fn concerns(&self, program: u64, block: BlockId, first: u64) -> bool {
        let erased = self.erases[&block].iter().copied().filter(|&e| e < first).max();
        let here = |c: &&Copy| {
            let at = c.programs.last().copied().unwrap_or(0);
            c.block == block && erased.is_none_or(|erased| at > erased)
        };
        let of_program = || self.copies.iter().filter(|c| c.programs.contains(&program));
        self.copies
            .iter()
            .filter(here)
            .any(|c| of_program().any(|new| new.lpn == c.lpn && new.version >= c.version))
    }

    /// Adds an operation, with the three kinds of order that the engine itself ensures.
    fn order(&mut self, id: u64, kind: OpKind, after: &[u64]) {
        assert_eq!(id, self.before.len() as u64);
        let mut earlier = after.to_vec();
        if let OpKind::Read { block, .. }
        | OpKind::Program { block, .. }
        | OpKind::Erase { block, .. } = kind
        {
            let group = self.groups.entry(block).or_default();
            let first = |mark| group.iter().find(|o| o.1 == mark).map(|o| o.0);
            match kind {
                OpKind::Read { page, back: 0, .. } => earlier.extend(first(Some(page))),
                OpKind::Read { page, back, .. } => {
                    let seen = id - u64::from(back);
                    let programs = self.programs.get(&(block, page)).into_iter().flatten();
                    earlier.extend(programs.rev().find(|&&program| program < seen));
                    self.counted.past += 1;
                }
                OpKind::Program { .. } => earlier.extend(first(ERASE)),
                _ => earlier.extend(group.drain(..).map(|o| o.0)),
            }
            let program = if let OpKind::Program { page, .. } = kind { Some(page) } else { None };
            if let Some(page) = program {
                self.programs.entry((block, page)).or_default().push(id);
            }
            group.push((id, if let OpKind::Erase { .. } = kind { ERASE } else { program }));
        }
        let mut all = vec![false; id as usize + 1];
        earlier.iter().for_each(|&e| add_all(&mut all, &self.before[e as usize]));
        all[id as usize] = true;
        self.before.push(all);
    }

    fn write(&mut self, lba: u64, sectors: u64, content: u64, ops: &[Op]) -> Vec<(u32, usize)> {
        let links = ops.iter().filter_map(|(id, kind, _)| match *kind {
            OpKind::Link { inbound: true, bytes } => Some((*id, bytes / 512)),
            _ => None,
        });
        let order: Vec<u64> =
            links.flat_map(|(id, n)| std::iter::repeat_n(id, n as usize)).collect();
        self.arrivals[lba as usize..][..sectors as usize].copy_from_slice(&order);
        let mut written = Vec::new();
        for u in lba / self.unit..(lba + sectors).div_ceil(self.unit) {
            let (from, to) = (lba.max(u * self.unit), (lba + sectors).min((u + 1) * self.unit));
            let versions = &mut self.versions[u as usize];
            let stamp = if to - from == self.unit {
                Stamp::whole(content, (from - lba) as u32)
            } else {
                versions.last().unwrap().0.overwritten(
                    content,
                    (from - u * self.unit) as u32,
                    (to - from) as u32,
                )
            };
            let made_of = self.arrivals[(u * self.unit) as usize..][..self.unit as usize]
                .iter()
                .copied()
                .collect();
            versions.push((stamp, made_of));
            written.push((u as u32, versions.len() - 1));
        }
        written
    }

    /// Notes the versions that a program wrote to flash. Returns an error if the data of a version
    /// had not arrived.
    fn programmed(
        &mut self,
        id: u64,
        block: BlockId,
        page: u32,
        complete: &Ops,
    ) -> Result<(), String> {
        if self.drive.medium().oob_role(block) == OobRole::MAP {
            return Ok(()); // a record of trims
        }
        let layout = self.drive.layout();
        let first = layout.first_slot(layout.frame_in(block, page)).0;
        for ppn in (first..first + layout.slots_per_frame).map(Ppn) {
            let unit = self.drive.medium().unit(ppn).unwrap();
            let Some(versions) = self.versions.get(unit.lpn.0 as usize) else { continue };
            let version = versions
                .iter()
                .rposition(|v| v.0 == unit.stamp)
                .expect("a version that the host wrote");
            let late = |op: &&u64| !has(&self.before[id as usize], **op) && !has(complete, **op);
            if let Some(op) = versions[version].1.iter().find(late) {
                return Err(format!(
                    "program {id} of page {} does not wait for its data, transfer {op}",
                    unit.lpn
                ));
            }
            let same =
                |c: &&mut Copy| c.lpn == unit.lpn.0 && c.block == block && c.version == version;
            match self
                .copies
                .iter_mut()
                .rev()
                .find(same)
                .filter(|c| c.programs.last().is_some_and(|&p| p + 1 == id))
            {
                Some(copy) => copy.programs.push(id), // the part of the frame on another die
                None => {
                    self.copies.push(Copy { lpn: unit.lpn.0, version, block, programs: vec![id] })
                }
            }
        }
        Ok(())
    }

    /// Returns `true` if `version` of a page, or a newer version, is on flash when exactly the
    /// operations in `state` are complete. A trim does not need flash.
    fn survives(&self, lpn: u32, version: usize, state: &Ops) -> bool {
        let stands = |c: &&Copy| {
            let erased = |&&e: &&u64| e > c.programs.last().copied().unwrap_or(0) && has(state, e);
            c.programs.iter().all(|&p| has(state, p))
                && self.erases.get(&c.block).is_none_or(|all| all.iter().find(erased).is_none())
        };
        self.versions[lpn as usize][version..].iter().any(|v| v.0 == Stamp::ZERO)
            || self
                .copies
                .iter()
                .filter(|c| c.lpn == lpn && c.version >= version)
                .any(|c| stands(&c))
    }
}

fn run(settings: &[&str], seed: u64, requests: u32, gap_us: u64) -> Result<Counted, String> {
    let mut world = World::new(settings, seed);
    let mut rng = Rng::stream(Seed(seed), "requests");
    for i in 0..requests {
        let lba = Lba(rng.below(SECTORS - 24));
        let most = if rng.chance(300_000) { 24 } else { 6 };
        let sectors = 1 + rng.below(most) as u32;
        world.commands += 1;
        let cmd = match rng.below(16) {
            0 | 1 => Cmd::Flush,
            2 => Cmd::Trim { lba, sectors },
            3 | 4 => Cmd::Read { lba, sectors },
            n => Cmd::Write { lba, sectors, fua: n == 5, content: world.commands, data: None },
        };
        if !world
            .submit(cmd)
            .map_err(|e| format!("{settings:?}, seed {seed}, gap {gap_us} us, request {i}: {e}"))?
        {
            return Ok(world.counted);
        }
        world.advance(Dur::from_us(rng.below(gap_us + 1)));
    }
    Ok(world.counted)
}

#[test]
fn whatever_a_power_cut_leaves_holds_every_page() {
    let mut failures = Vec::new();
    for settings in DRIVES {
        for seed in 0..12 {
            // the longest gap between requests: none, less than a program takes, or enough for all
            // operations in flight
            failures.extend(run(settings, seed, 150, [0, 90, 20_000][seed as usize % 3]).err());
        }
    }
    assert!(
        failures.is_empty(),
        "the sequential log has {} blocks, but its budget is {} runs:\n{}",
        failures.len(),
        DRIVES.len() * 12,
        failures.join("\n")
    );
}

/// Checks that two rules were really tested. An erase waits for no more than necessary: when erases
/// are planned, programs that do not concern them are in flight. A page whose copy is in flight is
/// read at its old place.
#[test]
fn erases_are_planned_while_other_programs_are_in_flight() {
    for scheme in ["page", "block", "bast", "sast", "fast", "faster", "superblock", "last", "mast"]
    {
        let scheme = format!("ftl.scheme={scheme}");
        let drives = DRIVES.iter().filter(|d| match &scheme[..] {
            "ftl.scheme=page" => !d.iter().any(|s| s.starts_with("ftl.scheme")),
            _ => d.contains(&&scheme[..]),
        });
        let counted: Vec<Counted> = drives.map(|d| run(d, 0, 150, 0).unwrap()).collect();
        assert!(counted.iter().any(|c| c.spared > 0), "{scheme}");
        assert!(counted.iter().any(|c| c.past > 0), "{scheme}: no page was read at its old place");
    }
}
