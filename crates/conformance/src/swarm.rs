//! Parts together: schemes, stores, layers, policies, shapes of drives, parameters anywhere in
//! their ranges, and faults while the drive runs, all drawn from a number.
//!
//! Each number leaves out a random half of the features ([`Feature`]): what always occurs hides
//! what it prevents (Groce et al., Swarm testing, ISSTA 2012). Every read is compared with a model,
//! power fails in the middle of operations, and after each mount every unit holds a version that
//! the model allows.

use flashatlas_crash::model::{Model, Step};
use flashatlas_crash::recording::{SEED, apply, held, is_failed_program, is_without_room};
use flashatlas_crash::subject::{GEOMETRIES, Geometry, Subject, drive, over_tiny, subjects};
use flashatlas_crash::threads;
use flashatlas_device::{DriveConfig, Registry, Stack, SubmitError};
use flashatlas_ftl::caching::CachePolicyDef;
use flashatlas_lookup::hashes::HashDef;
use flashatlas_nand::Medium;
use flashatlas_types::{
    BlockId, Entry, FtlError, Layout, MediumError, ParamDef, ParamKind, PartFault, Rng, Seed,
};
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;

/// Steps of a case.
const STEPS: u64 = 500;

/// What a case may have or leave out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// Layers over the drive.
    Layers,
    /// Another victim policy than the scheme's own choice.
    Victim,
    /// A classifier.
    Classifier,
    /// Parameters anywhere in their ranges.
    Parameters,
    /// Trims.
    Trims,
    /// FLUSHes.
    Flushes,
    /// FUA writes.
    Fua,
    /// Writes of parts of units.
    Parts,
    /// Idle time.
    Idle,
    /// Programs that fail.
    FailingPrograms,
    /// Erases that fail.
    FailingErases,
    /// The power fails in an operation.
    Cuts,
    /// The drive is switched off and on.
    Restarts,
    /// Blocks that wear out.
    Wear,
}

const FEATURES: [Feature; 14] = [
    Feature::Layers,
    Feature::Victim,
    Feature::Classifier,
    Feature::Parameters,
    Feature::Trims,
    Feature::Flushes,
    Feature::Fua,
    Feature::Parts,
    Feature::Idle,
    Feature::FailingPrograms,
    Feature::FailingErases,
    Feature::Cuts,
    Feature::Restarts,
    Feature::Wear,
];

/// What a case did.
#[derive(Clone, Default, Debug, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Cases that ran.
    pub cases: u64,
    /// Numbers for which no drive was found.
    pub without_drive: u64,
    /// Commands.
    pub steps: u64,
    /// Units compared.
    pub compared: u64,
    /// Mounts after power failures and restarts.
    pub mounts: u64,
    /// Programs and erases that failed.
    pub failed_operations: u64,
    /// Cases that ended because the drive had lost too many blocks.
    pub out_of_blocks: u64,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.cases += other.cases;
        self.without_drive += other.without_drive;
        self.steps += other.steps;
        self.compared += other.compared;
        self.mounts += other.mounts;
        self.failed_operations += other.failed_operations;
        self.out_of_blocks += other.out_of_blocks;
    }
}

/// A case that went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The number that draws it again.
    pub id: u64,
    /// What is wrong.
    pub found: String,
    /// The drive, as settings over the preset `tiny`.
    pub drive: String,
    /// What it had.
    pub features: Vec<Feature>,
}

/// Everything that cases are drawn from.
pub struct Swarm {
    registry: Registry,
    subjects: Vec<Subject>,
}

struct Case {
    config: DriveConfig,
    features: Vec<Feature>,
    rng: Rng,
    /// Whether it was switched off and on.
    mounted: bool,
}

impl Swarm {
    /// Cases over the parts of this registry.
    pub fn over(registry: &Registry) -> Swarm {
        Swarm { registry: *registry, subjects: subjects(registry) }
    }

