//! Parameters of a drive, and of the parts that its configuration names.

use crate::Registry;
pub use crate::capacity::BLOCKS;
pub(crate) use crate::capacity::{CAPACITY, LOGICAL_PAGES, OVER_PROVISIONING};
use crate::power::PARAMS as POWER_PARAMS;
use flashatlas_ftl::maps::MapStoreDef;
use flashatlas_lookup::hashes::HashDef;
use flashatlas_types::{
    ConfigError, Dur, Entry, PageOrder, Param, ParamDef, Params, RawConfig, Text,
};

/// The parameter `drive.summary`.
pub const SUMMARY: Param<Text> = Param::text("drive.summary", "description of the drive").or("");

pub(crate) const CHANNELS: Param<u32> = Param::int("drive.channels", 1, 64, "channels");

pub(crate) const WAYS: Param<u32> =
    Param::int("drive.ways", 1, 64, "packages (chip enables) on a channel");

pub(crate) const DIES: Param<u32> = Param::int("drive.dies", 1, 16, "dies in a package");

pub(crate) const PLANES: Param<u32> = Param::int("drive.planes", 1, 16, "planes in a die");

pub(crate) const PAGES: Param<u32> =
    Param::int("drive.pages", 1, 1 << 16, "pages in an erase block");

pub(crate) const PAGE_BYTES: Param<u32> =
    Param::bytes("drive.page_bytes", 512, 1 << 20, "data bytes of a page");

pub(crate) const SPARE_BYTES: Param<u32> =
    Param::bytes("drive.spare_bytes", 16, 1 << 16, "spare bytes of a page");

pub(crate) const CELL: Param<Text> =
    Param::choice("drive.cell", &["slc", "mlc", "tlc", "qlc"], "bits in a cell");

pub(crate) const FRAME_CHANNELS: Param<u32> =
    Param::int("drive.frame_channels", 1, 64, "channels under one program unit (superpage)")
        .or("1");

pub(crate) const FRAME_WAYS: Param<u32> =
    Param::int("drive.frame_ways", 1, 64, "ways under one program unit (superpage)").or("1");

pub(crate) const FRAME_DIES: Param<u32> =
    Param::int("drive.frame_dies", 1, 16, "dies of a package under one program unit (superpage)")
        .or("1");

pub(crate) const FRAME_PLANES: Param<u32> = Param::int(
    "drive.frame_planes",
    1,
    16,
    "planes under one program unit (multi-plane operations)",
)
.or("1");

pub(crate) const PROGRAM_UNIT: Param<Text> = Param::choice(
    "drive.program_unit",
    &["page", "word-line"],
    "what one program writes on each plane of its frame: `page`: one page; `word-line`: all pages \
     of a word line together, in timing.t_program; a frame then has all these pages",
)
.or("page");

pub(crate) const PAGE_ORDER: Param<Text> = Param::choice(
    "drive.page_order",
    &PageOrder::NAMES,
    "order of the pages of a block, which determines the kind of each page and its paired pages: \
     `consecutive`: word line by word line (no real part does this); `shadow`: MLC, the lower page \
     of the next word line before the upper page (Cai et al., HPCA 2017; Linux); \
     `shadow-even-odd`: with two pages of a kind on each word line (MLC: data sheets of Samsung; \
     TLC: MQSim, FEMU and SimpleSSD; QLC: FEMU)",
)
.or("consecutive");

pub(crate) const ALLOCATION: Param<Text> = Param::text(
    "drive.allocation",
    "order in which consecutive frames visit Channels, Ways, Dies and Planes: the first letter \
     changes fastest; 24 orders",
)
.or("CWDP");

pub(crate) const CACHE_MODE: Param<Text> = Param::choice(
    "cache.mode",
    &["write-back", "write-through"],
    "`write-back`: a write completes when it is in the cache; `write-through`: when it is on \
     flash, and a partly filled frame is padded",
)
.or("write-back");

pub(crate) const CACHE_BYTES: Param<u64> =
    Param::bytes("cache.bytes", 0, 1 << 40, "size of the write cache").or("1MiB");

