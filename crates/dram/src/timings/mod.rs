//! The timings of a DRAM device, in clocks, and their declarations.

mod presets;

pub use presets::PRESETS;

use crate::Rules;
use flashatlas_types::params::concat;
use flashatlas_types::{ConfigError, Param, ParamDef, Params, Text};

/// The banks of a device, and the size of a burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Device {
    /// Bank groups.
    pub groups: u32,
    /// Banks in all groups together.
    pub banks: u32,
    /// Rows of a bank.
    pub rows: u32,
    /// Columns of a row, each as wide as the data bus.
    pub columns: u32,
    /// Bits of the data bus.
    pub bus_bits: u32,
    /// Transfers of a burst.
    pub burst_length: u32,
}

impl Device {
    /// Returns the group of a bank.
    pub const fn group_of(&self, bank: u32) -> u32 {
        bank % self.groups
    }

    /// Returns the number of bytes of a burst.
    pub const fn burst_bytes(&self) -> u32 {
        self.bus_bits * self.burst_length / 8
    }

    /// Returns the number of bytes of a row.
    pub const fn row_bytes(&self) -> u32 {
        self.columns * self.bus_bits / 8
    }
}

/// Timings in clocks of `tck_ps` picoseconds. The names come from JESD79-4, without their `t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timings {
    /// Length of a clock in picoseconds.
    pub tck_ps: u32,
    /// Activation to read or write.
    pub rcd: u32,
    /// Read to its data.
    pub cl: u32,
    /// Precharge to activation.
    pub rp: u32,
    /// Read to precharge.
    pub rtp: u32,
    /// Clocks that the data of a burst takes on the bus.
    pub dl: u32,
    /// Read to read (write to write), different bank groups.
    pub ccd_s: u32,
    /// Read to read (write to write), one bank group.
    pub ccd_l: u32,
    /// Activation to precharge.
    pub ras: u32,
    /// Activation to activation, different bank groups.
    pub rrd_s: u32,
    /// Activation to activation, one bank group.
    pub rrd_l: u32,
    /// Window in which there are at most four activations.
    pub faw: u32,
    /// Write to its data.
    pub cwl: u32,
    /// End of written data to precharge.
    pub wr: u32,
    /// End of written data to read, different bank groups.
    pub wtr_s: u32,
    /// End of written data to read, one bank group.
    pub wtr_l: u32,
    /// Refresh to refresh, on average.
    pub refi: u32,
    /// Refresh to activation.
    pub rfc: u32,
}

const fn clocks(key: &'static str, doc: &'static str) -> Param<u32> {
    Param::int(key, 0, 1 << 20, doc).or("0")
}

/// The parameter `dram.preset`.
pub const PRESET: Param<Text> = Param::name(
    "dram.preset",
    || PRESETS.iter().map(|p| p.name).collect(),
    "the DRAM device with its banks and timings; dram.* keys that are not 0 replace its numbers",
)
.or("ddr4-2400");

const CONSTRAINTS: Param<Text> = Param::text(
    "dram.constraints",
    "the constraints in addition to the paper's Table I: `all`, `none`, or a list of `ras`, `rrd`, \
     `faw`, `ccd_l`, `refresh` and `command_bus` (one command a clock), separated by commas",
)
.or("all");

/// A parameter, and the field of the preset that it replaces unless the parameter is 0.
type Field<T> = (Param<u32>, fn(&mut T) -> &mut u32);