    /// Run one case.
    pub fn run(&self, id: u64) -> (Tally, Option<Finding>) {
        let case = match catch_unwind(AssertUnwindSafe(|| self.draw(id))) {
            Ok(Some(case)) => case,
            Ok(None) => return (Tally { without_drive: 1, ..Tally::default() }, None),
            Err(_) => {
                let found = "a panic while the case was drawn".to_owned();
                let finding = Finding { id, found, drive: String::new(), features: Vec::new() };
                return (Tally { cases: 1, ..Tally::default() }, Some(finding));
            }
        };
        let mut tally = Tally { cases: 1, ..Tally::default() };
        let (config, features) = (case.config.clone(), case.features.clone());
        let played = catch_unwind(AssertUnwindSafe(|| case.play(&mut tally)));
        let found = match played {
            Ok(Ok(())) => None,
            Ok(Err(found)) => Some(found),
            Err(panic) => Some(match panic.downcast::<PartFault>() {
                Ok(fault) => fault.to_string(),
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().cloned();
                    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&s| s.into()));
                    format!("broken rule: {}", text.unwrap_or_default())
                }
            }),
        };
        let finding =
            found.map(|found| Finding { id, found, drive: over_tiny(&config).join(" "), features });
        (tally, finding)
    }

    /// Run the cases of a range, on all cores. `progress` hears how many are done, and stops it by
    /// answering `false`.
    pub fn run_all(
        &self,
        ids: std::ops::Range<u64>,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> (Tally, Vec<Finding>) {
        let count = (ids.end - ids.start) as usize;
        let work = |at: usize, _: &AtomicBool| self.run(ids.start + at as u64);
        let (done, _) = threads::each(count, 0, work, &mut |done| progress(done as u64));
        let (mut tally, mut found) = (Tally::default(), Vec::new());
        for (_, (one, finding)) in done {
            tally.add(&one);
            found.extend(finding);
        }
        (tally, found)
    }

    /// The case of a number, where a drive takes what was drawn.
    fn draw(&self, id: u64) -> Option<Case> {
        let mut rng = Rng::stream(Seed(id), "swarm");
        let mut features = FEATURES.to_vec();
        while features.len() > FEATURES.len() / 2 {
            features.swap_remove(rng.below(features.len() as u64) as usize);
        }
        let has = |feature| features.contains(&feature);
        let layers = has(Feature::Layers);
        let fitting: Vec<&Subject> =
            self.subjects.iter().filter(|s| s.layers.is_empty() != layers).collect();
        let subject = *pick(&mut rng, &fitting);
        let geometry = pick(&mut rng, GEOMETRIES);
        let mut subject = subject.clone();
        if has(Feature::FailingPrograms) || has(Feature::FailingErases) {
            self.try_setting(&mut subject, geometry, "nand.spare_blocks=3".into());
        }
        let blocks = format!("drive.blocks={}", 24 + rng.below(40));
        self.try_setting(&mut subject, geometry, blocks);
        if has(Feature::Wear) {
            let endurance = format!("nand.endurance={}", 4 + rng.below(30));
            self.try_setting(&mut subject, geometry, endurance);
        }
        if has(Feature::Victim) {
            let names = self.registry.ftl.victims.names();
            let victim = format!("ftl.victim={}", pick(&mut rng, &names));
            self.try_setting(&mut subject, geometry, victim);
        }
        if has(Feature::Classifier) {
            let names = self.registry.ftl.classifiers.names();
            let classifier = format!("ftl.classifier={}", pick(&mut rng, &names));
            if !self.try_setting(&mut subject, geometry, classifier.clone()) {
                subject.more.push("ftl.streams=2".into());
                if !self.try_setting(&mut subject, geometry, classifier) {
                    subject.more.pop();
                }
            }
        }
        let config = drive(&subject, geometry, None).ok()?;
        if has(Feature::Parameters) {
            for def in self.parameters(&config) {
                if rng.below(3) == 0
                    && let Some(value) = self.value(&mut rng, def)
                {
                    let setting = format!("{}={value}", def.key);
                    self.try_setting(&mut subject, geometry, setting);
                }
            }
        }
        let config = drive(&subject, geometry, None).ok()?;
        Some(Case { config, features, rng, mounted: false })
    }

    /// Add a setting, unless no drive takes it.
    fn try_setting(&self, subject: &mut Subject, geometry: &Geometry, setting: String) -> bool {
        subject.more.push(setting);
        let fits = drive(subject, geometry, None).is_ok();
        if !fits {
            subject.more.pop();
        }
        fits
    }

    /// A value of a parameter. The parts that have a feature of their own are drawn there.
    fn value(&self, rng: &mut Rng, def: &ParamDef) -> Option<String> {
        let names = match def.key {
            CachePolicyDef::KEY => self.registry.ftl.caching.names(),
            HashDef::KEY => self.registry.ftl.hashes.names(),
            _ => return value(rng, def),
        };
        Some((*pick(rng, &names)).to_owned())
    }

    /// The parameters of the parts in use, and of the write cache.
    fn parameters(&self, config: &DriveConfig) -> Vec<&'static ParamDef> {
        let text =
            |key: &str| config.pairs().find(|(k, _)| *k == key).map(|(_, value)| value.to_string());
        let scheme = config.scheme();
        let own = (scheme.params)(&self.registry.ftl, &text).unwrap_or_default();
        let layers = config.layers();
        let layers = layers.iter().flat_map(|layer| layer.params);
        let common = flashatlas_device::params::common_params();
        let cache = common.into_iter().filter(|def| def.key.starts_with("cache."));
        own.into_iter().chain(layers).chain(cache).collect()
    }
}

