//! A run, from its specification to its record and tables.

use crate::asked::{Asked, Requests};
use crate::checkpoint::Header;
use crate::config_hash::hex;
use crate::drive_notes;
use crate::explain::Explain;
use crate::fit::Mapper;
use crate::input::{Input, Inputs};
use crate::jobs::{self, Jobs, NamedFile};
use crate::metrics::{Findings, Pace, Start};
use crate::oracle::Oracle;
use crate::parts;
use crate::player::{Player, Tally, sweep};
use crate::precondition::{checkpoint, preconditioned};
use crate::progress::Progress;
use crate::room::{is_computed, must_fit};
use crate::scan::Scan;
use crate::stream::{self, Pacing};
use crate::table::Table;
use crate::{Environment, Fit, Mode, Precondition, Reading, RunError, RunSpec, notes, record};
use flashatlas_device::params::QUEUE_DEPTH;
use flashatlas_device::{DriveConfig, Stack};
use flashatlas_ftl::FREE_CHANGES;
use flashatlas_types::{Dur, Note, NoteValue, PartFault, Ps, Seed, drawn_streams};
use flashatlas_workload::{Account, BadKind};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Results of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The run record: see `docs/FORMATS.md`.
    pub record: Value,
    /// Tables of the run.
    pub tables: Vec<Table>,
    /// Statistics of the jobs of a job file: see `docs/howto/run-a-fio-job.md`.
    pub jobs: Option<Value>,
}

/// Carries out `spec` and returns its record.
///
/// `progress` is called from time to time; the run stops if it returns `false`.
///
/// # Errors
/// Returns a [`RunError`] for bad input, for a drive that cannot go on, and for a broken invariant.
/// There is no partial record.
pub fn run(
    spec: &RunSpec,
    env: &Environment<'_>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, RunError> {
    caught(|| carry_out(spec, env, progress))
}

/// Returns the result of `work`, or the fault of a part that occurred in it.
fn caught<T>(work: impl FnOnce() -> Result<T, RunError>) -> Result<T, RunError> {
    PartFault::catching(work).unwrap_or_else(|fault| Err(fault.into()))
}

fn carry_out(
    spec: &RunSpec,
    env: &Environment<'_>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, RunError> {
    drawn_streams(); // drop the streams of an earlier run on this thread
    let Asked { config, inputs, requests } = Asked::of(spec, env)?;
    let queue_depth = config.params.get(QUEUE_DEPTH);
    let capacity = config.shape().sectors;
    let mut input = match requests {
        Requests::Jobs(jobs) => return run_jobs(spec, &config, &inputs, &jobs, env, progress),
        Requests::Stream(input) => input,
    };
    let Prepared { drive, oracle, mut mapper, origin, said } =
        prepare(spec, &config, &inputs, true, env, progress)?;
    let pace = if spec.mode == Mode::Open { Pace::Times } else { Pace::Drive };
    let start = Start { timed: spec.mode != Mode::Untimed, pace, interval: spec.interval()? };
    let mut player = Player::new(drive, oracle, env.metrics, start);
    player.begin_rested(&config, Seed(spec.seed))?;
    explain(&mut player, spec.explain.as_deref())?;
    let reopen = || inputs.open(spec, capacity, false);
    let pacing = Pacing::of(spec, queue_depth as usize);
    let (out_of_order, passes) =
        stream::play(&mut player, &pacing, &mut input, &reopen, &mut mapper, progress)?;
    let mut extra: Vec<Note> = [input.guesses(), said].concat();
    extra.extend(passes.iter().filter_map(|(passes, _)| passes.complaint()));
    let counted = [(&notes::OUT_OF_ORDER, out_of_order), (&notes::CROSSED_END, mapper.crossed_end)];
    for (note, requests) in counted.into_iter().filter(|(_, requests)| *requests > 0) {
        extra.push(note.with([("requests", requests.into())]));
    }
    extra.extend(origin.as_ref().and_then(|header| laid_out_otherwise(header, spec)));
    let digest = input.digest()?;
    let account = input.source.account();
    extra.extend(left_out(&account, &spec.reading));
    let packed = (spec.fit == Fit::Compact).then(|| mapper.extent() * 512);
    let trace = Source {
        path: &input.name,
        format: input.format,
        digest,
        named: &[],
        account,
        origin,
        packed,
        parts: input.parts_json()?,
    };
    let mut outcome = finish(spec, &config, player, trace, extra, env, progress)?;
    if let Some((passes, verdict)) = passes {
        outcome.record["settling"] = passes.json().clone();
        let steadiness = &mut outcome.record["steadiness"];
        let backlog = steadiness["reasons"].as_array().into_iter().flatten();
        let backlog = backlog.filter(|reason| reason["code"] == notes::BACKLOG.code);
        let mut reasons: Vec<Value> = backlog.cloned().collect();
        reasons.extend(verdict.reasons.iter().map(|reason| json!(reason)));
        steadiness["rounds"] = verdict.rounds().into();
        steadiness["reasons"] = reasons.clone().into();
        outcome.record["steady"] = reasons.is_empty().into();
    }
    Ok(outcome)
}

