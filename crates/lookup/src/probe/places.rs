//! Banks and rows of the items of the tables.

use super::policies::{POLICIES, PolicyDef};
use crate::probe::{BANKS, BLOCK_TABLES, POLICY, SECONDARY, SET_TO_BANK, SPREAD};
use crate::tables::TableShape;
use flashatlas_dram::Device;
use flashatlas_types::{ConfigError, DramAccess, Params};

/// Places of items of one size. The items fill one row of each bank in turn.
#[derive(Clone, Copy, Debug)]
pub struct Linear {
    first_bank: u32,
    banks: u32,
    first_row: u32,
    items_per_row: u32,
    /// Number of bursts of an item.
    pub bursts: u16,
}

/// Returns the number of items of `bits` bits in a burst, and the number of bursts of an item. At
/// least one of the two numbers is 1.
fn packing(device: &Device, bits: u32) -> (u32, u32) {
    let burst = device.burst_bytes() * 8;
    if bits <= burst { (burst / bits, 1) } else { (1, bits.div_ceil(burst)) }
}

impl Linear {
    /// Returns the places of items of `bits` bits in the banks from `first_bank` on. A burst holds
    /// several items, or an item takes several bursts.
    pub fn new(device: &Device, first_bank: u32, banks: u32, first_row: u32, bits: u32) -> Linear {
        let (per_burst, bursts) = packing(device, bits);
        let items_per_row = device.row_bytes() / (device.burst_bytes() * bursts) * per_burst;
        Linear {
            first_bank,
            banks,
            first_row,
            items_per_row: items_per_row.max(1),
            bursts: bursts as u16,
        }
    }

    /// Returns the number of rows that `items` items take in each bank.
    pub fn rows(&self, items: u64) -> u64 {
        items.div_ceil(u64::from(self.items_per_row)).div_ceil(u64::from(self.banks))
    }

