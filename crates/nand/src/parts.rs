//! The bytes of a frame's pages that a read needs.

use flashatlas_types::{Layout, SECTOR_BYTES};

/// Returns the place of a page among the data of a frame, in bytes. The page has number `of_line`
/// on the word line, on a plane of the `die`-th die with data ([`Layout::data_die`]). The first
/// pages of all planes come first in the frame.
#[inline]
pub(crate) fn page_start(layout: &Layout, die: u32, of_line: u32, plane: u32) -> u64 {
    let before = of_line * layout.data_planes_per_frame + die * layout.span.planes + plane;
    u64::from(before) * u64::from(layout.geometry.page_bytes)
}

/// Returns the parts of `slots` that are in the page at `start`, as ranges of bytes (start and
/// end). If `sectors` (first and number) is given and a unit is larger than a page, only these
/// sectors of the unit count.
#[inline]
pub(crate) fn of_page(
    layout: &Layout,
    start: u64,
    slots: u64,
    sectors: Option<(u32, u32)>,
) -> impl Iterator<Item = (u64, u64)> {
    let (unit, page) = (u64::from(layout.unit_bytes), u64::from(layout.geometry.page_bytes));
    let mut rest = slots;
    let all = std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let slot = u64::from(rest.trailing_zeros());
        rest &= rest - 1;
        let (mut from, mut to) = (slot * unit, (slot + 1) * unit);
        if let (Some((first, count)), true) = (sectors, unit > page) {
            to = from + u64::from(first + count) * u64::from(SECTOR_BYTES);
            from += u64::from(first) * u64::from(SECTOR_BYTES);
        }
        Some((from.max(start), to.min(start + page)))
    });
    all.filter(|(from, to)| from < to)
}
