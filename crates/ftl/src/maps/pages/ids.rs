//! The numbers that index the tables of map stores. Each kind has a type of its own, so that kinds
//! cannot be confused. Only this module converts them to and from plain numbers.

use flashatlas_types::{Index, TiVec};

macro_rules! number {
    ($($(#[$doc:meta])* $vis:vis $name:ident, $space:literal;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        $vis struct $name(u32);

        impl $name {
            #[doc = concat!("Returns the one with this number, counted from 0 ", $space, ".")]
            #[inline]
            $vis const fn new(number: u32) -> $name { $name(number) }

            #[doc = concat!("Returns the number, counted from 0 ", $space, ".")]
            #[inline]
            $vis const fn number(self) -> u32 { self.0 }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { self.0.fmt(f) }
        }

        impl From<usize> for $name {
            #[inline]
            fn from(index: usize) -> $name { $name(index as u32) }
        }

        impl From<$name> for usize {
            #[inline]
            fn from(id: $name) -> usize { id.index() }
        }

        impl Index for $name {
            #[inline]
            fn from_number(number: u32) -> $name { $name::new(number) }

            #[inline]
            fn to_number(self) -> u32 { $name::number(self) }
        }
    )* };
}

number! {
    /// A page of the map: the entries of consecutive logical pages, which are written to flash
    /// together.
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