fn explain(player: &mut Player, percentile: Option<&str>) -> Result<(), RunError> {
    if let Some(percentile) = percentile {
        player.explain(Explain::new(percentile)?);
    }
    Ok(())
}

/// Plays a job file.
fn run_jobs(
    spec: &RunSpec,
    config: &DriveConfig,
    inputs: &Inputs<'_>,
    jobs: &Jobs,
    env: &Environment<'_>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, RunError> {
    let Prepared { drive, oracle, origin, said: before, .. } =
        prepare(spec, config, inputs, false, env, progress)?;
    let pace = if jobs.in_stages() { Pace::Stages } else { Pace::Drive };
    let mut player = Player::new(
        drive,
        oracle,
        env.metrics,
        Start { timed: true, pace, interval: spec.interval()? },
    );
    player.begin_rested(config, Seed(spec.seed))?;
    explain(&mut player, spec.explain.as_deref())?;
    let queue_depth = config.params.get(QUEUE_DEPTH) as usize;
    let (statistics, said) = jobs::play(&mut player, jobs, Seed(spec.seed), queue_depth, progress)?;
    if !player.is_measuring() {
        player.start_measuring(); // every job ended in its ramp
    }
    let source = Source {
        path: &jobs.path,
        format: "fio",
        digest: Some(hex(&Sha256::digest(&jobs.text))),
        named: &jobs.named,
        account: Account::default(),
        origin,
        packed: None,
        parts: Vec::new(),
    };
    let outcome = finish(
        spec,
        config,
        player,
        source,
        jobs.warnings().chain(said).chain(before).collect(),
        env,
        progress,
    )?;
    Ok(Outcome { jobs: Some(statistics), ..outcome })
}

/// Returns a note if the trace and the checkpoint's trace are placed on the drive in different
/// ways.
fn laid_out_otherwise(header: &Header, spec: &RunSpec) -> Option<Note> {
    let other = spec.trace.is_some()
        && header.precondition.get("trace").is_some()
        && header.fit != json!(spec.fit);
    other.then(|| {
        let (before, now) = (header.fit.to_string(), json!(spec.fit).to_string());
        notes::LAID_OUT_OTHERWISE.with([("before", before.into()), ("now", now.into())])
    })
}

/// Returns the kinds of bad records that were skipped, with their numbers.
pub fn kinds_skipped(account: &Account) -> Vec<(&'static str, u64)> {
    let counts = BadKind::ALL.into_iter().zip(account.skipped_kinds);
    counts.filter(|&(_, count)| count > 0).map(|(kind, count)| (kind.name(), count)).collect()
}

/// Returns the value `kinds` for the note on bad records that were skipped.
fn kinds(account: &Account) -> (&'static str, NoteValue) {
    let kinds: Vec<String> =
        kinds_skipped(account).iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let text = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
    ("kinds", text.into())
}

/// Returns notes on records that reading left out of a trace or changed.
fn left_out(account: &Account, reading: &Reading) -> Vec<Note> {
    let text = |option: &Option<String>| NoteValue::from(option.clone().unwrap_or_default());
    let within = ("within", text(&reading.drop_duplicates));
    let longest = || ("longest", text(&reading.time_gap_max));
    let n = |name, count: u64| (name, NoteValue::from(count));
    let counted = [
        (
            account.skipped_bad,
            notes::BAD_SKIPPED.with([n("records", account.skipped_bad), kinds(account)]),
        ),
        (
            account.duplicates_dropped,
            notes::DUPLICATES_DROPPED.with([n("records", account.duplicates_dropped), within]),
        ),
        (account.before_first, notes::BEFORE_FIRST.with([n("records", account.before_first)])),
        (account.wrapped, notes::WRAPPED_IN_RANGE.with([("requests", account.wrapped.into())])),
        (account.not_selected, notes::NOT_SELECTED.with([n("records", account.not_selected)])),
        (account.gaps_cut, notes::GAPS_CUT.with([n("gaps", account.gaps_cut), longest()])),
        (
            account.backward_steps,
            notes::BACKWARD_STEPS.with([n("steps", account.backward_steps), longest()]),
        ),
    ];
    let mut found: Vec<Note> =
        counted.into_iter().filter(|(count, _)| *count > 0).map(|(_, note)| note).collect();
    if let (Some(jump), None) = (&account.first_jump, &reading.time_gap_max) {
        let seconds = ("seconds", jump.seconds().into());
        found.push(notes::CLOCK_JUMPS.with([seconds, ("place", jump.place.to_string().into())]));
    }
    if let Some(op) = &reading.assume_op {
        found.push(notes::OPERATION_ASSUMED.with([("op", op.as_str().into())]));
    }
    found
}

