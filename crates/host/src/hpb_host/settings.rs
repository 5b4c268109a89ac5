//! Parameters, of both sides, and what the host makes of them.

use flashatlas_device::hpb::{Protect, Terms};
use flashatlas_device::{DeviceShape, LayersBelow};
use flashatlas_types::{ConfigError, Dur, ParamDef, ParamKind, Params, Ps, SECTOR_BYTES, Value};

const fn int(
    key: &'static str,
    low: u64,
    high: u64,
    default: &'static str,
    doc: &'static str,
) -> ParamDef {
    ParamDef { key, kind: ParamKind::Int(low, high), default: Some(default), doc }
}

const fn bytes(key: &'static str, low: u64, default: &'static str, doc: &'static str) -> ParamDef {
    ParamDef { key, kind: ParamKind::Bytes(low, 1 << 40), default: Some(default), doc }
}

const fn choice(
    key: &'static str,
    of: &'static [&'static str],
    default: &'static str,
    doc: &'static str,
) -> ParamDef {
    ParamDef { key, kind: ParamKind::Choice(of), default: Some(default), doc }
}

const fn time(key: &'static str, default: &'static str, doc: &'static str) -> ParamDef {
    ParamDef { key, kind: ParamKind::Time, default: Some(default), doc }
}

pub(super) const PARAMS: &[ParamDef] = &[
    bytes(
        "hpb.region",
        512,
        "16MiB",
        "bytes of the drive that a region covers: the host drops regions (JEDEC: bHPBRegionSize)",
    ),
    bytes(
        "hpb.subregion",
        512,
        "16MiB",
        "bytes that a subregion covers: what is fetched at once, and what one changed entry makes \
         stale (the paper's group; 16 MB: one of its map pages)",
    ),
    bytes(
        "hpb.host_bytes",
        0,
        "2MiB",
        "host memory for entries (Linux's pool: 2,048 KB, the entries of 1 GB)",
    ),
    ParamDef {
        key: "hpb.pressure",
        kind: ParamKind::Text,
        default: Some(""),
        doc: "the host runs short of memory during the run: `2s=1MiB,5s=256KiB` lets \
              hpb.host_bytes be so much from these times on",
    },
    int(
        "hpb.pinned_regions",
        0,
        1 << 20,
        "0",
        "so many regions, from the first on, are fetched at the start and never dropped",
    ),
    choice(
        "hpb.control",
        &["device", "host"],
        "device",
        "who decides what the host caches: the drive recommends subregions, or the host counts its \
         reads",
    ),
    choice(
        "hpb.update",
        &["fetch", "piggyback"],
        "fetch",
        "how entries that have changed reach the host: it fetches the subregion, or they come with \
         responses (only with hpb.protect = plain)",
    ),
    choice(
        "hpb.protect",
        &["plain", "tagged", "encrypted"],
        "tagged",
        "entries of 4 bytes that anyone may forge; of 8 with generation and tag; of 4, encrypted",
    ),
    choice(
        "hpb.dirty",
        &["group", "page"],
        "group",
        "what the drive knows to have changed: subregions, a bit each; or pages, a bit each (4 MB \
         of SRAM for 128 GB)",
    ),
    int("hpb.requests", 1, 32, "1", "subregions that are fetched at the same time"),
    bytes(
        "hpb.max_read",
        512,
        "4KiB",
        "the longest read that brings entries along, one for each page of it (HPB 1.0: 4 KB, which \
         has room for one; longer ones need a header segment of UFS 3.0)",
    ),
    int(
        "hpb.activation_reads",
        1,
        1 << 20,
        "8",
        "reads of a subregion that the host does not cache after which it is fetched (Linux: 8)",
    ),
    int(
        "hpb.refresh_reads",
        1,
        1 << 20,
        "4",
        "reads of a subregion that has changed since it was fetched after which it is fetched \
         again",
    ),
    int(
        "hpb.active_regions",
        0,
        1 << 20,
        "0",
        "regions that the drive has the host cache at once; 0: as many as there are",
    ),
    int(
        "hpb.pairs",
        1,
        4096,
        "8",
        "entries that one response takes along, with hpb.update = piggyback",
    ),
    int(
        "hpb.changes",
        1,
        1 << 24,
        "4096",
        "changed entries that wait in the drive for a response; a subregion with more must be \
         fetched",
    ),
    ParamDef {
        key: "hpb.remark",
        kind: ParamKind::Bool,
        default: Some("true"),
        doc: "what is written while a subregion is on its way is not read by the entries that \
              arrive; false: the driver of Linux, which forgets such writes, so that only the \
              drive notices",
    },
    int(
        "hpb.eviction_enter",
        0,
        1 << 30,
        "256",
        "host control: reads of a region before another is dropped for it (Linux: 256)",
    ),
    int(
        "hpb.eviction_exit",
        0,
        1 << 30,
        "128",
        "host control: with more reads than these a region is not dropped (Linux: 128)",
    ),
    time(
        "hpb.read_timeout",
        "1000ms",
        "host control: after this time a region's timer expires (Linux: 1,000 ms)",
    ),
    int(
        "hpb.timeout_expiries",
        1,
        1 << 20,
        "100",
        "host control: a region is dropped when its timer has expired so often (Linux: 100); one \
         that was written, the first time",
    ),
    time("hpb.poll", "200ms", "host control: how often timers are looked at (Linux: 200 ms)"),
    int(
        "hpb.key",
        0,
        u64::MAX,
        "1",
        "what the drive's keys are drawn from, so that runs can be repeated (a real drive takes \
         noise)",
    ),
    time(
        "hpb.hash_time",
        "20ns",
        "the drive's time for a SipHash-2-4 of an entry: 8 rounds, of a cycle each at 400 MHz \
         (assumed)",
    ),
];

