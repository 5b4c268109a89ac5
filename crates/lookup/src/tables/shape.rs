//! Sizes of the tables, and widths of their fields.

use super::pack::bits_for;
use crate::LookupError;
use flashatlas_types::{ConfigError, Param, ParamDef, Params, Text};

const SETS: Param<u64> = Param::int(
    "lookup.sets",
    0,
    1 << 28,
    "sets of the primary LPMT, a power of two; 0: the least number that holds every address once \
     (the paper: 131072)",
)
.or("0");

const WAYS: Param<u32> = Param::int("lookup.ways", 1, 64, "entries of a set").or("8");

const SECONDARY_SETS: Param<u64> = Param::int(
    "lookup.secondary_sets",
    0,
    1 << 28,
    "sets of the secondary LPMT, at most the number of primary sets; 0: this number",
)
.or("0");

const ON_DELETE: Param<Text> = Param::choice(
    "lookup.on_delete",
    &["leave", "fill"],
    "place of a deleted entry in a chain of sets: the place stays empty (`leave`), so that chains \
     of nearly empty sets may use up the secondary table; or the last entry of the chain moves \
     there (`fill`), so that it is always enough to have the same number of secondary and primary \
     sets",
)
.or("fill");

/// Parameters of the tables.
pub const PARAMS: &[ParamDef] = &[SETS.def, WAYS.def, SECONDARY_SETS.def, ON_DELETE.def];

/// Sizes and widths of the tables. Every address, page number and location fits 31 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableShape {
    /// Exponent of the number of sets: the primary LPMT has `2^set_bits` sets.
    pub set_bits: u32,
    /// Number of entries in a set.
    pub ways: u32,
    /// Number of sets of the secondary LPMT.
    pub secondary_sets: u32,
    /// Bits of a logical address.
    pub la_bits: u32,
    /// Number of block tables: one for each flash block.
    pub block_tables: u32,
    /// Number of rows of a block table: one for each page of a block.
    pub rows: u32,
    /// `true` if all sets of a chain except the last are kept full.
    pub dense: bool,
}

impl TableShape {
    /// Shape of the paper (Table II): 2^17 sets of 8 entries, 2^17 secondary sets, addresses of 20
    /// bits, 4096 block tables of 256 rows.
    pub const PAPER: TableShape = TableShape {
        set_bits: 17,
        ways: 8,
        secondary_sets: 1 << 17,
        la_bits: 20,
        block_tables: 4096,
        rows: 256,
        dense: false,
    };

    /// Returns the shape that `params` describe for addresses below `addresses` and flash blocks of
    /// `rows` pages.
    ///
    /// # Errors
    /// Returns an error if a number of sets is not a power of two, or if there are more secondary
    /// sets than primary sets. [`TableShape::check`] checks the other sizes.
    pub fn from_params(
        params: &Params,
        addresses: u64,
        block_tables: u32,
        rows: u32,
    ) -> Result<TableShape, ConfigError> {
        let ways = params.get(WAYS);
        let least = addresses.div_ceil(u64::from(ways)).max(1).next_power_of_two();
        let sets = match params.get(SETS) {
            0 => least,
            sets if !sets.is_power_of_two() => {
                let near =
                    format!("{} or {}", sets.next_power_of_two() / 2, sets.next_power_of_two());
                return Err(ConfigError::allowing(
                    "lookup.sets",
                    format!("{sets} is not a power of two"),
                    near,
                ));
            }
            sets => sets,
        };
        let secondary = match params.get(SECONDARY_SETS) {
            0 => sets,
            secondary if secondary > sets => {
                let why =
                    format!("{secondary} secondary sets are more than the {sets} primary sets");
                return Err(ConfigError::allowing(
                    "lookup.secondary_sets",
                    why,
                    format!("0 to {sets}"),
                ));
            }
            secondary => secondary,
        };
        Ok(TableShape {
            set_bits: sets.trailing_zeros(),
            ways,
            secondary_sets: secondary as u32,
            la_bits: bits_for(addresses.saturating_sub(1)),
            block_tables,
            rows,
            dense: params.get(ON_DELETE) == "fill",
        })
    }

    /// Returns an error unless the tables can hold `files` files with any addresses, even if all
    /// have one key.
    ///
    /// # Errors
    /// Returns an error that names the size that is too small, and the smallest sufficient size.
    pub fn holds_any(&self, files: u64) -> Result<(), ConfigError> {
        let ways = u64::from(self.ways);
        let (primary, secondary) =
            (u64::from(self.sets()) * ways, u64::from(self.secondary_sets) * ways);
        let short = |key: &str, sets: u64| {
            ConfigError::allowing(
                key,
                format!(
                    "{sets} sets of {ways} entries cannot hold {files} addresses with the same key"
                ),
                format!("{} or more", files.div_ceil(ways)),
            )
        };
        if primary < files {
            return Err(short("lookup.sets", primary / ways));
        }
        if secondary < files {
            return Err(short("lookup.secondary_sets", secondary / ways));
        }
        if self.dense {
            Ok(())
        } else {
            Err(ConfigError::allowing(
                "lookup.on_delete",
                "sets that are left nearly empty may use up the secondary table",
                "fill",
            ))
        }
    }

