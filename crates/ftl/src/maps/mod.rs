//! Map stores: where the logical-to-physical map lives, what a lookup costs, and what survives a
//! power cut. One file each; what they share is in `pages`.

mod cdftl;
mod demand;
mod dftl;
mod dram;
mod leaftl;
mod learnedftl;
mod lpmt;
mod nvm_hybrid;
mod pages;
mod sftl;
mod tpftl;

use crate::caching::CachePolicyDef;
use crate::pool::{MapQuota, Pool};
use crate::report::PageCounters;
use crate::{FtlContext, Idle, MapCounters, MemoryUse, MountReport};
use flashatlas_lookup::hashes::HashDef;
use flashatlas_nand::Medium;
use flashatlas_types::{
    BlockId, ConfigError, Entries, Entry, FtlError, Layout, Lpn, Mechanism, Note, OpId, Param,
    ParamDef, Params, Ppn, PpnTable, Text, Violation,
};

/// All map stores.
pub const MAPS: &[MapStoreDef] = &[
    dram::DEF,
    nvm_hybrid::DEF,
    demand::DEF,
    dftl::DEF,
    cdftl::DEF,
    sftl::DEF,
    tpftl::DEF,
    leaftl::DEF,
    learnedftl::DEF,
    lpmt::DEF,
];

/// The parameter `map.store`.
pub const STORE: Param<Text> =
    Param::part("map.store", MapStoreDef::KIND, "where the map of a page-mapped scheme lives")
        .or("dram");

/// Parameters that select a map store.
pub const PARAMS: &[ParamDef] = &[STORE.def];

/// How far the map that a mount found goes: [`Replay::everything`], and what is known beside it.
#[non_exhaustive]
pub struct Replay {
    /// Number of the last program whose change each map page holds.
    pub upto: Vec<u64>,
    /// Number of the copy of each map page that was taken; 0 for those of which there is none.
    pub version: Vec<u64>,
    /// Number of the last program whose changes all map pages hold: blocks that were written later
    /// are looked at.
    pub from: u64,
    /// Number of the newest copy, and whether a mount wrote it that was mending the map.
    pub newest: (u64, bool),
}

impl Replay {
    /// No copy of any of so many map pages.
    pub fn everything(pages: u32) -> Replay {
        let none = vec![0; pages as usize];
        Replay { upto: none.clone(), version: none, from: 0, newest: (0, false) }
    }

    /// There is a copy with this number.
    pub(crate) fn hear(&mut self, number: u64, mending: bool) {
        if number > self.newest.0 {
            self.newest = (number, mending);
        }
    }
}

/// A change of one entry.
#[derive(Clone, Copy, Debug)]
pub struct Update {
    /// The logical page.
    pub lpn: Lpn,
    /// Where it is now; [`Ppn::NONE`] when it was trimmed.
    pub ppn: Ppn,
    /// The program that took it there.
    pub op: OpId,
}

/// What a map store works with during one call.
pub struct MapContext<'a, 'c> {
    /// The medium, the plan, and the command.
    pub cx: &'a mut FtlContext<'c>,
    /// The blocks that data and map pages draw on.
    pub pool: &'a mut Pool,
}

/// The map of a page-mapped scheme.
pub trait MapStore: Send {
    /// Look up a page for the host: costs accesses, and returns the operation that the answer waits
    /// for.
    ///
    /// # Errors
    /// When the map cannot be read.
    fn get(&mut self, io: &mut MapContext<'_, '_>, lpn: Lpn) -> Result<(Ppn, OpId), FtlError>;

    /// Bring the entries of consecutive pages to the controller, as a map page holds them, for the
    /// host; nothing of what is in memory leaves for it. Returns the operation after which they are
    /// there.
    ///
    /// # Errors
    /// When the map cannot be read.
    ///
    /// # Panics
    /// Where the store hands nothing out ([`MapStoreDef::exports_entries`]).
    fn export_entries(
        &mut self,
        io: &mut MapContext<'_, '_>,
        pages: std::ops::Range<u32>,
    ) -> Result<OpId, FtlError> {
        let _ = (io, pages);
        unreachable!("this store hands no map out")
    }

