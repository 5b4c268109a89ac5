//! Seeded bugs: wrong behaviour on purpose, compiled in with the feature `seeded-bugs` only. The
//! target `make test-seeded-bugs` asks for it; no build that ships and no other test has it.
//!
//! A suite that enumerates power failures is trusted as far as it finds seeded bugs.
//! `docs/RELIABILITY.md` lists which suite finds which bug.

/// A bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SeededBug {
    /// Page mapping erases a victim before its last valid page is copied.
    EraseBeforeLastCopy = 1,
    /// A mount takes the copy of a page that it reads last, not the copy that was programmed last.
    SkipSequence,
    /// The medium accepts a torn spare area.
    AcceptTorn,
    /// A mount does not read a page twice, though it may be readable only once.
    ReadOnce,
    /// A map page claims changes that it does not hold.
    MapBeforeData,
    /// A mount trusts the map on flash and reads no spare area of data.
    TrustStaleMap,
    /// The map loses changes of map pages that were not written.
    ReplayTooLate,
    /// A FLUSH does not write map pages whose only change is a trim.
    DropTrims,
    /// Collection erases a block while the map on flash lacks the trims and moves of its pages.
    EraseBeforeMap,
    /// A trim record is not written.
    DropTrimRecord,
    /// A mount accepts a trim record with missing parts.
    HalfTrimRecord,
    /// A segment in NVM is overwritten in place.
    NvmInPlace,
    /// A copy in NVM is not fenced.
    NvmWithoutFence,
    /// The checksum of a copy in NVM is not compared.
    NvmWithoutChecksum,
    /// A mount does not continue from the numbers in NVM.
    NumbersBeginAgain,
    /// A mount closes the blocks that are not full.
    CloseOpenBlocks,
    /// A mount keeps blocks without a readable page.
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
    /// A mount copies every logical block, even one that is in one place only, and then once more.
    CopyTwice,
    /// A host layer writes a superpage again before the mapping that vacated it is durable.
    ReuseVacated,
    /// A host layer writes a log record before the data that it maps is durable.
    RecordBeforeData,
    /// A host layer's checkpoint is complete before its parts are durable.
    CheckpointBeforeChunks,
    /// The mount of a mirror assumes that its drives have the same content.
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