/// Longest time without a completion that needs no note, if requests are outstanding.
const STILL: Dur = Dur(1_000_000_000_000);

/// Returns a note if no request completed for longer than [`STILL`] while requests were
/// outstanding.
fn stood_still((length, from): (Dur, Ps)) -> Option<Note> {
    let seconds = |ps: u64| NoteValue::from(ps as f64 / 1e12);
    (length > STILL).then(|| {
        notes::STOOD_STILL.with([("from", seconds(from.0)), ("seconds", seconds(length.0))])
    })
}

/// Source of the requests of a run.
pub(crate) struct Source<'a> {
    pub path: &'a str,
    pub format: &'static str,
    /// SHA-256 of the file, if the source is a file.
    pub digest: Option<String>,
    /// Files that the source names and that were read as well.
    pub named: &'a [NamedFile],
    /// Counts of the records that were left out.
    pub account: Account,
    pub origin: Option<Header>,
    /// Bytes of an extent, if extents were packed.
    pub packed: Option<u64>,
    /// The record's entries for the files, if there are several files.
    pub parts: Vec<Value>,
}

/// Checks the drive after the last request, and returns the record.
///
/// `extra` are further approximations.
pub(crate) fn finish(
    spec: &RunSpec,
    config: &DriveConfig,
    mut player: Player,
    source: Source<'_>,
    extra: Vec<Note>,
    env: &Environment<'_>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, RunError> {
    let Findings { record: mut body, tables } = player.measure();
    if !progress(Progress { phase: "check", requests: player.tally.submitted, share: Some(0.0) }) {
        return Err(RunError::Interrupted);
    }
    if player.worn_out.is_none() {
        // the tables of a worn-out drive may be half changed, so only its content is checked below
        player.drive.top().check().map_err(RunError::Broken)?;
    }
    let swept = sweep(&mut player.drive, &mut player.oracle, player.tally.submitted, progress)?;

    let mut record = record::head(spec, config, env.build);
    let mut trace = Map::new();
    trace.insert("path".into(), source.path.into());
    trace.insert("format".into(), source.format.into());
    if let Some(digest) = source.digest {
        trace.insert("digest".into(), format!("sha256:{digest}").into());
    }
    if !source.named.is_empty() {
        let file = |file: &NamedFile| {
            let digest = format!("sha256:{}", file.digest);
            json!({ "path": file.path, "digest": digest })
        };
        trace.insert("named".into(), source.named.iter().map(file).collect());
    }
    trace.insert("requests".into(), player.tally.submitted.into());
    let account = &source.account;
    trace.insert("skipped_bad".into(), account.skipped_bad.into());
    let kinds = kinds_skipped(account);
    if !kinds.is_empty() {
        let counts: Map<String, Value> =
            kinds.into_iter().map(|(kind, count)| (kind.into(), count.into())).collect();
        trace.insert("skipped_kinds".into(), counts.into());
    }
    for (key, count) in [
        ("duplicates_dropped", account.duplicates_dropped),
        ("not_selected", account.not_selected),
        ("gaps_cut", account.gaps_cut),
        ("backward_steps", account.backward_steps),
    ] {
        if count > 0 {
            trace.insert(key.into(), count.into());
        }
    }
    if let Some(bytes) = source.packed {
        trace.insert("extent_bytes".into(), bytes.into());
    }
    if !source.parts.is_empty() {
        trace.insert("parts".into(), source.parts.into());
    }
    record.insert("trace".into(), Value::Object(trace));
    if let Some(header) = source.origin {
        record.insert("checkpoint".into(), json!(header));
    }
    let said = player.drive.ssd().ftl_report().approximations;
    let about_time = |note: &Note| note.code == FREE_CHANGES.code && spec.mode == Mode::Untimed;
    let mut list: Vec<Note> = said.into_iter().filter(|note| !about_time(note)).collect();
    list.extend(player.drive.top().reports().into_iter().flat_map(|layer| layer.approximations));
    let drives = player.drive.drives();
    if drives.len() > 1 {
        list.push(notes::SEVERAL_DRIVES.with([("drives", drives.len().into())]));
    }
    list.extend(extra);
    list.extend(stood_still(player.stillest()));
    list.extend(drive_notes::much_spare(player.drive.ssd().layout()));
    list.extend(drive_notes::undefended(config, player.drive.ssd().layout()));
    list.extend(player.worn_out.map(|end| {
        let values = [("request", end.request), ("retired", end.retired_blocks)];
        notes::WORN_OUT.with(values.map(|(name, count)| (name, count.into())))
    }));
    if !config.dropped.is_empty() {
        let settings = ("settings", config.dropped.join(", ").into());
        list.push(notes::SETTINGS_UNUSED.with([("drive", config.name.as_str().into()), settings]));
    }
    let n: u64 = drives.iter().map(|drive| drive.dirty_units()).sum();
    if n > 0 {
        list.push(notes::UNITS_IN_CACHE.with([("units", n.into())]));
    }
    if player.tally.longer_than_nvme > 0 {
        list.push(
            notes::LONGER_THAN_NVME.with([("requests", player.tally.longer_than_nvme.into())]),
        );
    }
    let unmapped = body["host"]["unmapped_reads"].as_u64().unwrap_or_default();
    if unmapped > 0 {
        list.push(notes::UNMAPPED_READS.with([("units", unmapped.into())]));
    }
    if let (Some(given), Some(width)) =
        (spec.interval()?, body.get("series").and_then(|s| s["width_ns"].as_f64()))
        && width != given.0 as f64 / 1e3
    {
        let given = spec.interval.as_deref().unwrap_or_default();
        list.push(notes::ROWS_LONGER.with([("width", width.into()), ("given", given.into())]));
    }
    list.extend(swept);
    let drawn = drawn_streams();
    if drawn.is_empty() {
        list.push(notes::NOTHING_DRAWN.note());
    }
    record.insert("random_streams".into(), json!(drawn));
    let mut list = record::approximations(spec, list);
    drive_notes::replace_by_errors(&mut list, config, player.drive.ssd().medium());
    record.insert("approximations".into(), json!(list));
    record.append(&mut body);
    if let Some(worn_out) = &player.worn_out {
        record.insert("worn_out".into(), json!(worn_out));
    }
    if let Some(explained) = player.explained() {
        record.insert("explain".into(), explained);
    }
    record.insert("oracle".into(), record::oracle(&player.oracle));
    record.insert("sweep".into(), json!(player.oracle.swept));
    let Tally { submitted, completed, unreadable, .. } = player.tally;
    if let Some(faults) = record.get_mut("faults") {
        faults["unreadable_requests"] = unreadable.into();
        faults["units_lost_at_rest"] = player.lost_at_rest.into();
        faults["units_lost"] = player.oracle.lost.into();
    }
    record.insert(
        "conservation".into(),
        json!({ "submitted": submitted, "completed": completed, "failed": unreadable }),
    );
    if spec.fingerprint {
        let trajectories = player.drive.drives().into_iter().map(|drive| drive.trajectory());
        let hash = |t: flashatlas_timing::Trajectory| format!("{:016x}", t.hash());
        record.insert(
            "fingerprint".into(),
            json!({
                "operations": trajectories.clone().map(|t| t.operations()).sum::<u64>(),
                "trajectory": trajectories.map(hash).collect::<Vec<_>>().join(" "),
            }),
        );
    }
    let mut record = Value::Object(record);
    let parts = parts::in_use(env.added, &record);
    if !parts.is_empty() {
        record["parts"] = parts.into();
    }
    Ok(Outcome { record, tables, jobs: None })
}

