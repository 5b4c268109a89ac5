//! Parameters of both sides, and the host's settings that follow from them.

use super::link::{WIRE, WireFormat};
use flashatlas_device::hpb::params::{DIRTY, MAX_READ, PROTECT, REGION, SUBREGION, UPDATE};
use flashatlas_device::hpb::{self, Protect, Terms};
use flashatlas_device::{DeviceShape, LayersBelow};
use flashatlas_ftl::SCHEME;
use flashatlas_ftl::maps::STORE;
use flashatlas_types::params::concat;
use flashatlas_types::{ConfigError, Dur, Param, ParamDef, Params, Ps, SECTOR_BYTES, Text};

const HOST_BYTES: Param<u64> = Param::bytes(
    "hpb.host_bytes",
    0,
    1 << 40,
    "bytes of host memory for entries (Linux's pool: 2,048 KB, which holds the entries of 1 GB)",
)
.or("2MiB");

const PRESSURE: Param<Text> = Param::text(
    "hpb.pressure",
    "times at which the host runs short of memory: `2s=1MiB,5s=256KiB` sets hpb.host_bytes to \
     these sizes from these times on",
)
.or("");

const PINNED_REGIONS: Param<u32> = Param::int(
    "hpb.pinned_regions",
    0,
    1 << 20,
    "number of regions, from the first on, that the host fetches at the start and never drops",
)
.or("0");

const REQUESTS: Param<u32> = Param::int(
    "hpb.requests",
    1,
    32,
    "largest number of subregions that the host fetches at the same time",
)
.or("1");

const REMARK: Param<bool> = Param::flag(
    "hpb.remark",
    "true: the host does not use fetched entries of pages that were written during the fetch; \
     false: the host uses such entries, as Linux does, and the drive must refuse them",
)
.or("true");

const EVICTION_ENTER: Param<u32> = Param::int(
    "hpb.eviction_enter",
    0,
    1 << 30,
    "host control: number of reads of a region before another region is dropped for it (Linux: \
     256)",
)
.or("256");

const EVICTION_EXIT: Param<u32> = Param::int(
    "hpb.eviction_exit",
    0,
    1 << 30,
    "host control: number of reads above which a region is not dropped (Linux: 128)",
)
.or("128");

const READ_TIMEOUT: Param<Dur> = Param::time(
    "hpb.read_timeout",
    "host control: time after which a region's timer expires (Linux: 1,000 ms)",
)
.or("1000ms");

const TIMEOUT_EXPIRIES: Param<u32> = Param::int(
    "hpb.timeout_expiries",
    1,
    1 << 20,
    "host control: number of expiries of its timer at which a region is dropped (Linux: 100); a \
     region that was written is dropped at the first expiry",
)
.or("100");

const POLL: Param<Dur> =
    Param::time("hpb.poll", "host control: time between two checks of the timers (Linux: 200 ms)")
        .or("200ms");

/// The parameters of both sides.
pub(super) const PARAMS: &[ParamDef] = &concat::<25>(&[
    hpb::params::PARAMS,
    &[
        HOST_BYTES.def,
        PRESSURE.def,
        PINNED_REGIONS.def,
        REQUESTS.def,
        REMARK.def,
        EVICTION_ENTER.def,
        EVICTION_EXIT.def,
        READ_TIMEOUT.def,
        TIMEOUT_EXPIRIES.def,
        POLL.def,
        WIRE.def,
    ],
]);

/// Returns the shape that the layer exports, or the reason why it cannot be used over `lower`.
pub(super) fn fits(params: &Params, lower: &LayersBelow<'_>) -> Result<DeviceShape, ConfigError> {
    let no = |why: String| Err(ConfigError::new("layers", why));
    if let Some(layer) = lower.layers.first() {
        return no(format!(
            "hpb-host must be directly above the drive, because it caches entries of the drive's \
             map, but the layer `{0}` below has a map of its own; use `{0},hpb-host`",
            layer.name
        ));
    }
    let scheme = params.get(SCHEME);
    if scheme != "page" {
        return no(format!(
            "hpb-host caches the map of ftl.scheme = page, but the scheme `{scheme}` exports no \
             map of pages"
        ));
    }
    let store = params.get(STORE);
    let stores = &lower.registry.ftl;
    if !stores.store(store)?.exports_entries {
        let able = stores.stores.iter().filter(|m| m.exports_entries).map(|m| m.name);
        let able: Vec<&str> = able.collect();
        return no(format!(
            "hpb-host saves reads of map pages, but map.store = {store} exports no map pages \
             (the map is in the drive's memory, or is learned): use one of the stores {}",
            able.join(", ")
        ));
    }
    let unit = u64::from(lower.shape.unit_sectors * SECTOR_BYTES);
    for param in [SUBREGION, MAX_READ] {
        let bytes = params.get(param);
        if bytes % unit != 0 || bytes == 0 {
            return Err(ConfigError::new(
                param.key(),
                format!(
                    "{bytes} bytes are not a whole number of pages of the drive ({unit} bytes)"
                ),
            ));
        }
    }
    let (region, subregion) = (params.get(REGION), params.get(SUBREGION));
    if region % subregion != 0 {
        return Err(ConfigError::new(
            "hpb.region",
            format!("{region} bytes are not a whole number of subregions of {subregion} bytes"),
        ));
    }
    let regions = lower.shape.bytes().div_ceil(region);
    if regions > 1 << 16 || region / subregion > 1 << 16 {
        let key = if regions > 1 << 16 { "hpb.region" } else { "hpb.subregion" };
        return Err(ConfigError::new(
            key,
            format!(
                "{regions} regions of {} subregions are too many: a command has 16 bits for each \
                 of the two numbers",
                region / subregion
            ),
        ));
    }
    let shape = lower.shape;
    let settings = HpbSettings::new(params, shape)?;
    let (fetched, _) = settings.terms.host_bytes();
    if fetched >= 1 << 24 {
        let why = format!(
            "the entries of a subregion take {fetched} bytes, but READ BUFFER has 24 bits for the \
             number of bytes"
        );
        return Err(ConfigError::new("hpb.subregion", why));
    }
    if params.get(UPDATE) == "piggyback" {
        if params.get(PROTECT) != "plain" {
            return Err(ConfigError::new(
                "hpb.update",
                "`piggyback` needs hpb.protect = plain: a generation belongs to a whole subregion, \
                 so the host could not distinguish a single new entry from the old entry",
            ));
        }
        if params.get(DIRTY) != "group" {
            return Err(ConfigError::new(
                "hpb.update",
                "`piggyback` needs hpb.dirty = group: with `page`, a page counts as changed until \
                 its subregion is fetched",
            ));
        }
    }
    settings.wire.fits(&settings.terms, settings.read_pages)?;
    let least = settings.subregion_bytes();
    if settings.memory[0].1 < least {
        return Err(ConfigError::new(
            "hpb.host_bytes",
            format!(
                "{} bytes are less than one subregion needs: its entries ({} pages) take {least} \
                 bytes; to cache nothing, leave the layer out",
                settings.memory[0].1, settings.terms.subregion
            ),
        ));
    }
    let pinned = settings.pinned_subregions();
    if u64::from(pinned) * least > settings.memory.iter().map(|m| m.1).min().unwrap_or(0) {
        return Err(ConfigError::new(
            "hpb.pinned_regions",
            format!(
                "the entries of {pinned} pinned subregions take {} bytes, which is more than \
                 hpb.host_bytes (or a size in hpb.pressure)",
                u64::from(pinned) * least
            ),
        ));
    }
    Ok(shape)
}

