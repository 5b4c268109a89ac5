//! Seeded bugs: wrong behaviour on purpose, compiled in with the feature `seeded-bugs` only. The
//! target `make test-seeded-bugs` asks for it; no build that ships and no other test has it.
//!
//! A suite that enumerates power failures is trusted as far as it finds them. `docs/RELIABILITY.md`
//! lists which suite finds which bug.

/// A bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SeededBug {
    /// Page mapping erases a victim before its last valid page is copied.
    EraseBeforeLastCopy = 1,
    /// A mount takes the copy of a page that it comes across last, not the one programmed last.
    SkipSequence,
    /// A torn spare area is believed.
    AcceptTorn,
    /// A page that can be read once is not read twice.
    ReadOnce,
    /// A map page claims changes that it does not hold.
    MapBeforeData,
    /// A mount believes the map on flash, and looks at no spare area of data.
    TrustStaleMap,
    /// The map forgets changes of pages that were not written.
    ReplayTooLate,
    /// A FLUSH does not write map pages of which only a trim is new.
    DropTrims,
    /// Collection erases a block that trims or moves have not left yet in the map on flash.
    EraseBeforeMap,
    /// A trim record is not written.
    DropTrimRecord,
    /// A trim record of which parts are missing is believed.
    HalfTrimRecord,
    /// A segment in NVM is written over in its place.
    NvmInPlace,
    /// A copy in NVM is not fenced.
    NvmWithoutFence,
    /// The checksum of a copy in NVM is not compared.
    NvmWithoutChecksum,
    /// A mount does not go on from the numbers in NVM.
    NumbersBeginAgain,
    /// A mount closes the blocks that are not full.
    CloseOpenBlocks,
    /// A mount keeps blocks of which no page can be read.
    KeepUnreadable,
    /// A block that a mount made is not marked as complete.
    WithoutSeal,
    /// A FLUSH leaves the write cache as it is.
    FlushWithoutCache,
    /// A FUA write stays in the write cache.
    FuaIgnored,
    /// A block whose erase failed counts as free.
    ReuseBadBlock,
    /// A spare block takes the place of another without its content.
    SpareWithoutCopy,
    /// A mount does not report that it could not read pages.
    HideDamage,
    /// A mount copies every logical block, whether it is in two places or not, and then once
    /// more.
    CopyTwice,
    /// A host layer writes a superpage again before the mapping that vacated it is durable.
    ReuseVacated,
    /// A host layer writes a log record before the data that it maps is durable.
    RecordBeforeData,
    /// A host layer's checkpoint is complete before its parts are durable.
    CheckpointBeforeChunks,
    /// A mirror takes its drives for alike when it is mounted.
    TakenForAlike,
}

#[cfg(feature = "seeded-bugs")]
mod active {
    use std::sync::atomic::{AtomicU8, Ordering};

    static ACTIVE: AtomicU8 = AtomicU8::new(0);

    impl super::SeededBug {
        /// Makes this bug active, and no other; `None` makes all of them inactive.
        pub fn activate(bug: Option<super::SeededBug>) {
            ACTIVE.store(bug.map_or(0, |c| c as u8), Ordering::SeqCst);
        }

        /// Returns whether this bug is active.
        #[inline]
        pub fn is_active(self) -> bool {
            ACTIVE.load(Ordering::Relaxed) == self as u8
        }
    }
}

#[cfg(not(feature = "seeded-bugs"))]
impl SeededBug {
    /// Returns `false`: no bug is active in a build without the feature.
    #[inline(always)]
    pub const fn is_active(self) -> bool {
        false
    }
}