pub(crate) const CACHE_HIGH: Param<f64> = Param::ratio(
    "cache.high",
    0.0,
    1.0,
    "if dirty units fill more than this share of the cache, the least recently written units leave",
)
.or("0.75");

pub(crate) const CACHE_LOW: Param<f64> = Param::ratio(
    "cache.low",
    0.0,
    1.0,
    "units stop leaving when dirty units fill no more than this share of the cache",
)
.or("0.5");

pub(crate) const CACHE_AHEAD: Param<u32> = Param::int(
    "cache.ahead",
    1,
    1 << 20,
    "largest number of frames of each lane on their way from the cache to flash; at this number, \
     units leave the cache only if a write needs their room",
)
.or("4");

pub(crate) const COMMAND_TIME: Param<Dur> = Param::time(
    "host.command_time",
    "fixed time in which the controller handles a command, before any other work on the command",
)
.or("0");

pub(crate) const UNIT_TIME: Param<Dur> = Param::time(
    "firmware.unit_time",
    "time that the controller takes for each mapping unit of a read, write or trim, in addition to \
     host.command_time",
)
.or("0");

pub(crate) const LAYERS: Param<Text> = Param::text(
    "layers",
    "layers that the host puts over the drive, from the top down: names, separated by commas; see \
     `flashatlas layers`",
)
.or("");

/// The parameter `host.queue_depth`.
pub const QUEUE_DEPTH: Param<u32> =
    Param::int("host.queue_depth", 1, 1 << 16, "largest number of commands in flight in the drive")
        .or("32");

pub(crate) const IDLE_AFTER: Param<Dur> = Param::time(
    "host.idle_after",
    "time without a command after which the drive begins background work",
)
.or("100ms");

pub(crate) const IDLE: Param<Text> = Param::choice(
    "host.idle",
    &["after", "predicted"],
    "when the drive begins background work: `after`: without a command for host.idle_after; \
     `predicted`: immediately, if the rest of the gap is predicted to be long enough for a step of \
     work, and otherwise when the gap has outlasted its prediction by host.idle_after",
)
.or("after");