    /// Returns an error if a size is too large for the simulator. `addresses` and `pages` are the
    /// keys that set the numbers of addresses and pages.
    ///
    /// # Errors
    /// Returns an error that names the size that is too large.
    pub fn check(&self, addresses: &str, pages: &str) -> Result<(), ConfigError> {
        let too_large = |key: &str, what: String, allowed: String| {
            Err(ConfigError::allowing(key, what, allowed))
        };
        for (key, what, bits) in [
            (addresses, "a logical address", self.la_bits),
            (pages, "a page number", self.pn_bits()),
            ("lookup.sets", "the place of an entry", self.location_bits()),
        ] {
            if bits > 31 {
                return too_large(
                    key,
                    format!("{what} of {bits} bits is too wide"),
                    "at most 31 bits".into(),
                );
            }
        }
        let entries =
            (u64::from(self.sets()) + u64::from(self.secondary_sets)) * u64::from(self.ways);
        let rows = u64::from(self.block_tables) * u64::from(self.rows);
        for (key, what, count) in
            [("lookup.sets", "entries", entries), (pages, "rows of block tables", rows)]
        {
            if count > Self::LARGEST {
                let why = format!("{count} {what} do not fit the simulator's memory");
                return too_large(key, why, format!("at most {} {what}", Self::LARGEST));
            }
        }
        Ok(())
    }

    /// Greatest number of entries, and of rows of block tables, in a simulated engine. This number
    /// of entries takes 4 GiB.
    pub const LARGEST: u64 = 1 << 29;

    /// Returns the number of primary sets.
    pub const fn sets(&self) -> u32 {
        1 << self.set_bits
    }

    /// Returns the number of bits of a way.
    pub fn way_bits(&self) -> u32 {
        bits_for(u64::from(self.ways - 1))
    }

    /// Returns the number of bits of a row in its block table.
    pub fn row_bits(&self) -> u32 {
        bits_for(u64::from(self.rows - 1))
    }

    /// Returns the number of bits of a page number. A page number is a block table and a row.
    pub fn pn_bits(&self) -> u32 {
        bits_for(u64::from(self.block_tables - 1)) + self.row_bits()
    }

    /// Returns the number of bits of the place of an entry. The place is a table, a set and a way.
    pub fn location_bits(&self) -> u32 {
        1 + self.set_bits + self.way_bits()
    }

    /// Returns the number of bits of an LPMT entry: LA, PN, V, S.
    pub fn entry_bits(&self) -> u32 {
        self.la_bits + self.pn_bits() + 2
    }

    /// Returns the number of bits of the header of a set. The header is NSid with its V and, for a
    /// secondary set, PSid, which may be a set of either table.
    pub fn header_bits(&self, secondary: bool) -> u32 {
        let next = bits_for(u64::from(self.secondary_sets - 1)) + 1;
        next + if secondary { 1 + self.set_bits } else { 0 }
    }

    /// Returns the number of bits of PPid. PPid is a page number or the place of an entry.
    pub fn ppid_bits(&self) -> u32 {
        self.pn_bits().max(self.location_bits())
    }

    /// Returns the number of bits of a row of a block table: V, F, L, PPid, NPid.
    pub fn block_row_bits(&self) -> u32 {
        3 + self.ppid_bits() + self.pn_bits()
    }

    /// Returns the bytes of the LPMT and of the block tables (with their WP), where every field has
    /// its least width and there are no gaps.
    pub fn packed_bytes(&self) -> (u64, u64) {
        let set =
            |secondary| u64::from(self.ways * self.entry_bits() + self.header_bits(secondary));
        let lpmt = u64::from(self.sets()) * set(false) + u64::from(self.secondary_sets) * set(true);
        let table = u64::from(self.rows) * u64::from(self.block_row_bits())
            + u64::from(bits_for(u64::from(self.rows)));
        (lpmt.div_ceil(8), (u64::from(self.block_tables) * table).div_ceil(8))
    }

    /// Returns an error if the address does not fit its field.
    pub(crate) fn fits_address(&self, la: u32) -> Result<(), LookupError> {
        if u64::from(la) >> self.la_bits == 0 {
            Ok(())
        } else {
            Err(LookupError::Wide { la, bits: self.la_bits })
        }
    }
}
