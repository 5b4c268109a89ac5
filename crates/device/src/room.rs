//! Check that the system has memory for the tables of a drive, before they are allocated.
//!
//! If the system refuses the memory for a table, the process ends, and no code can catch the error.
//! So this check first reserves the memory and then frees it without using it.

use crate::DriveConfig;
use crate::params::{BLOCKS, LOGICAL_PAGES};
use flashatlas_nand::Rules;
use flashatlas_types::{ConfigError, MEMORY_PER_UNIT};
use std::hint::black_box;

/// Bytes of a unit in each of the large tables: stamps, expected stamps of the oracle, owners, map.
const TABLES: [u64; 4] = [8, 8, 4, 4];

/// Number of units below which the check is skipped. Any process uses more memory than the tables
/// of so few units.
const ASKED_FROM: u64 = 4 << 20;

impl DriveConfig {
    /// Returns the reason why what the drive holds before a run is written to tables, whatever it
    /// was preconditioned with. Returns `None` if it can be computed instead ([`Ssd::lay_filled`],
    /// [`Ssd::lay_steady`]).
    ///
    /// [`Ssd::lay_filled`]: crate::Ssd::lay_filled
    /// [`Ssd::lay_steady`]: crate::Ssd::lay_steady
    pub fn why_tables(&self) -> Option<&'static str> {
        let rules = Rules::from_params(&self.params);
        if !self.layers().is_empty() {
            return Some("a drive below host layers is filled by commands (layers)");
        }
        if rules.keep_bytes {
            return Some("the bytes of all units are kept (nand.data=ram)");
        }
        if rules.errors.is_some() {
            return Some("each program may fail by itself (errors.*)");
        }
        let Some(steady) = self.scheme().steady else {
            return Some("the scheme has a layout of its own (ftl.scheme)");
        };
        let has_base = (steady.takes_up_a_base)(&self.scheme_config());
        (!has_base).then_some("its map store has tables of its own (map.store)")
    }

    /// Returns whether what the drive holds after a fill, or in its steady state, can be computed
    /// instead of stored.
    pub fn takes_up_a_base(&self) -> bool {
        self.why_tables().is_none()
    }

    /// Refuses a drive, or `drives` drives, if the system does not provide memory for the tables.
    /// `free` is the number of available bytes, or `None` if it is unknown.
    ///
    /// # Errors
    /// Returns an error that names `drive.blocks` and the largest drive whose tables fit in one
    /// piece of memory. Each table is also tried alone: the system may provide every table, even
    /// though all tables together do not fit.
    pub fn must_have_room(&self, drives: u32, free: Option<u64>) -> Result<(), ConfigError> {
        let units = u64::from(self.layout()?.slots()) * u64::from(drives);
        if units < ASKED_FROM || are_handed_out(&TABLES.map(|bytes| units * bytes)) {
            return Ok(());
        }
        let blocks = self.params.get(BLOCKS);
        let (mut fits, mut refused) = (0, blocks);
        while refused - fits > 1 {
            let middle = fits + (refused - fits) / 2;
            let units = units / u64::from(blocks) * u64::from(middle);
            let enough = are_handed_out(&[units * MEMORY_PER_UNIT]);
            *(if enough { &mut fits } else { &mut refused }) = middle;
        }
        let in_free = free.map_or(blocks, |free| self.blocks_in(free, units * MEMORY_PER_UNIT));
        Err(ConfigError::new(
            "drive.blocks",
            format!(
                "the system has no memory for a drive with {blocks} blocks in a plane: the tables \
                 of its {units} mapping units need {} GiB in one piece. {}",
                (units * TABLES[0]).div_ceil(1 << 30),
                self.largest(fits.min(in_free))
            ),
        ))
    }

    /// Returns the number of blocks in a plane for which the drive needs `free` bytes. With its own
    /// number of blocks, the drive needs `needed` bytes. The result is at most that number.
    pub fn blocks_in(&self, free: u64, needed: u64) -> u32 {
        let blocks = u128::from(self.params.get(BLOCKS)) * u128::from(free) / u128::from(needed);
        u32::try_from(blocks).map_or(self.params.get(BLOCKS), |n| n.min(self.params.get(BLOCKS)))
    }

    /// Returns a sentence with the settings of the largest drive that fits. This drive has `blocks`
    /// blocks in a plane.
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
        format!("The largest drive that fits has drive.blocks={blocks}{exported}")
    }
}

/// Returns whether the system provides tables with these numbers of bytes at the same time.
fn are_handed_out(tables: &[u64]) -> bool {
    let mut held: Vec<Vec<u8>> = Vec::new();
    tables.iter().all(|&bytes| {
        let mut table = Vec::new();
        let enough = usize::try_from(bytes).is_ok_and(|n| table.try_reserve_exact(n).is_ok());
        // without `black_box`, the compiler would remove the unused table and its reservation
        held.push(black_box(table));
        enough
    })
}
