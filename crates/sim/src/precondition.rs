//! Preconditioning: a drive is brought into a state in no simulated time.
//!
//! A drive that was filled or is in its steady state gets a clean map: if its map store writes the
//! map to flash, the whole map is written once, in order. A preconditioned drive is then switched
//! off and on again. So the run begins with the content of
//! the flash alone. A run that loads a checkpoint of this content gives a record with the same
//! bytes.

use crate::checkpoint::{Age, Checkpoint, Header, forget_empty};
use crate::fit::Mapper;
use crate::input::Input;
use crate::needed::NeededPart;
use crate::oracle::Oracle;
use crate::parts::AddedPart;
use crate::room::{held_in_tables, is_computed, must_fit};
use crate::{Base, Fit, Precondition, RunError};
use flashatlas_device::{Cmd, DriveConfig, Reply, Stack, SubmitError};
use flashatlas_nand::params::DATA;
use flashatlas_types::{HostOp, Note, Ps, Seed, Stamp, Tag};
use serde_json::json;

/// Number below all content numbers of preconditioning and above all content numbers of the run.
const CONTENT: u64 = 1 << 62;

/// The reason why a fill of a drive that computes its steady state is not computed.
const ORDER_UNKNOWN: &str = "the order in which a fill programs it is not known in advance \
                             (a classifier, several streams, an SLC cache, programs in steps, or \
                             little spare flash)";