/// Settings of the host.
#[derive(Clone, Debug)]
pub(super) struct HpbSettings {
    pub terms: Terms,
    /// Host memory for entries in bytes, each with the time from which on it holds. The first time
    /// is zero.
    pub memory: Vec<(Ps, u64)>,
    pub pinned_regions: u32,
    pub requests: usize,
    pub remark: bool,
    pub eviction_enter: u32,
    pub eviction_exit: u32,
    pub read_timeout: Dur,
    pub timeout_expiries: u32,
    pub poll: Dur,
    pub wire: WireFormat,
    /// Number of pages of the longest read with entries.
    read_pages: u64,
}

impl HpbSettings {
    pub fn new(params: &Params, shape: DeviceShape) -> Result<HpbSettings, ConfigError> {
        let terms = Terms::new(params, shape.units(), shape.unit_sectors);
        let mut memory = vec![(Ps::ZERO, params.get(HOST_BYTES))];
        memory.extend(pressure(params.get(PRESSURE))?);
        Ok(HpbSettings {
            pinned_regions: params.get(PINNED_REGIONS).min(terms.region_count()),
            terms,
            memory,
            requests: params.get(REQUESTS) as usize,
            remark: params.get(REMARK),
            eviction_enter: params.get(EVICTION_ENTER),
            eviction_exit: params.get(EVICTION_EXIT),
            read_timeout: params.get(READ_TIMEOUT),
            timeout_expiries: params.get(TIMEOUT_EXPIRIES),
            poll: params.get(POLL),
            wire: WireFormat::parse(params),
            read_pages: params.get(MAX_READ) / u64::from(shape.unit_sectors * SECTOR_BYTES),
        })
    }

    /// Returns the bytes of host memory of a subregion: its entries, and a bit for each page.
    pub fn subregion_bytes(&self) -> u64 {
        let (entries, bits) = self.terms.host_bytes();
        entries + bits
    }

    /// Returns the number of subregions of the pinned regions.
    pub fn pinned_subregions(&self) -> u32 {
        (self.pinned_regions * self.terms.subregions).min(self.terms.subregion_count())
    }

    /// Returns `true` if the wire format needs several commands for a read that is timed as one
    /// command.
    pub fn sends_pages_one_by_one(&self) -> bool {
        self.read_pages > 1 && matches!(self.wire, WireFormat::Paper | WireFormat::Samsung)
    }

    /// Returns `true` if a host with forged entries could read data that is not the page's present
    /// data.
    pub fn trusts_the_host(&self) -> bool {
        self.terms.protect == Protect::Plain
    }
}

/// Returns the steps in a text such as `2s=1MiB,5s=256KiB`.
fn pressure(text: &str) -> Result<Vec<(Ps, u64)>, ConfigError> {
    const AT: Param<Dur> = Param::time(PRESSURE.key(), "when");
    const BYTES: Param<u64> = Param::bytes(PRESSURE.key(), 0, 1 << 40, "how much is left then");
    let wrong = |step: &str, why: &str| {
        ConfigError::new(PRESSURE.key(), format!("`{step}`: {why}, such as 2s=1MiB,5s=256KiB"))
    };
    let mut steps: Vec<(Ps, u64)> = Vec::new();
    for step in text.split(',').map(str::trim).filter(|step| !step.is_empty()) {
        let (at, bytes) =
            step.split_once('=').ok_or_else(|| wrong(step, "write a time and a size"))?;
        let (at, bytes) = (AT.parse(at.trim())?, BYTES.parse(bytes.trim())?);
        if steps.last().is_some_and(|last| Ps::ZERO.after(at) <= last.0) {
            return Err(wrong(step, "write the times in ascending order"));
        }
        steps.push((Ps::ZERO.after(at), bytes));
    }
    Ok(steps)
}
