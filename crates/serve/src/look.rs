//! Descriptions of an image. The functions of this module do not change the image.

use crate::disk::{Disk, opening, to_look_at};
use crate::error::ImageError;
use crate::header::{CAPACITY, Header};
use crate::mark::Verify;
use crate::mount::powered_on;
use crate::parts::{STANDARD_PARTS, environment};
use crate::spec::{ServeError, ServeSpec};
use flashatlas_device::Stack;
use flashatlas_nand::FrameState;
use flashatlas_types::{Lpn, SECTOR_BYTES, Stamp};
use serde_json::{Map, Value, json};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Largest number of damaged frames, and of damaged blocks, that are listed. All of them are
/// counted.
const NAMED: usize = 1000;

/// Returns a description of an image from its header.
///
/// The keys of the description are `path`, `bytes`, `allocated_bytes` (less than `bytes` in a
/// sparse file), `drive`, `capacity_bytes` and `set`. The settings in `set` are those with which
/// the image can be served again.
///
/// # Errors
/// Returns [`ServeError::Image`] if the file is not an image, or is in use.
pub fn info(path: &Path) -> Result<Value, ServeError> {
    Ok(Value::Object(headed(path)?.1))
}

/// Returns the header, and the description that [`info`] returns.
fn headed(path: &Path) -> Result<(Header, Map<String, Value>), ServeError> {
    let failed = |error: ImageError| ServeError::Image(path.to_path_buf(), error);
    let file = to_look_at(path).map_err(failed)?;
    let header = Header::read(&file).map_err(failed)?;
    let bytes = file.length().map_err(|error| failed(error.into()))?;
    let allocated = file.metadata().map_err(|error| failed(error.into()))?.blocks() * 512;
    let said = object(json!({
        "path": path.display().to_string(),
        "bytes": bytes,
        "allocated_bytes": allocated,
        "drive": header.drive,
        "capacity_bytes": capacity(&header) * u64::from(SECTOR_BYTES),
        "set": settings(&header),
    }));
    Ok((header, said))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(entries) => entries,
        _ => unreachable!("the caller passes a JSON object"),
    }
}

fn capacity(header: &Header) -> u64 {
    header.on_flash.get(CAPACITY).and_then(Value::as_u64).unwrap_or(0)
}

/// Returns the settings of the drive to which this image belongs, as `key=value`.
///
/// With layers, the settings do not include the capacity. A layer computes its capacity from the
/// capacity of the drive below, which the header does not contain.
fn settings(header: &Header) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let given = header.on_flash.iter().filter(|(key, value)| *key != CAPACITY && !is_empty(value));
    let mut set: Vec<String> = given.map(|(key, value)| format!("{key}={}", text(value))).collect();
    let unit = header.on_flash.get("map.unit").and_then(Value::as_u64);
    if let Some(unit) = unit.filter(|_| header.on_flash.get("layers").is_none_or(is_empty)) {
        let pages = capacity(header) * u64::from(SECTOR_BYTES) / unit.max(1);
        set.push(format!("drive.logical_pages={pages}"));
    }
    set
}

/// Returns the plan with the drive and the settings of an image, if the plan names no drive.
pub(crate) fn with_drive_of(header: Header, plan: &ServeSpec) -> ServeSpec {
    let mut plan = plan.clone();
    if plan.drive.is_empty() {
        plan.set.splice(0..0, settings(&header));
        plan.drive = header.drive;
    }
    plan
}

fn is_empty(value: &Value) -> bool {
    value.as_str() == Some("")
}

/// Mounts the image that `plan` names, and describes what the image contains.
///
/// The function mounts the image as a server would, but in memory only. It does not change the
/// file.
///
/// The description contains the header, blocks and frames by state, erases, damage, the findings of
/// the mount, and the number of units that hold data. `sound` is `true` if nothing is damaged or
/// lost. Without `plan.drive`, the drive and its settings come from the header, and `plan.set` is
/// applied after these settings.
///
/// # Errors
/// Returns a [`ServeError`] if the file is not an image of this drive, or cannot be mounted.
pub fn check(plan: &ServeSpec) -> Result<Value, ServeError> {
    let path = plan.image.as_deref().expect("the plan of a check names an image");
    let (header, mut said) = headed(path)?;
    let plan = with_drive_of(header, plan);
    let open = opening(path, to_look_at);
    let (mut live, _, found) =
        powered_on(&plan, &environment(&STANDARD_PARTS, &plan), Some(open), Verify::All)?;
    let stack = live.drive();
    let mount = stack.ssd().ftl_report().mount;
    let lost = mount.lost + mount.damaged_map_pages + mount.damaged_nvm_slots;
    let damaged = found.damaged.len() + found.damaged_blocks.len();
    let named: Vec<u32> = found.damaged.iter().take(NAMED).map(|frame| frame.0).collect();
    let blocks: Vec<u32> =
        found.damaged_blocks.iter().take(NAMED).map(|block| block.number()).collect();
    said.extend(object(json!({
        "sound": damaged == 0 && lost == 0,
        "blocks": of_blocks(stack),
        "frames": of_frames(stack, found.programmed),
        "damaged": {
            "frames": found.damaged.len(), "named_frames": named,
            "block_records": found.damaged_blocks.len(), "named_blocks": blocks,
        },
        "mount": {
            "rolled_forward": mount.rolled_forward,
            "unreadable_frames": mount.unreadable_frames,
            "unreadable_blocks": mount.unreadable_blocks,
            "lost": mount.lost,
            "damaged_map_pages": mount.damaged_map_pages,
            "damaged_nvm_slots": mount.damaged_nvm_slots,
            "programs": mount.programs,
            "erases": mount.erases,
        },
        "units": of_units(stack),
    })));
    Ok(Value::Object(said))
}

fn of_blocks(stack: &Stack) -> Value {
    let medium = stack.ssd().medium();
    let blocks = || medium.layout().block_ids();
    let good = || blocks().filter(|&block| !medium.is_bad(block));
    let erases: Vec<u32> = good().map(|block| medium.erases(block)).collect();
    let mean = erases.iter().map(|&n| f64::from(n)).sum::<f64>() / erases.len().max(1) as f64;
    json!({
        "all": medium.layout().blocks(),
        "bad": blocks().count() - erases.len(),
        "erased": good().filter(|&block| medium.write_pointer(block) == 0).count(),
        "erases": { "least": erases.iter().min(), "mean": mean, "most": erases.iter().max() },
    })
}

fn of_frames(stack: &Stack, before_mount: u64) -> Value {
    let medium = stack.ssd().medium();
    let torn = medium
        .layout()
        .block_ids()
        .flat_map(|block| (0..medium.write_pointer(block)).map(move |i| (block, i)))
        .filter(|&(block, i)| is_lost(medium.state(medium.layout().frame_in(block, i))))
        .count();
    json!({ "all": medium.layout().frames(), "programmed": before_mount, "unreadable": torn })
}

/// Returns whether a frame is neither erased nor readable.
fn is_lost(state: FrameState) -> bool {
    matches!(state, FrameState::Torn | FrameState::Lost)
}

fn of_units(stack: &Stack) -> Value {
    let units = stack.shape().units();
    let holds =
        |unit: &u32| stack.top().peek_stamp(Lpn(*unit)).is_ok_and(|stamp| stamp != Stamp::ZERO);
    json!({ "all": units, "written": (0..units).filter(holds).count() })
}
