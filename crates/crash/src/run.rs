//! A whole run on all cores, with a table at the end.
//!
//! The run tries every stack of the registries on every geometry with every workload.

use crate::at_random::{AtRandom, KEYS};
use crate::cut::{Cut, CutKind, Id, STEPS, STEPS_MAX};
use crate::enumerate::{Depth, Tally};
use crate::failing_runs;
use crate::faults::Faults;
use crate::in_flight::subsets;
use crate::interface::{Interface, Task};
use crate::recording::Recording;
use crate::sample::Sample;
use crate::subject::{GEOMETRIES, Geometry, Subject, candidates, drive};
use crate::threads;
use crate::trial::{Recorded, Steps, Trial};
use crate::workloads::{SEQUENCES, WorkloadShape, exhaustive};
use crate::{CrashError, Failure};
use flashatlas_device::{DriveConfig, Registry};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Specification of a run of power failures.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CrashSpec {
    /// Name of the interface through which commands reach the drive ([`Interface`]).
    pub interface: String,
    /// Layers, with or without a variant; `-` means no layers, and an empty list means all.
    pub layers: Vec<String>,
    /// Schemes, with or without a variant; an empty list means all.
    pub schemes: Vec<String>,
    /// Stores, with or without a variant; an empty list means all.
    pub stores: Vec<String>,
    /// Geometries; an empty list means all.
    pub geometries: Vec<String>,
    /// Workloads; an empty list means all.
    pub workloads: Vec<String>,
    /// Settings of every drive; they override the settings of its variant.
    pub set: Vec<String>,
    /// Number of cuts in a row: with 1 the workload is cut, with 2 also the mount after it, and so
    /// on.
    pub depth: u32,
    /// Names of faults, separated by commas.
    pub faults: String,
    /// First seed.
    pub seed: u64,
    /// Number of seeds for each workload.
    pub seeds: u64,
    /// Approximate number of steps of a workload.
    pub steps: u32,
    /// Rate of the sample: one cut in `one_in` of each workload is tried, and one short sequence in
    /// `one_in`. With 1, all are tried.
    pub one_in: u32,
    /// The share of the workloads to run, and the number of shares: `1/4` to `4/4`.
    pub shard: Option<String>,
    /// Number of threads; 0 means one thread per core.
    pub threads: usize,
    /// `true` to shorten a workload that fails.
    pub minimise: bool,
}

impl Default for CrashSpec {
    fn default() -> CrashSpec {
        CrashSpec {
            interface: Interface::Device.name().into(),
            layers: Vec::new(),
            schemes: Vec::new(),
            stores: Vec::new(),
            geometries: Vec::new(),
            workloads: Vec::new(),
            set: Vec::new(),
            depth: 1,
            faults: "all".into(),
            seed: 1,
            seeds: 1,
            steps: STEPS,
            one_in: 1,
            shard: None,
            threads: 0,
            minimise: true,
        }
    }
}

/// A failure in the form in which it is reported.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Identity of the failure, for `--rerun`.
    pub id: String,
    /// The broken promise, and a description of the failure.
    pub failure: String,
    /// A short workload that breaks the same promise, as lines of text.
    pub minimal: Vec<String>,
}

/// One line of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Layers with all their variants; `-` if there are none.
    pub layers: String,
    /// Scheme with all its variants.
    pub scheme: String,
    /// Store with all its variants.
    pub store: String,
    /// Number of combinations of variant, geometry, workload and seed.
    pub workloads: u64,
    /// Number of states that were mounted and compared.
    pub cuts: u64,
    /// Counts of these states by kind, and the results.
    #[serde(flatten)]
    pub tally: Tally,
}

/// Findings of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Rows by layers, scheme and store.
    pub rows: Vec<Row>,
    /// Failures, at most a few for each workload.
    pub found: Vec<Finding>,
    /// `true` if the run was stopped.
    pub stopped: bool,
}

/// Two drives of a stack on a geometry: one for workloads that are not tight, one for tight
/// workloads.
///
/// The first job that needs a drive computes its configuration.
pub(crate) type Drives = Arc<[OnceLock<Result<DriveConfig, CrashError>>; 2]>;

/// A workload that is recorded and cut, once for each seed.
pub(crate) struct Job {
    pub stack: Subject,
    pub geometry: &'static Geometry,
    pub task: Task,
    pub seeds: std::ops::Range<u64>,
    pub drives: Drives,
}

impl Job {
    /// Returns the drive on which the workload is recorded.
    ///
    /// # Errors
    /// Returns the errors of [`drive`].
    pub fn drive(&self) -> Result<DriveConfig, CrashError> {
        let tight = self.task.tight();
        self.drives[usize::from(tight)]
            .get_or_init(|| drive(&self.stack, self.geometry, tight))
            .clone()
    }