/// What may stand between the host and the map.
pub(super) fn fits(params: &Params, lower: &LayersBelow<'_>) -> Result<DeviceShape, ConfigError> {
    let no = |why: String| Err(ConfigError::new("layers", why));
    if let Some(layer) = lower.layers.first() {
        return no(format!(
            "hpb-host must stand on the drive itself: the entries it caches are of the drive's \
             map, and `{0}` below has one of its own; `{0},hpb-host` would do",
            layer.name
        ));
    }
    let scheme = params.text("ftl.scheme");
    if scheme != "page" {
        return no(format!(
            "hpb-host caches the map of ftl.scheme = page; {scheme} has no map of pages to hand out"
        ));
    }
    let store = params.text("map.store");
    let stores = &lower.registry.ftl;
    if !stores.store(store)?.exports_entries {
        let able = stores.stores.iter().filter(|m| m.exports_entries).map(|m| m.name);
        let able: Vec<&str> = able.collect();
        return no(format!(
            "hpb-host saves reads of map pages, which map.store = {store} does not hand out (its \
             map is in the drive's memory, or is learned): it needs one of {}",
            able.join(", ")
        ));
    }
    let unit = u64::from(lower.shape.unit_sectors * SECTOR_BYTES);
    for key in ["hpb.subregion", "hpb.max_read"] {
        let bytes = params.int(key);
        if bytes % unit != 0 || bytes == 0 {
            return Err(ConfigError::new(
                key,
                format!("{bytes} bytes are no whole number of the drive's pages ({unit} bytes)"),
            ));
        }
    }
    let (region, subregion) = (params.int("hpb.region"), params.int("hpb.subregion"));
    if region % subregion != 0 {
        return Err(ConfigError::new(
            "hpb.region",
            format!("{region} bytes are no whole number of subregions of {subregion}"),
        ));
    }
    let regions = lower.shape.bytes().div_ceil(region);
    if regions > 1 << 16 || region / subregion > 1 << 16 {
        let key = if regions > 1 << 16 { "hpb.region" } else { "hpb.subregion" };
        return Err(ConfigError::new(
            key,
            format!(
                "{regions} regions of {} subregions: commands have 16 bits for either",
                region / subregion
            ),
        ));
    }
    let shape = lower.shape;
    let settings = HpbSettings::new(params, shape)?;
    let (fetched, _) = settings.terms.host_bytes();
    if fetched >= 1 << 24 {
        let why = format!(
            "the entries of a subregion take {fetched} bytes, READ BUFFER has 24 bits for their \
             number"
        );
        return Err(ConfigError::new("hpb.subregion", why));
    }
    if params.text("hpb.update") == "piggyback" {
        if params.text("hpb.protect") != "plain" {
            return Err(ConfigError::new(
                "hpb.update",
                "piggyback needs hpb.protect = plain: a generation is that of a subregion, and an \
                 entry that comes alone could not be told from the one it replaces",
            ));
        }
        if params.text("hpb.dirty") != "group" {
            return Err(ConfigError::new(
                "hpb.update",
                "piggyback needs hpb.dirty = group: a page stays changed until its subregion is \
                 fetched",
            ));
        }
    }
    let least = settings.subregion_bytes();
    if settings.memory[0].1 < least {
        return Err(ConfigError::new(
            "hpb.host_bytes",
            format!(
                "{} bytes hold no subregion: the entries of one ({} pages) take {least}; to cache \
                 nothing, leave the layer out",
                settings.memory[0].1, settings.terms.subregion
            ),
        ));
    }
    let pinned = settings.pinned_subregions();
    if u64::from(pinned) * least > settings.memory.iter().map(|m| m.1).min().unwrap_or(0) {
        return Err(ConfigError::new(
            "hpb.pinned_regions",
            format!(
                "the entries of {pinned} pinned subregions take {} bytes, more than hpb.host_bytes \
                 (hpb.pressure)",
                u64::from(pinned) * least
            ),
        ));
    }
    Ok(shape)
}

