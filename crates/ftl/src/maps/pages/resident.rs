//! Stores whose whole map is in DRAM. Lookups and updates never wait for flash, and a FLUSH writes
//! the changes.

use super::ids::Segment;
use super::{DIRECTORY, LANES, MapOnFlash, MapShape, OVER_PROVISIONING, PACK, ROLL_FORWARD, quota};
use crate::maps::{MapContext, MapPage, Update};
use crate::pool::{MapQuota, Pool};
use crate::report::Reason;
use crate::{FtlContext, MapCounters, MemoryUse};
use flashatlas_types::{
    Class, ConfigError, FtlError, Layout, Lpn, MemoryKind, OpId, OpKind, Param, ParamDef, Params,
    Ppn,
};

/// The parameter `map.dram_bytes`.
const DRAM_BYTES: Param<u64> = Param::bytes(
    "map.dram_bytes",
    0,
    1 << 40,
    "bytes of DRAM for the map; a map that needs more is an error; 0: as many bytes as the map \
     needs",
)
.or("0");

/// The parameter `map.segment_bytes`.
pub(crate) const SEGMENT_BYTES: Param<u64> =
    Param::bytes("map.segment_bytes", 64, 1 << 20, "bytes of a map segment").or("32KiB");

/// The parameters that all of these stores share.
pub(crate) const PARAMS: &[ParamDef] =
    &[DRAM_BYTES.def, ROLL_FORWARD.def, PACK.def, OVER_PROVISIONING.def, LANES.def, DIRECTORY.def];

/// The whole map in DRAM, and its copy on flash. A segment of the copy has one or more map pages.
pub(crate) struct Resident {
    pub map: MapOnFlash,
    /// The number of map pages of a segment.
    pub group: u32,
    entry_bytes: u32,
    pub counters: MapCounters,
}

/// Returns the shape of a map whose segments of `segment_bytes` are written together, and the
/// number of map pages in a segment.
fn shape(
    params: &Params,
    layout: &Layout,
    segment_bytes: Param<u64>,
) -> Result<(MapShape, u32), ConfigError> {
    let shape = MapShape::new(params, layout, segment_bytes, true)?;
    let pages = params.get(segment_bytes) / shape.page_bytes();
    Ok((shape, pages as u32))
}

/// Checks that a resident map can work with segments of this size, and returns the blocks of each
/// lane that are reserved for map pages.
pub(crate) fn fits(
    params: &Params,
    layout: &Layout,
    segment_bytes: Param<u64>,
) -> Result<MapQuota, ConfigError> {
    fits_dram(params, layout)?;
    let (shape, _) = shape(params, layout, segment_bytes)?;
    Ok(quota(params, layout, &shape))
}

/// Checks that the map fits into `map.dram_bytes`.
pub(crate) fn fits_dram(params: &Params, layout: &Layout) -> Result<(), ConfigError> {
    let needed = u64::from(layout.logical_units) * super::settings::entry_bytes(params)?;
    match params.get(DRAM_BYTES) {
        limit if limit > 0 && needed > limit => Err(ConfigError::new(
            "map.dram_bytes",
            format!(
                "the map of {} pages needs {needed} bytes, but only {limit} bytes are allowed: \
                 export fewer pages (drive.logical_pages), use a larger map.unit, or use a store \
                 that loads the map on demand",
                layout.logical_units
            ),
        )),
        _ => Ok(()),
    }
}

impl Resident {
    pub fn new(params: &Params, layout: &Layout, segment_bytes: Param<u64>) -> Resident {
        let (shape, group) =
            shape(params, layout, segment_bytes).expect("the configuration is checked");
        Resident {
            map: MapOnFlash::new(layout, &shape, true),
            group,
            entry_bytes: shape.entry_bytes,
            counters: MapCounters::default(),
        }
    }

    pub fn get(&mut self, cx: &mut FtlContext<'_>, lpn: Lpn) -> (Ppn, OpId) {
        self.counters.lookups += 1;
        self.counters.hits += 1;
        (self.map.table.get(lpn), dram_lookup(cx, self.entry_bytes))
    }

    #[inline]
    pub fn set(&mut self, pool: &Pool, update: Update) -> Ppn {
        self.counters.updates += 1;
        self.counters.update_hits += 1;
        self.map.change(pool, update.lpn, update.ppn, update.op)
    }

    /// Returns the map pages of a segment.
    pub fn pages_of(&self, segment: Segment) -> impl Iterator<Item = MapPage> + Clone + use<> {
        segment_pages(segment, self.group, self.map.table.pages())
    }

    /// Returns the segment of a map page.
    pub fn segment_of(&self, page: MapPage) -> Segment {
        Segment::new(page.number() / self.group)
    }

    /// Returns the number of segments of the map.
    pub fn segments(&self) -> u32 {
        self.map.table.pages().div_ceil(self.group)
    }

    /// Returns the segments with a changed entry. The segment whose first change is oldest comes
    /// first.
    pub fn changed(&self) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        segments.extend(
            self.map.changes.iter().map(|page| self.segment_of(page)).filter(|&s| seen.insert(s)),
        );
        segments
    }

    /// Returns the number of entries of a segment that have changed, and the number of all its
    /// entries.
    pub fn count(&self, segment: Segment) -> (u32, u32) {
        let pages = self.pages_of(segment);
        let entries = pages.clone().map(|p| self.map.table.entries(p).len() as u32).sum();
        (pages.map(|p| self.map.changes.count(p)).sum(), entries)
    }

    /// Writes whole segments to flash.
    pub fn write(
        &mut self,
        io: &mut MapContext<'_, '_>,
        segments: &[Segment],
        reason: Reason,
        after: &[OpId],
    ) -> Result<OpId, FtlError> {
        let mut pages: Vec<MapPage> = segments.iter().flat_map(|&s| self.pages_of(s)).collect();
        self.map.write(io, &mut pages, reason, after)
    }

    pub fn memory(&self) -> Vec<MemoryUse> {
        let dram = |table, bytes| MemoryUse { table, memory: MemoryKind::Dram, bytes };
        let entries = u64::from(self.map.table.len());
        vec![
            dram("L2P map", self.map.table.bytes()),
            dram(
                "changed entries (bitmap and counts)",
                entries.div_ceil(8) + u64::from(self.segments()) * 4,
            ),
            dram("directory of map pages", self.map.directory_bytes()),
        ]
    }
}

/// Returns the map pages of a segment. A segment has `group` pages, and the map has `pages` pages.
pub(crate) fn segment_pages(
    segment: Segment,
    group: u32,
    pages: u32,
) -> impl Iterator<Item = MapPage> + Clone + use<> {
    let number = segment.number();
    (number * group..((number + 1) * group).min(pages)).map(MapPage::new)
}

/// Adds a lookup of one entry of a map in DRAM.
#[inline]
pub(crate) fn dram_lookup(cx: &mut FtlContext<'_>, entry_bytes: u32) -> OpId {
    let access =
        OpKind::Memory { kind: MemoryKind::Dram, accesses: 1, bytes: entry_bytes, write: false };
    cx.flash.plan.push(access, Class::Map, &[cx.command.first])
}
