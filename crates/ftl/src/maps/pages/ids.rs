//! The numbers that index the tables of map stores. Each kind has a type of its own, so that kinds
//! cannot be confused. Only this module converts them to and from plain numbers.

use flashatlas_types::{TiVec, number};

number! {
    u32;
    /// A page of the map. Its entries are those for consecutive logical pages, and are written to
    /// flash together.
    pub MapPage, "over the map";
    /// A part of the map that is copied to NVM as a whole: one map page or several.
    pub(crate) Segment, "over the map";
    /// The place of a segment in NVM.
    pub(crate) NvmSlot, "over the NVM";
    /// The place of an entry in the memory of a cached mapping table.
    pub(crate) CmtPlace, "in the table";
    /// A group of consecutive logical pages whose places are learned together.
    pub(crate) GroupId, "over the drive";
}

/// Returns a table with `value` for each of the first `count` identifiers.
pub(crate) fn filled<K, V: Clone>(count: u32, value: V) -> TiVec<K, V> {
    vec![value; count as usize].into()
}
