//! Trials of random combinations of parts.
//!
//! A number is the seed of a case. It draws schemes, stores, layers, policies, geometries of
//! drives, parameters anywhere in their ranges, and faults while the drive runs.
//!
//! Each case leaves out a random half of the features ([`Feature`]), because a feature that is
//! always present hides the faults that it prevents (Groce et al., Swarm testing, ISSTA 2012).
//! Every read is compared with a model. The power fails in the middle of operations, and after each
//! mount every unit must hold a version that the model allows.

mod case;
mod cells;

use case::Case;
use flashatlas_crash::subject::{GEOMETRIES, Geometry, Subject, drive, subjects};
use flashatlas_crash::threads;
use flashatlas_device::{DriveConfig, Registry};
use flashatlas_ftl::caching::CachePolicyDef;
use flashatlas_lookup::hashes::HashDef;
use flashatlas_types::{Entry, ParamDef, ParamKind, Rng, Seed};
use serde::Serialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;

pub use case::run_on;

/// Number of steps of a case.
const STEPS: u64 = 500;

/// Feature that a case may have or lack.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// Layers over the drive.
    Layers,
    /// A randomly drawn victim policy.
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
    /// Power failures during operations.
    Cuts,
    /// Restarts: the drive is switched off and on.
    Restarts,
    /// Blocks that wear out.
    Wear,
    /// Bit errors, retries and failures by rates, and rests between power cycles.
    Errors,
}

const FEATURES: [Feature; 15] = [
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
    Feature::Errors,
];

/// Counts of cases, and of their commands, mounts and failures.
#[derive(Clone, Default, Debug, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Number of cases that ran.
    pub cases: u64,
    /// Number of draws for which no drive was found.
    pub without_drive: u64,
    /// Number of commands.
    pub steps: u64,
    /// Number of units compared.
    pub compared: u64,
    /// Number of mounts after power failures and restarts.
    pub mounts: u64,
    /// Number of blocks that were bad or replaced at the end of a case, after failed programs and
    /// erases.
    pub failed_operations: u64,
    /// Number of cases that ended early because the drive had lost blocks or had no room.
    pub out_of_blocks: u64,
    /// Number of times that the first drive of a mirror failed while units could differ between
    /// drives. Units that had not been flushed could then hold older versions again.
    pub older: u64,
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
        self.older += other.older;
    }
}

/// A case in which a fault was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Number that draws the case again.
    pub id: u64,
    /// Description of the fault.
    pub found: String,
    /// The drive, as settings on top of the preset `tiny`.
    pub drive: String,
    /// Features of the case.
    pub features: Vec<Feature>,
}

/// Swarm: the parts from which cases are drawn.
pub struct Swarm {
    registry: Registry,
    subjects: Vec<Subject>,
}

impl Swarm {
    /// Returns a swarm over the parts of a registry.
    pub fn over(registry: &Registry) -> Swarm {
        Swarm { registry: *registry, subjects: subjects(registry) }
    }

    /// Runs the case that `id` draws.
    pub fn run(&self, id: u64) -> (Tally, Option<Finding>) {
        match catch_unwind(AssertUnwindSafe(|| self.draw(id))) {
            Ok(Some(case)) => case.run(id),
            Ok(None) => (Tally { without_drive: 1, ..Tally::default() }, None),
            Err(_) => {
                let found = "a panic while the case was drawn".to_owned();
                let finding = Finding { id, found, drive: String::new(), features: Vec::new() };
                (Tally { cases: 1, ..Tally::default() }, Some(finding))
            }
        }
    }

    /// Runs the cases of a range on all cores.
    ///
    /// `progress` is called with the number of cases done, and returns `false` to stop the run.
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

    /// Returns the case that a number draws, or `None` if no drive fits the drawn parts.
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
        if has(Feature::Errors) {
            // a code that corrects the wrong bits of this flash even after years
            let always = ["errors.model=tlc-72l", "ecc.correctable=25", "ecc.retry_steps=3"];
            let always = always.map(str::to_owned);
            let takes = self.try_settings(&mut subject, geometry, always);
            if takes && subject.scheme.name == "page" && subject.store == "dram" {
                let reclaim = format!("ftl.read_reclaim={}", 8 + rng.below(200));
                self.try_setting(&mut subject, geometry, reclaim);
                self.try_setting(&mut subject, geometry, "ftl.refresh=0.9".into());
            }
            if takes {
                self.draw_parity(id, &mut subject, geometry);
            }
            if has(Feature::FailingPrograms) {
                subject.more.push(format!("errors.program_failures={}", rng.below(2000)));
            }
            if has(Feature::FailingErases) {
                subject.more.push(format!("errors.erase_failures={}", rng.below(10_000)));
            }
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
        let config = drive(&subject, geometry, false).ok()?;
        if has(Feature::Parameters) {
            for def in self.parameters(&config) {
                if rng.below(3) == 0
                    && let Some(value) = self.value(&mut rng, def)
                {
                    let setting = format!("{}={value}", def.key);
                    self.try_setting(&mut subject, geometry, setting);
                }
            }
            self.draw_cells(&mut rng, &mut subject, geometry);
            if rng.below(3) == 0 {
                let from = format!("ftl.throttle_from={}", 1 + rng.below(40));
                let rate = format!("ftl.throttle_rate={}", 100_000 << rng.below(10));
                self.try_settings(&mut subject, geometry, [from, rate]);
            }
            if has(Feature::Errors) {
                // copybacks add up wrong bits, and the code corrects those of a few
                self.try_setting(&mut subject, geometry, "ftl.copyback_max=2".into());
            }
        }
        let config = drive(&subject, geometry, false).ok()?;
        Some(Case::new(config, features, rng))
    }

    /// Adds a setting if a drive accepts it, and returns `true` if the setting was added.
    fn try_setting(&self, subject: &mut Subject, geometry: &Geometry, setting: String) -> bool {
        self.try_settings(subject, geometry, [setting])
    }

    /// Adds settings if a drive accepts all of them together. Returns `true` if they were added.
    fn try_settings(
        &self,
        subject: &mut Subject,
        geometry: &Geometry,
        settings: impl IntoIterator<Item = String>,
    ) -> bool {
        let before = subject.more.len();
        subject.more.extend(settings);
        let fits = drive(subject, geometry, false).is_ok();
        if !fits {
            subject.more.truncate(before);
        }
        fits
    }

    /// Draws a value of a parameter, such as the name of a map cache policy or hash function.
    ///
    /// Victim policies and classifiers are drawn in [`Swarm::draw`], because they have features of
    /// their own.
    fn value(&self, rng: &mut Rng, def: &ParamDef) -> Option<String> {
        let names = match def.key {
            CachePolicyDef::KEY => self.registry.ftl.caching.names(),
            HashDef::KEY => self.registry.hashes().names(),
            _ => return value(rng, def),
        };
        Some((*pick(rng, &names)).to_owned())
    }

    /// Returns the parameters of the parts in use, and of the write cache.
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

/// Draws a value of a parameter.
///
/// For a number, the value is an end of the parameter's range, or lies at a random distance from
/// the lower end.
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
