//! The sizes of map pages, and the flash that they use.

use super::area::AreaShape;
use super::table::HEADER_BYTES;
use crate::ENTRY_BYTES;
use crate::pool::MapQuota;
use flashatlas_nand::{ErrorRules, MapForm, Oob};
use flashatlas_types::{ConfigError, Layout, Param, Params, Text};

/// The parameter `map.pack`: whether map pages that are written together share a program.
pub(crate) const PACK: Param<bool> = Param::flag(
    "map.pack",
    "true: map pages that are written together share a program, if they fit into one frame; false: \
     each map page has its own program",
)
.or("true");

/// The parameter `map.over_provisioning`: extra room for map pages.
pub(crate) const OVER_PROVISIONING: Param<f64> = Param::ratio(
    "map.over_provisioning",
    0.0,
    100.0,
    "extra room for map pages on flash, as a share of the room that the map pages need; each lane \
     reserves two more blocks",
)
.or("1");

/// The parameter `map.lanes`: the number of lanes with map pages.
pub(crate) const LANES: Param<u32> = Param::int(
    "map.lanes",
    0,
    1 << 20,
    "number of lanes with map pages, counted from the first lane; 0: all lanes. With one lane, map \
     pages are programmed one after another",
)
.or("0");

/// The parameter `map.roll_forward`.
pub(crate) const ROLL_FORWARD: Param<bool> = Param::flag(
    "map.roll_forward",
    "true: from the spare areas of data, a mount reads the entries that are newer than the map on \
     flash and in NVM; false: the controller cannot read spare areas (Jasmine), changes that were \
     not flushed are lost, and collection writes the map before it erases",
)
.or("true");

/// The parameter `map.directory`.
pub(crate) const DIRECTORY: Param<Text> = Param::choice(
    "map.directory",
    &["spare", "page"],
    "place of the directory of map pages on flash: the `spare` areas of the map pages, or a `page` \
     of its own, which a FLUSH writes after the map pages (for controllers that cannot read spare \
     areas)",
)
.or("spare");

/// The shape of the map: its division into pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapShape {
    /// The number of entries of a map page.
    pub per_page: u32,
    /// The number of bytes of an entry.
    pub entry_bytes: u32,
    /// The layout of map pages on flash.
    pub on_flash: AreaShape,
    /// `true` if a mount may read the spare areas of data.
    pub roll_forward: bool,
}

impl MapShape {
    /// Returns the shape of a map in pages of `page_bytes`, or of one frame if a frame is smaller.
    /// If `resident` is `true`, the map has the parameters of maps that are completely in DRAM.
    ///
    /// # Errors
    /// Returns an error if the sizes of entries and pages do not fit each other or the flash, or if
    /// `map.lanes` exceeds the number of lanes of the drive.
    pub fn new(
        params: &Params,
        layout: &Layout,
        page_bytes: Param<u64>,
        resident: bool,
    ) -> Result<MapShape, ConfigError> {
        let entry_bytes = entry_bytes(params)?;
        let key = page_bytes.key();
        let page_bytes = params.get(page_bytes).min(layout.frame_bytes());
        let unit = u64::from(layout.unit_bytes);
        let slots = (page_bytes / unit).max(1);
        let whole = page_bytes % unit == 0 || unit % page_bytes == 0;
        if !whole || u64::from(layout.slots_per_frame) % slots != 0 || !page_bytes.is_power_of_two()
        {
            let why = format!(
                "map pages of {page_bytes} bytes do not fit: the size must be a power of two, and \
                 a whole fraction or multiple of a frame ({} bytes) and of a mapping unit ({unit} \
                 bytes)",
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
                "{per_frame} map pages in a frame need {record} spare bytes, but a frame has \
                 {spare}: use larger map pages"
            );
            return Err(ConfigError::new(key, why));
        }
        let pages = layout.logical_units.div_ceil(per_page);
        let lanes = match params.get(LANES) {
            0 => layout.lanes,
            given if given > layout.lanes => {
                let why = format!(
                    "{given} lanes for map pages are too many: the drive has {} lanes",
                    layout.lanes
                );
                return Err(ConfigError::new("map.lanes", why));
            }
            given => given,
        };
        let whole_directory = resident && params.get(DIRECTORY) == "page";
        let on_flash = AreaShape {
            pages,
            directory: if whole_directory { pages.div_ceil((page_bytes / 4) as u32) } else { 0 },
            lanes,
            slots: slots as u32,
            per_frame,
            pack: params.get(PACK),
            form: MapForm { per_page, entry_bytes: entry_bytes as u32, slots: slots as u32 },
        };
        let roll_forward = !resident || params.get(ROLL_FORWARD);
        if !roll_forward && ErrorRules::from_params(params).is_some_and(|rules| rules.lose_pages())
        {
            let why = "not with errors that make pages unreadable (errors.model, \
                       errors.unreadable): without spare areas, nothing tells what a lost page of \
                       the map held, and reads would return older data or zeros; use \
                       map.roll_forward = true";
            return Err(ConfigError::new(ROLL_FORWARD.key(), why));
        }
        Ok(MapShape { per_page, entry_bytes: entry_bytes as u32, on_flash, roll_forward })
    }

    /// Returns the number of bytes of a map page.
    pub fn page_bytes(&self) -> u64 {
        u64::from(self.per_page) * u64::from(self.entry_bytes)
    }
}

/// Returns the parameter `map.entry_bytes`, which is 4 or 8.
///
/// # Errors
/// Returns an error that lists 4 and 8 if the parameter has another value.
pub(crate) fn entry_bytes(params: &Params) -> Result<u64, ConfigError> {
    match u64::from(params.get(ENTRY_BYTES)) {
        n @ (4 | 8) => Ok(n),
        n => Err(ConfigError {
            allowed: vec!["4".into(), "8".into()],
            ..ConfigError::new("map.entry_bytes", format!("an entry of {n} bytes"))
        }),
    }
}

/// Returns the blocks and lanes of a drive that are reserved for map pages.
pub(crate) fn quota(params: &Params, layout: &Layout, shape: &MapShape) -> MapQuota {
    let flash = shape.on_flash;
    // collection copies one block at a time, so it never packs pages of several one-frame blocks
    let packs = flash.pack && layout.frames_per_block > 1;
    let together = if packs { flash.per_frame } else { 1 };
    let frames = (flash.pages + flash.directory).div_ceil(flash.lanes).div_ceil(together);
    let frames = (f64::from(frames) * (1.0 + params.get(OVER_PROVISIONING))).ceil() as u32;
    MapQuota { blocks: frames.div_ceil(layout.frames_per_block) + 2, lanes: flash.lanes }
}
