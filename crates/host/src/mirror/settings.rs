//! Parameters of the mirror, and their values.

use super::copies::MOST;
use flashatlas_device::{DeviceShape, LayersBelow};
use flashatlas_types::{ConfigError, Param, ParamDef, Params, Ps, SECTOR_BYTES, Text};

pub(super) const DRIVES: Param<u32> =
    Param::int("mirror.drives", 2, MOST as u64, "number of drives, all of one configuration")
        .or("2");

pub(super) const READ: Param<Text> = Param::choice(
    "mirror.read",
    &["least-busy", "first"],
    "drive to which a read is sent: the drive with the fewest commands in flight, in turn among \
     equals (`least-busy`), or the first drive (`first`)",
)
.or("least-busy");

const RESERVE: Param<u32> = Param::bytes(
    "mirror.reserve",
    0,
    1 << 30,
    "bytes at the end of each drive that hold the superblock and are not exported; 0: one mapping \
     unit",
)
.or("0");

pub(super) const RESYNC: Param<u32> = Param::bytes(
    "mirror.resync",
    0,
    16 << 20,
    "bytes of each copy in idle time, if the drives may differ; 0: no copies",
)
.or("64KiB");

const LOSE: Param<Text> = Param::text(
    "mirror.lose",
    "drives that fail, each as its number and a simulated time, such as `1@2s`; empty: none",
)
.or("");

pub(super) const PARAMS: &[ParamDef] = &[DRIVES.def, READ.def, RESERVE.def, RESYNC.def, LOSE.def];

/// Returns the shape that the mirror exports, or the reason why it cannot be used over `lower`.
pub(super) fn fits(params: &Params, lower: &LayersBelow<'_>) -> Result<DeviceShape, ConfigError> {
    let unit = lower.shape.unit_sectors;
    let reserve = params.get(RESERVE).div_ceil(SECTOR_BYTES).max(unit);
    if !reserve.is_multiple_of(unit) {
        return Err(ConfigError::new(
            RESERVE.key(),
            format!(
                "{} bytes are not a whole number of mapping units of a drive ({} bytes)",
                reserve * SECTOR_BYTES,
                unit * SECTOR_BYTES
            ),
        ));
    }
    let sectors = lower.shape.sectors.saturating_sub(u64::from(reserve));
    if sectors == 0 {
        return Err(ConfigError::new(
            RESERVE.key(),
            format!("none of the {} sectors of a drive is left for data", lower.shape.sectors),
        ));
    }
    losses(params)?;
    Ok(DeviceShape { unit_sectors: unit, sectors })
}

/// Returns the planned failures of drives, from a text such as `1@2s,0@5s`.
pub(super) fn losses(params: &Params) -> Result<Vec<(Ps, usize)>, ConfigError> {
    let text: &str = params.get(LOSE);
    let steps = text.split(',').map(str::trim).filter(|step| !step.is_empty());
    let mut losses = steps
        .map(|step| {
            let wrong = || {
                let last = params.get(DRIVES) - 1;
                let why = format!(
                    "`{step}` is not a failure: write a drive from 0 to {last} and a time, such as \
                     1@2s"
                );
                ConfigError::new(LOSE.key(), why)
            };
            let (drive, at) = step.split_once('@').ok_or_else(wrong)?;
            let drive: u32 = drive.trim().parse().map_err(|_| wrong())?;
            let at = Param::time(LOSE.key(), "when").parse(at.trim())?;
            if drive >= params.get(DRIVES) {
                Err(wrong())
            } else {
                Ok((Ps::ZERO.after(at), drive as usize))
            }
        })
        .collect::<Result<Vec<_>, _>>()?;
    losses.sort();
    Ok(losses)
}
