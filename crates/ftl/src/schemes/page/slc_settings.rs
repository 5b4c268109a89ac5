//! The parameters of the SLC cache, and the settings that they combine with.

use super::steps_settings::{AtFlush, FLUSH_BLOCKS, PROGRAM_STEPS};
use crate::classifiers::{CLASSIFIER, Streams};
use crate::pool::GC_PACE;
use flashatlas_types::flash_times::{T_PROGRAM_SLC, T_READ_SLC};
use flashatlas_types::{ConfigError, Dur, Layout, Param, Params, Text};

pub(super) const SLC: Param<Text> = Param::choice(
    "ftl.slc",
    &["none", "static", "dynamic", "hybrid"],
    "SLC cache for host writes: `none`; `static`: the first ftl.slc_static blocks of each lane; \
     `dynamic`: free blocks, as long as the lane has enough; `hybrid`: static blocks first, then \
     free ones. Host writes that find no room there go directly to native blocks",
)
.or("none");

pub(super) const SLC_STATIC: Param<u32> = Param::int(
    "ftl.slc_static",
    0,
    1 << 20,
    "ftl.slc = static or hybrid: blocks of each lane that are always in SLC mode; they do not \
     count as exported capacity",
)
.or("0");

pub(super) const SLC_DYNAMIC: Param<u32> = Param::int(
    "ftl.slc_dynamic",
    0,
    1 << 20,
    "ftl.slc = dynamic or hybrid: the largest number of free blocks of a lane that are in SLC mode \
     at the same time; 0: as many as possible while the lane stays above its low-water mark",
)
.or("0");

pub(super) const SLC_KEEP: Param<u32> = Param::int(
    "ftl.slc_keep",
    0,
    1 << 20,
    "ftl.slc: filled blocks in SLC mode of a lane that are not folded in idle time; if the host \
     overwrites a page of such a block, this page needs no fold",
)
.or("0");

/// The settings of an SLC cache, or of blocks in SLC mode for the copies of a FLUSH alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlcSettings {
    /// `true` if the host writes to these blocks. Otherwise only copies of a FLUSH go there.
    pub takes_writes: bool,
    /// The number of static blocks of each lane.
    pub statics: u32,
    /// The largest number of dynamic blocks of a lane.
    pub dynamics: u32,
    /// The number of filled blocks of a lane that idle time leaves.
    pub keep: u32,
}

impl SlcSettings {
    /// Returns the settings that `params` describe, or `None` if no block is in SLC mode.
    pub fn of(params: &Params) -> Option<SlcSettings> {
        let mode = params.get(SLC);
        if mode == "none" {
            let statics = params.get(FLUSH_BLOCKS);
            let copies = SlcSettings { takes_writes: false, statics, dynamics: 0, keep: 0 };
            return copies_flushed(params).then_some(copies);
        }
        let dynamics = match params.get(SLC_DYNAMIC) {
            0 => u32::MAX,
            most => most,
        };
        Some(SlcSettings {
            takes_writes: true,
            statics: if mode == "dynamic" { 0 } else { params.get(SLC_STATIC) },
            dynamics: if mode == "static" { 0 } else { dynamics },
            keep: params.get(SLC_KEEP),
        })
    }

    /// Returns the number of blocks that a lane cannot use for data: its static blocks, and a block
    /// in SLC mode that is being filled.
    pub fn reserve(&self) -> u64 {
        u64::from(self.statics) + u64::from(self.dynamics > 0)
    }
}

/// Returns `true` if a FLUSH copies data to blocks in SLC mode.
fn copies_flushed(params: &Params) -> bool {
    params.get(PROGRAM_STEPS) > 1 && AtFlush::of(params) == AtFlush::Slc
}

/// Refuses blocks for copies of a FLUSH that the layout does not allow, too few of them, and blocks
/// beside an SLC cache, which takes the copies.
fn fits_copies(params: &Params, layout: &Layout) -> Result<(), ConfigError> {
    let given = params.get(FLUSH_BLOCKS);
    let why = match params.get(SLC) {
        "none" if given == 0 => "ftl.flush = slc without ftl.slc needs at least one block".into(),
        "none" => return in_slc_mode(params, layout, "ftl.flush = slc"),
        _ if given == 0 => return Ok(()),
        mode => format!("not with ftl.slc = {mode}, whose blocks take the copies of a FLUSH"),
    };
    Err(ConfigError::new(FLUSH_BLOCKS.key(), why))
}

/// Refuses blocks in SLC mode that the layout does not allow, or that have no times.
fn in_slc_mode(params: &Params, layout: &Layout, who: &str) -> Result<(), ConfigError> {
    layout.allows_slc_mode()?;
    for time in [T_READ_SLC, T_PROGRAM_SLC] {
        if params.get(time) == Dur::ZERO {
            let why = format!("is 0: {who} needs the time of a page in SLC mode");
            return Err(ConfigError::new(time.key(), why));
        }
    }
    Ok(())
}

/// Refuses an SLC cache that the layout or another setting does not allow, and the size of a part
/// that the cache does not have. `gc_mode` is the parameter of the way of collection.
pub(super) fn fits(
    params: &Params,
    layout: &Layout,
    streams: Streams,
    gc_mode: Param<Text>,
) -> Result<(), ConfigError> {
    let mode = params.get(SLC);
    let refuse = |key: &str, why: String| Err(ConfigError::new(key, why));
    if copies_flushed(params) {
        fits_copies(params, layout)?;
    }
    if mode == "none" {
        // the sizes have no effect, but are accepted, so that a study can vary ftl.slc alone
        return Ok(());
    }
    let sizes = [(SLC_STATIC, ["static", "hybrid"]), (SLC_DYNAMIC, ["dynamic", "hybrid"])];
    for (size, modes) in sizes {
        if params.get(size) != 0 && !modes.contains(&mode) {
            let why =
                format!("not with ftl.slc = {mode}: it needs ftl.slc = {}", modes.join(" or "));
            return refuse(size.key(), why);
        }
    }
    in_slc_mode(params, layout, "ftl.slc")?;
    if mode != "dynamic" && params.get(SLC_STATIC) == 0 {
        return refuse(SLC_STATIC.key(), format!("ftl.slc = {mode} needs at least one block"));
    }
    let needs = |key: &str, what: &str| format!("ftl.slc needs {key} = {what}");
    if params.get(gc_mode) != "dual" {
        return refuse(
            SLC.key(),
            needs(gc_mode.key(), "dual, because folds have a frontier of their own"),
        );
    }
    if params.get(GC_PACE) != "burst" {
        return refuse(SLC.key(), needs(GC_PACE.key(), "burst, because folds have no pace yet"));
    }
    if params.get(CLASSIFIER) != "none" {
        return refuse(
            SLC.key(),
            needs(CLASSIFIER.key(), "none, because the cache has one stream"),
        );
    }
    if streams.host > 1 || streams.collection > 1 {
        return refuse(SLC.key(), needs("ftl.streams", "1, because the cache has one stream"));
    }
    Ok(())
}