/// Returns the drive of a run in the state that `precondition` names, with counters at zero.
/// Returns a note if the drive is large and is held in tables.
///
/// `trace` is the preconditioning trace, if the precondition names a trace. `checkpoint` is the
/// content of the checkpoint file, if the precondition names a checkpoint. `base` is the form in
/// which the drive is held, and `free` the number of bytes that the tables of a drive may take of
/// which nothing is computed.
pub(crate) fn preconditioned(
    (precondition, base, free): (&Precondition, Base, Option<u64>),
    seed: Seed,
    config: &DriveConfig,
    mapper: &mut Mapper,
    trace: Option<Input<'_>>,
    checkpoint: Option<Checkpoint>,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(Stack, Oracle, Option<Note>), RunError> {
    if let Some(checkpoint) = checkpoint {
        let (drive, oracle) = load((precondition, base), seed, config, checkpoint)?;
        return Ok((drive, oracle, None));
    }
    let mut said = None;
    let is_computed = is_computed(precondition, base, config);
    // the caller asked for the memory of a drive that is not computed
    let mut drive = config.assemble_stack(seed)?;
    let mut oracle = Oracle::new(drive.shape().units(), drive.unit_sectors());
    match precondition {
        Precondition::None => return Ok((drive, oracle, None)),
        Precondition::Fill | Precondition::Steady => {
            let steady = *precondition == Precondition::Steady;
            if steady {
                check_steady(config)?;
            }
            let all = if is_computed && lay(&mut drive, steady, config, seed)? {
                go_on(oracle.units().into())
            } else {
                if is_computed {
                    must_fit(precondition, config, free)?;
                }
                let reason = match (base, config.why_tables()) {
                    (Base::Dense, None) => "‹base=dense› asks for it",
                    (Base::Computed, None) => ORDER_UNKNOWN,
                    (_, Some(why)) => why,
                };
                said = held_in_tables(reason, steady, config)?;
                write(&mut drive, steady, config, seed, go_on)?
            };
            if !all {
                return Err(RunError::Interrupted);
            }
            oracle.fill();
            drive.write_maps(config, seed).map_err(|e| failed(0, e))?;
        }
        Precondition::Trace(_) => {
            let trace = trace.expect("opened by the caller");
            play(&mut drive, &mut oracle, trace, mapper, go_on)?;
        }
        Precondition::Checkpoint(_) => unreachable!("read by the caller"),
    }
    drive.power_cycle(config, seed).map_err(|e| failed(0, e))?;
    match precondition {
        // no page is empty
        Precondition::Fill | Precondition::Steady => drive.top_mut().reset_counters(),
        _ => forget_empty(&mut drive, oracle.empty()).map_err(|e| failed(0, e))?,
    }
    Ok((drive, oracle, said))
}

/// Fills a blank drive or brings it into its steady state, in a moment. Returns `false` if the
/// drive computes no such state.
fn lay(
    drive: &mut Stack,
    steady: bool,
    config: &DriveConfig,
    seed: Seed,
) -> Result<bool, RunError> {
    if steady {
        return Ok(drive.ssd_mut().lay_steady(config, seed, Oracle::filled)?);
    }
    Ok(drive.lay_filled(config, Oracle::filled))
}

/// Writes all of a blank drive, in ascending order or as its steady state has it. Returns `false`
/// if `go_on` stopped the work.
fn write(
    drive: &mut Stack,
    steady: bool,
    config: &DriveConfig,
    seed: Seed,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<bool, RunError> {
    if steady {
        return Ok(drive.ssd_mut().make_steady(config, seed, &Oracle::filled, go_on)?);
    }
    match drive.fill_blank(Oracle::filling, go_on) {
        Some(all) => Ok(all),
        None => drive.fill_while(Oracle::filling, go_on).map_err(|e| failed(0, e)),
    }
}

/// Returns an error unless the drive has a model of its steady state.
///
/// # Errors
/// Returns an error if the scheme or a part of it has no model, or the drive has layers.
pub(crate) fn check_steady(config: &DriveConfig) -> Result<(), RunError> {
    if !config.layers().is_empty() {
        let why = "the model of the steady state supports no layers: use ‹precondition=fill› or a \
                   trace";
        return Err(RunError::option("precondition", why));
    }
    config.scheme().steady_state(&config.scheme_config())?;
    Ok(())
}

/// Plays the writes and trims of a trace, one after the other.
fn play(
    drive: &mut Stack,
    oracle: &mut Oracle,
    mut trace: Input<'_>,
    mapper: &mut Mapper,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), RunError> {
    let mut reply = Reply::default();
    let mut number = 0;
    drive.set_instant(true);
    while let Some(record) = trace.next_record()? {
        number += 1;
        let Some(r) = mapper.map(&record, number)? else { continue };
        let content = CONTENT + number;
        let cmd = match r.op {
            HostOp::Write => {
                Cmd::Write { lba: r.lba, sectors: r.sectors, fua: false, content, data: None }
            }
            HostOp::Trim => Cmd::Trim { lba: r.lba, sectors: r.sectors },
            HostOp::Read | HostOp::Flush => continue,
        };
        drive.submit(Ps::ZERO, Tag(0), cmd, &mut reply).map_err(|e| failed(number, e))?;
        oracle.apply(&r, content);
        if number % 4096 == 0 && !go_on(number) {
            return Err(RunError::Interrupted);
        }
    }
    drive.make_durable().map_err(|e| failed(number, e))?;
    drive.set_instant(false);
    Ok(())
}

fn load(
    (precondition, base): (&Precondition, Base),
    seed: Seed,
    config: &DriveConfig,
    checkpoint: Checkpoint,
) -> Result<(Stack, Oracle), RunError> {
    let Precondition::Checkpoint(path) = precondition else {
        unreachable!("the caller read a checkpoint")
    };
    let Checkpoint { image, expected, base: parts, .. } = checkpoint;
    let is_computed = parts.is_some() && base == Base::Computed && config.takes_up_a_base();
    if parts.is_some() && !is_computed {
        config.must_have_room(1, None)?;
    }
    let mut medium = Checkpoint::medium(image, parts.as_ref(), config).map_err(|why| {
        RunError::Unusable(format!("{path}: no drive can be in the saved state: {why}"))
    })?;
    if !is_computed {
        medium.densify();
    }
    if parts.is_some() {
        config.write_map(&mut medium, seed).map_err(|e| failed(0, SubmitError::Ftl(e)))?;
    }
    let layout = config.layout()?;
    config.single_drive("a checkpoint")?;
    let mut drive = Stack::over(vec![config.build_on(medium, seed)?], config)?;
    if parts.is_some() {
        let mut oracle = Oracle::new(layout.logical_units, layout.unit_sectors());
        oracle.fill();
        drive.top_mut().reset_counters(); // no page is empty
        return Ok((drive, oracle));
    }
    let oracle = Oracle::expecting(expected, layout.unit_sectors());
    forget_empty(&mut drive, oracle.empty()).map_err(|e| failed(0, e))?;
    Ok((drive, oracle))
}

/// Returns the checkpoint of a drive with this precondition, fit and seed.
pub(crate) fn checkpoint(
    (precondition, fit, seed): (&Precondition, Fit, Seed),
    config: &DriveConfig,
    mapper: &Mapper,
    drive: Stack,
    oracle: Oracle,
    (version, added): (&str, &[AddedPart]),
) -> Result<Checkpoint, RunError> {
    if config.params.get(DATA) != "none" {
        return Err(RunError::Unusable(
            "nand.data = ram is not possible: a checkpoint holds content stamps, not bytes".into(),
        ));
    }
    if !drive.is_bare() {
        return Err(RunError::Unusable(
            "a checkpoint cannot hold layers: precondition each run instead".into(),
        ));
    }
    let traced = matches!(precondition, Precondition::Trace(_));
    let units = oracle.units();
    let medium = drive.into_media().pop().expect("a bare drive");
    let (image, base) = match medium.into_image_over_base() {
        Ok((image, base)) => (image, Some(base.parts())),
        Err(medium) => (medium.into_image(), None),
    };
    // the pages of a base are as after a fill
    let expected: Vec<Stamp> = if base.is_some() { Vec::new() } else { oracle.into_expected() };
    let header = Header {
        precondition: json!(precondition),
        fit: json!(fit),
        extent_sectors: mapper.extent(),
        seed: seed.0,
        sequence: image.sequence,
        age: Age::of(&image),
        parts: NeededPart::of(config, added),
        ..Header::new(config, units, version)
    };
    let extents = if traced { mapper.extents().to_vec() } else { Vec::new() };
    Ok(Checkpoint { header, image, expected, base, extents })
}

pub(crate) fn failed(request: u64, error: flashatlas_device::SubmitError) -> RunError {
    match error {
        flashatlas_device::SubmitError::Ftl(error) => RunError::Drive { request, error },
        refused => RunError::Refused { request, why: refused.to_string() },
    }
}
