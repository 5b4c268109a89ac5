//! Addresses and identifiers, one type each, so that one kind cannot be taken for another.

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

id! {
    /// Host address in sectors of [`crate::SECTOR_BYTES`] bytes.
    Lba(u64);
    /// Logical page number: the index of a mapping unit of the drive, whatever its size.
    Lpn(u32);
    /// Physical page number: the place of one mapping unit on the medium (block, frame, slot in the
    /// frame).
    Ppn(u32);
    /// An erase unit of the FTL: one block on each die and plane of a lane, all erased together.
    BlockId(u32);
    /// A program unit of the FTL: the pages that are programmed together. Its number is
    /// `block * frames_per_block + frame`.
    FrameId(u32);
    /// A set of dies and planes that one frame covers; lanes work in parallel. They are numbered in
    /// allocation order.
    LaneId(u32);
    /// An operation of a plan. Operations are numbered from 1 in the order of planning, over the
    /// whole life of a drive.
    OpId(u64);
    /// A host command in flight.
    Tag(u64);
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
