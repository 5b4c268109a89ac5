//! Unreported memory of a part: the bytes on the heap that are missing in its reports.
//!
//! Reports count the tables that a real drive would have. The simulator's heap also contains
//! structures around these tables, and data that a real drive would read from flash. So the suite
//! compares two drives of different sizes, and counts only the memory that *grows* with the drive.
//! A real drive would also need a table with some bytes for each page, so reports must include such
//! a table.

use crate::drives;
use flashatlas_crash::model::Step;
use flashatlas_crash::recording::{SEED, apply};
use flashatlas_device::Part;
use flashatlas_sim::{AnyPart, Parts};
use flashatlas_types::ConfigError;

/// Bytes for each logical page that a part need not report.
///
/// The simulator uses these bytes for its copies of map entries on flash, for the links of lists,
/// and for the spare room of hash tables.
pub const FREE_BYTES: f64 = 128.0;

/// Numbers of blocks of the two drives.
const BLOCKS: [u32; 2] = [256, 4096];
const PAGES_A_BLOCK: u32 = 4;

/// Memory of a drive after every page was written once, and the number of its pages.
struct Use {
    heap: f64,
    reported: f64,
    pages: f64,
}

/// Returns the memory on the heap and in the reports of a drive with these settings.
///
/// Every page is written only once. Overwritten pages would stay on flash for a while, and the
/// simulator stores the content of the flash on the heap.
fn used(
    parts: &Parts,
    set: &[String],
    blocks: u32,
    live: &dyn Fn() -> usize,
) -> Result<Use, ConfigError> {
    let own = |setting: &&String| {
        !["drive.blocks=", "drive.logical_pages="].iter().any(|key| setting.starts_with(key))
    };
    let mut set: Vec<String> = set.iter().filter(own).cloned().collect();
    set.push(format!("drive.blocks={blocks}"));
    set.push(format!("drive.logical_pages={}", blocks * PAGES_A_BLOCK));
    let config = parts.drives.load("tiny", None, &set)?;
    let before = live();
    let mut drive = config.build_stack(SEED)?;
    drive.set_instant(true);
    let shape = drive.shape();
    let (sectors, unit) = (shape.sectors as u32, shape.unit_sectors);
    let units = sectors / unit;
    for n in 0..units {
        let step = Step::Write { lba: n * unit, sectors: unit, fua: false };
        let why = |e| ConfigError::new("memory", format!("write {n}: {e}"));
        apply(&mut drive, step, u64::from(n) + 1).map_err(why)?;
    }
    let ftl: u64 = drive.ssd().ftl_report().memory.iter().map(|table| table.bytes).sum();
    let layers: u64 =
        drive.top().reports().iter().flat_map(|r| &r.memory).map(|table| table.1).sum();
    let heap = live().saturating_sub(before) as f64;
    Ok(Use { heap, reported: (ftl + layers) as f64, pages: units.into() })
}

/// Returns the number of unreported bytes for each additional page of a drive.
fn unreported(parts: &Parts, set: &[String], live: &dyn Fn() -> usize) -> Result<f64, ConfigError> {
    let small = used(parts, set, BLOCKS[0], live)?;
    let large = used(parts, set, BLOCKS[1], live)?;
    let grown = (large.heap - large.reported) - (small.heap - small.reported);
    Ok(grown / (large.pages - small.pages))
}

/// Returns the unreported bytes of a part for each page of the drive.
///
/// The unreported bytes of page mapping with a map in DRAM are subtracted. `live` returns the
/// number of heap bytes in use, from a counting allocator. No other thread may allocate during the
/// call.
///
/// # Errors
/// Returns an error if no drive can be made with the part.
pub fn beside_reports(
    parts: &Parts,
    part: Part,
    live: &dyn Fn() -> usize,
) -> Result<f64, ConfigError> {
    let plain = unreported(parts, &[], live)?;
    let ways = drives::ways(parts, part);
    let first: Vec<String> = ways[0].iter().take(1).cloned().collect();
    match unreported(parts, &first, live) {
        Ok(found) => Ok(found - plain),
        Err(_) => Ok(unreported(parts, &ways[0], live)? - plain),
    }
}

/// Returns the parts whose memory [`beside_reports`] can count.
pub fn countable(parts: &Parts) -> Vec<Part> {
    let of_drive = |part| match part {
        AnyPart::Drive(Part::Preset(_)) => None,
        AnyPart::Drive(part) => Some(part),
        _ => None,
    };
    crate::all(parts).into_iter().filter_map(of_drive).collect()
}
