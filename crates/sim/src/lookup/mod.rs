//! The lookup engine alone: its requests and its results.

mod commands;
mod record;
mod workload;

use crate::Progress;
use crate::notes::{LOOKUP_ALL_KNOWN, LOOKUP_CHANGES_FREE, LOOKUP_DRAM_ALONE};
use crate::{Environment, Reading, RunError, Table};
use flashatlas_dram as dram;
use flashatlas_lookup::study::{
    Address, CHANGES, LA_BITS, LOOK_AHEAD, Study, StudyError, TABLE, settings,
};
use flashatlas_types::Params;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use workload::LookupWorkload;

/// Source of the requests of a study.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Source {
    /// A trace.
    Trace(String),
    /// The text of a generator, as in a run.
    Workload(String),
    /// Random sets, each scanned to its end.
    ///
    /// A share `repeat` of the lookups goes to the set of the lookup before. A share `skew` of the
    /// other lookups goes to sets whose numbers are multiples of four, and the rest goes to the
    /// other sets. Without `skew`, the other lookups go to any set.
    Sets {
        /// Number of lookups.
        lookups: u64,
        /// Share of the lookups that go to the set of the lookup before.
        #[serde(default)]
        repeat: f64,
        /// Share of the other lookups that go to sets whose numbers are multiples of four.
        skew: Option<f64>,
    },
    /// Files at random distinct addresses, looked up and then inserted one by one. Requests for
    /// known files come in between.
    Files {
        /// Number of files.
        files: u64,
        /// Step of the addresses: every address is a multiple of this number.
        #[serde(default = "one")]
        stride: u32,
        /// Share of the requests that ask for the file of the request before.
        #[serde(default)]
        again: f64,
        /// Share of the other requests that go to any known file.
        #[serde(default)]
        known: f64,
        /// Number of lookups of known files at the end.
        #[serde(default)]
        lookups: u64,
    },
}

const fn one() -> u32 {
    1
}

/// A study of the engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookupSpec {
    /// Settings `key=value`.
    #[serde(default)]
    pub set: Vec<String>,
    /// The source of requests.
    pub source: Source,
    /// Options for reading a trace.
    #[serde(default)]
    pub reading: Reading,
    /// Rule that turns addresses of the source into logical addresses.
    #[serde(default)]
    pub address: Address,
    /// Number of sectors of an address unit.
    #[serde(default = "one")]
    pub unit_sectors: u32,
    /// Bytes of a flash page, from which the number of pages of a request follows.
    #[serde(default = "page")]
    pub page_bytes: u32,
    /// Number of requests after which the study ends.
    pub limit: Option<u64>,
    /// Seed of random addresses.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// `true` to keep every command that was sent to the DRAM.
    #[serde(default)]
    pub commands: bool,
}

/// Result of a study.
pub struct LookupOutcome {
    /// Record of the study.
    pub record: Value,
    /// The commands of the DRAM, if they were asked for; see `docs/FORMATS.md`.
    pub commands: Option<Table>,
}

const fn page() -> u32 {
    4096
}

const fn first_seed() -> u64 {
    1
}

/// Returns the checked plan of a study: every setting (`config`), and the `files` that it reads.
///
/// # Errors
/// Returns an error for bad settings, and for a trace that does not exist.
pub fn planned(spec: &LookupSpec, env: &Environment<'_>) -> Result<Value, RunError> {
    let (params, _) = prepared(spec, env)?;
    let mut files = Vec::new();
    if let Source::Trace(path) = &spec.source {
        let opened = env.opener.open(path);
        opened.map_err(|error| RunError::Io { path: path.clone(), error })?;
        files.push(path);
    }
    Ok(json!({ "config": record::config(&params), "files": files }))
}

/// Returns the settings and the engine of a study; checks that they fit together.
fn prepared(spec: &LookupSpec, env: &Environment<'_>) -> Result<(Params, Study), RunError> {
    let params = settings(env.registry.hashes(), &spec.set)?;
    let study = Study::new(env.registry.hashes(), &params)?;
    if matches!((&spec.source, params.get(TABLE)), (Source::Sets { .. }, "flat")) {
        return Err(StudyError::NoSets.into());
    }
    Ok((params, study))
}

/// Carries out a study.
///
/// # Errors
/// Returns an error for bad settings, sources that cannot be read, and tables that are too small.
pub fn lookup(
    spec: &LookupSpec,
    env: &Environment<'_>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<LookupOutcome, RunError> {
    let (params, mut study) = prepared(spec, env)?;
    if spec.commands {
        study.keep_commands();
    }
    let mut source = LookupWorkload {
        spec,
        la_bits: params.get(LA_BITS),
        sets: study.sets(),
        opener: env.opener,
        workloads: env.workloads,
        progress,
    };
    let (all, mut approximations) = source.gather()?;
    let asks = all.asks();
    study.run(asks, &mut |done| {
        let share = Some(done as f64 / asks.len() as f64);
        progress(Progress { phase: "look up", requests: done, share })
    })?;
    if params.get(CHANGES) == "free" {
        approximations.push(LOOKUP_CHANGES_FREE.note());
    }
    if u64::from(params.get(LOOK_AHEAD)) == 0 {
        approximations.push(LOOKUP_ALL_KNOWN.note());
    }
    approximations.push(LOOKUP_DRAM_ALONE.note());
    let (summary, commands) = study.finish_with_commands();
    let (device, timings, _) = dram::timings::from_params(&params)?;
    let mut record = record::record(spec, &params, &summary, env.build.version, approximations);
    record["timings"] =
        timings.named().map(|(name, clocks)| (name.to_owned(), json!(clocks))).collect();
    let commands = spec.commands.then(|| commands::table(&commands, &device));
    Ok(LookupOutcome { record, commands })
}
