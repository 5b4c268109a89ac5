//! Parameters, and the places of all areas on the lower device.

use flashatlas_device::{DeviceShape, LayersBelow};
use flashatlas_nand::params::DATA;
use flashatlas_types::{ConfigError, Dur, Param, ParamDef, Params, SECTOR_BYTES, Text};

const SUPERPAGE: Param<u32> = Param::bytes(
    "hard.superpage",
    1024,
    16 << 20,
    "bytes of a virtual superpage, which the lower device maps as one (`flashatlas probe \
     superpage` measures this number; HARD, section 14.3: 16 KB)",
)
.or("16KiB");

const PAGE: Param<u32> = Param::bytes(
    "hard.page",
    512,
    64 << 10,
    "bytes of a page; the layer's map has an entry for each page",
)
.or("4KiB");

const RESERVE: Param<f64> = Param::ratio(
    "hard.reserve",
    0.0,
    0.95,
    "share of the data superpages that is not exported, so that reclamation has room (the paper \
     does not state this share; 10 % was chosen)",
)
.or("0.1");

const DISPATCH_AFTER: Param<Dur> = Param::time(
    "hard.dispatch_after",
    "time from the first page of a superpage until the superpage is sent although it is not full",
)
.or("5ms");

const FILL: Param<Text> = Param::choice(
    "hard.fill",
    &["reclaim", "pad"],
    "filling of a superpage that is sent before it is full: all valid pages of another superpage, \
     if the valid pages of some superpage fit (`reclaim`), or padding (`pad`)",
)
.or("reclaim");

const COMPLETE: Param<Text> = Param::choice(
    "hard.complete",
    &["buffered", "written"],
    "moment at which a small write is complete: when it is in the host's buffer, as in a volatile \
     write cache (`buffered`), or when its superpage is on the drive (`written`)",
)
.or("buffered");

const BUFFERS: Param<u32> = Param::int(
    "hard.buffers",
    1,
    1 << 16,
    "number of superpage writes in flight at which a new write waits for the oldest write",
)
.or("32");

pub(crate) const VICTIM: Param<Text> = Param::choice(
    "hard.victim",
    &["greedy", "fifo", "cost-benefit"],
    "policy that picks the superpage to reclaim next (the paper takes superpages with many \
     invalid pages)",
)
.or("greedy");

const LOW_WATER: Param<u32> = Param::int(
    "hard.low_water",
    0,
    1 << 30,
    "number of superpages, free or soon to be free, below which other superpages are reclaimed (at \
     least 3); 0: 1 % of the superpages, but at least 8",
)
.or("0");

const SEGMENT: Param<u32> =
    Param::int("hard.segment", 1, 1 << 16, "number of written superpages for each summary")
        .or("64");

const RING: Param<u32> = Param::int(
    "hard.ring",
    0,
    1 << 20,
    "superpages for summaries and journals, written in turn; 0: one in 500 of all superpages, but \
     at least 16",
)
.or("0");

const TRIM: Param<bool> =
    Param::flag("hard.trim", "true: trims tell the drive which superpages were vacated").or("true");

const LOOKUP_TIME: Param<Dur> = Param::time(
    "hard.lookup_time",
    "the host's time to look up or change the entry of a page, if the command sends nothing to the \
     drive (a miss in the host's caches; assumed)",
)
.or("100ns");

pub(super) const PARAMS: &[ParamDef] = &[
    SUPERPAGE.def,
    PAGE.def,
    RESERVE.def,
    DISPATCH_AFTER.def,
    FILL.def,
    COMPLETE.def,
    BUFFERS.def,
    VICTIM.def,
    LOW_WATER.def,
    SEGMENT.def,
    RING.def,
    TRIM.def,
    LOOKUP_TIME.def,
];

/// Bytes of the header of each record.
pub(super) const HEADER_BYTES: u32 = 32;

/// Number of free superpages at or below which vacated superpages are freed.
///
/// Reclamation needs free superpages, because it writes to a free superpage before it vacates
/// another superpage.
pub(super) const RECLAIM: u32 = 2;

/// Places of all areas, in superpages of the lower device.
///
/// The areas are the superblock, two checkpoints of the map, the ring of log records, and data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Areas {
    pub page_sectors: u32,
    /// Number of pages of a superpage.
    pub pages: u32,
    /// Number of superpages of the device.
    pub superpages: u32,
    /// Number of superpages of a checkpoint after its header.
    pub chunks: u32,
    /// Number of map entries in a chunk.
    pub chunk_entries: u32,
    /// Number of records in the ring.
    pub ring: u32,
    /// Number of superpages for data. These superpages are at the end of the device.
    pub data: u32,
    /// Number of pages that are exported.
    pub exported: u32,
}