    fn id(&self, seed: u64, steps: u32, cuts: &[Cut]) -> Id {
        Id {
            layers: self.stack.layers_name(),
            scheme: self.stack.scheme_name(),
            store: self.stack.store_name(),
            workload: self.task.name().into(),
            steps: if self.task.is_one() { steps } else { STEPS },
            geometry: self.geometry.name.into(),
            seed,
            cuts: cuts.to_vec(),
        }
    }

    /// Returns the drive of the trial: behind a controller it keeps bytes.
    fn config(&self) -> Result<DriveConfig, CrashError> {
        let config = self.drive()?;
        match self.task {
            Task::Commands(_) | Task::Sequences => Ok(config),
            Task::Nvme(_) => Ok(config.with(&["nand.data=ram".into()])?),
        }
    }

    /// Returns the trial of the workload on its drive.
    ///
    /// # Errors
    /// Returns the errors of [`drive`].
    pub fn trial(&self, seed: u64, steps: u32) -> Result<Trial, CrashError> {
        let config = self.config()?;
        let exported = config.shape();
        let shape =
            WorkloadShape { units: exported.units(), unit_sectors: exported.unit_sectors, steps };
        let filled = self.task.filled();
        Ok(match self.task {
            Task::Commands(workload) => {
                Trial { config, filled, steps: Steps::Device(workload.steps(&shape, seed)) }
            }
            Task::Sequences => {
                Trial { config, filled, steps: Steps::Device(exhaustive(&shape, seed)) }
            }
            Task::Nvme(workload) => {
                Trial { config, filled, steps: Steps::Nvme(workload.steps(&shape, seed)) }
            }
        })
    }

    /// Returns the workload for runs in which parts fail.
    ///
    /// One failure in `one_in` is tried; the sample depends on `name`.
    pub fn parts<'a>(
        &self,
        config: &'a DriveConfig,
        clean: &'a Recording,
        depth: Depth,
        (one_in, name): (u32, &'a str),
    ) -> failing_runs::Workload<'a> {
        let factory = self.geometry.name == GEOMETRIES[0].name;
        let (tight, filled) = (self.task.tight(), self.task.filled());
        failing_runs::Workload { config, clean, filled, depth, factory, tight, one_in, name }
    }

    /// Tries every cut of every seed, and returns the failures.
    ///
    /// The workload of the first failure is shortened if `plan` asks for this.
    fn run(
        &self,
        plan: &CrashSpec,
        faults: Faults,
        stop: &AtomicBool,
    ) -> Result<(Tally, u64, Vec<Finding>), CrashError> {
        let (mut tally, mut workloads, mut found) = (Tally::default(), 0, Vec::new());
        let drawn = self.id(0, plan.steps, &[]).to_string();
        let mut sequences = Sample::new(plan.one_in, &drawn);
        for seed in self.seeds.clone() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            // a sample consists of some short sequences with all their cuts, and of some cuts of
            // every other workload
            let one_in = if self.task.is_one() { plan.one_in } else { 1 };
            if !self.task.is_one() && !sequences.takes() {
                continue;
            }
            workloads += 1;
            let name = self.id(seed, plan.steps, &[]).to_string();
            let sample = |what: &str| Sample::new(one_in, &format!("{name}{what}"));
            let trial = self.trial(seed, plan.steps)?;
            let depth = Depth { cuts: plan.depth, faults };
            let mut failures: Vec<(Vec<Cut>, Failure)> = Vec::new();
            let mut note = |cuts: &[Cut], failure| failures.push((cuts.to_vec(), failure));
            match trial.record() {
                Ok(recorded) => {
                    tally.add(&trial.cut(&recorded, depth, None, sample(""), &mut note));
                    if let Recorded::Device(recording) = &recorded
                        && self.task.is_one()
                        && !recording.loses(AtRandom::of(&trial.config))
                    {
                        let parts = self.parts(&trial.config, recording, depth, (one_in, &name));
                        tally.add(&parts.run(None, &mut note));
                    }
                }
                Err(failure) => {
                    tally.violations += 1;
                    note(&[], failure);
                }
            }
            // operations in flight can be tracked only for a single drive, whose parts do not fail
            if let Steps::Device(steps) = &trial.steps
                && !AtRandom::of(&trial.config).by_rates
                && self.geometry.parallel
                && self.stack.layers.is_empty()
            {
                let mut note = |cuts: &[Cut], failure| failures.push((cuts.to_vec(), failure));
                let (start, sample) = ((trial.filled, seed), sample("x"));
                tally.add(&subsets(&trial.config, steps, start, None, sample, &mut note));
            }
            for (cuts, failure) in failures {
                let minimal = if found.is_empty() && plan.minimise && power_only(&cuts) {
                    trial.minimal_lines(depth)
                } else {
                    Vec::new()
                };
                found.push(Finding {
                    id: self.id(seed, plan.steps, &cuts).to_string(),
                    failure: failure.to_string(),
                    minimal,
                });
            }
            if !found.is_empty() && !self.task.is_one() {
                break;
            }
        }
        Ok((tally, workloads, found))
    }
}