    /// The entry as the simulator knows it, at no cost.
    fn peek(&self, lpn: Lpn) -> Ppn;

    /// These entries are about to be asked for: load them from memory, all at once. Nothing else
    /// comes of it.
    fn prefetch(&self, lpns: &[Lpn]) {
        let _ = lpns;
    }

    /// Whether [`MapStore::load`], which was just called, found no entry below `pages` that leads
    /// anywhere.
    fn found_nothing(&self, pages: u32) -> bool {
        (0..pages).all(|lpn| self.peek(Lpn(lpn)) == Ppn::NONE)
    }

    /// The entries, where they are all that there is to the map: a mount that finds nothing of it
    /// fills this instead of calling [`MapStore::restore`].
    fn table(&mut self) -> Option<&mut PpnTable> {
        None
    }

    /// Change an entry for the host; returns what it was, and the operation that the change waits
    /// for.
    ///
    /// # Errors
    /// When the map cannot be written.
    fn set(&mut self, io: &mut MapContext<'_, '_>, update: Update)
    -> Result<(Ppn, OpId), FtlError>;

    /// Change an entry because collection moved the page. What that needs of flash may wait until
    /// [`MapStore::before_erase`].
    ///
    /// # Errors
    /// As [`MapStore::set`].
    fn moved(&mut self, io: &mut MapContext<'_, '_>, update: Update) -> Result<Ppn, FtlError> {
        self.set(io, update).map(|(old, _)| old)
    }

    /// Make the map as durable as a FLUSH needs it; returns the operation that the FLUSH waits for.
    ///
    /// # Errors
    /// When there is no room, or no power.
    fn flush(&mut self, io: &mut MapContext<'_, '_>) -> Result<OpId, FtlError> {
        let _ = io;
        Ok(OpId::NONE)
    }

    /// A block without valid data is about to be erased: whatever a mount would need it for is
    /// written first. Returns what the erase waits for.
    ///
    /// # Errors
    /// As [`MapStore::flush`].
    fn before_erase(
        &mut self,
        io: &mut MapContext<'_, '_>,
        block: BlockId,
    ) -> Result<OpId, FtlError> {
        let _ = (io, block);
        Ok(OpId::NONE)
    }

    /// The frontier that a page goes to, of so many that the host and collection each have in a
    /// lane: a store that keeps pages together which it maps together chooses it, where
    /// `ftl.classifier = none` does not. `None`: one is as good as another.
    fn frontier(&self, lpn: Lpn, frontiers: u32) -> Option<u32> {
        let _ = (lpn, frontiers);
        None
    }

    /// Whether collection moves the pages of a block in ascending order of their logical numbers.
    fn sorts_copies(&self) -> bool {
        false
    }

    /// A block was programmed to its end: what is valid in it stays where it is until the host
    /// writes it, or collection moves it. Blocks that were full before a mount are not named.
    ///
    /// # Errors
    /// When what is in it cannot be read.
    fn closed(&mut self, io: &mut MapContext<'_, '_>, block: BlockId) -> Result<(), FtlError> {
        let _ = (io, block);
        Ok(())
    }

    /// One small piece of background work.
    ///
    /// # Errors
    /// As [`MapStore::flush`].
    fn idle(&mut self, io: &mut MapContext<'_, '_>) -> Result<Idle, FtlError> {
        let _ = io;
        Ok(Idle::Nothing)
    }

    /// Begin a mount: rebuild what there is of the map in `blocks` (those of map pages) and in NVM.
    ///
    /// # Errors
    /// When the power fails.
    fn load(
        &mut self,
        io: &mut MapContext<'_, '_>,
        blocks: &[BlockId],
        mount: &mut MountReport,
    ) -> Result<Replay, FtlError>;