fn pick<'a, T>(rng: &mut Rng, all: &'a [T]) -> &'a T {
    &all[rng.below(all.len() as u64) as usize]
}

/// A value of a parameter: an end of its range, something near the lower one, or anything.
fn value(rng: &mut Rng, def: &ParamDef) -> Option<String> {
    let anything = |rng: &mut Rng, low: u64, high: u64| match rng.below(4) {
        0 => low,
        1 => high,
        2 => low.saturating_add(rng.below(9)).min(high),
        _ => low.saturating_add(1 << rng.below(20)).min(high),
    };
    Some(match def.kind {
        ParamKind::Int(low, high) => anything(rng, low, high).to_string(),
        ParamKind::Bytes(low, high) => (anything(rng, low, high) / 512 * 512).to_string(),
        ParamKind::Ratio(low, high) => {
            let share = [0.0, 0.01, 0.25, 0.5, 0.9, 1.0][rng.below(6) as usize];
            format!("{:.4}", low + share * (high.min(low + 1e6) - low))
        }
        ParamKind::Bool => (rng.below(2) == 0).to_string(),
        ParamKind::Choice(names) => (*pick(rng, names)).to_owned(),
        _ => return None,
    })
}

/// Programs and erases that failed so far: what they leave.
fn failed(medium: &Medium, layout: &Layout) -> u64 {
    let bad = |b: &BlockId| medium.is_bad(*b) || medium.refuses_programs(*b);
    (0..layout.blocks()).map(BlockId).filter(bad).count() as u64 + medium.counters.replaced_blocks
}

impl Case {
    fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    fn step(&mut self, units: u32, sectors: u32, trims: bool) -> Step {
        let unit = self.rng.below(units.into()) as u32;
        let count = (1 + self.rng.below(4) as u32).min(units - unit);
        let parts = self.has(Feature::Parts) && self.rng.below(3) == 0;
        let (lba, length) = match parts {
            true => {
                let from = self.rng.below(sectors.into()) as u32;
                let most = count * sectors - from;
                (unit * sectors + from, 1 + self.rng.below(most.into()) as u32)
            }
            false => (unit * sectors, count * sectors),
        };
        match self.rng.below(20) {
            0..=4 => Step::Read { lba, sectors: length },
            5 if trims => Step::Trim { lba: unit * sectors, sectors: count * sectors },
            6 if self.has(Feature::Flushes) => Step::Flush,
            7 if self.has(Feature::Idle) => Step::Idle,
            8 if self.has(Feature::Fua) => Step::Write { lba, sectors: length, fua: true },
            _ => Step::Write { lba, sectors: length, fua: false },
        }
    }

    /// Whether a drive may end like this: it has lost too many blocks.
    fn may_end(&self, error: &SubmitError, drive: &Stack) -> bool {
        let lost = failed(drive.ssd().medium(), drive.ssd().layout()) > 0;
        let erases = matches!(
            error,
            SubmitError::Ftl(FtlError::Medium(
                MediumError::EraseFailed(_) | MediumError::BadBlock(_)
            ))
        );
        lost && (is_without_room(error) || is_failed_program(error) || erases)
    }

