//! Seeded bugs: wrong behaviour on purpose, compiled in with the feature `seeded-bugs` only, which
//! `make test-seeded-bugs` asks for. No build that ships has it, and no other test.
//!
//! A suite that enumerates power failures is trusted as far as it finds them;
//! `docs/RELIABILITY.md` says which finds which.

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
    /// A map page says that it holds changes which it does not hold.
    MapBeforeData,
    /// A mount believes the map on flash, and looks at no spare area of data.
    TrustStaleMap,
    /// The map forgets that pages changed which were not written.
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
    /// A spare block takes the place of another without what that held.
    SpareWithoutCopy,
    /// A mount does not say that it could not read pages.
    HideDamage,
    /// A mount copies every logical block, whether it is in two places or not, and then once
    /// more.
    CopyTwice,
    /// A host layer writes a superpage again before the mapping that vacated it is durable.
    ReuseVacated,
    /// A host layer writes a log record before what it maps is durable.
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
        /// Make this bug active, and no other.
        pub fn activate(bug: Option<super::SeededBug>) {
            ACTIVE.store(bug.map_or(0, |c| c as u8), Ordering::SeqCst);
        }

        /// Whether this bug is active.
        #[inline]
        pub fn is_active(self) -> bool {
            ACTIVE.load(Ordering::Relaxed) == self as u8
        }
    }
}

#[cfg(not(feature = "seeded-bugs"))]
impl SeededBug {
    /// Whether this bug is active: never, in a build without the feature.
    #[inline(always)]
    pub const fn is_active(self) -> bool {
        false
    }
}
