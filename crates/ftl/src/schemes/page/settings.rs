//! The parameters of the page-mapped FTL, and the check that a layout has enough room.

use super::copyback::{self, COPYBACK, COPYBACK_MAX};
use super::lower_pages::{self, LOWER_PAGES, LowerPages};
use super::refresh::{self, RefreshSettings};
use super::slc_settings::{self, SLC, SLC_DYNAMIC, SLC_KEEP, SLC_STATIC, SlcSettings};
use super::steps_settings::{self, FLUSH, FLUSH_BLOCKS, PROGRAM_STEPS, StepsSettings};
use super::throttle;
use crate::MountLimit;
use crate::blocks::WEAR_DYNAMIC;
use crate::classifiers::{CLASSIFIER, STREAMS, Streams};
use crate::maps::STORE;
use crate::pool::GC_PACE;
use crate::pool::MapQuota;
use crate::schemes::SchemeConfig;
use crate::victims::VICTIM;
use flashatlas_types::{
    ConfigError, FrontierId, Index, Layout, Param, ParamDef, Params, StreamId, Text, TiVec, ti_vec,
};

pub(super) const GC_MODE: Param<Text> = Param::choice(
    "ftl.gc_mode",
    &["dual", "single"],
    "`dual`: survivors of collection have their own frontier; `single`: they are copied to the \
     only reserved block, which becomes the host's frontier (Jasmine, and the models of write \
     amplification)",
)
.or("dual");

const LOW_WATER: Param<u32> = Param::int(
    "ftl.low_water",
    0,
    1 << 20,
    "dual mode: a lane that has only this number of free blocks collects until it has one more; \
     the number must exceed the number of collection streams (ftl.streams); 0: the smallest \
     allowed number",
)
.or("0");

const GC_PARALLEL: Param<bool> = Param::flag(
    "ftl.gc_parallel",
    "dual mode, when a lane must collect: lanes that are about to collect do so at the same time \
     (true), or each lane collects separately (false)",
)
.or("true");

const GC_STEP: Param<u32> = Param::int(
    "ftl.gc_step",
    1,
    1 << 16,
    "ftl.gc_pace = paced: at most this many frames of a victim are moved with each frame that the \
     host fills",
)
.or("16");

const IDLE_FREE: Param<u32> = Param::int(
    "ftl.idle_free",
    0,
    1 << 20,
    "number of free blocks of a lane up to which collection in idle time works; 0: no collection \
     in idle time",
)
.or("4");

const IDLE_VALID: Param<f64> = Param::ratio(
    "ftl.idle_valid",
    0.0,
    1.0,
    "the largest share of valid pages in a victim of idle collection",
)
.or("0.5");

const WEAR_STATIC: Param<bool> = Param::flag(
    "ftl.wear_static",
    "dual mode: static wear levelling: long-lived data moves from the least worn block of a lane \
     to its most worn one (the cold-data migration of Chang's dual-pool algorithm, SAC 2007)",
)
.or("false");

const WEAR_THRESHOLD: Param<u32> = Param::int(
    "ftl.wear_threshold",
    1,
    1 << 30,
    "ftl.wear_static: data moves when the erases of a free block exceed the erases of the least \
     worn full block of its lane by more than this; the paper gives no value",
)
.or("32");

/// The parameter `ftl.worn_out`.
pub const WORN_OUT: Param<Text> = Param::choice(
    "ftl.worn_out",
    &["stop", "read-only"],
    "`stop`: a drive without room for a write stops until it is switched on again; `read-only`: it \
     refuses writes, trims and FLUSHes of unwritten data from then on, and reads go on",
)
.or("stop");

pub(super) const PARAMS: &[ParamDef] = &[
    WORN_OUT.def,
    GC_MODE.def,
    LOW_WATER.def,
    GC_PARALLEL.def,
    GC_PACE.def,
    GC_STEP.def,
    IDLE_FREE.def,
    IDLE_VALID.def,
    WEAR_DYNAMIC.def,
    WEAR_STATIC.def,
    WEAR_THRESHOLD.def,
    COPYBACK.def,
    COPYBACK_MAX.def,
    LOWER_PAGES.def,
    SLC.def,
    SLC_STATIC.def,
    SLC_DYNAMIC.def,
    SLC_KEEP.def,
    PROGRAM_STEPS.def,
    FLUSH.def,
    FLUSH_BLOCKS.def,
    refresh::PARAMS[0],
    refresh::PARAMS[1],
    refresh::PARAMS[2],
    throttle::THROTTLE_FROM.def,
    throttle::THROTTLE_RATE.def,
];

/// The choice of the frontier for survivors of collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GcMode {
    Single,
    Dual,
}

/// The time at which collection moves the pages of a victim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GcPace {
    Burst,
    Even,
    Paced,
}

