//! Memory for the tables of a drive, asked for before they are made.
//!
//! A refusal of memory for a table ends the process: no error of it can be caught. So the system is
//! asked first whether it would hand the memory out, and the memory is returned untouched.

use crate::DriveConfig;
use crate::params::{BLOCKS, LOGICAL_PAGES};
use flashatlas_types::ConfigError;
use std::hint::black_box;

/// Bytes that a unit takes in each of the large tables: stamps, what the oracle expects, owners,
/// the map.
const TABLES: [usize; 4] = [8, 8, 4, 4];

/// Number of units below which the system is not asked: their tables are smaller than what any
/// process takes.
const ASKED_FROM: u64 = 4 << 20;

impl DriveConfig {
    /// Refuses a drive, or `drives` of them, if the system does not hand out memory for the tables.
    ///
    /// # Errors
    /// The error names `drive.blocks`, and the largest drive that fits.
    pub(crate) fn must_have_room(&self, drives: u32) -> Result<(), ConfigError> {
        let units = u64::from(self.layout()?.slots()) * u64::from(drives);
        if units < ASKED_FROM || is_handed_out(units) {
            return Ok(());
        }
        let blocks = self.params.get(BLOCKS);
        let (mut fits, mut refused) = (0, blocks);
        while refused - fits > 1 {
            let middle = fits + (refused - fits) / 2;
            let enough = is_handed_out(units / u64::from(blocks) * u64::from(middle));
            *(if enough { &mut fits } else { &mut refused }) = middle;
        }
        Err(ConfigError::new(
            "drive.blocks",
            format!(
                "{blocks}: the system hands out no memory for the tables of {units} mapping \
                 units, {} GiB in one piece. {}",
                (units * TABLES[0] as u64).div_ceil(1 << 30),
                self.largest(fits)
            ),
        ))
    }

    /// Returns the number of blocks in a plane with which the drive takes `free` bytes, if it takes
    /// `needed` bytes as it is. The number is at most the drive's own.
    pub fn blocks_in(&self, free: u64, needed: u64) -> u32 {
        let blocks = u128::from(self.params.get(BLOCKS)) * u128::from(free) / u128::from(needed);
        u32::try_from(blocks).map_or(self.params.get(BLOCKS), |n| n.min(self.params.get(BLOCKS)))
    }

    /// Returns a sentence with the settings of the largest drive that fits: this drive with
    /// `blocks` blocks in a plane.
    pub fn largest(&self, blocks: u32) -> String {
        let all = self.params.get(BLOCKS);
        if blocks == 0 {
            return "No drive of this shape fits: take fewer dies, or larger units (map.unit)"
                .into();
        }
        let pages = u128::from(self.params.get(LOGICAL_PAGES)) * u128::from(blocks);
        let exported = match pages / u128::from(all) {
            0 => String::new(),
            pages => format!(" and drive.logical_pages={pages}"),
        };
        format!("The largest that fits has drive.blocks={blocks}{exported}")
    }
}

/// Returns `true` if the system hands out the tables of `units` units, all at once.
fn is_handed_out(units: u64) -> bool {
    let mut held: [Vec<u8>; TABLES.len()] = Default::default();
    held.iter_mut().zip(TABLES).all(|(table, bytes)| {
        let bytes = usize::try_from(units).ok().and_then(|units| units.checked_mul(bytes));
        // black_box: without it the compiler leaves out a table that nobody uses, and the question
        // with it
        bytes.is_some_and(|bytes| black_box(table).try_reserve_exact(bytes).is_ok())
    })
}