    /// Returns the access to an item.
    #[inline]
    pub fn access(&self, item: u64, write: bool, dependent: bool) -> DramAccess {
        let row = item / u64::from(self.items_per_row);
        DramAccess {
            row: self.first_row + (row / u64::from(self.banks)) as u32,
            bank: (self.first_bank + (row % u64::from(self.banks)) as u32) as u8,
            bursts: self.bursts,
            write,
            dependent,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SetToBank {
    Low,
    High,
    Xor,
}

/// Places of the LPMT and the block tables.
#[derive(Clone, Debug)]
pub struct Places {
    /// Number of sets of the primary table, then of the secondary table.
    sets: [u32; 2],
    /// Number of groups of `spread` banks. Each set is in one group.
    groups: u32,
    /// Number of banks of one set.
    pub spread: u32,
    set_to_bank: SetToBank,
    /// Number of ways in each bank of a set. The last bank may hold fewer.
    ways_per_bank: u32,
    /// Number of entries in a burst, and of bursts of an entry. At least one of the two is 1.
    per_burst: u32,
    entry_bursts: u32,
    /// Bursts of a set in each of its banks.
    bursts: Vec<u16>,
    sets_per_row: u32,
    /// First bank and first row of the secondary table.
    secondary: (u32, u32),
    /// Places of the rows of the block tables.
    pub block_tables: Linear,
    /// Places of the bit map. The bit map has one bit for each address. The bit is set if a file
    /// begins at the address.
    pub starts: Linear,
    /// Bytes of DRAM of the LPMT, then of the block tables.
    pub bytes: (u64, u64),
    /// Number of banks in use.
    pub banks: u32,
}

impl Places {
    /// Returns the places that `params` describe for tables of `shape`. With `starts`, the bit map
    /// of beginnings has places, too.
    ///
    /// # Errors
    /// Returns an error if the device does not have the banks, if the banks cannot be divided into
    /// groups, if a set is larger than a row, or if the tables are larger than the banks.
    pub fn from_params(
        params: &Params,
        shape: &TableShape,
        device: &Device,
        starts: bool,
    ) -> Result<Places, ConfigError> {
        let policy = policy(params)?;
        let banks = banks(params)?;
        let spread = match params.get(SPREAD) {
            _ if !policy.spread => 1,
            0 => banks,
            spread => spread,
        };
        let bad =
            |key: &str, why: String, allowed: String| Err(ConfigError::allowing(key, why, allowed));
        // each bank of a set must hold some of its ways
        let full = |spread: u32| shape.ways.div_ceil(shape.ways.div_ceil(spread)) == spread;
        if banks % spread != 0 || !full(spread) {
            let fits = (1..=banks).filter(|&spread| banks % spread == 0 && full(spread));
            let fits: Vec<String> = fits.map(|spread| spread.to_string()).collect();
            let why = match banks % spread {
                0 => format!(
                    "{} ways (lookup.ways) leave some of the {spread} banks of a set without a way",
                    shape.ways
                ),
                _ => format!("{banks} banks (lookup.banks) do not make groups of {spread}"),
            };
            return bad("lookup.spread", why, fits.join(", "));
        }
        let groups = banks / spread;
        let set_to_bank = match params.get(SET_TO_BANK) {
            "high" => SetToBank::High,
            "xor" if !groups.is_power_of_two() => {
                let why = format!(
                    "the exclusive or of a set's bits cannot choose one of {groups} groups of banks"
                );
                return bad(
                    "lookup.set_to_bank",
                    why,
                    "low, high; or a number of groups that is a power of two".into(),
                );
            }
            "xor" => SetToBank::Xor,
            _ => SetToBank::Low,
        };
        if groups > shape.sets() {
            return bad(
                "lookup.banks",
                format!("{} sets leave some of {groups} groups of banks empty", shape.sets()),
                format!("1 to {}", shape.sets() * spread),
            );
        }
        let ways_per_bank = shape.ways.div_ceil(spread);
        let (apart, own) = (params.get(SECONDARY) == "apart", params.get(BLOCK_TABLES) == "apart");
        let used = banks * if apart { 2 } else { 1 } + u32::from(own);
        if used > device.banks {
            let why = format!(
                "the tables need {used} banks, but the device has {} (dram.device_banks)",
                device.banks
            );
            return match (device.banks - u32::from(own)) / if apart { 2 } else { 1 } {
                0 => bad("dram.device_banks", why, format!("{used} or more")),
                most => bad("lookup.banks", why, format!("1 to {most}")),
            };
        }

        // a set in its banks
        let burst = device.burst_bytes() * 8;
        let entry = shape.entry_bits();
        let (per_burst, entry_bursts) = packing(device, entry);
        let ways_of = |bank: u32| ways_per_bank.min(shape.ways - bank * ways_per_bank);
        let mut bursts: Vec<u16> = (0..spread)
            .map(|bank| (ways_of(bank).div_ceil(per_burst) * entry_bursts) as u16)
            .collect();
        let spare: u32 =
            (0..spread).map(|b| u32::from(bursts[b as usize]) * burst - ways_of(b) * entry).sum();
        if spare < shape.header_bits(true) {
            // NSid and PSid need additional bursts
            bursts[0] += shape.header_bits(true).div_ceil(burst) as u16;
        }
        let stripe = u32::from(bursts[0]) * device.burst_bytes();
        let sets_per_row = device.row_bytes() / stripe;
        if sets_per_row == 0 {
            let why = format!(
                "{} ways take {stripe} bytes of a bank, but a row has {} bytes",
                shape.ways,
                device.row_bytes()
            );
            return bad("lookup.ways", why, "fewer ways, or a larger lookup.spread".into());
        }
        let rows = |sets: u32| sets.div_ceil(groups).div_ceil(sets_per_row);
        let (primary, secondary) = (rows(shape.sets()), rows(shape.secondary_sets));
        let lpmt_rows = primary + if apart { 0 } else { secondary };
        let table_rows = if own { 0 } else { lpmt_rows };
        let block_tables = Linear::new(
            device,
            if own { used - 1 } else { 0 },
            if own { 1 } else { banks },
            table_rows,
            shape.block_row_bits(),
        );
        let pages = u64::from(shape.block_tables) * u64::from(shape.rows);
        let after = u64::from(table_rows) + block_tables.rows(pages);
        let Linear { first_bank, banks: beside, .. } = block_tables;
        let starts_at =
            Linear::new(device, first_bank, beside, after.min(u64::from(u32::MAX / 2)) as u32, 1);
        let after = after + if starts { starts_at.rows(1 << shape.la_bits) } else { 0 };
        let most =
            after.max(u64::from(lpmt_rows)).max(u64::from(if apart { secondary } else { 0 }));
        if most > u64::from(device.rows) {
            let why = format!(
                "the tables take {most} rows of a bank, but a bank has {} rows",
                device.rows
            );
            return bad("dram.rows", why, format!("{most} or more; or use more lookup.banks"));
        }
        let row_bytes = u64::from(device.row_bytes());
        let lpmt_bytes = u64::from(primary + secondary) * u64::from(banks) * row_bytes;
        let table_bytes = block_tables.rows(pages) * u64::from(block_tables.banks) * row_bytes;
        Ok(Places {
            sets: [shape.sets(), shape.secondary_sets],
            groups,
            spread,
            set_to_bank,
            ways_per_bank,
            per_burst,
            entry_bursts,
            bursts,
            sets_per_row,
            secondary: if apart { (banks, 0) } else { (0, primary) },
            block_tables,
            starts: starts_at,
            bytes: (lpmt_bytes, table_bytes),
            banks: used,
        })
    }

    /// Returns the first bank and the row of a set.
    #[inline]
    pub fn set(&self, set: u32) -> (u32, u32) {
        let [primary, secondary] = self.sets;
        let (index, sets, (bank, row)) = if set < primary {
            (set, primary, (0, 0))
        } else {
            (set - primary, secondary, self.secondary)
        };
        let (group, local) = match self.set_to_bank {
            _ if self.groups == 1 => (0, index),
            SetToBank::Low => (index % self.groups, index / self.groups),
            SetToBank::High => {
                let per_group = sets.div_ceil(self.groups);
                (index / per_group, index % per_group)
            }
            SetToBank::Xor => {
                let bits = self.groups.trailing_zeros();
                let folded =
                    (0..32u32.div_ceil(bits)).fold(0, |sum, i| sum ^ (index >> (i * bits)));
                (folded % self.groups, index / self.groups)
            }
        };
        (bank + group * self.spread, row + local / self.sets_per_row)
    }

    /// Returns the number of bursts of a set in the `stripe`th of its banks.
    #[inline]
    pub fn bursts(&self, stripe: u32) -> u16 {
        self.bursts[stripe as usize]
    }

    /// Returns the place of a way's last burst: its bank, counted from the first bank of the set,
    /// and the number of the burst in that bank.
    #[inline]
    pub fn way(&self, way: u32) -> (u32, u16) {
        let (stripe, nth) = (way / self.ways_per_bank, way % self.ways_per_bank);
        (stripe, (nth / self.per_burst * self.entry_bursts + self.entry_bursts - 1) as u16)
    }

    /// Returns the number of bursts of one entry.
    pub fn entry_bursts(&self) -> u16 {
        self.entry_bursts as u16
    }
}

/// Returns the number of banks of the LPMT.
///
/// # Errors
/// Returns an error if the policy is unknown.
pub(crate) fn banks(params: &Params) -> Result<u32, ConfigError> {
    Ok(if policy(params)?.one_bank { 1 } else { params.get(BANKS) })
}

pub(super) fn policy(params: &Params) -> Result<&'static PolicyDef, ConfigError> {
    flashatlas_types::by_name(POLICIES, |p| p.name, "lookup.policy", "policy", params.get(POLICY))
}
