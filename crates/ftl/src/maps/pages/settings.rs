//! The sizes of map pages, and what they leave of a drive.

use super::area::AreaShape;
use super::table::HEADER_BYTES;
use crate::pool::MapQuota;
use flashatlas_nand::Oob;
use flashatlas_types::{ConfigError, Layout, ParamDef, ParamKind, Params};

/// Parameters of every store that keeps map pages on flash.
pub(crate) const COMMON_PARAMS: [ParamDef; 3] = [
    ParamDef {
        key: "map.pack",
        kind: ParamKind::Bool,
        default: Some("true"),
        doc: "map pages that are written together share a program, as far as they fit its frame; \
              false: one program each",
    },
    ParamDef {
        key: "map.over_provisioning",
        kind: ParamKind::Ratio(0.0, 100.0),
        default: Some("1"),
        doc: "room for map pages on flash above what they need, as a share of that; on top of it \
              each lane keeps two blocks",
    },
    ParamDef {
        key: "map.lanes",
        kind: ParamKind::Int(0, 1 << 20),
        default: Some("0"),
        doc: "lanes that have map pages, counted from the first; 0: all. With one, map pages are \
              programmed one after the other",
    },
];

/// How the map is cut into pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapShape {
    /// Entries of a map page.
    pub per_page: u32,
    /// Bytes of an entry.
    pub entry_bytes: u32,
    /// How map pages stand on flash.
    pub on_flash: AreaShape,
    /// Whether a mount may read the spare areas of data.
    pub roll_forward: bool,
}

impl MapShape {
    /// A map in pages of `page_bytes` (given by `key`), or of one frame where that is less.
    /// `resident`: it has the parameters of maps that are whole in DRAM.
    ///
    /// # Errors
    /// Entries and pages of sizes that do not fit each other, or the flash.
    pub fn new(
        params: &Params,
        layout: &Layout,
        key: &str,
        page_bytes: u64,
        resident: bool,
    ) -> Result<MapShape, ConfigError> {
        let entry_bytes = entry_bytes(params)?;
        let page_bytes = page_bytes.min(layout.frame_bytes());
        let unit = u64::from(layout.unit_bytes);
        let slots = (page_bytes / unit).max(1);
        let whole = page_bytes % unit == 0 || unit % page_bytes == 0;
        if !whole || u64::from(layout.slots_per_frame) % slots != 0 || !page_bytes.is_power_of_two()
        {
            let why = format!(
                "map pages of {page_bytes} bytes: expected a power of two, as frames ({} bytes) \
                 and mapping units ({unit} bytes) are cut",
                layout.frame_bytes()
            );
            return Err(ConfigError::new(key, why));
        }
        let per_page = (page_bytes / entry_bytes) as u32;
        let per_frame = layout.slots_per_frame / slots as u32;
        let record = Oob::encoded_len(layout.slots_per_frame) + per_frame as usize * HEADER_BYTES;
        let spare = layout.geometry.spare_bytes as usize * layout.pages_per_frame as usize;
        if record > spare {
            let why = format!(
                "{per_frame} map pages in a frame need {record} spare bytes, it has {spare}: take \
                 larger map pages"
            );
            return Err(ConfigError::new(key, why));
        }
        let pages = layout.logical_units.div_ceil(per_page);
        let lanes = match params.u32("map.lanes") {
            0 => layout.lanes,
            given if given > layout.lanes => {
                let why = format!("{given} lanes for map pages, the drive has {}", layout.lanes);
                return Err(ConfigError::new("map.lanes", why));
            }
            given => given,
        };
        let whole_directory = resident && params.text("map.directory") == "page";
        let on_flash = AreaShape {
            pages,
            directory: if whole_directory { pages.div_ceil((page_bytes / 4) as u32) } else { 0 },
            lanes,
            slots: slots as u32,
            per_frame,
            pack: params.flag("map.pack"),
        };
        let roll_forward = !resident || params.flag("map.roll_forward");
        Ok(MapShape { per_page, entry_bytes: entry_bytes as u32, on_flash, roll_forward })
    }

    /// Bytes of a map page.
    pub fn page_bytes(&self) -> u64 {
        u64::from(self.per_page) * u64::from(self.entry_bytes)
    }
}

/// `map.entry_bytes`, which are 4 or 8.
///
/// # Errors
/// Others.
pub(crate) fn entry_bytes(params: &Params) -> Result<u64, ConfigError> {
    match params.int("map.entry_bytes") {
        n @ (4 | 8) => Ok(n),
        n => Err(ConfigError {
            allowed: vec!["4".into(), "8".into()],
            ..ConfigError::new("map.entry_bytes", format!("an entry of {n} bytes"))
        }),
    }
}

/// What a map keeps of a drive.
pub(crate) fn quota(params: &Params, layout: &Layout, shape: &MapShape) -> MapQuota {
    let flash = shape.on_flash;
    let together = if flash.pack { flash.per_frame } else { 1 };
    let frames = (flash.pages + flash.directory).div_ceil(flash.lanes).div_ceil(together);
    let frames = (f64::from(frames) * (1.0 + params.ratio("map.over_provisioning"))).ceil() as u32;
    MapQuota { blocks: frames.div_ceil(layout.frames_per_block) + 2, lanes: flash.lanes }
}
