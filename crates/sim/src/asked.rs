//! Request for a run, checked as a whole before anything runs.

use crate::explain::percentile;
use crate::input::{Input, Inputs};
use crate::jobs::Jobs;
use crate::parts;
use crate::precondition::check_steady;
use crate::room::{certain_bytes, seconds};
use crate::{
    Environment, Extent, Fit, Mode, Precondition, RunError, RunSpec, Until, options, record,
};
use flashatlas_device::DriveConfig;
use flashatlas_device::params::QUEUE_DEPTH;
use flashatlas_nand::params::DATA;
use flashatlas_types::{ConfigError, MEMORY_PER_UNIT};
use serde_json::{Value, json};

/// A drive and the requests that the run sends to it.
pub(crate) struct Asked<'a> {
    pub config: DriveConfig,
    pub inputs: Inputs<'a>,
    pub requests: Requests<'a>,
}

/// Source of a run's requests.
pub(crate) enum Requests<'a> {
    Jobs(Jobs),
    Stream(Input<'a>),
}

impl<'a> Asked<'a> {
    /// Returns the request of `spec` with its files opened.
    pub fn of(spec: &RunSpec, env: &Environment<'a>) -> Result<Asked<'a>, RunError> {
        let config = env.registry.load(&spec.drive, spec.drive_toml.as_deref(), &spec.set)?;
        check(spec, config.params.get(QUEUE_DEPTH), &env.workloads)?;
        if spec.precondition == Precondition::Steady {
            check_steady(&config)?;
        }
        let capacity = config.shape().sectors;
        let inputs = Inputs::of(env, &spec.reading, capacity)?;
        if let Some(path) = &spec.job {
            beside_job(spec)?;
            let jobs = Jobs::read(path, spec.filesystem.as_deref(), env.opener, capacity)?;
            return Ok(Asked { config, inputs, requests: Requests::Jobs(jobs) });
        }
        if spec.filesystem.is_some() {
            return Err(RunError::option(
                "filesystem",
                "only job files (‹job=FILE›) use this option; the generator ext4-sync sends the \
                 requests of ext4",
            ));
        }
        let input = inputs.open(spec, capacity, true)?;
        if spec.mode == Mode::Open && !input.timed {
            return Err(RunError::option(
                "mode",
                format!(
                    "{}: the format {} carries no times, but the open loop needs times: use \
                     ‹mode=closed› with a depth, or ‹mode=asap›",
                    input.name, input.format
                ),
            ));
        }
        input.must_say(&spec.reading)?;
        Ok(Asked { config, inputs, requests: Requests::Stream(input) })
    }
}

/// Returns the plan of a run without running it.
///
/// The plan contains the `config` of the run's record, the added `parts` that the run uses, the
/// `files` (the paths of the trace and the checkpoint that the run reads) and the [`layout`] of the
/// drive. For a run with a job file, `job` is a digest of this file and of all files that it
/// includes. Two runs with equal plans give equal results if their files have the same content, the
/// build is the same and the seed is the same.
///
/// # Errors
/// Returns the errors of [`crate::run`] that are found before the run starts.
pub fn planned(spec: &RunSpec, env: &Environment<'_>) -> Result<Value, RunError> {
    let Asked { config, inputs, requests } = Asked::of(spec, env)?;
    let mut files: Vec<String> = match &requests {
        Requests::Stream(input) => input.paths(),
        Requests::Jobs(_) => Vec::new(),
    };
    match &spec.precondition {
        Precondition::Trace(path) => {
            let before = inputs.trace(path, spec.before_format(), false)?;
            before.must_say(&spec.reading)?;
            files.extend(before.paths());
        }
        Precondition::Checkpoint(path) => {
            let opened = env.opener.open(path);
            opened.map_err(|error| RunError::Io { path: path.to_owned(), error })?;
            files.push(path.clone());
        }
        _ => {}
    }
    let (format, job) = match &requests {
        Requests::Jobs(jobs) => ("fio", Some(format!("sha256:{}", jobs.digest))),
        Requests::Stream(input) => (input.format, None),
    };
    let layout = layout(&config)?;
    let config = record::config(spec, &config);
    let named = json!({ "config": config, "trace": { "format": format } });
    let parts = parts::in_use(env.added, &named);
    Ok(json!({ "config": config, "parts": parts, "files": files, "job": job, "layout": layout }))
}

/// Returns named counts of a drive: the units that it exports and the parts of its flash.
///
/// `keeps_checkpoints` is `true` if a checkpoint can hold the drive.
///
/// # Errors
/// Returns an error if a drive with this configuration cannot be made.
pub fn layout(config: &DriveConfig) -> Result<Value, ConfigError> {
    let layout = config.layout()?;
    Ok(json!({
        // a checkpoint contains stamps, but neither the bytes of units nor the tables of layers
        "keeps_checkpoints":
            config.params.get(DATA) == "none" && config.layers().is_empty(),
        "exported_bytes": config.shape().bytes(),
        "logical_units": layout.logical_units, "unit_bytes": layout.unit_bytes,
        "physical_units": layout.slots(),
        "memory_bytes": u64::from(layout.slots()) * MEMORY_PER_UNIT,
        "fill_memory_bytes": certain_bytes(&Precondition::Fill, config)?,
        "steady_memory_bytes": certain_bytes(&Precondition::Steady, config)?,
        // seconds of a core to write all units, the least and the most
        "fill_seconds": seconds(false, layout.logical_units),
        "steady_seconds": seconds(true, layout.logical_units),
        // without a reason, the four entries above hold with `base=dense` alone
        "why_tables": config.why_tables(),
        "lanes": layout.lanes, "blocks": layout.blocks(),
        "frames_per_block": layout.frames_per_block,
        "slots_per_frame": layout.slots_per_frame, "pages_per_frame": layout.pages_per_frame,
        "dies": layout.geometry.die_count(),
    }))
}

fn check(
    spec: &RunSpec,
    queue_depth: u32,
    workloads: &flashatlas_workload::Registry,
) -> Result<(), RunError> {
    if spec.depth.is_some() && spec.mode != Mode::Closed {
        return Err(RunError::option("depth", "only the closed mode uses a depth (‹mode=closed›)"));
    }
    if let Some(depth) = spec.depth
        && !(1..=queue_depth).contains(&depth)
    {
        return Err(RunError::option(
            "depth",
            format!(
                "the depth {depth} is out of range: the drive accepts 1 to {queue_depth} commands \
                 at the same time (host.queue_depth)"
            ),
        ));
    }
    let one_by_one =
        spec.mode == Mode::Untimed || (spec.mode == Mode::Closed && spec.depth == Some(1));
    if spec.workload.as_deref().is_some_and(|text| workloads.is_serial(text)) && !one_by_one {
        return Err(RunError::option(
            "mode",
            "each request of this workload waits for the previous request: use ‹mode=closed› and \
             ‹depth=1›",
        ));
    }
    if spec.extent != Extent::Auto && spec.fit != Fit::Compact {
        return Err(RunError::option(
            "extent",
            "this option has an effect only with ‹fit=compact›, which packs extents",
        ));
    }
    if spec.until == Until::Steady && spec.fit == Fit::Compact && spec.workload.is_some() {
        return Err(RunError::option(
            "fit",
            "a generator draws other addresses in each pass, but `compact` packs the addresses of \
             the first pass: use ‹fit=error› or ‹fit=wrap› with ‹until=steady›",
        ));
    }
    if spec.until == Until::Steady && spec.warmup > 0 {
        return Err(RunError::option(
            "warmup",
            "with ‹until=steady›, all passes before the last one are the warm-up: leave this \
             option out",
        ));
    }
    if spec.speed != 1.0 && spec.mode != Mode::Open {
        return Err(RunError::option(
            "speed",
            "only open mode keeps the times of the trace (‹mode=open›)",
        ));
    }
    if spec.interval()?.is_some() && spec.mode == Mode::Untimed {
        return Err(RunError::option(
            "interval",
            "no time passes in the untimed mode, so leave this option out",
        ));
    }
    if let Some(name) = &spec.explain {
        percentile(name)?;
        if spec.mode == Mode::Untimed {
            return Err(RunError::option(
                "explain",
                "no time passes in the untimed mode, so leave this option out",
            ));
        }
    }
    let none_read = spec.trace.is_none() && !matches!(spec.precondition, Precondition::Trace(_));
    if spec.workload.is_some()
        && none_read
        && let Some(name) = options::first_of_reading(&spec.settings())
    {
        return Err(RunError::option(
            name,
            "this option changes how a trace is read, but the workload is generated",
        ));
    }
    if !(spec.speed.is_finite() && spec.speed > 0.0) {
        let why = format!("{} is not a number above 0", spec.speed);
        return Err(RunError::option("speed", why));
    }
    Ok(())
}

/// Refuses the options that a job file sets itself.
fn beside_job(spec: &RunSpec) -> Result<(), RunError> {
    let others = [("trace", spec.trace.is_some()), ("workload", spec.workload.is_some())];
    if let Some((name, _)) = others.into_iter().find(|(_, given)| *given) {
        return Err(RunError::option(
            name,
            "a job file is also given: give only one of ‹trace›, ‹workload› and ‹job›",
        ));
    }
    match options::first_by_job_file(&spec.settings()) {
        Some(name) => Err(RunError::option(
            name,
            "a job file sets this itself (iodepth, ramp_time, steadystate, number_ios, offset …)",
        )),
        None => Ok(()),
    }
}