/// A drive in the state in which the run begins.
struct Prepared {
    drive: Stack,
    oracle: Oracle,
    mapper: Mapper,
    /// Header of the checkpoint that the drive was loaded from, if there was a checkpoint.
    origin: Option<Header>,
    /// Notes on guessed formats of the trace that preconditioned the drive, and on its tables.
    said: Vec<Note>,
}

fn prepare(
    spec: &RunSpec,
    config: &DriveConfig,
    inputs: &Inputs<'_>,
    with_workload: bool,
    env: &Environment<'_>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Prepared, RunError> {
    // a checkpoint tells whether it needs tables
    let is_read = matches!(spec.precondition, Precondition::Checkpoint(_));
    if !is_read && !is_computed(&spec.precondition, spec.base, config) {
        must_fit(&spec.precondition, config, env.opener.free_memory())?;
    }
    let capacity = config.shape().sectors;
    let mut checkpoint = match &spec.precondition {
        Precondition::Checkpoint(path) => Some(inputs.checkpoint(path, config)?),
        _ => None,
    };
    let packed = checkpoint
        .as_mut()
        .map(|c| std::mem::take(&mut c.extents))
        .filter(|extents| !extents.is_empty());
    // a checkpoint with packed extents decides the size of extents
    let sizes = match (&packed, &checkpoint) {
        (Some(_), Some(checkpoint)) => vec![checkpoint.header.extent_sectors],
        _ => spec.extent.sizes().to_vec(),
    };
    let workload = || inputs.open(spec, capacity, false);
    let scan = Scan {
        drive: &spec.drive,
        capacity,
        fit: spec.fit,
        inputs,
        before: match &spec.precondition {
            Precondition::Trace(path) => Some((path, spec.before_format())),
            _ => None,
        },
        workload: if with_workload { Some(&workload) } else { None },
        limit: spec.limit.unwrap_or(u64::MAX),
    };
    let touched = scan.touched(&sizes, packed.is_some(), env, progress)?;
    let mut mapper = match packed {
        Some(packed) if spec.fit == Fit::Compact => {
            Mapper::packed_before(capacity, packed, touched)?
        }
        _ => Mapper::new(spec.fit, capacity, touched),
    };
    let before = match &spec.precondition {
        Precondition::Trace(path) => {
            let trace = inputs.trace(path, spec.before_format(), false)?;
            trace.must_say(&spec.reading)?;
            Some(trace)
        }
        _ => None,
    };
    let mut guesses = before.as_ref().map(Input::guesses).unwrap_or_default();
    let pages = f64::from(config.shape().units());
    let counted = matches!(spec.precondition, Precondition::Fill | Precondition::Steady);
    let mut go_on = |requests: u64| {
        let share = counted.then(|| requests as f64 / pages);
        progress(Progress { phase: "precondition", requests, share })
    };
    if !go_on(0) {
        return Err(RunError::Interrupted);
    }
    let origin = checkpoint.as_ref().map(|c| c.header.clone());
    let (drive, oracle, said) = preconditioned(
        (&spec.precondition, spec.base, env.opener.free_memory()),
        Seed(spec.seed),
        config,
        &mut mapper,
        before,
        checkpoint,
        &mut go_on,
    )?;
    guesses.extend(said);
    Ok(Prepared { drive, oracle, mapper, origin, said: guesses })
}