pub(crate) fn chosen<'a>(
    given: &[String],
    what: &'static str,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), CrashError> {
    let names: Vec<&str> = names.collect();
    for name in given {
        if !names.contains(&name.as_str()) {
            return Err(CrashError::unknown(what, name, names));
        }
    }
    Ok(())
}

/// Returns the names without the numbers of variants.
fn plain(given: &[String]) -> Vec<String> {
    given.iter().map(|name| name.split('.').next().unwrap_or(name).to_owned()).collect()
}

/// Returns an error if a workload's number of steps is out of bounds.
pub(crate) fn bounded(steps: u32) -> Result<(), CrashError> {
    if (1..=STEPS_MAX).contains(&steps) {
        Ok(())
    } else {
        Err(CrashError::Steps { steps, most: STEPS_MAX })
    }
}

/// Returns `true` if a name is among the given names, or if no names are given.
///
/// `page` means all variants of `page`, and `page.1` means the first variant, which is printed
/// without a number.
fn wanted(given: &[String], name: &str, with_variant: &str) -> bool {
    let first = name == with_variant;
    let is = |g: &String| {
        g == name || g == with_variant || (first && g.strip_suffix(".1") == Some(name))
    };
    given.is_empty() || given.iter().any(is)
}

fn jobs(
    registry: &Registry,
    plan: &CrashSpec,
    interface: Interface,
) -> Result<Vec<Job>, CrashError> {
    let all = candidates(registry);
    bounded(plan.steps)?;
    let seeds = plan.seed..plan.seed.checked_add(plan.seeds).ok_or(CrashError::Seeds)?;
    chosen(&plain(&plan.schemes), "scheme", registry.ftl.schemes.iter().map(|s| s.name))?;
    chosen(
        &plain(&plan.stores),
        "map store",
        registry.ftl.stores.iter().map(|m| m.name).chain(["-"]),
    )?;
    chosen(&plan.geometries, "geometry", GEOMETRIES.iter().map(|g| g.name))?;
    let tasks = interface.tasks();
    chosen(&plan.workloads, "workload", tasks.iter().map(|task| task.name()))?;
    let mut jobs = Vec::new();
    let layered = |s: &Subject| s.layers_name().split('.').next().unwrap_or("-").to_owned();
    let mut stacked: Vec<String> = all.iter().map(layered).collect();
    stacked.dedup();
    chosen(&plain(&plan.layers), "stack of layers", stacked.iter().map(String::as_str))?;
    for mut stack in all {
        if !wanted(&plan.layers, &layered(&stack), &stack.layers_name())
            || !wanted(&plan.schemes, stack.scheme.name, &stack.scheme_name())
            || !wanted(&plan.stores, stack.store, &stack.store_name())
            || !stack.fits()
        {
            continue;
        }
        stack.more.clone_from(&plan.set);
        for (i, geometry) in GEOMETRIES.iter().enumerate() {
            if !wanted(&plan.geometries, geometry.name, geometry.name) {
                continue;
            }
            let drives = Drives::default();
            for &task in tasks.iter().filter(|t| wanted(&plan.workloads, t.name(), t.name())) {
                // the behaviour of a blank drive in four operations does not depend on its geometry
                if i > 0 && !task.is_one() {
                    continue;
                }
                jobs.push(Job {
                    stack: stack.clone(),
                    geometry,
                    task,
                    seeds: if task.is_one() { seeds.clone() } else { 0..SEQUENCES },
                    drives: drives.clone(),
                });
            }
        }
    }
    if jobs.is_empty() {
        return Err(CrashError::NoStack {
            schemes: plan.schemes.clone(),
            stores: plan.stores.clone(),
            layers: plan.layers.clone(),
        });
    }
    let (shard, of) = plan.shard.as_deref().map_or(Ok((1, 1)), parse_shard)?;
    // jobs of one stack are neighbours, so dealing out the jobs in turn spreads each stack over the
    // shares
    Ok(jobs.into_iter().skip(shard - 1).step_by(of).collect())
}

/// Parses a share, such as `2/4` for the second of four shares.
fn parse_shard(text: &str) -> Result<(usize, usize), CrashError> {
    let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parts {
        Some((i, n)) if 1 <= i && i <= n => Ok((i, n)),
        _ => Err(CrashError::Shard(text.to_owned())),
    }
}

