//! Notes about a drive that hold for every run on it.

use crate::notes;
use flashatlas_device::DriveConfig;
use flashatlas_ftl::REFRESH;
use flashatlas_nand::Medium;
use flashatlas_types::{BlockId, Layout, Note};

/// Largest amount of spare flash that needs no note, as a share of the exported flash.
const SPARE_MOST: f64 = 0.5;

/// Returns a note if a power failure in a program may destroy earlier pages, and the drive has no
/// defence.
pub(crate) fn undefended(config: &DriveConfig, layout: &Layout) -> Option<Note> {
    let last = layout.frame_in(BlockId::new(0), layout.frames_per_block - 1);
    let is_default = |key: &str, off: &str| {
        config.params.value(key).is_none_or(|value| value.to_string() == off)
    };
    let pairs = layout.paired_before(last).next().is_some();
    (pairs && is_default("ftl.lower_pages", "none") && is_default("nand.plp_bytes", "0"))
        .then(|| notes::LOWER_PAGES_UNDEFENDED.note())
}

/// Returns a note if a drive has more spare flash than real drives have.
pub(crate) fn much_spare(layout: &Layout) -> Option<Note> {
    let share = f64::from(layout.slots()) / f64::from(layout.logical_units) - 1.0;
    (share > SPARE_MOST).then(|| notes::SPARE_LARGE.with([("share", (100.0 * share).into())]))
}

/// Replaces the note `no-ecc-time` by a note with the model of errors, if the flash has bit errors.
pub(crate) fn replace_by_errors(list: &mut Vec<Note>, config: &DriveConfig, medium: &Medium) {
    if medium.correction().is_none() {
        return;
    }
    list.retain(|note| note.code != notes::NO_ECC_TIME.code);
    let said = |key: &str| config.params.value(key).map(ToString::to_string).unwrap_or_default();
    let values = [("model", said("errors.model")), ("unit", said("errors.time_unit"))];
    list.push(notes::ERRORS_ASSUMED.with(values.map(|(name, text)| (name, text.into()))));
    list.extend(refresh_below_wear(config, medium));
}

/// Returns a note if new data has more wrong bits than the share at which blocks are refreshed.
fn refresh_below_wear(config: &DriveConfig, medium: &Medium) -> Option<Note> {
    let share = config.params.has(REFRESH).then(|| config.params.get(REFRESH))?;
    if share == 0.0 {
        return None;
    }
    let lasting = medium.largest_lasting_share();
    let values = [("lasting", lasting), ("share", share)];
    let values = values.map(|(name, part)| (name, (100.0 * part).into()));
    (lasting > share).then(|| notes::REFRESH_BELOW_WEAR.with(values))
}