impl Areas {
    /// Returns the areas that the parameters describe on a device, or the reason why they do not
    /// fit.
    pub fn new(params: &Params, lower: &LayersBelow<'_>) -> Result<Areas, ConfigError> {
        let (superpage, page) = (params.get(SUPERPAGE), params.get(PAGE));
        let unit = lower.shape.unit_sectors * SECTOR_BYTES;
        let wrong = |key: &str, why: String| Err(ConfigError::new(key, why));
        if page % SECTOR_BYTES != 0 {
            return wrong(
                "hard.page",
                format!("{page} bytes are not a whole number of {SECTOR_BYTES}-byte sectors"),
            );
        }
        if superpage % page != 0 || superpage == page {
            return wrong(
                "hard.superpage",
                format!(
                    "{superpage} bytes are not a whole number of at least two pages of {page} \
                     bytes (hard.page)"
                ),
            );
        }
        if superpage % unit != 0 {
            return wrong(
                "hard.superpage",
                format!(
                    "{superpage} bytes are not a whole number of mapping units of the lower device \
                     ({unit} bytes): each write would be a read-modify-write there"
                ),
            );
        }
        if page % unit != 0 && unit % page != 0 {
            return wrong(
                "hard.page",
                format!(
                    "neither of the two sizes is a whole number of the other: pages of {page} \
                     bytes, and mapping units of the lower device of {unit} bytes"
                ),
            );
        }
        if lower.shape.bytes() % u64::from(superpage) != 0 {
            return wrong(
                "hard.superpage",
                format!(
                    "{superpage} bytes do not divide the {} bytes of the lower device \
                     (drive.logical_pages sets them)",
                    lower.shape.bytes()
                ),
            );
        }
        let superpages = lower.shape.bytes() / u64::from(superpage);
        let pages = superpage / page;
        if superpages * u64::from(pages) >= 1 << 31 {
            return wrong(
                "hard.page",
                format!(
                    "the lower device has {} pages, but the layer supports less than 2^31",
                    superpages * u64::from(pages)
                ),
            );
        }
        let superpages = superpages as u32;
        let chunk_entries = (superpage - HEADER_BYTES) / 4;
        let chunks = (superpages * pages).div_ceil(chunk_entries);
        let ring = match params.get(RING) {
            0 => (superpages / 500).max(16),
            given => given,
        };
        if ring < 8 {
            return wrong(
                "hard.ring",
                format!(
                    "{ring} records are too few: the log needs at least 8, because half of them \
                     must be enough while a checkpoint is written"
                ),
            );
        }
        let segment = params.get(SEGMENT);
        if segment * (1 + pages) > chunk_entries {
            let most = chunk_entries / (1 + pages);
            return Err(ConfigError::allowing(
                "hard.segment",
                format!(
                    "a summary of {segment} superpages does not fit into one superpage of \
                     {superpage} bytes"
                ),
                format!("1 to {most}"),
            ));
        }
        let areas = Areas {
            page_sectors: page / SECTOR_BYTES,
            pages,
            superpages,
            chunks,
            chunk_entries,
            ring,
            data: 0,
            exported: 0,
        };
        let data = superpages.saturating_sub(areas.data_first());
        let exported = (f64::from(data) * (1.0 - params.get(RESERVE))) as u32;
        let reserve = data - exported;
        let least = low_water(params, data) + RECLAIM + 1;
        if exported == 0 || reserve < least {
            return wrong(
                "hard.reserve",
                format!(
                    "{reserve} superpages are not exported, but reclamation needs at least \
                     {least}: of {superpages} superpages in all, {data} are for data, and the \
                     others hold the map and its log (hard.reserve, hard.low_water, hard.ring)"
                ),
            );
        }
        Ok(Areas { data, exported: exported * pages, ..areas })
    }

    /// Returns the shape that the layer exports.
    pub fn shape(&self) -> DeviceShape {
        DeviceShape {
            unit_sectors: self.page_sectors,
            sectors: u64::from(self.exported) * u64::from(self.page_sectors),
        }
    }

    /// Returns the number of sectors of a superpage.
    pub fn superpage_sectors(&self) -> u32 {
        self.pages * self.page_sectors
    }

    /// Returns the number of bytes of a superpage.
    pub fn superpage_bytes(&self) -> u32 {
        self.superpage_sectors() * SECTOR_BYTES
    }

    /// Returns the superpage of the header of checkpoint 0 or 1. Its chunks follow the header.
    pub fn checkpoint(&self, which: u32) -> u32 {
        1 + which * (1 + self.chunks)
    }

    /// Returns the superpage of the record with this number.
    pub fn record(&self, sequence: u64) -> u32 {
        self.checkpoint(2) + (sequence % u64::from(self.ring)) as u32
    }

    /// Returns the first superpage for data.
    pub fn data_first(&self) -> u32 {
        self.checkpoint(2) + self.ring
    }
}

/// Returns the number of free superpages below which other superpages are reclaimed.
pub(super) fn low_water(params: &Params, data: u32) -> u32 {
    match params.get(LOW_WATER) {
        0 => (data / 100).max(8),
        given => given.max(RECLAIM + 1),
    }
}

/// Settings of the layer.
pub(super) struct HardSettings {
    pub dispatch_after: Dur,
    pub fill: bool,
    pub complete_when_written: bool,
    pub buffers: usize,
    pub low_water: u32,
    pub segment: u32,
    pub trim: bool,
    pub lookup_time: Dur,
    pub keep_bytes: bool,
}

impl HardSettings {
    pub fn new(params: &Params, areas: &Areas) -> HardSettings {
        HardSettings {
            dispatch_after: params.get(DISPATCH_AFTER),
            fill: params.get(FILL) == "reclaim",
            complete_when_written: params.get(COMPLETE) == "written",
            buffers: params.get(BUFFERS) as usize,
            low_water: low_water(params, areas.data),
            segment: params.get(SEGMENT),
            trim: params.get(TRIM),
            lookup_time: params.get(LOOKUP_TIME),
            keep_bytes: params.get(DATA) == "ram",
        }
    }
}