/// Keys that a configuration leaves out while they have their default, each with its default as
/// text.
///
/// These keys came after drives were first kept in images, checkpoints and records. A drive that
/// uses none of them is the same drive as before.
pub(crate) const UNSAID: &[(&str, &str)] = &[
    ("drive.capacity", "0"),
    ("drive.page_order", "consecutive"),
    ("drive.program_unit", "page"),
    ("ecc.code", "ldpc-soft"),
    ("ecc.codeword", "0"),
    ("ecc.correctable", "0"),
    ("ecc.decode", "0ns"),
    ("ecc.parity", "none"),
    ("ecc.parity_time", "0ns"),
    ("ecc.retry_gain", "0.7"),
    ("ecc.retry_overlap", "false"),
    ("ecc.retry_steps", "8"),
    ("ecc.soft_correctable", "0"),
    ("ecc.soft_decode", "0ns"),
    ("ecc.soft_reads", "0"),
    ("energy.erase_nj", "0"),
    ("energy.erase_slc_nj", "0"),
    ("energy.program_nj", "0"),
    ("energy.program_slc_nj", "0"),
    ("energy.read_nj", "0"),
    ("energy.read_slc_nj", "0"),
    ("errors.a", "-1"),
    ("errors.b", "-1"),
    ("errors.block_spread", "0.2"),
    ("errors.cycles", "0"),
    ("errors.e", "-1"),
    ("errors.erase_failures", "0"),
    ("errors.g", "-1"),
    ("errors.k", "-1"),
    ("errors.layer_spread", "1"),
    ("errors.m", "-1"),
    ("errors.model", "none"),
    ("errors.n", "-1"),
    ("errors.p", "-1"),
    ("errors.page_spread", "1"),
    ("errors.program_failures", "0"),
    ("errors.q", "-1"),
    ("errors.rest_days", "0"),
    ("errors.slc_factor", "0.1"),
    ("errors.time_unit", "day"),
    ("errors.unreadable", "0"),
    ("firmware.cores", "0"),
    ("firmware.flash_time", "0ns"),
    ("firmware.unit_time", "0ns"),
    ("ftl.copyback", "none"),
    ("ftl.copyback_max", "3"),
    ("ftl.flush", "pad"),
    ("ftl.flush_blocks", "0"),
    ("ftl.lower_pages", "none"),
    ("ftl.program_steps", "1"),
    ("ftl.read_reclaim", "0"),
    ("ftl.refresh", "0"),
    ("ftl.refresh_check", "60000000000ns"),
    ("ftl.slc", "none"),
    ("ftl.slc_dynamic", "0"),
    ("ftl.slc_keep", "0"),
    ("ftl.slc_static", "0"),
    ("ftl.throttle_from", "0"),
    ("ftl.throttle_rate", "0"),
    ("ftl.worn_out", "stop"),
    ("host.idle", "after"),
    ("memory.dram_burst", "0"),
    ("memory.dram_shared_rate", "0"),
    ("nand.plp_bytes", "0"),
    ("nand.slc_wear", "1"),
    ("power.channel_mw", "0"),
    ("power.core_mw", "0"),
    ("power.idle_mw", "0"),
    ("power.link_mw", "0"),
    ("power.ps3_after", "0ns"),
    ("power.ps3_entry", "0ns"),
    ("power.ps3_exit", "0ns"),
    ("power.ps3_mw", "0"),
    ("power.ps4_after", "0ns"),
    ("power.ps4_entry", "0ns"),
    ("power.ps4_exit", "0ns"),
    ("power.ps4_mw", "0"),
    ("power.work_mw", "0"),
    ("timing.erase_suspends_max", "0"),
    ("timing.plane_reads", "together"),
    ("timing.plane_reads_kinds", "any"),
    ("timing.plane_reads_max", "0"),
    ("timing.t_program_first", "0ns"),
    ("timing.t_program_second", "0ns"),
    ("timing.t_program_slc", "0ns"),
    ("timing.t_program_third", "0ns"),
    ("timing.t_program_top", "0ns"),
    ("timing.t_read_slc", "0ns"),
    ("timing.t_read_top", "0ns"),
    ("timing.t_resume_suspend", "0ns"),
    ("timing.t_status", "0ns"),
];

/// Parameters of the board, the controller and its write cache.
pub const PARAMS: &[ParamDef] = &[
    SUMMARY.def,
    CHANNELS.def,
    WAYS.def,
    DIES.def,
    PLANES.def,
    BLOCKS.def,
    PAGES.def,
    PAGE_BYTES.def,
    SPARE_BYTES.def,
    CELL.def,
    FRAME_CHANNELS.def,
    FRAME_WAYS.def,
    FRAME_DIES.def,
    FRAME_PLANES.def,
    PROGRAM_UNIT.def,
    PAGE_ORDER.def,
    ALLOCATION.def,
    LOGICAL_PAGES.def,
    OVER_PROVISIONING.def,
    CAPACITY.def,
    CACHE_MODE.def,
    CACHE_BYTES.def,
    CACHE_HIGH.def,
    CACHE_LOW.def,
    CACHE_AHEAD.def,
    COMMAND_TIME.def,
    UNIT_TIME.def,
    LAYERS.def,
    QUEUE_DEPTH.def,
    IDLE.def,
    IDLE_AFTER.def,
];

