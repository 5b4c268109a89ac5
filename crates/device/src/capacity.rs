//! The keys that say how many bytes a drive exports.
//!
//! `drive.logical_pages` gives their number, `drive.over_provisioning` the share of the flash that
//! is spare. `drive.capacity` is a short way to write `drive.logical_pages` and `drive.blocks`: a
//! drive of this capacity whose spare share stays the same. Checked configurations hold
//! `drive.logical_pages` and `drive.blocks` only.

use flashatlas_types::{ConfigError, Layout, Param, Params, RawConfig};

/// The largest number of blocks in a plane.
const BLOCKS_MAX: u32 = 1 << 20;

/// The parameter `drive.blocks`.
pub const BLOCKS: Param<u32> =
    Param::int("drive.blocks", 1, BLOCKS_MAX as u64, "erase blocks in a plane");

pub(crate) const LOGICAL_PAGES: Param<u64> = Param::int(
    "drive.logical_pages",
    0,
    // `DriveConfig::layout` refuses more units than the flash holds
    1 << 40,
    "mapping units that the drive exports; 0: drive.over_provisioning decides",
)
.or("0");

pub(crate) const OVER_PROVISIONING: Param<f64> = Param::ratio(
    "drive.over_provisioning",
    0.0,
    1000.0,
    "(physical - logical) / logical capacity; ignored if drive.logical_pages is given",
)
.or("0.07");

pub(crate) const CAPACITY: Param<u64> = Param::bytes(
    "drive.capacity",
    0,
    1 << 50,
    "bytes that the drive exports, in whole mapping units; sets drive.logical_pages and, unless \
     drive.blocks is set beside it, drive.blocks, with the spare share of the drive that it \
     changes (or drive.over_provisioning); 0: drive.logical_pages decides",
)
.or("0");

/// Keys of which one decides the number of exported pages.
const PAGES: [&str; 3] = [LOGICAL_PAGES.key(), OVER_PROVISIONING.key(), CAPACITY.key()];

/// Returns which of [`PAGES`] are given with a value that is not the default.
fn given(raw: &RawConfig) -> [bool; 3] {
    PAGES.map(|key| raw.text(key).is_some_and(|text| text != "0"))
}

/// Returns whether a drive's capacity is given in bytes.
pub(crate) fn is_given(raw: &RawConfig) -> bool {
    given(raw)[2]
}

/// Removes keys from `raw` that a key of `over` overrides under another name.
///
/// # Errors
/// Returns an error if `over` has `drive.logical_pages` together with one of the other two keys.
pub(crate) fn overridden(raw: &mut RawConfig, over: &RawConfig) -> Result<(), ConfigError> {
    let [logical, share, bytes] = given(over);
    let [pages_key, share_key, bytes_key] = PAGES;
    if logical && (share || bytes) {
        let other = if bytes { bytes_key } else { share_key };
        let why = format!("is given together with {other}: give one of the two");
        return Err(ConfigError::new(pages_key, why).at(over.place(pages_key)));
    }
    if logical {
        raw.remove(share_key);
        raw.remove(bytes_key);
    }
    if share || bytes {
        raw.remove(pages_key);
    }
    Ok(())
}

/// Returns the spare share of a drive in `base` whose capacity settings change, which set the keys
/// for which `is_set` is true. Returns `None` if they give a share or no capacity, or if `layout`
/// is an error, because `base` is no drive without them.
pub(crate) fn spare_share(
    base: &RawConfig,
    is_set: impl Fn(&str) -> bool,
    layout: impl FnOnce() -> Result<Layout, ConfigError>,
) -> Option<f64> {
    if !is_set(CAPACITY.key()) || is_set(OVER_PROVISIONING.key()) || is_given(base) {
        return None;
    }
    let layout = layout().ok()?;
    Some(f64::from(layout.slots()) / f64::from(layout.logical_units) - 1.0)
}

/// Returns `raw` with this spare share, if it has a capacity in bytes.
pub(crate) fn with_spare_share(mut raw: RawConfig, share: Option<f64>) -> RawConfig {
    if let (Some(share), true) = (share, is_given(&raw)) {
        raw.set(OVER_PROVISIONING.key(), &share.to_string(), "");
    }
    raw
}

/// Returns `raw` with the number of blocks and of exported pages in place of its capacity.
///
/// `checked` returns the parameters, whose values are checked one by one. `flash` returns the
/// layout of the flash with these parameters.
///
/// # Errors
/// Returns the errors of `checked`, of the flash's shape, and an error if the capacity is smaller
/// than a mapping unit or needs more blocks than a plane may have.
pub(crate) fn in_blocks_and_pages(
    mut raw: RawConfig,
    checked: impl FnOnce(&RawConfig) -> Result<Params, ConfigError>,
    flash: impl FnOnce(&Params) -> Result<Layout, ConfigError>,
) -> Result<RawConfig, ConfigError> {
    let place = raw.place(CAPACITY.key()).to_owned();
    let computed = raw.text(BLOCKS.key()).is_none();
    if computed {
        raw.set(BLOCKS.key(), "1", &place);
    }
    let params = checked(&raw)?;
    let bytes = params.get(CAPACITY);
    let refused = |why: String| ConfigError::new(CAPACITY.key(), why).at(&place);
    let flash = flash(&params).map_err(|error| error.at(&place))?;
    let pages = bytes / u64::from(flash.unit_bytes);
    if pages == 0 {
        let unit = flash.unit_bytes;
        return Err(refused(format!("{bytes} bytes are less than a mapping unit of {unit} bytes")));
    }
    if computed {
        let slots = pages as f64 * (1.0 + params.get(OVER_PROVISIONING));
        let blocks = (slots / f64::from(flash.slots())).ceil();
        if blocks > f64::from(BLOCKS_MAX) {
            return Err(refused(format!(
                "{bytes} bytes need {blocks} blocks in each plane, but a plane has at most \
                 {BLOCKS_MAX}; give the drive more channels, ways, dies, planes or pages"
            )));
        }
        raw.set(BLOCKS.key(), &blocks.to_string(), &place);
    }
    raw.remove(CAPACITY.key());
    raw.remove(OVER_PROVISIONING.key());
    raw.set(LOGICAL_PAGES.key(), &pages.to_string(), &place);
    Ok(raw)
}
