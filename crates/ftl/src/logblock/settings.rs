//! Parameters that all log-block schemes share, and the check that the drive has room for the log.

use crate::blocks::{WEAR_DYNAMIC, fits_whole_frames};
use crate::trims::blocks_kept;
use crate::{SCHEME, refuse_entry_bytes};
use flashatlas_types::{ConfigError, Layout, Param, ParamDef, Params};

/// The usual number of log blocks, as in papers/1, section 4.
const USUAL_LOG_BLOCKS: u64 = 256;

const LOG_BLOCKS: Param<u64> = Param::int(
    "ftl.log_blocks",
    0,
    1 << 24,
    "log blocks of all kinds together; 0: 256 (MAST, section 4), or all spare blocks if there are \
     fewer",
)
.or("0");

pub(crate) const PARAMS: &[ParamDef] = &[LOG_BLOCKS.def, WEAR_DYNAMIC.def];

/// Idle reclamation, for schemes whose papers describe no work in idle time.
pub(crate) const IDLE: Param<u32> = Param::int(
    "ftl.idle_log_blocks",
    0,
    1 << 24,
    "number of log blocks that reclamation in idle time keeps free for random writes; 0: no \
     reclamation in idle time",
)
.or("0");

/// The number of erased blocks that must remain when a log block is taken: one for the next merge,
/// and one for the mount after a power cut in that merge.
const RESERVE: u32 = 2;

/// Returns the number of blocks that neither data nor the log may use: the reserve and the blocks
/// for trim records.
pub(crate) fn kept(layout: &Layout) -> u32 {
    RESERVE + blocks_kept(layout)
}

/// The values of the shared parameters.
pub(crate) struct LogSettings {
    /// The number of log blocks of all kinds together.
    pub log_blocks: u32,
    /// The number of log blocks that idle time keeps free for random writes.
    pub idle_log_blocks: u32,
    pub wear_dynamic: bool,
}

/// Returns the number of `good` blocks that remain after data, merges and trim records.
fn spare(layout: &Layout, good: u32) -> u64 {
    let data = layout.logical_units.div_ceil(layout.frames_per_block);
    u64::from(good).saturating_sub(u64::from(data) + u64::from(kept(layout)))
}

impl LogSettings {
    /// Returns the settings of `params` for a drive with `good` blocks that are not bad.
    pub fn new(params: &Params, layout: &Layout, good: u32) -> LogSettings {
        let log_blocks = match params.get(LOG_BLOCKS) {
            0 => USUAL_LOG_BLOCKS.min(spare(layout, good)),
            given => given,
        };
        LogSettings {
            log_blocks: log_blocks as u32,
            idle_log_blocks: params.get(IDLE),
            wear_dynamic: params.get(WEAR_DYNAMIC),
        }
    }
}

/// Checks that a layout has room for a log-block scheme that needs at least `least` log blocks.
/// Returns the number of log blocks.
///
/// # Errors
/// Returns an error if the unit is not the whole frame, or if `map.entry_bytes` is not the default.
/// Returns an error if the budget is below `least` or above the number of spare blocks, or if more
/// log blocks are to be kept ready than the log has.
pub(crate) fn fits_budget(
    params: &Params,
    layout: &Layout,
    least: u64,
) -> Result<u64, ConfigError> {
    fits_whole_frames(layout, "log-block schemes keep")?;
    let with = format!("ftl.scheme = {}", params.get(SCHEME));
    refuse_entry_bytes(params, &with, "set ftl.scheme = page")?;
    let (blocks, spare, kept) = (layout.blocks(), spare(layout, layout.blocks()), kept(layout));
    let data = layout.logical_units.div_ceil(layout.frames_per_block);
    if spare < least {
        return Err(ConfigError::new(
            "drive.over_provisioning",
            format!(
                "{} logical pages leave no room for the log: of {blocks} blocks, {data} hold data \
                 and {kept} are for merges and trims, but the scheme needs {least} log blocks",
                layout.logical_units
            ),
        ));
    }
    let settings = LogSettings::new(params, layout, blocks);
    let budget = u64::from(settings.log_blocks);
    if budget < least || budget > spare {
        let why = format!(
            "{budget} log blocks are not possible: the scheme needs at least {least}, and {spare} \
             of {blocks} blocks are left ({data} are for data, {kept} for merges and trims)"
        );
        return Err(ConfigError::allowing("ftl.log_blocks", why, format!("{least} to {spare}")));
    }
    if settings.idle_log_blocks > settings.log_blocks {
        let why = format!(
            "{} log blocks cannot be kept ready: the log has {budget} blocks in all",
            settings.idle_log_blocks
        );
        return Err(ConfigError::allowing("ftl.idle_log_blocks", why, format!("0 to {budget}")));
    }
    Ok(budget)
}

/// Returns the size of a part of the log, in blocks. The user's size `given` is used, unless it is
/// 0. If it is 0, the size is `of` / `out_of` of the budget, but at least `least`.
pub(crate) fn share(given: u64, budget: u64, (of, out_of): (u64, u64), least: u64) -> u64 {
    if given > 0 { given } else { (budget * of / out_of).max(least) }
}

/// Checks that the parts of the log sum to the whole budget. Each part has a key, a size and a
/// minimum size.
///
/// # Errors
/// Returns an error if a part is too small, or if the sizes do not sum to `budget`.
pub(crate) fn fits_parts(
    budget: u64,
    parts: &[(&'static str, u64, u64)],
) -> Result<(), ConfigError> {
    let list = || {
        parts.iter().map(|(key, size, _)| format!("{key} {size}")).collect::<Vec<_>>().join(", ")
    };
    let sum: u64 = parts.iter().map(|p| p.1).sum();
    for &(key, size, least) in parts {
        let others: u64 = parts.iter().filter(|p| p.0 != key).map(|p| p.2).sum();
        if size < least {
            let why = format!(
                "{size} log blocks are too few for this part of the log, which has {budget} blocks \
                 in all ({})",
                list()
            );
            let allowed = vec![format!("{least} to {}", budget.saturating_sub(others))];
            return Err(ConfigError { allowed, ..ConfigError::new(key, why) });
        }
    }
    if sum != budget {
        let why = format!(
            "the parts of the log have {sum} log blocks in sum, but the log has {budget}: {}",
            list()
        );
        return Err(ConfigError::new("ftl.log_blocks", why));
    }
    Ok(())
}