pub(super) struct PageSettings {
    pub mode: GcMode,
    pub pace: GcPace,
    pub gc_step: u32,
    pub streams: Streams,
    /// `true` if a classifier chooses the streams of pages.
    pub classified: bool,
    pub low_water: u32,
    pub gc_parallel: bool,
    pub idle_free: u32,
    /// The name of the victim policy, for error messages.
    pub victim: &'static str,
    /// The name of the classifier, for error messages.
    pub classifier: &'static str,
    /// The largest number of valid slots of a victim in idle time.
    pub idle_valid: u32,
    pub wear_static: bool,
    pub wear_threshold: u32,
    /// Blocks that are reserved for map pages.
    pub map_quota: MapQuota,
    /// The blocks in SLC mode, or `None` if no block is in SLC mode.
    pub slc: Option<SlcSettings>,
    pub lower_pages: LowerPages,
    /// The steps of a program, if it has several.
    pub steps: Option<StepsSettings>,
    /// `true` if streams keep too many blocks open, so that collection lacks room.
    pub streams_crowd: bool,
    pub refresh: RefreshSettings,
}

/// Returns the low-water mark. If `ftl.low_water` is 0, the mark follows from the streams.
fn low_water(params: &Params, streams: Streams) -> u32 {
    match params.get(LOW_WATER) {
        0 => streams.collection + 1 + more_water(params),
        given => given,
    }
}

/// Returns the number of free blocks that a lane needs in addition, because a collection may take
/// one before it frees one.
fn more_water(params: &Params) -> u32 {
    LowerPages::of(params).low_water() + steps_settings::low_water(params)
}

/// Returns the number of blocks that a lane cannot use for data. They are its open frontiers (with
/// static wear levelling also the frontier of cold data), the blocks that collection needs, the
/// blocks of map pages, and the blocks of an SLC cache. If several units share a frame, blocks
/// whose last survivors wait for their frame to fill count as well.
fn reserve(params: &Params, layout: &Layout, streams: Streams, map_quota: u32) -> u64 {
    let (host, collection) = (u64::from(streams.host), u64::from(streams.collection));
    let shared_frames = u64::from(layout.slots_per_frame > 1) * collection;
    let cold = u64::from(params.get(WEAR_STATIC));
    let collection = match params.get(GC_MODE) {
        "single" => host + 1 + shared_frames,
        _ => host + collection + cold + u64::from(low_water(params, streams)) + shared_frames,
    };
    let slc = SlcSettings::of(params).map_or(0, |slc| slc.reserve());
    let lower = u64::from(LowerPages::of(params).open_blocks());
    collection + slc + lower + u64::from(map_quota)
}

/// Returns `true` if several streams reserve more than a quarter of the blocks that a lane has in
/// addition to its data. Collection lacks these blocks.
fn streams_crowd(params: &Params, layout: &Layout, streams: Streams) -> bool {
    let per_block = u64::from(layout.lanes) * u64::from(layout.slots_per_block);
    let data = u64::from(layout.logical_units).div_ceil(per_block);
    let spare = u64::from(layout.blocks_per_lane).saturating_sub(data);
    streams.collection > 1 && 4 * reserve(params, layout, streams, 0) > spare
}

/// Returns the numbers of streams of the host and of collection. They are the classifier's own
/// numbers, or `ftl.streams` for each kind.
pub(super) fn streams(config: &SchemeConfig<'_>) -> Result<Streams, ConfigError> {
    let given = config.params.get(STREAMS);
    let classifier = config.parts.classifier(config.params.get(CLASSIFIER))?;
    let Some(own) = classifier.streams else {
        return Ok(Streams { host: given, collection: given });
    };
    if given > 1 {
        let why = format!(
            "the classifier {} has its own number of streams ({} for host writes, {} for \
             collection): leave this key out",
            classifier.name, own.host, own.collection
        );
        return Err(ConfigError::new("ftl.streams", why));
    }
    Ok(own)
}

/// Returns the blocks that the map store reserves for map pages.
fn map_quota(config: &SchemeConfig<'_>, layout: &Layout) -> Result<MapQuota, ConfigError> {
    let store = config.parts.store(config.params.get(STORE))?;
    (store.fits)(&config.store(), layout)
}

/// Returns the maximum work of a mount. Each map page is written at most once. Making room for it
/// may need the collection of a block in which all frames but one are valid. In each lane, a block
/// with failing programs may be replaced.
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