/// How the host works.
#[derive(Clone, Debug)]
pub(super) struct HpbSettings {
    pub terms: Terms,
    /// Host memory for entries, in bytes, from these times on; the first is time zero.
    pub memory: Vec<(Ps, u64)>,
    pub pinned_regions: u32,
    pub requests: usize,
    pub remark: bool,
    pub eviction_enter: u32,
    pub eviction_exit: u32,
    pub read_timeout: Dur,
    pub timeout_expiries: u32,
    pub poll: Dur,
}

impl HpbSettings {
    pub fn new(params: &Params, shape: DeviceShape) -> Result<HpbSettings, ConfigError> {
        let terms = Terms::new(params, shape.units(), shape.unit_sectors);
        let mut memory = vec![(Ps::ZERO, params.int("hpb.host_bytes"))];
        memory.extend(pressure(params.text("hpb.pressure"))?);
        Ok(HpbSettings {
            pinned_regions: params.u32("hpb.pinned_regions").min(terms.region_count()),
            terms,
            memory,
            requests: params.u32("hpb.requests") as usize,
            remark: params.flag("hpb.remark"),
            eviction_enter: params.u32("hpb.eviction_enter"),
            eviction_exit: params.u32("hpb.eviction_exit"),
            read_timeout: params.time("hpb.read_timeout"),
            timeout_expiries: params.u32("hpb.timeout_expiries"),
            poll: params.time("hpb.poll"),
        })
    }

    /// Host memory that the entries of a subregion take, with a bit for each that was written over.
    pub fn subregion_bytes(&self) -> u64 {
        let (entries, bits) = self.terms.host_bytes();
        entries + bits
    }

    /// Subregions of the pinned regions.
    pub fn pinned_subregions(&self) -> u32 {
        (self.pinned_regions * self.terms.subregions).min(self.terms.subregion_count())
    }

    /// Whether someone who forges entries could read what is not the page.
    pub fn trusts_the_host(&self) -> bool {
        self.terms.protect == Protect::Plain
    }
}

/// `2s=1MiB,5s=256KiB`.
fn pressure(text: &str) -> Result<Vec<(Ps, u64)>, ConfigError> {
    const KEY: &str = "hpb.pressure";
    let wrong = |step: &str, why: &str| {
        ConfigError::new(KEY, format!("`{step}`: {why}, such as 2s=1MiB,5s=256KiB"))
    };
    let mut steps: Vec<(Ps, u64)> = Vec::new();
    for step in text.split(',').map(str::trim).filter(|step| !step.is_empty()) {
        let (at, bytes) =
            step.split_once('=').ok_or_else(|| wrong(step, "expected a time and bytes"))?;
        let at = time(KEY, "", "").parse(at.trim())?;
        let bytes = self::bytes(KEY, 0, "", "").parse(bytes.trim())?;
        let (Value::Time(at), Value::Int(bytes)) = (at, bytes) else {
            unreachable!("they are what was asked for")
        };
        if steps.last().is_some_and(|last| Ps::ZERO.after(at) <= last.0) {
            return Err(wrong(step, "expected times that ascend"));
        }
        steps.push((Ps::ZERO.after(at), bytes));
    }
    Ok(steps)
}