/// Tries all stacks, geometries and workloads that `plan` names.
///
/// `progress` is called on the calling thread with the number of finished jobs and the number of
/// all jobs. The run stops if `progress` returns `false`.
///
/// # Errors
/// Returns an error for unknown names, and for a stack that fits no drive of a geometry.
pub fn run(
    registry: &Registry,
    plan: &CrashSpec,
    progress: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Report, CrashError> {
    let interface = Interface::parse(&plan.interface)?;
    let faults = interface.faults(&plan.faults)?;
    if plan.one_in == 0 {
        return Err(CrashError::OneIn);
    }
    if !(1..=4).contains(&plan.depth) {
        return Err(CrashError::Depth(plan.depth));
    }
    let jobs = jobs(registry, plan, interface)?;
    refuse_at_random(plan, interface, &jobs)?;
    refuse_unfit(plan, &jobs, progress)?;
    let work = |at: usize, stop: &AtomicBool| jobs[at].run(plan, faults, stop);
    let mut tell = |done: usize| progress(done, jobs.len());
    let (results, stopped) = threads::each(jobs.len(), plan.threads, work, &mut tell);
    let mut report = Report { rows: Vec::new(), found: Vec::new(), stopped };
    for (at, result) in results {
        let (tally, workloads, found) = result?;
        report.add(&jobs[at], &tally, workloads);
        report.found.extend(found);
    }
    Ok(report)
}

/// Returns an error if the settings of the caller do not fit a stack.
///
/// The configuration of each drive is made here, and the workloads use it later. Without settings
/// of the caller, every stack fits.
fn refuse_unfit(
    plan: &CrashSpec,
    jobs: &[Job],
    progress: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<(), CrashError> {
    if plan.set.is_empty() {
        return Ok(());
    }
    let fits = |at: usize, _: &AtomicBool| jobs[at].config().err();
    let (refused, _) =
        threads::each(jobs.len(), plan.threads, fits, &mut |_| progress(0, jobs.len()));
    let (mut stacks, mut others, mut first) = (Vec::new(), Vec::new(), None);
    for (at, error) in refused {
        let name = jobs[at].stack.name();
        if let Some(why) = error {
            first.get_or_insert((jobs[at].geometry.name, why));
            stacks.push(name);
        } else {
            others.push(name);
        }
    }
    stacks.dedup();
    others.dedup();
    others.retain(|name| !stacks.contains(name));
    match first {
        Some((geometry, why)) => {
            let (set, why) = (plan.set.clone(), Box::new(why));
            Err(CrashError::Unfit { set, stacks, others, geometry, why })
        }
        None => Ok(()),
    }
}

/// Returns an error if failures at random are asked for where they are not tried.
fn refuse_at_random(
    plan: &CrashSpec,
    interface: Interface,
    jobs: &[Job],
) -> Result<(), CrashError> {
    let is_on = |setting: &String, key: &str| {
        let (set, value) = setting.split_once('=').unwrap_or_default();
        set.trim() == key && value.trim() != "0"
    };
    let asked = KEYS.into_iter().find(|key| plan.set.iter().any(|setting| is_on(setting, key)));
    let behind_nvme = interface == Interface::Nvme;
    match asked {
        Some(key) if behind_nvme || jobs.iter().any(|job| !job.stack.layers.is_empty()) => {
            Err(CrashError::AtRandom { key, behind_nvme })
        }
        _ => Ok(()),
    }
}

impl Report {
    fn add(&mut self, job: &Job, tally: &Tally, workloads: u64) {
        let (scheme, store) = (job.stack.scheme.name, job.stack.store);
        let layers = job.stack.layers_name().split('.').next().unwrap_or_default().to_owned();
        let same = |r: &Row| r.layers == layers && r.scheme == scheme && r.store == store;
        let row = match self.rows.iter_mut().position(|r| same(r)) {
            Some(at) => &mut self.rows[at],
            None => {
                let (scheme, store) = (scheme.to_owned(), store.to_owned());
                self.rows.push(Row {
                    layers,
                    scheme,
                    store,
                    workloads: 0,
                    cuts: 0,
                    tally: Tally::default(),
                });
                self.rows.last_mut().expect("just added")
            }
        };
        row.workloads += workloads;
        row.cuts += tally.cuts();
        row.tally.add(tally);
    }

    /// Returns the number of failures in all rows.
    pub fn violations(&self) -> u64 {
        self.rows.iter().map(|r| r.tally.violations).sum()
    }
}

/// Returns `true` if the cuts contain only power failures, with operations in their order.
///
/// Only a workload with such cuts can be shortened.
pub(crate) fn power_only(cuts: &[Cut]) -> bool {
    !matches!(cuts.first(), Some(Cut { how: CutKind::FailingPart(_) | CutKind::Subset(_), .. }))
}