/// Refuses parameters that single mode does not use. A default is always accepted, and so is
/// `ftl.idle_free` = 0, because single mode never collects in idle time.
fn refuse_unreached(params: &Params) -> Result<(), ConfigError> {
    if params.get(GC_MODE) == "dual" {
        return Ok(());
    }
    let cold = "single mode has no frontier for cold data; static wear levelling";
    let one = "single mode collects when only the one reserved block of a lane is left; a mark";
    let idle = "single mode collects for a write that needs room, never in idle time; this key";
    let unreached = [
        (WEAR_STATIC.def, cold),
        (WEAR_THRESHOLD.def, cold),
        (LOW_WATER.def, one),
        (
            GC_PARALLEL.def,
            "single mode collects each lane on its own; collecting several lanes at the same time",
        ),
        (GC_STEP.def, "single mode moves the survivors of a victim together; a bound of the step"),
        (IDLE_FREE.def, idle),
        (IDLE_VALID.def, idle),
    ];
    for (def, why) in unreached {
        let default = def.default.map(|text| def.parse(text)).transpose()?;
        let off = def.key == IDLE_FREE.key() && params.get(IDLE_FREE) == 0;
        if params.value(def.key) != default.as_ref() && !off {
            let why = format!("{why} needs ftl.gc_mode = dual");
            return Err(ConfigError::new(def.key, why));
        }
    }
    Ok(())
}

pub(super) fn fits(config: &SchemeConfig<'_>, layout: &Layout) -> Result<(), ConfigError> {
    let params = config.params;
    let streams = streams(config)?;
    if params.get(GC_MODE) == "single" && streams.collection > 1 {
        return Err(ConfigError::new(
            "ftl.streams",
            "single mode has one frontier; several streams need ftl.gc_mode = dual",
        ));
    }
    refuse_unreached(params)?;
    if params.get(GC_MODE) == "single" && params.get(GC_PACE) != "burst" {
        return Err(ConfigError::new(
            "ftl.gc_pace",
            "single mode moves the survivors of a victim together; any other pace needs \
             ftl.gc_mode = dual",
        ));
    }
    let more = more_water(params);
    if params.get(GC_MODE) == "dual" && low_water(params, streams) <= streams.collection + more {
        return Err(ConfigError::new(
            "ftl.low_water",
            format!(
                "must be above {}, the number of collection streams{}: each stream may open a \
                 block, and after a power failure one more block replaces the room of the torn \
                 page",
                streams.collection + more,
                match more {
                    0 => "",
                    _ => " and one for ftl.lower_pages or ftl.program_steps",
                }
            ),
        ));
    }
    if params.get(CLASSIFIER) != "none" && streams.collection < 2 {
        return Err(ConfigError::new("ftl.streams", "a classifier needs at least 2 streams"));
    }
    slc_settings::fits(params, layout, streams, GC_MODE)?;
    // lanes without map pages have more room, but only the room of all lanes counts
    let map_quota = map_quota(config, layout)?;
    refresh::check(params, map_quota)?;
    let map_quota = map_quota.blocks;
    lower_pages::fits(params, layout, map_quota)?;
    steps_settings::fits(params, layout, streams, map_quota)?;
    copyback::fits(params)?;
    throttle::fits(params, GC_MODE)?;
    let reserve = reserve(params, layout, streams, map_quota);
    let per_lane = u64::from(layout.blocks_per_lane).saturating_sub(reserve);
    let lost = LowerPages::of(params).lost_frames(layout) + steps_settings::lost_frames(params);
    let lost = lost.min(layout.frames_per_block);
    let slots = layout.slots_per_block - lost * layout.slots_per_frame;
    let usable = per_lane * u64::from(layout.lanes) * u64::from(slots);
    if u64::from(layout.logical_units) <= usable {
        return Ok(());
    }
    let lane_units = u64::from(layout.lanes) * u64::from(slots.max(1));
    let data = u64::from(layout.logical_units).div_ceil(lane_units);
    let missing = data + reserve - u64::from(layout.blocks_per_lane);
    let low_water = u64::from(low_water(params, streams));
    // `ftl.low_water` is named if a smaller value would fit
    let collection = params.get(GC_MODE) == "dual"
        && u64::from(params.get(LOW_WATER)) > missing
        && low_water - missing > u64::from(streams.collection + more);
    let (key, way_out) = if collection {
        ("ftl.low_water", format!("give at most {} or", low_water - missing))
    } else if usable > 0 {
        let share = f64::from(layout.slots()) / usable as f64 - 1.0;
        ("drive.over_provisioning", format!("give at least {:.3} or", (share * 1e3).ceil() / 1e3))
    } else {
        ("drive.over_provisioning", "no value of this key is enough:".to_owned())
    };
    Err(ConfigError::new(
        key,
        format!(
            "{} logical units do not fit: of the {} blocks in each of {} lanes, the scheme \
             reserves {reserve} for frontiers, collection and map pages ({map_quota} for map \
             pages), which leaves room for {usable} units; {way_out} lower the reserve \
             (ftl.low_water, ftl.streams, ftl.slc_static, ftl.flush_blocks, \
             map.over_provisioning, drive.frame_*)",
            layout.logical_units, layout.blocks_per_lane, layout.lanes,
        ),
    ))
}