/// Returns the parameters that every drive has, whatever its scheme.
pub fn common_params() -> Vec<&'static ParamDef> {
    [
        PARAMS,
        &POWER_PARAMS,
        flashatlas_nand::PARAMS,
        flashatlas_timing::PARAMS,
        flashatlas_ftl::PARAMS,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Checks `raw` against all parameters that the drive's parts declare, and returns the values.
pub(crate) fn resolve(registry: &Registry, raw: &RawConfig) -> Result<Params, ConfigError> {
    let (scheme, defs) = declared(registry, raw)?;
    raw.resolve(&defs, |key| owner(registry, key, scheme))
}

/// Keys that choose the parts of a drive.
const CHOICES: [&str; 6] =
    ["ftl.scheme", "map.store", "map.policy", "ftl.victim", "ftl.classifier", "layers"];

/// Removes the keys of parts that `--set` has replaced with other parts from `raw`, and returns
/// these keys. Keys that `--set` itself sets stay.
pub(crate) fn drop_of_others(
    registry: &Registry,
    raw: &mut RawConfig,
) -> Result<Vec<String>, ConfigError> {
    if !CHOICES.iter().any(|key| raw.place(key) == SET) {
        return Ok(Vec::new());
    }
    let (scheme, defs) = declared(registry, raw)?;
    let belongs = |key: &str| defs.iter().any(|def| def.key == key);
    let others: Vec<String> = raw
        .iter()
        .map(|(key, _)| key)
        .filter(|&key| raw.place(key) != SET && !belongs(key))
        .filter(|&key| owner(registry, key, scheme).is_some())
        .map(str::to_owned)
        .collect();
    others.iter().for_each(|key| raw.remove(key));
    Ok(others)
}

/// Place of a setting that the user passed with `--set`.
pub(crate) const SET: &str = "set";

/// Returns the scheme that `raw` names, and every parameter that the parts named in `raw` declare.
fn declared(
    registry: &Registry,
    raw: &RawConfig,
) -> Result<(&'static str, Vec<&'static ParamDef>), ConfigError> {
    let text = |key: &str| raw.text(key).map(str::to_owned);
    let placed = |e: ConfigError| {
        let place = raw.place(&e.key).to_owned();
        e.at(place)
    };
    let scheme = text("ftl.scheme").unwrap_or("page".into());
    let scheme = registry.ftl.scheme(&scheme).map_err(placed)?;
    let mut defs = common_params();
    defs.extend((scheme.params)(&registry.ftl, &text).map_err(placed)?);
    let layers = registry.layers_named(&text("layers").unwrap_or_default()).map_err(placed)?;
    for (i, layer) in layers.iter().enumerate() {
        if layers[..i].iter().any(|l| l.name == layer.name) {
            return Err(placed(ConfigError::new(
                "layers",
                format!("the layer `{}` is named twice", layer.name),
            )));
        }
        defs.extend(layer.params);
    }
    Ok((scheme.name, defs))
}

/// Returns a phrase that names the part that declares a key but is not in use.
fn owner(registry: &Registry, key: &str, scheme: &str) -> Option<String> {
    let has = |params: &[ParamDef]| params.iter().any(|p| p.key == key);
    if let Some(v) = registry.ftl.victims.iter().find(|v| has(v.params)) {
        return Some(format!("belongs to ftl.victim = {}, which is not in use", v.name));
    }
    if let Some(c) = registry.ftl.classifiers.iter().find(|c| has(c.params)) {
        return Some(format!("belongs to ftl.classifier = {}, which is not in use", c.name));
    }
    if let Some(m) = registry.ftl.stores.iter().find(|m| has(m.params)) {
        return Some(format!("belongs to map.store = {}, which is not in use", m.name));
    }
    if let Some(c) = registry.ftl.caching.iter().find(|c| has(c.params)) {
        return Some(format!("belongs to map.policy = {}, which is not in use", c.name));
    }
    if let Some(h) = registry.hashes().iter().find(|h| has(h.params)) {
        let chooses = |m: &&MapStoreDef| m.params.iter().any(|p| p.key == HashDef::KEY);
        let store = registry.ftl.stores.iter().find(chooses).map_or("(none)", |m| m.name);
        return Some(format!(
            "belongs to lookup.hash = {}, which map.store = {store} may use, but does not use now",
            h.name
        ));
    }
    if let Some(l) = registry.layers.iter().find(|l| has(l.params)) {
        return Some(format!("belongs to the layer {}, which is not in use (layers)", l.name));
    }
    let other = registry.ftl.schemes.iter().filter(|s| s.name != scheme).find(|s| {
        (s.params)(&registry.ftl, &|_| None).is_ok_and(|params| params.iter().any(|p| p.key == key))
    })?;
    Some(format!("belongs to ftl.scheme = {}; the scheme here is {scheme}", other.name))
}