    fn play(mut self, tally: &mut Tally) -> Result<(), String> {
        let config = self.config.clone();
        let mut drive = config.build_stack(SEED).map_err(|e| format!("a blank drive: {e}"))?;
        let (units, sectors) = (drive.shape().units(), drive.unit_sectors());
        let forgets = drive.forgets_trims();
        let trims = self.has(Feature::Trims) && !forgets;
        let start = |held: Vec<_>, content| Model::holding(held.into_iter(), sectors, content);
        let blank = (0..units).map(|u| held(&drive, u)).collect::<Result<Vec<_>, _>>();
        let mut content = 1;
        let mut model = start(blank.map_err(|e| e.to_string())?, content);
        drive.set_instant(true);
        for number in 0..STEPS {
            tally.steps += 1;
            self.arm(&mut drive);
            let step = self.step(units, sectors, trims);
            content = model.begin(step);
            let reply = match apply(&mut drive, step, content) {
                Ok(reply) => reply,
                Err(SubmitError::Ftl(FtlError::Medium(MediumError::PowerLost))) => {
                    content += 1;
                    model = match self.remount(&mut drive, &model, content, tally)? {
                        Some(model) => model,
                        None => return Ok(()),
                    };
                    continue;
                }
                Err(error) if self.may_end(&error, &drive) => {
                    tally.out_of_blocks += 1;
                    return Ok(());
                }
                Err(error) => return Err(format!("step {number}, {step}: {error}")),
            };
            if let Step::Read { lba, .. } = step {
                for (unit, &stamp) in (lba / sectors..).zip(&reply.stamps) {
                    tally.compared += 1;
                    if stamp != model.newest(unit) {
                        return Err(format!(
                            "step {number}, {step}: unit {unit} reads {stamp:?}, not {:?}",
                            model.newest(unit)
                        ));
                    }
                }
            }
            model.end(step);
            content += 1;
            if self.has(Feature::Restarts) && self.rng.below(60) == 0 {
                model = match self.remount(&mut drive, &model, content, tally)? {
                    Some(model) => model,
                    None => return Ok(()),
                };
            }
        }
        drive.check().map_err(|violation| format!("at the end: {violation}"))?;
        for unit in 0..units {
            tally.compared += 1;
            let found = held(&drive, unit).map_err(|e| format!("at the end: {e}"))?;
            if found != model.newest(unit) {
                return Err(format!(
                    "at the end unit {unit} holds {found:?}, not {:?}",
                    model.newest(unit)
                ));
            }
        }
        tally.failed_operations += failed(drive.ssd().medium(), drive.ssd().layout());
        Ok(())
    }

    /// Now and then the next operations will fail, or the power in one of them.
    fn arm(&mut self, drive: &mut Stack) {
        // when the first of several drives fails after a mount, before the others are like it, what
        // had not been flushed when the power failed may be older again: that is not promised
        let parts_fail = self.config.drives() == 1 || !self.mounted;
        if parts_fail && self.has(Feature::FailingPrograms) && self.rng.below(150) == 0 {
            let after = self.rng.below(6);
            drive.ssd_mut().faults().fail_program_after(after);
        }
        if parts_fail && self.has(Feature::FailingErases) && self.rng.below(150) == 0 {
            drive.ssd_mut().faults().fail_erase_after(0);
        }
        if self.has(Feature::Cuts) && self.rng.below(50) == 0 {
            let after = self.rng.below(12);
            drive.ssd_mut().faults().cut_power_after(after);
        }
    }

    /// Off and on. What the units hold then, if the model allows all of it; `None` where the drive
    /// has lost too many blocks to be mounted.
    fn remount(
        &mut self,
        drive: &mut Stack,
        model: &Model,
        content: u64,
        tally: &mut Tally,
    ) -> Result<Option<Model>, String> {
        tally.mounts += 1;
        self.mounted = true;
        drive.ssd_mut().faults().restore_power();
        match drive.power_cycle(&self.config, SEED) {
            Ok(()) => {}
            Err(error) if self.may_end(&error, drive) => {
                tally.out_of_blocks += 1;
                return Ok(None);
            }
            Err(error) => return Err(format!("a mount: {error}")),
        }
        drive.check().map_err(|violation| format!("after a mount: {violation}"))?;
        drive.set_instant(true);
        let mut all = Vec::with_capacity(model.len() as usize);
        for unit in 0..model.len() {
            tally.compared += 1;
            let found = held(drive, unit).map_err(|e| format!("after a mount: {e}"))?;
            if !model.allows(unit, found) {
                return Err(format!(
                    "unit {unit} holds {found:?} after a mount, allowed are {:?}",
                    model.versions(unit)
                ));
            }
            all.push(found);
        }
        Ok(Some(Model::holding(all.into_iter(), drive.unit_sectors(), content)))
    }
}
