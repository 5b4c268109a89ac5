//! The parameters of the page-mapped FTL, and whether a layout leaves it room.

use crate::MountLimit;
use crate::blocks::WEAR_DYNAMIC;
use crate::pool::MapQuota;
use crate::schemes::SchemeConfig;
use flashatlas_types::{ConfigError, Layout, ParamDef, ParamKind, Params};

pub(super) const PARAMS: &[ParamDef] = &[
    ParamDef {
        key: "ftl.gc_mode",
        kind: ParamKind::Choice(&["dual", "single"]),
        default: Some("dual"),
        doc: "`dual`: survivors of collection have a frontier of their own; `single`: they go into \
              the one reserved block, which becomes the host's frontier (Jasmine, and the models \
              of write amplification)",
    },
    ParamDef {
        key: "ftl.low_water",
        kind: ParamKind::Int(0, 1 << 20),
        default: Some("0"),
        doc: "dual mode: collect when a lane has this many free blocks, until it has one more; \
              above ftl.streams; 0: one above",
    },
    ParamDef {
        key: "ftl.gc_parallel",
        kind: ParamKind::Bool,
        default: Some("true"),
        doc: "dual mode: when one lane must collect, lanes that are about to do so as well; false: \
              each on its own",
    },
    ParamDef {
        key: "ftl.idle_free",
        kind: ParamKind::Int(0, 1 << 20),
        default: Some("4"),
        doc: "free blocks of a lane that idle time restores; 0: no collection in idle time",
    },
    ParamDef {
        key: "ftl.idle_valid",
        kind: ParamKind::Ratio(0.0, 1.0),
        default: Some("0.5"),
        doc: "idle collection leaves victims alone that have a larger share of valid pages",
    },
    WEAR_DYNAMIC,
    ParamDef {
        key: "ftl.wear_static",
        kind: ParamKind::Bool,
        default: Some("false"),
        doc: "move long-lived data out of blocks with few erases",
    },
    ParamDef {
        key: "ftl.wear_threshold",
        kind: ParamKind::Int(1, 1 << 30),
        default: Some("32"),
        doc: "static wear levelling acts when the erases of two blocks of a lane differ by more",
    },
];

/// Where survivors of collection go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GcMode {
    Single,
    Dual,
}

pub(super) struct PageSettings {
    pub mode: GcMode,
    pub streams: u32,
    pub low_water: u32,
    pub gc_parallel: bool,
    pub idle_free: u32,
    /// Most valid slots of a victim in idle time.
    pub idle_valid: u32,
    pub wear_static: bool,
    pub wear_threshold: u32,
    /// Blocks that are kept for map pages.
    pub map_quota: MapQuota,
}

/// `ftl.low_water`, resolved.
fn low_water(params: &Params) -> u32 {
    match params.u32("ftl.low_water") {
        0 => params.u32("ftl.streams") + 1,
        given => given,
    }
}

/// Blocks that a lane cannot use for data: the frontiers it keeps open, and what collection needs;
/// where several units share a frame, also the blocks whose last survivors wait for the rest of
/// theirs; and those of map pages.
fn reserve(params: &Params, layout: &Layout, map_quota: u32) -> u64 {
    let streams = params.int("ftl.streams");
    let shared_frames = u64::from(layout.slots_per_frame > 1) * streams;
    let collection = match params.text("ftl.gc_mode") {
        "single" => streams + 1 + shared_frames,
        _ => 2 * streams + u64::from(low_water(params)) + shared_frames,
    };
    collection + u64::from(map_quota)
}

/// Blocks that the map store keeps for map pages.
fn map_quota(config: &SchemeConfig<'_>, layout: &Layout) -> Result<MapQuota, ConfigError> {
    let store = config.parts.store(config.params.text("map.store"))?;
    (store.fits)(config.params, layout)
}

/// What a mount takes at most. Map pages are written once each; the room for one may cost the
/// collection of a block in which all frames but one are valid; and a block in which programs fail
/// may be replaced in each lane.
pub(super) fn mount_limit(config: &SchemeConfig<'_>, layout: &Layout) -> MountLimit {
    let quota = map_quota(config, layout).expect("the configuration is checked");
    let (blocks, frames) = (u64::from(layout.blocks()), u64::from(layout.frames_per_block));
    let lanes = u64::from(quota.lanes.min(layout.lanes));
    let map_frames = lanes * u64::from(quota.blocks) * frames;
    MountLimit {
        spare_reads: blocks * (frames + 2),
        reads: (map_frames + lanes) * frames,
        programs: (map_frames + lanes) * frames + lanes,
        erases: blocks + map_frames,
    }
}

pub(super) fn fits(config: &SchemeConfig<'_>, layout: &Layout) -> Result<(), ConfigError> {
    let params = config.params;
    if params.text("ftl.gc_mode") == "single" && params.int("ftl.streams") > 1 {
        return Err(ConfigError::new(
            "ftl.streams",
            "single mode has one frontier; several streams need ftl.gc_mode = dual",
        ));
    }
    if params.text("ftl.gc_mode") == "dual" && low_water(params) <= params.u32("ftl.streams") {
        return Err(ConfigError::new(
            "ftl.low_water",
            "must be above ftl.streams: collection may open that many blocks, and after a power \
             failure one more for what the torn page took",
        ));
    }
    if params.text("ftl.classifier") != "none" && params.int("ftl.streams") < 2 {
        return Err(ConfigError::new("ftl.streams", "a classifier needs at least 2 streams"));
    }
    // lanes without map pages have more room: what all have is counted
    let map_quota = map_quota(config, layout)?.blocks;
    let reserve = reserve(params, layout, map_quota);
    let per_lane = u64::from(layout.blocks_per_lane).saturating_sub(reserve);
    let usable = per_lane * u64::from(layout.lanes) * u64::from(layout.slots_per_block);
    if u64::from(layout.logical_units) > usable {
        return Err(ConfigError::new(
            "drive.over_provisioning",
            format!(
                "{} logical units do not fit: of {} blocks in each of {} lanes the scheme keeps \
                 {reserve} for frontiers, collection and (of these {map_quota}) map pages, which \
                 leaves room for {usable} units; export less or lower the reserve (ftl.low_water, \
                 ftl.streams, map.over_provisioning, drive.frame_*)",
                layout.logical_units, layout.blocks_per_lane, layout.lanes,
            ),
        ));
    }
    Ok(())
}

impl PageSettings {
    /// The settings that a configuration describes.
    pub fn new(config: &SchemeConfig<'_>, layout: &Layout) -> PageSettings {
        let params = config.params;
        PageSettings {
            mode: if params.text("ftl.gc_mode") == "single" {
                GcMode::Single
            } else {
                GcMode::Dual
            },
            streams: params.u32("ftl.streams"),
            low_water: low_water(params),
            gc_parallel: params.flag("ftl.gc_parallel"),
            idle_free: params.u32("ftl.idle_free"),
            idle_valid: (params.ratio("ftl.idle_valid") * f64::from(layout.slots_per_block)) as u32,
            wear_static: params.flag("ftl.wear_static"),
            wear_threshold: params.u32("ftl.wear_threshold"),
            map_quota: map_quota(config, layout).expect("the configuration is checked"),
        }
    }

    /// Frontiers of a lane: those of the host, and in dual mode as many of collection.
    pub fn frontiers(&self) -> u32 {
        if self.mode == GcMode::Single { self.streams } else { 2 * self.streams }
    }
}
