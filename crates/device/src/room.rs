//! Memory for the tables of a drive, asked for before they are made.
//!
//! A table that the system refuses ends the process: no error of it can be caught. So it is asked
//! whether it would hand them out, and what it gives is returned untouched.

use crate::DriveConfig;
use crate::params::{BLOCKS, LOGICAL_PAGES};
use flashatlas_types::ConfigError;
use std::hint::black_box;

/// Bytes of a unit in each of the large tables: stamps, what the oracle expects, owners, the map.
const TABLES: [usize; 4] = [8, 8, 4, 4];

/// Units below which nobody is asked: their tables are smaller than what any process takes.
const ASKED_FROM: u64 = 4 << 20;

impl DriveConfig {
    /// Refuse a drive, or `drives` of them, whose tables the system does not hand out.
    ///
    /// # Errors
    /// Names `drive.blocks`, and the largest drive that fits.
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

    /// Returns the blocks of a plane with which the drive takes `free` bytes where it takes
    /// `needed` as it is: at most as many as it has.
    pub fn blocks_in(&self, free: u64, needed: u64) -> u32 {
        let blocks = u128::from(self.params.get(BLOCKS)) * u128::from(free) / u128::from(needed);
        u32::try_from(blocks).map_or(self.params.get(BLOCKS), |n| n.min(self.params.get(BLOCKS)))
    }

    /// Returns a sentence with the settings of the largest drive that fits: this one with `blocks`
    /// blocks a plane.
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

/// Returns whether the system hands out the tables of `units` units, all at once.
fn is_handed_out(units: u64) -> bool {
    let mut held: [Vec<u8>; TABLES.len()] = Default::default();
    held.iter_mut().zip(TABLES).all(|(table, bytes)| {
        let bytes = usize::try_from(units).ok().and_then(|units| units.checked_mul(bytes));
        // black_box: a table that nobody uses is else left out, and with it the question
        bytes.is_some_and(|bytes| black_box(table).try_reserve_exact(bytes).is_ok())
    })
}
