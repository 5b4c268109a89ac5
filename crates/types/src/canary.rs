//! Canaries: bugs that are there on purpose, compiled into tests only (feature `canaries`, which
//! nothing but the tests of `flashatlas-crash` asks for). A suite that enumerates power failures is
//! trusted as far as it finds them; `docs/RELIABILITY.md` says which finds which.

/// A bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Canary {
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
    /// A mount copies every logical block, whether it stands in two places or not, and then once
    /// more.
    CopyTwice,
    /// A host layer writes a superpage again before the mapping that vacated it is durable.
    ReuseVacated,
    /// A host layer writes a log record before what it maps is durable.
    RecordBeforeData,
    /// A host layer's checkpoint is complete before its parts are durable.
    CheckpointBeforeChunks,
}

#[cfg(feature = "canaries")]
mod chosen {
    use std::sync::atomic::{AtomicU8, Ordering};

    static CHOSEN: AtomicU8 = AtomicU8::new(0);

    impl super::Canary {
        /// Let this bug loose, and no other.
        pub fn choose(canary: Option<super::Canary>) {
            CHOSEN.store(canary.map_or(0, |c| c as u8), Ordering::SeqCst);
        }

        /// Whether this bug is loose.
        #[inline]
        pub fn sings(self) -> bool {
            CHOSEN.load(Ordering::Relaxed) == self as u8
        }
    }
}

#[cfg(not(feature = "canaries"))]
impl Canary {
    /// Whether this bug is loose: never, outside tests.
    #[inline(always)]
    pub const fn sings(self) -> bool {
        false
    }
}
