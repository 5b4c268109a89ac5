//! Layouts of small drives, for tests that need no whole drive.

use flashatlas_types::{AllocationOrder, Cell, Geometry, Layout, Span};

/// Bytes of a mapping unit of these drives.
pub const UNIT_BYTES: u32 = 512;

/// Returns a drive of `lanes` lanes that exports `logical_units`.
///
/// Each lane is a plane of `blocks` blocks of `frames` frames of `slots` mapping units.
///
/// # Panics
/// Panics if there is no such layout.
pub fn lanes(lanes: u32, [blocks, frames, slots]: [u32; 3], logical_units: u32) -> Layout {
    let geometry = Geometry {
        channels: lanes,
        ways: 1,
        dies: 1,
        planes: 1,
        blocks,
        pages: frames,
        page_bytes: slots * UNIT_BYTES,
        spare_bytes: 256,
        cell: Cell::Slc,
    };
    let order = AllocationOrder::parse("CWDP").expect("it is one");
    Layout::new(geometry, Span::ONE, UNIT_BYTES, order, logical_units)
        .unwrap_or_else(|error| panic!("{error}"))
}