const TIMING_FIELDS: [Field<Timings>; 18] = [
    (clocks("dram.tck_ps", "picoseconds of a clock; 0: as the preset"), |t| &mut t.tck_ps),
    (clocks("dram.rcd", "tRCD: clocks from an activation to a read; 0: as the preset"), |t| {
        &mut t.rcd
    }),
    (clocks("dram.cl", "CL: clocks from a read to its data; 0: as the preset"), |t| &mut t.cl),
    (clocks("dram.rp", "tRP: clocks from a precharge to an activation; 0: as the preset"), |t| {
        &mut t.rp
    }),
    (clocks("dram.rtp", "tRTP: clocks from a read to a precharge; 0: as the preset"), |t| {
        &mut t.rtp
    }),
    (clocks("dram.dl", "clocks of a burst's data; 0: as the preset"), |t| &mut t.dl),
    (
        clocks(
            "dram.ccd_s",
            "tCCD_S: clocks from burst to burst of different bank groups; 0: as the preset",
        ),
        |t| &mut t.ccd_s,
    ),
    (
        clocks(
            "dram.ccd_l",
            "tCCD_L: clocks from burst to burst of one bank group; 0: as the preset",
        ),
        |t| &mut t.ccd_l,
    ),
    (clocks("dram.ras", "tRAS: clocks from an activation to a precharge; 0: as the preset"), |t| {
        &mut t.ras
    }),
    (
        clocks(
            "dram.rrd_s",
            "tRRD_S: clocks between activations of different bank groups; 0: as the preset",
        ),
        |t| &mut t.rrd_s,
    ),
    (
        clocks(
            "dram.rrd_l",
            "tRRD_L: clocks between activations of one bank group; 0: as the preset",
        ),
        |t| &mut t.rrd_l,
    ),
    (
        clocks(
            "dram.faw",
            "tFAW: window in clocks that holds at most four activations; 0: as the preset",
        ),
        |t| &mut t.faw,
    ),
    (clocks("dram.cwl", "CWL: clocks from a write to its data; 0: as the preset"), |t| &mut t.cwl),
    (
        clocks(
            "dram.wr",
            "tWR: clocks from the end of written data to a precharge; 0: as the preset",
        ),
        |t| &mut t.wr,
    ),
    (
        clocks(
            "dram.wtr_s",
            "tWTR_S: clocks from the end of written data to a read of another bank group; 0: as \
             the preset",
        ),
        |t| &mut t.wtr_s,
    ),
    (
        clocks(
            "dram.wtr_l",
            "tWTR_L: clocks from the end of written data to a read of the same bank group; 0: as \
             the preset",
        ),
        |t| &mut t.wtr_l,
    ),
    (clocks("dram.refi", "tREFI: clocks from refresh to refresh; 0: as the preset"), |t| {
        &mut t.refi
    }),
    (clocks("dram.rfc", "tRFC: clocks from a refresh to an activation; 0: as the preset"), |t| {
        &mut t.rfc
    }),
];

const DEVICE_FIELDS: [Field<Device>; 4] = [
    (clocks("dram.groups", "bank groups; 0: as the preset"), |d| &mut d.groups),
    (clocks("dram.device_banks", "banks of the device; 0: as the preset"), |d| &mut d.banks),
    (clocks("dram.rows", "rows of a bank; 0: as the preset"), |d| &mut d.rows),
    (clocks("dram.bus_bits", "bits of the data bus; 0: as the preset"), |d| &mut d.bus_bits),
];

/// Parameters of the DRAM.
pub const PARAMS: &[ParamDef] =
    &concat::<24>(&[&[PRESET.def, CONSTRAINTS.def], &defs(TIMING_FIELDS), &defs(DEVICE_FIELDS)]);

/// Returns the declarations of `fields`.
const fn defs<T, const N: usize>(fields: [Field<T>; N]) -> [ParamDef; N] {
    let mut defs = [PRESET.def; N];
    let mut i = 0;
    while i < N {
        defs[i] = fields[i].0.def;
        i += 1;
    }
    defs
}

impl Timings {
    /// Returns every timing with its name. The name is the key of the parameter without `dram.`.
    pub fn named(mut self) -> impl Iterator<Item = (&'static str, u32)> {
        TIMING_FIELDS
            .iter()
            .map(move |(param, field)| (param.key().trim_start_matches("dram."), *field(&mut self)))
    }
}