impl PageSettings {
    /// Returns the settings that a configuration describes.
    pub fn new(config: &SchemeConfig<'_>, layout: &Layout) -> PageSettings {
        let params = config.params;
        let streams = streams(config).expect("the configuration is checked");
        let quota = map_quota(config, layout).expect("the configuration is checked");
        PageSettings {
            mode: if params.get(GC_MODE) == "single" { GcMode::Single } else { GcMode::Dual },
            pace: match params.get(GC_PACE) {
                "paced" => GcPace::Paced,
                "even" => GcPace::Even,
                _ => GcPace::Burst,
            },
            gc_step: params.get(GC_STEP),
            streams,
            classified: params.get(CLASSIFIER) != "none",
            low_water: low_water(params, streams),
            gc_parallel: params.get(GC_PARALLEL),
            victim: config.parts.victim(params.get(VICTIM)).expect("resolved").name,
            classifier: config.parts.classifier(params.get(CLASSIFIER)).expect("resolved").name,
            idle_free: params.get(IDLE_FREE),
            idle_valid: (params.get(IDLE_VALID) * f64::from(layout.slots_per_block)) as u32,
            wear_static: params.get(WEAR_STATIC),
            wear_threshold: params.get(WEAR_THRESHOLD),
            map_quota: quota,
            slc: SlcSettings::of(params),
            lower_pages: LowerPages::of(params),
            steps: StepsSettings::of(params),
            streams_crowd: streams_crowd(params, layout, streams),
            refresh: RefreshSettings::new(params, quota),
        }
    }

    /// Returns the room that a lane keeps at the pace `paced`, in blocks. This is the low-water
    /// mark, plus one block for each frontier except the frontier that the host has filled.
    ///
    /// The rest of the other frontiers and the collected part of the victim count as room. So when
    /// the host opens a block, the free blocks are at the mark, and the victim becomes free later
    /// without taking a block. Cold data has its own room.
    pub fn blocks_of_room(&self) -> u32 {
        self.low_water + self.cold_frontier().number() - 1
    }

    /// Returns `true` if collection keeps the room of a lane constant.
    pub fn is_paced(&self) -> bool {
        self.pace == GcPace::Paced
    }

    /// Returns the frontier for a stream of host writes. The host has the first frontiers.
    #[inline]
    pub fn frontier_of_host(&self, stream: StreamId) -> FrontierId {
        FrontierId::new(stream.number())
    }

    /// Returns the frontier for a stream of collection. In dual mode collection has its own
    /// frontiers, otherwise it uses the frontiers of the host.
    #[inline]
    pub fn frontier_of_copies(&self, stream: StreamId) -> FrontierId {
        match self.mode {
            GcMode::Single => FrontierId::new(stream.number()),
            GcMode::Dual => FrontierId::new(self.host_frontiers() + stream.number()),
        }
    }

    /// Returns the frontier of the SLC cache, or `None` without an SLC cache. It follows the host's
    /// other frontiers.
    #[inline]
    pub fn slc_frontier(&self) -> Option<FrontierId> {
        self.slc.map(|_| FrontierId::new(self.streams.host))
    }

    /// Returns the number of the host's frontiers.
    #[inline]
    fn host_frontiers(&self) -> u32 {
        self.streams.host + u32::from(self.slc.is_some())
    }

    /// Returns the first frontier of collection in dual mode. It follows the frontiers of the host.
    pub fn first_of_collection(&self) -> FrontierId {
        FrontierId::new(self.host_frontiers())
    }

    /// Returns the frontier of cold data. It follows the frontiers of the host and, in dual mode,
    /// the frontiers of collection.
    pub fn cold_frontier(&self) -> FrontierId {
        let of_collection = if self.mode == GcMode::Dual { self.streams.collection } else { 0 };
        FrontierId::new(self.host_frontiers() + of_collection)
    }

    /// Returns a table with the same entry for each frontier of a lane. After the host's frontiers
    /// come, in dual mode, the frontiers of collection. With static wear levelling, the frontier of
    /// cold data is last.
    pub fn per_frontier<T: Clone>(&self, entry: T) -> TiVec<FrontierId, T> {
        ti_vec![entry; self.cold_frontier().index() + usize::from(self.wear_static)]
    }

    /// Returns a table with the same entry for each host frontier.
    pub fn per_host_frontier<T: Clone>(&self, entry: T) -> TiVec<FrontierId, T> {
        ti_vec![entry; self.first_of_collection().index()]
    }
}