    /// During a mount: blocks that cannot be read are erased next, and with them goes what shows
    /// that a part of the map may be lost.
    ///
    /// # Errors
    /// When the power fails.
    fn before_discard(&mut self, io: &mut MapContext<'_, '_>) -> Result<(), FtlError> {
        let _ = io;
        Ok(())
    }

    /// During a mount: the newest version of a page that a spare area names, programmed with number
    /// `sequence`; or that its entry points nowhere.
    fn restore(&mut self, lpn: Lpn, ppn: Ppn, sequence: u64);

    /// End a mount: the map is complete.
    ///
    /// # Errors
    /// When the power fails.
    fn mounted(
        &mut self,
        io: &mut MapContext<'_, '_>,
        mount: &mut MountReport,
    ) -> Result<(), FtlError> {
        let _ = (io, mount);
        Ok(())
    }

    /// Whether a mount takes newer entries from the spare areas of data, so that data on flash is
    /// never lost to a map that is not.
    fn rolls_forward(&self) -> bool {
        true
    }

    /// Whether trims do not outlive a mount.
    fn forgets_trims(&self) -> bool {
        false
    }

    /// The map page that holds the entry of a page, as an index of [`Replay::upto`].
    fn page_of(&self, lpn: Lpn) -> u32;

    /// The rules of the store's own tables. Returns the valid slots that map pages occupy.
    ///
    /// # Errors
    /// The first rule that does not hold.
    fn check(&self, medium: &Medium, pool: &Pool) -> Result<u64, Violation> {
        let _ = (medium, pool);
        Ok(0)
    }

    /// Accesses so far.
    fn counters(&self) -> MapCounters;

    /// Map pages read and written so far.
    fn pages(&self) -> PageCounters {
        PageCounters::default()
    }

    /// Further counters by name, for the run record.
    fn details(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Set the counters to zero.
    fn reset_counters(&mut self);

    /// The store's tables.
    fn memory(&self) -> Vec<MemoryUse>;

    /// What the store approximates, in words.
    fn approximations(&self) -> Vec<Note> {
        Vec::new()
    }
}

/// What a store is made of.
#[derive(Clone, Copy)]
pub struct StoreConfig<'a> {
    /// Parameters of the drive.
    pub params: &'a Params,
    /// Policies of the map's cache.
    pub caching: Entries<CachePolicyDef>,
    /// Hash functions of the lookup engine.
    pub hashes: Entries<HashDef>,
}

/// Whether a layout can work with a store, and how many blocks are kept for map pages.
pub type Fits = dyn Fn(&StoreConfig<'_>, &Layout) -> Result<MapQuota, ConfigError> + Send + Sync;

/// Builds an empty store.
pub type Builder = dyn Fn(&StoreConfig<'_>, &Layout) -> Box<dyn MapStore> + Send + Sync;

/// One map store of the registry.
pub struct MapStoreDef {
    /// Name in `map.store`.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Where it is described.
    pub paper: &'static str,
    /// Its own parameters.
    pub params: &'static [ParamDef],
    /// Whether the layout can work, and how many blocks are kept for map pages.
    pub fits: &'static Fits,
    /// Whether it hands entries to a host that caches them ([`MapStore::export_entries`]): stores
    /// of which a lookup may have to read flash, and which say what changes
    /// ([`FtlContext::remapped`]).
    pub exports_entries: bool,
    /// Build it, empty.
    pub build: &'static Builder,
    /// Settings with which the store takes each of its paths on a drive of a few hundred pages;
    /// every one of them is tried at every power failure.
    pub small: &'static [&'static [&'static str]],
    /// What its paper describes and a run may or may not reach, each with its counter.
    pub mechanisms: &'static [Mechanism],
}

flashatlas_types::entry!(MapStoreDef, "map store", "map.store");