/// Returns the device, its timings and the constraints that `params` describe.
///
/// # Errors
/// Returns an error if timings contradict each other, if the banks cannot be divided into the
/// groups, or if a preset or a constraint does not exist.
pub fn from_params(params: &Params) -> Result<(Device, Timings, Rules), ConfigError> {
    let preset = flashatlas_types::by_name(
        PRESETS,
        |p| p.name,
        "dram.preset",
        "device",
        params.get(PRESET),
    )?;
    let (mut device, mut timings) = (preset.device, preset.timings);
    for (param, field) in TIMING_FIELDS.into_iter().filter(|f| params.get(f.0) > 0) {
        *field(&mut timings) = params.get(param);
    }
    for (param, field) in DEVICE_FIELDS.into_iter().filter(|f| params.get(f.0) > 0) {
        *field(&mut device) = params.get(param);
    }
    timings.check()?;
    device.check()?;
    Ok((device, timings, Rules::parse(params.get(CONSTRAINTS))?))
}

/// Checks that the value of `key` is at least `least`. The error gives `why` as the reason.
fn at_least(key: &str, value: u32, least: u32, why: &str) -> Result<(), ConfigError> {
    if value >= least {
        return Ok(());
    }
    Err(ConfigError::allowing(
        key,
        format!("the value {value} contradicts {why}"),
        format!("{least} or more"),
    ))
}

impl Timings {
    /// Checks that the timings do not contradict each other.
    ///
    /// # Errors
    /// Returns an error that names a key that contradicts another key, with the allowed range of
    /// its value.
    pub fn check(&self) -> Result<(), ConfigError> {
        let t = self;
        let nothing: Option<&Field<Timings>> =
            TIMING_FIELDS.iter().find(|(_, field)| *field(&mut t.clone()) == 0);
        if let Some((param, _)) = nothing {
            at_least(param.key(), 0, 1, "the clock of a device, which is above 0")?;
        }
        at_least(
            "dram.ras",
            t.ras,
            t.rcd,
            &format!("dram.rcd = {}: a row closes after its first read", t.rcd),
        )?;
        at_least(
            "dram.ccd_s",
            t.ccd_s,
            t.dl,
            &format!("dram.dl = {}: bursts would overlap on the data bus", t.dl),
        )?;
        at_least(
            "dram.ccd_l",
            t.ccd_l,
            t.ccd_s,
            &format!("dram.ccd_s = {}: one group is not faster than two", t.ccd_s),
        )?;
        at_least(
            "dram.rrd_l",
            t.rrd_l,
            t.rrd_s,
            &format!("dram.rrd_s = {}: one group is not faster than two", t.rrd_s),
        )?;
        at_least(
            "dram.wtr_l",
            t.wtr_l,
            t.wtr_s,
            &format!("dram.wtr_s = {}: one group is not faster than two", t.wtr_s),
        )?;
        at_least(
            "dram.faw",
            t.faw,
            t.rrd_s,
            &format!("dram.rrd_s = {}: four activations take longer than one", t.rrd_s),
        )?;
        let refresh = t.rfc.saturating_add(t.ras).saturating_add(t.rp).saturating_add(t.rcd);
        at_least("dram.refi", t.refi, 2 * refresh, "dram.rfc: refreshes would take the whole time")
    }
}

impl Device {
    /// Checks that the banks can be divided into the groups, and that the width of the data bus is
    /// allowed.
    ///
    /// # Errors
    /// Returns an error that names the wrong key and lists its allowed values.
    pub fn check(&self) -> Result<(), ConfigError> {
        let bad =
            |key: &str, why: String, allowed: String| Err(ConfigError::allowing(key, why, allowed));
        if self.banks == 0 || self.banks > 64 {
            return bad(
                "dram.device_banks",
                format!("{} banks cannot be simulated", self.banks),
                "1 to 64".into(),
            );
        }
        if self.groups == 0 || self.banks % self.groups != 0 {
            let why =
                format!("{} banks do not make {} groups of one size", self.banks, self.groups);
            return bad("dram.groups", why, format!("a divisor of {}", self.banks));
        }
        if !(8..=128).contains(&self.bus_bits) || !self.bus_bits.is_power_of_two() {
            let allowed = "8, 16, 32, 64, 128".to_owned();
            return bad(
                "dram.bus_bits",
                format!("a data bus of {} bits cannot be simulated", self.bus_bits),
                allowed,
            );
        }
        Ok(())
    }
}
