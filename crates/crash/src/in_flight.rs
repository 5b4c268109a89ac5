//! Cuts while operations are in flight on several dies.
//!
//! The operations that were carried out may be any downward-closed subset of the plan, not only a
//! prefix. Downward-closed means that the subset contains, with each operation, all operations that
//! this operation waits for.
//!
//! A workload is submitted in simulated time, several commands at the same time. After each
//! submission, this module determines the incomplete operations, and the operations that each of
//! them waits for. An operation waits for its dependencies in the plan. A page is read after its
//! program, and programmed after the erase of its block. A block is erased after all earlier
//! operations on it. The engine keeps these three orders. The pages of a block are programmed one
//! after the other.
//!
//! A cut may leave each of these subsets. It may also leave a subset together with one torn
//! operation on every busy die. If there are more than [`SUBSETS_MAX`] subsets, [`SUBSETS_MAX`]
//! subsets are tried: the empty subset, the full subset, and random subsets. The tally counts the
//! commands with such a sample.
//!
//! The promise of a command counts as soon as all operations that its completion waits for are
//! carried out. Work in idle time runs to its end here. [`crate::enumerate`] cuts this work at each
//! operation.

use crate::at_random::is_unreadable;
use crate::cut::{Cut, CutKind};
use crate::enumerate::is_defended;
use crate::examine::{Examine, Remains};
use crate::flying::{Dependencies, InFlightChange, apply, note, open};
use crate::model::{Model, Step};
use crate::recording::SEED;
use crate::sample::Sample;
use crate::verify::Verifier;
use crate::{Failure, Tally, guarded};
use flashatlas_device::{Device, DriveConfig, Reply, Ssd};
use flashatlas_nand::{Change, Medium, OobRole, Torn};
use flashatlas_types::{BlockId, BlockMode, Dur, OpId, OpKind, Ps, Rng, Seed, Stamp, Tag};
use std::collections::BTreeMap;

/// Maximum number of subsets that are tried after each command.
pub const SUBSETS_MAX: usize = 48;

/// Number of commands in flight at the same time.
const QUEUE_DEPTH: usize = 6;

fn merge(into: &mut Dependencies, from: &[u32]) {
    into.extend_from_slice(from);
    into.sort_unstable();
    into.dedup();
}

/// Access of an operation to a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockAccess {
    Read,
    Program(u32),
    Erase,
}

/// A FLUSH or FUA write that is not complete.
struct Promise {
    tag: u64,
    needs: Dependencies,
    floors: Vec<(u32, usize)>,
}

/// A drive with operations in flight, and the data from which the states after a cut are derived.
struct InFlightDrive {
    drive: Ssd,
    /// The medium with exactly the complete changes.
    medium: Medium,
    flying: Vec<InFlightChange>,
    /// For each incomplete operation, the changes that it waits for, including its own change.
    needs: BTreeMap<u64, Dependencies>,
    /// For each block, the operations on it that are not complete.
    of_block: BTreeMap<BlockId, Vec<(OpId, BlockAccess)>>,
    versions: Vec<Vec<Stamp>>,
    /// For each unit, the index of the oldest version that it may hold.
    floor: Vec<usize>,
    /// For each unit, the index of the newest version that was acknowledged.
    confirmed: Vec<usize>,
    writes: BTreeMap<u64, Vec<(u32, usize)>>,
    promises: Vec<Promise>,
    opened: BTreeMap<BlockId, (OobRole, BlockMode)>,
    changes: u32,
    forgets_trims: bool,
    /// `true` if the scheme defends lower pages. A torn program may then destroy earlier pages of
    /// the same cells.
    defended: bool,
}

