//! Addresses and identifiers. Each kind has a type of its own, so that kinds cannot be confused.
//!
//! Some types number the entries of a table. They convert to and from `usize`, so that a
//! [`TiVec`](typed_index_collections::TiVec) accepts them as its index: a table of lanes cannot be
//! indexed by a block. A block has a number in its lane, a number over the drive and a number on a
//! die. Only [`crate::Layout`] converts these numbers.

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

/// Declares types of identifiers that number the entries of tables.
///
/// The visibility before the first `u32` is the visibility of the number in each type. Without a
/// visibility, only the module of the declaration can use the number. Each type has `new` and
/// `number`, and is an [`Index`](crate::Index).
#[macro_export]
macro_rules! number {
    ($field:vis u32; $($(#[$doc:meta])* $vis:vis $name:ident, $space:literal;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        $vis struct $name($field u32);
        impl $name {
            #[doc = concat!("Returns the identifier with this number (from 0 ", $space, ").")]
            #[inline]
            $vis const fn new(number: u32) -> $name { $name(number) }

            #[doc = concat!("Returns the number (from 0 ", $space, ").")]
            #[inline]
            $vis const fn number(self) -> u32 { self.0 }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { self.0.fmt(f) }
        }
        $crate::index!($name);
    )* };
}

/// A type that numbers the entries of a table.
pub trait Index: Copy + Eq {
    /// Returns the identifier with this number.
    fn from_number(number: u32) -> Self;

    /// Returns the number.
    fn to_number(self) -> u32;

    /// Returns the number as the index of an entry in memory.
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

/// Implements the conversions that make a type the index of a typed table.
#[doc(hidden)]
#[macro_export]
macro_rules! index {
    ($name:ident) => {
        impl $crate::Index for $name {
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
    /// Logical page number: the index of a mapping unit of the drive. A unit may have any size.
    Lpn(u32);
    /// Physical page number: the place of one mapping unit on the medium (block, frame, and slot in
    /// the frame).
    Ppn(u32);
    /// A program unit of the FTL: the pages that one operation programs together. The number of a
    /// frame is `block * frames_per_block + frame`.
    FrameId(u32);
    /// An operation of a plan. Operations are numbered from 1 in the order of planning, throughout
    /// the life of a drive.
    OpId(u64);
    /// A host command in flight.
    Tag(u64);
}

index!(Lpn);
index!(Ppn);
index!(FrameId);

number! {
    pub(crate) u32;
    /// An erase unit of the FTL: one block on each die and plane of a lane, all erased together.
    pub BlockId, "over the drive";
    /// An erase unit, identified by its number in its lane. [`crate::Layout::in_lane`] and
    /// [`crate::Layout::block_in`] convert between this number and the [`BlockId`].
    pub LocalBlock, "in its lane";
    /// The part of a block that is on one die. It is one erase block, or an erase block on each of
    /// several planes. [`crate::Layout::on_dies`] lists the parts of a block.
    pub DieBlock, "over the drive";
    /// A set of dies and planes that one frame covers. Lanes work in parallel. They are numbered in
    /// allocation order.
    pub LaneId, "over the drive";
    /// A write frontier of a lane. Frames are gathered there and programmed one after another.
    pub FrontierId, "in its lane";
    /// A logical block: the consecutive logical pages that a scheme stores in one block.
    pub LogicalBlock, "over the drive";
    /// A stream of host writes or of copies. A classifier expects its units to live equally long.
    pub StreamId, "among the streams of its kind";
}

impl Lpn {
    /// The value for no logical page, as in a slot with padding.
    pub const NONE: Lpn = Lpn(u32::MAX);
}

impl Ppn {
    /// The value for no physical page, as for a logical page that is not mapped.
    pub const NONE: Ppn = Ppn(u32::MAX);

    /// Returns the page, or `None` for [`Ppn::NONE`].
    pub fn mapped(self) -> Option<Ppn> {
        (self != Ppn::NONE).then_some(self)
    }
}

impl OpId {
    /// The value for no operation. It counts as complete, so nothing waits for it.
    pub const NONE: OpId = OpId(0);
}
