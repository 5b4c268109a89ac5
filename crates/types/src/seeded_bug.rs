//! Seeded bugs: intentional wrong behaviour that is compiled in only with the feature
//! `seeded-bugs`. Only the target `make test-seeded-bugs` enables this feature. Other tests and
//! released builds do not.
//!
//! Seeded bugs show how far a suite that enumerates power failures can be trusted.
//! `docs/RELIABILITY.md` lists which suite finds which bug.

/// A bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SeededBug {
    /// Page mapping erases a victim before its last valid page is copied.
    EraseBeforeLastCopy = 1,
    /// A mount uses the last copy of a page that it reads, not the last copy that was programmed.
    SkipSequence,
    /// The medium accepts a torn spare area.
    AcceptTorn,
    /// A mount does not read a page twice, though it may be readable only once.
    ReadOnce,
    /// The header of a map page claims changes that the page does not contain.
    MapBeforeData,
    /// A mount trusts the map on flash and reads no spare area of data.
    TrustStaleMap,
    /// A mount loses the changes of map pages that were not written.
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
    /// A mount does not verify the checksum of a copy in NVM.
    NvmWithoutChecksum,
    /// A mount restarts numbers that it must continue from NVM.
    NumbersBeginAgain,
    /// A mount closes the blocks that are not full.
    CloseOpenBlocks,
    /// A mount keeps blocks without a readable page.
    KeepUnreadable,
    /// A mount does not program the last page of a block, which marks the block as complete.
    WithoutSeal,
    /// A FLUSH does not flush the write cache.
    FlushWithoutCache,
    /// A FUA write stays in the write cache.
    FuaIgnored,
    /// A block whose erase failed counts as free.
    ReuseBadBlock,
    /// A spare block replaces another block without its content.
    SpareWithoutCopy,
    /// A mount does not report pages that it could not read.
    HideDamage,
    /// A mount copies every logical block twice, even a block that is stored in only one place.
    CopyTwice,
    /// A host layer writes a superpage again before the mapping that vacated it is durable.
    ReuseVacated,
    /// A host layer writes a log record before the data that it maps is durable.
    RecordBeforeData,
    /// A host layer's checkpoint is complete before its parts are durable.
    CheckpointBeforeChunks,
    /// Read reclaim erases a block before its last valid page is copied.
    ReclaimErasesEarly,
    /// The mount of a mirror assumes that its drives have the same content.
    TakenForAlike,
    /// An NVMe controller hands a FUA write to the media without FUA.
    FuaNotPassed,
    /// An NVMe controller completes FLUSH without a flush of the media.
    FlushNotPassed,
    /// An NVMe controller completes a shutdown without a flush of the media.
    ShutdownWithoutFlush,
    /// An NVMe controller whose write cache is off leaves changes volatile.
    CacheOffIgnored,
    /// A command that switches the write cache off completes without a flush of the media.
    SwitchWithoutFlush,
    /// A command that switches the write cache off does not wait for writes in flight before the
    /// flush.
    SwitchOvertakes,
    /// Changes that are submitted while the write cache is being switched off stay volatile.
    SwitchTooLate,
    /// Write Zeroes trims even if the drive loses trims in a power failure.
    ZeroesForgotten,
    /// Write Zeroes with FUA does not make the units durable that it deallocates.
    ZeroesNotDurable,
    /// Dataset Management with the write cache off leaves its trims volatile.
    TrimNotDurable,
    /// An NVMe controller hands a write to the media block by block.
    UnitInPieces,
    /// A saved feature is stored with the next record, and not before its command completes.
    SaveTooLate,
    /// A record overwrites the newest record instead of an older record.
    RecordInPlace,
    /// A controller that is enabled does not note that the drive is in use.
    UseNotNoted,
    /// A shutdown leaves the note that the drive is in use.
    UseStaysNoted,
    /// The totals that a SMART log shows are stored later, or never.
    SeenNotKept,
    /// A compare checks only the first block.
    CompareFirstBlock,
    /// A read or compare with FUA returns data from the cache without writing it to the media.
    ReadFuaIgnored,
    /// A fold erases its source when every page is read, before the copies are programmed.
    EraseSourceEarly,
    /// A mount treats every block as a native block.
    ForgetMode,
    /// The scheme does not note that it relies on data in lower pages.
    RelyOnLowerPages,
    /// Collection erases a block after the first step of its copies, whose last step is to come.
    ReleaseAtFirstStep,
    /// A FLUSH erases filled blocks with copies of data whose last step is to come.
    EraseFlushCopies,
    /// A copyback leaves the number of the program in the spare area as it was.
    CopybackKeepsNumber,
    /// Collection copies a page that wrong bits have taken as a page of zeros.
    CopyLostAsZeros,
    /// The parity of a frame that is padded is computed from old data.
    ParityOfOldData,
    /// A rebuild takes a part of the frame that is lost for sound.
    RebuildOfLost,
}

#[cfg(feature = "seeded-bugs")]
mod active {
    use std::sync::atomic::{AtomicU8, Ordering};

    static ACTIVE: AtomicU8 = AtomicU8::new(0);

    impl super::SeededBug {
        /// Activates this bug and deactivates every other bug; `None` deactivates all bugs.
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