/// Runs `steps` in simulated time, and examines the states that cuts may leave after each command.
///
/// `sample` draws the states that are examined. If `only` is given, all other states are skipped.
pub fn subsets(
    config: &DriveConfig,
    steps: &[Step],
    (filled, seed): (bool, u64),
    only: Option<Cut>,
    mut sample: Sample,
    on_failure: &mut dyn FnMut(&[Cut], Failure),
) -> Tally {
    let mut tally = Tally::default();
    let mut verifier = Verifier::new(config);
    let mut work = |tally: &mut Tally,
                    fail: &mut dyn FnMut(&[Cut], Failure)|
     -> Result<(), Failure> {
        let mut world = InFlightDrive::new(config, filled)?;
        let mut rng = Rng::stream(Seed(seed), "crash.inflight");
        let mut now = Ps::ZERO;
        for (number, &step) in steps.iter().enumerate() {
            now = now.after(Dur::from_us([0, 0, 90, 20_000][rng.below(4) as usize]));
            let Some(at) = world.submit(number, step, now)? else { return Ok(()) };
            now = at;
            let states = world.states(&mut rng, tally);
            for (index, state) in states.into_iter().enumerate() {
                let cut = Cut { after: number as u32, how: CutKind::Subset(index as u32) };
                if only.is_some_and(|only| only != cut) || !sample.takes() {
                    continue;
                }
                let (medium, model) = world.left(&state);
                tally.reordered += 1;
                tally.dirty += u64::from(model.is_dirty() || !state.torn.is_empty());
                if let Err(failure) =
                    verifier.examine(medium.into(), &model, tally.reordered, false, &Remains::Sound)
                {
                    tally.violations += 1;
                    fail(&[cut], failure);
                    if tally.violations >= 3 {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    };
    let ran = guarded(|| work(&mut tally, on_failure));
    if let Err(failure) = ran {
        tally.violations += 1;
        on_failure(&[], failure);
    }
    tally.lost_units = verifier.lost_units();
    tally.mounts = verifier.mounts;
    tally.longest_mount = verifier.longest_mount;
    tally
}

/// The changes in flight that were carried out, and the changes that are torn.
///
/// Changes are named by their indices in [`InFlightDrive::flying`].
struct CutState {
    done: Vec<bool>,
    torn: Vec<usize>,
}

impl InFlightDrive {
    fn new(config: &DriveConfig, filled: bool) -> Result<InFlightDrive, Failure> {
        let mut drive = config.build(SEED).map_err(|e| Failure::new("R5", e.to_string()))?;
        if filled {
            drive.fill(|lpn| Stamp(lpn.0 + 1)).map_err(|e| Failure::new("R5", e.to_string()))?;
        }
        let medium = drive.medium().clone();
        drive.faults().keep_journal();
        let units = drive.layout().logical_units;
        let stamp = |unit| if filled { Stamp(unit + 1) } else { Stamp::ZERO };
        Ok(InFlightDrive {
            medium,
            flying: Vec::new(),
            needs: BTreeMap::new(),
            of_block: BTreeMap::new(),
            versions: (0..units).map(|u| vec![stamp(u)]).collect(),
            floor: vec![0; units as usize],
            confirmed: vec![0; units as usize],
            writes: BTreeMap::new(),
            promises: Vec::new(),
            opened: BTreeMap::new(),
            changes: 0,
            forgets_trims: drive.ftl_report().forgets_trims,
            defended: is_defended(config),
            drive,
        })
    }

    /// Lets time pass until `until`, and records the commands that complete.
    fn advance(&mut self, until: Ps) {
        let mut done = Vec::new();
        self.drive.advance(until, &mut done);
        for done in done {
            for (unit, version) in self.writes.remove(&done.tag.0).unwrap_or_default() {
                let confirmed = &mut self.confirmed[unit as usize];
                *confirmed = version.max(*confirmed);
            }
            if let Some(at) = self.promises.iter().position(|p| p.tag == done.tag.0) {
                for (unit, floor) in self.promises.swap_remove(at).floors {
                    self.floor[unit as usize] = floor.max(self.floor[unit as usize]);
                }
            }
        }
        let drive = &self.drive;
        let (complete, flying) = std::mem::take(&mut self.flying)
            .into_iter()
            .partition(|f| drive.is_complete(f.last_op));
        self.flying = flying;
        let complete: Vec<InFlightChange> = complete;
        for change in &complete {
            apply(&mut self.medium, change);
        }
        let gone: Vec<u32> = complete.iter().map(|f| f.number).collect();
        let keep = |needs: &mut Dependencies| needs.retain(|n| !gone.contains(n));
        self.flying.iter_mut().for_each(|f| keep(&mut f.needs));
        self.promises.iter_mut().for_each(|p| keep(&mut p.needs));
        self.needs.retain(|&op, needs| {
            keep(needs);
            !drive.is_complete(OpId(op))
        });
        self.of_block.values_mut().for_each(|ops| ops.retain(|&(op, _)| !drive.is_complete(op)));
    }

    /// Submits a step. Returns `None` if the drive refuses it because wrong bits took a page.
    fn submit(&mut self, number: usize, step: Step, mut now: Ps) -> Result<Option<Ps>, Failure> {
        self.advance(now);
        let power_on = |e: String| Failure::new("R5", format!("power on, {step}: {e}"));
        while self.writes.len() + self.promises.len() >= QUEUE_DEPTH {
            now = now.max(self.drive.next_event().expect("commands are in flight"));
            self.advance(now);
        }
        let content = (1 << 20) + number as u64;
        let Some(command) = step.command(content) else {
            self.advance(Ps(u64::MAX));
            now = now.max(self.drive.drain());
            let worked = self.drive.idle(now, now.after(Dur::from_us(400_000)));
            if worked.as_ref().is_err_and(is_unreadable) && self.medium.has_errors() {
                return Ok(None);
            }
            worked.map_err(|e| power_on(e.to_string()))?;
            now = now.max(self.drive.drain());
            for change in self.drive.faults().take_journal() {
                if let Change::Program { frame, .. } = &change
                    && let block = self.drive.layout().block_of_frame(*frame)
                    && let Some((role, mode)) = self.opened.remove(&block)
                {
                    self.medium.redo(&Change::Open(block, role, mode));
                }
                self.medium.redo(&change);
            }
            self.advance(now);
            return Ok(Some(now));
        };
        let unit_sectors = self.drive.unit_sectors();
        let written: Vec<(u32, usize)> = step
            .units(unit_sectors)
            .map(|unit| {
                let versions = &mut self.versions[unit as usize];
                let old = *versions.last().expect("a unit has a version");
                versions.push(step.stamp(unit, unit_sectors, content, old));
                (unit, versions.len() - 1)
            })
            .collect();
        let submitted = self.drive.submit(now, Tag(number as u64), command, &mut Reply::default());
        if submitted.as_ref().is_err_and(is_unreadable) && self.medium.has_errors() {
            return Ok(None);
        }
        submitted.map_err(|e| power_on(e.to_string()))?;
        let completes = self.follow_plan(number as u64);
        match step {
            Step::Flush => {
                let floors = (0..).zip(self.confirmed.iter().copied()).collect();
                self.promises.push(Promise { tag: number as u64, needs: completes, floors });
            }
            Step::Write { fua: true, .. } => {
                self.promises.push(Promise {
                    tag: number as u64,
                    needs: completes,
                    floors: written.clone(),
                });
            }
            _ => {}
        }
        self.writes.insert(number as u64, written);
        Ok(Some(now))
    }

    /// Records the operations of the last command, and returns the changes that its completion
    /// waits for.
    fn follow_plan(&mut self, tag: u64) -> Dependencies {
        let changes = self.drive.faults().take_journal();
        let mut changes = changes.into_iter();
        let dies_per_frame = self.drive.layout().dies_per_frame;
        let layout = self.drive.layout().clone();
        let mut completes = Dependencies::new();
        let (mut gang, mut rest) = (None, 0);
        for (op, what, after) in self.drive.plan().iter() {
            let mut needs = Dependencies::new();
            for dep in after {
                if let Some(of) = self.needs.get(&dep.0) {
                    merge(&mut needs, of);
                }
            }
            // a copyback is a read of its sources
            for source in self.drive.plan().sources(what.kind) {
                let block = layout.block_on_die(source.block);
                let earlier = self.of_block.entry(block).or_default();
                for (before, was) in earlier.iter() {
                    let waits = *was == BlockAccess::Program(source.page);
                    if let Some(of) = self.needs.get(&before.0).filter(|_| waits) {
                        merge(&mut needs, of);
                    }
                }
                earlier.push((op, BlockAccess::Read));
            }
            let mut seen = op.0;
            let on = match what.kind {
                OpKind::Read { block, page, back, .. } => {
                    seen = op.0 - u64::from(back);
                    Some((block, BlockAccess::Read, page))
                }
                OpKind::Program { block, page, .. } | OpKind::Copyback { block, page, .. } => {
                    Some((block, BlockAccess::Program(page), page))
                }
                OpKind::Erase { block, .. } => Some((block, BlockAccess::Erase, 0)),
                _ => None,
            };
            if let Some((block, on, page)) = on {
                let earlier = self.of_block.entry(layout.block_on_die(block)).or_default();
                for (before, was) in earlier.iter() {
                    let waits = match on {
                        BlockAccess::Read => *was == BlockAccess::Program(page) && before.0 < seen,
                        BlockAccess::Program(_) => *was != BlockAccess::Read,
                        BlockAccess::Erase => true,
                    };
                    if let Some(of) = self.needs.get(&before.0).filter(|_| waits) {
                        merge(&mut needs, of);
                    }
                }
                earlier.push((op, on));
            }
            let changed = match what.kind {
                OpKind::Program { die, .. }
                | OpKind::Copyback { die, .. }
                | OpKind::Erase { die, .. } => Some(die),
                OpKind::Memory { kind: flashatlas_types::MemoryKind::Nvm, write: true, .. } => {
                    Some(u32::MAX)
                }
                OpKind::Complete(t) if t.0 == tag => {
                    completes.clone_from(&needs);
                    None
                }
                _ => None,
            };
            if let Some(die) = changed {
                let number = match gang.filter(|_| rest > 0) {
                    Some(number) => {
                        rest -= 1;
                        number
                    }
                    None => {
                        let mut change = changes.next().expect("every operation is in the journal");
                        while !change.is_operation() {
                            note(&mut self.opened, &mut self.flying, &change);
                            change = changes.next().expect("every operation is in the journal");
                        }
                        let block = match change {
                            Change::Program { frame, .. } | Change::Step { frame, .. } => {
                                Some(layout.block_of_frame(frame))
                            }
                            Change::Erase(block) => Some(block),
                            _ => None,
                        };
                        let number = self.changes;
                        self.changes += 1;
                        let opened = block.and_then(|b| self.opened.remove(&b));
                        let needs = needs.clone();
                        self.flying.push(InFlightChange {
                            number,
                            change,
                            opened,
                            copied: None,
                            block,
                            die,
                            last_op: op,
                            needs,
                        });
                        (gang, rest) =
                            (Some(number), if block.is_some() { dies_per_frame - 1 } else { 0 });
                        number
                    }
                };
                let flying = self.flying.last_mut().expect("just pushed");
                flying.last_op = op;
                merge(&mut flying.needs, &needs);
                flying.needs.retain(|&n| n != number);
                merge(&mut needs, &[number]);
            }
            self.needs.insert(op.0, needs);
        }
        // a block may be opened for units that wait for their frame to fill
        changes.for_each(|change| note(&mut self.opened, &mut self.flying, &change));
        completes
    }

    /// Returns the states that a cut may leave now, or a sample of them.
    ///
    /// If there are more than [`SUBSETS_MAX`] subsets, a sample is drawn.
    fn states(&self, rng: &mut Rng, tally: &mut Tally) -> Vec<CutState> {
        let place: BTreeMap<u32, usize> =
            self.flying.iter().enumerate().map(|(i, f)| (f.number, i)).collect();
        let needs: Vec<Vec<usize>> = self
            .flying
            .iter()
            .map(|f| f.needs.iter().filter_map(|n| place.get(n).copied()).collect())
            .collect();
        let ready = |done: &[bool], i: usize| !done[i] && needs[i].iter().all(|&n| done[n]);
        let mut subsets = vec![vec![false; self.flying.len()]];
        let mut all = true;
        // breadth first: each subset is extended by one operation that is ready
        let mut at = 0;
        while at < subsets.len() {
            for i in 0..self.flying.len() {
                if ready(&subsets[at], i) {
                    let mut more = subsets[at].clone();
                    more[i] = true;
                    if !subsets.contains(&more) {
                        subsets.push(more);
                    }
                }
            }
            at += 1;
            if subsets.len() > SUBSETS_MAX {
                all = false;
                break;
            }
        }
        if !all {
            tally.sampled += 1;
            subsets.truncate(1);
            subsets.push(vec![true; self.flying.len()]);
            while subsets.len() < SUBSETS_MAX {
                let mut done = vec![false; self.flying.len()];
                for _ in 0..rng.below(self.flying.len() as u64 + 1) {
                    let able: Vec<usize> = (0..done.len()).filter(|&i| ready(&done, i)).collect();
                    if able.is_empty() {
                        break;
                    }
                    done[able[rng.below(able.len() as u64) as usize]] = true;
                }
                subsets.push(done);
            }
        }
        let mut states = Vec::new();
        for done in subsets {
            let mut busy = Vec::new();
            let mut torn = Vec::new();
            for i in 0..self.flying.len() {
                if ready(&done, i) && !busy.contains(&self.flying[i].die) {
                    busy.push(self.flying[i].die);
                    torn.push(i);
                }
            }
            if !torn.is_empty() {
                states.push(CutState { done: done.clone(), torn });
            }
            states.push(CutState { done, torn: Vec::new() });
        }
        states
    }

    /// Returns the medium that a cut leaves in a state, and the model of its units.
    fn left(&self, state: &CutState) -> (Medium, Model) {
        let mut medium = self.medium.clone();
        for (flying, _) in self.flying.iter().zip(&state.done).filter(|(_, done)| **done) {
            apply(&mut medium, flying);
        }
        for &i in &state.torn {
            let flying = &self.flying[i];
            let is_program = matches!(flying.change, Change::Program { .. } | Change::Step { .. });
            if medium.rules().finishes_programs && is_program {
                apply(&mut medium, flying);
                continue;
            }
            open(&mut medium, flying);
            let torn = [Torn::Garbage, Torn::Part, Torn::Once, Torn::Erase, Torn::Lines(1)];
            let mut fits: Vec<Torn> =
                torn.into_iter().filter(|t| t.applies_to(&flying.change)).collect();
            if let Change::Program { frame, .. } = flying.change
                && self.defended
                && medium.paired_before(frame).next().is_some()
            {
                fits = vec![Torn::Paired];
            }
            medium.begin(&flying.change, fits[flying.number as usize % fits.len()]);
        }
        medium.power_off();
        let done = |number: &u32| {
            let at = self.flying.iter().position(|f| f.number == *number);
            at.is_none_or(|at| state.done[at])
        };
        let mut floor = self.floor.clone();
        for promise in self.promises.iter().filter(|p| p.needs.iter().all(done)) {
            for &(unit, version) in &promise.floors {
                floor[unit as usize] = version.max(floor[unit as usize]);
            }
        }
        let allowed = (0..)
            .zip(&self.versions)
            .map(|(unit, versions): (usize, _)| versions[floor[unit]..].to_vec());
        let model = Model::allowing(allowed.collect(), self.drive.unit_sectors());
        let older = (0..)
            .zip(&self.versions)
            .map(|(unit, versions): (usize, _)| versions[..floor[unit]].to_vec());
        let (older, forgets) = (older.collect(), self.forgets_trims);
        (medium, if forgets { model.with_older(older) } else { model.remembering(older) })
    }
}
