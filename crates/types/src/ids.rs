//! Addresses and identifiers, one type each, so that one kind cannot be taken for another.
//!
//! The types that number a table's entries convert to and from `usize`, so that a
//! [`TiVec`](typed_index_collections::TiVec) takes them as its index: a table of lanes cannot be
//! read at a block. Only [`crate::Layout`] turns the numbers of a block in its lane, over the drive
//! and on a die into each other.

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident($inner:ty);)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub $inner);
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { self.0.fmt(f) }
        }
    )* };
}

/// Identifiers with a private number: they are made in one space and stay in it.
macro_rules! number {
    ($($(#[$doc:meta])* $name:ident, $space:literal;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub(crate) u32);
        impl $name {
            #[doc = concat!("Returns the identifier with this number (from 0 ", $space, ").")]
            #[inline]
            pub const fn new(number: u32) -> $name { $name(number) }

            #[doc = concat!("Returns the number (from 0 ", $space, ").")]
            #[inline]
            pub const fn number(self) -> u32 { self.0 }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { self.0.fmt(f) }
        }
        index!($name);
    )* };
}

/// A type that numbers the entries of a table.
pub trait Index: Copy + Eq {
    /// Returns the identifier with this number.
    fn from_number(number: u32) -> Self;

    /// Returns the number.
    fn to_number(self) -> u32;

    /// Returns the number as the place of an entry in memory.
    #[inline]
    fn index(self) -> usize {
        self.to_number() as usize
    }
}

impl Index for u32 {
    #[inline]
    fn from_number(number: u32) -> u32 {
        number
    }

    #[inline]
    fn to_number(self) -> u32 {
        self
    }
}

/// Conversions that make a type the index of a typed table.
macro_rules! index {
    ($name:ident) => {
        impl Index for $name {
            #[inline]
            fn from_number(number: u32) -> $name {
                $name(number)
            }

            #[inline]
            fn to_number(self) -> u32 {
                self.0
            }
        }
        impl From<usize> for $name {
            #[inline]
            fn from(index: usize) -> $name {
                $name(index as u32)
            }
        }
        impl From<$name> for usize {
            #[inline]
            fn from(id: $name) -> usize {
                id.0 as usize
            }
        }
    };
}

id! {
    /// Host address in sectors of [`crate::SECTOR_BYTES`] bytes.
    Lba(u64);
    /// Logical page number: the index of a mapping unit of the drive, whatever its size.
    Lpn(u32);
    /// Physical page number: the place of one mapping unit on the medium (block, frame, slot in the
    /// frame).
    Ppn(u32);
    /// A program unit of the FTL: the pages that are programmed together. Its number is
    /// `block * frames_per_block + frame`.
    FrameId(u32);
    /// An operation of a plan. Operations are numbered from 1 in the order of planning, over the
    /// whole life of a drive.
    OpId(u64);
    /// A host command in flight.
    Tag(u64);
}

index!(Lpn);
index!(Ppn);
index!(FrameId);

number! {
    /// An erase unit of the FTL: one block on each die and plane of a lane, all erased together.
    BlockId, "over the drive";
    /// An erase unit by its number in its lane. [`crate::Layout::in_lane`] and
    /// [`crate::Layout::block_in`] convert between the two numbers of a block.
    LocalBlock, "in its lane";
    /// The part of a block that is on one die: an erase block, or one on each of several planes.
    /// [`crate::Layout::on_dies`] lists the parts of a block.
    DieBlock, "over the drive";
    /// A set of dies and planes that one frame covers; lanes work in parallel. They are numbered
    /// in allocation order.
    LaneId, "over the drive";
    /// A place in a lane where frames are gathered and programmed one after the other.
    FrontierId, "in its lane";
    /// A logical block: the neighbouring logical pages that a scheme keeps in one block.
    LogicalBlock, "over the drive";
    /// A stream of host writes, or of copies: units that a classifier expects to live equally long.
    StreamId, "among the streams of its kind";
}

impl Lpn {
    /// No logical page: the slot is padding.
    pub const NONE: Lpn = Lpn(u32::MAX);
}

impl Ppn {
    /// No physical page: the logical page is not mapped.
    pub const NONE: Ppn = Ppn(u32::MAX);

    /// Returns the page, or `None` for [`Ppn::NONE`].
    pub fn mapped(self) -> Option<Ppn> {
        (self != Ppn::NONE).then_some(self)
    }
}

impl OpId {
    /// An operation that is already complete: nothing waits for it.
    pub const NONE: OpId = OpId(0);
}