/// Carries out the preconditioning of `spec`, and writes the drive as a checkpoint to `out`.
///
/// Errors name the output `name`. A workload is read only to pack its addresses (`compact`).
///
/// # Errors
/// Returns the errors of [`run`], and an error if `out` cannot be written.
pub fn save_checkpoint(
    spec: &RunSpec,
    env: &Environment<'_>,
    (name, out): (&str, &mut dyn std::io::Write),
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<(), RunError> {
    let config = env.registry.load(&spec.drive, spec.drive_toml.as_deref(), &spec.set)?;
    if spec.precondition == Precondition::None {
        return Err(RunError::option(
            "precondition",
            "a checkpoint of a blank drive has no use: give a precondition",
        ));
    }
    if spec.job.is_some() {
        return Err(RunError::option("job", "a job file has no effect on preconditioning"));
    }
    if spec.filesystem.is_some() {
        return Err(RunError::option("filesystem", "this option has no effect on preconditioning"));
    }
    let inputs = Inputs::of(env, &spec.reading, config.shape().sectors)?;
    let with_workload = spec.trace.is_some() || spec.workload.is_some();
    let Prepared { drive, oracle, mapper, .. } =
        caught(|| prepare(spec, &config, &inputs, with_workload, env, progress))?;
    let made = (&spec.precondition, spec.fit, Seed(spec.seed));
    let checkpoint =
        checkpoint(made, &config, &mapper, drive, oracle, (env.build.version, env.added))?;
    checkpoint.write(out).map_err(|error| RunError::Io { path: name.to_owned(), error })
}
