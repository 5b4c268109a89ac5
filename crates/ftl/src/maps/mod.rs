//! Map stores: a store decides where the logical-to-physical map is stored, how much a lookup
//! costs, and which entries survive a power cut. Each store has its own file. The module `pages`
//! contains the parts that stores share.

mod cdftl;
mod demand;
mod dftl;
mod dram;
mod leaftl;
mod learnedftl;
mod nvm_hybrid;
mod pages;
mod sftl;
mod tpftl;

pub use pages::ids::MapPage;

use crate::caching::CachePolicyDef;
use crate::pool::{MapQuota, Pool};
use crate::report::PageCounters;
use crate::{FtlContext, Idle, MapCounters, MemoryUse, MountReport};
use flashatlas_nand::Medium;
use flashatlas_types::{
    BlockId, ConfigError, Entries, Entry, FtlError, Kinds, Layout, Lpn, Mechanism, Note, OpId,
    Param, ParamDef, Params, Ppn, PpnTable, StreamId, Text, TiVec, Violation,
};
use pages::ids::filled;

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
];

/// Returns whether the map store of a drive takes up a base, because it comes with the project.
pub(crate) fn takes_up_a_base(params: &Params) -> bool {
    MAPS.iter().any(|store| store.name == params.get(STORE))
}

/// The parameter `map.store`.
pub const STORE: Param<Text> =
    Param::part("map.store", MapStoreDef::KIND, "where the map of a page-mapped scheme lives")
        .or("dram");

/// Parameters that select a map store.
pub const PARAMS: &[ParamDef] = &[STORE.def];

/// The state of the map on flash, as a mount finds it: the programs whose changes it contains.
#[non_exhaustive]
pub struct Replay {
    /// The number of the last program whose change each map page contains.
    pub upto: TiVec<MapPage, u64>,
    /// The number of the copy of each map page that the mount uses, or 0 if there is no copy.
    pub version: TiVec<MapPage, u64>,
    /// The number of the last program whose changes all map pages contain. The mount reads the
    /// spare areas of blocks that were written later.
    pub from: u64,
    /// The number of the newest copy, and `true` if an earlier mount wrote it while repairing the
    /// map.
    pub newest: (u64, bool),
}

impl Replay {
    /// Returns the state without a copy of any of `pages` map pages.
    pub fn everything(pages: u32) -> Replay {
        let none = filled(pages, 0);
        Replay { upto: none.clone(), version: none, from: 0, newest: (0, false) }
    }

    /// Notes a copy with this number.
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
    /// The place of the newest version of the page, or [`Ppn::NONE`] if the page was trimmed.
    pub ppn: Ppn,
    /// The program that wrote the page to this place.
    pub op: OpId,
}

/// The context and the blocks that a map store uses during one call.
pub struct MapContext<'a, 'c> {
    /// The medium, the plan, and the command.
    pub cx: &'a mut FtlContext<'c>,
    /// The blocks from which data and map pages are allocated.
    pub pool: &'a mut Pool,
    /// The number of pages of the same request that follow the page of this call. The scheme sets
    /// this number, and a store reads it.
    pub ahead: u32,
}

impl<'a, 'c> MapContext<'a, 'c> {
    /// Returns the context of a call whose page is the last of its request.
    #[inline]
    pub fn new(cx: &'a mut FtlContext<'c>, pool: &'a mut Pool) -> MapContext<'a, 'c> {
        MapContext { cx, pool, ahead: 0 }
    }
}

/// The map of a page-mapped scheme.
pub trait MapStore: Send {
    /// Looks up a page for the host, which costs accesses. Returns the page's place and the
    /// operation after which the place is known.
    ///
    /// # Errors
    /// Returns an error if the map cannot be read.
    fn get(&mut self, io: &mut MapContext<'_, '_>, lpn: Lpn) -> Result<(Ppn, OpId), FtlError>;

    /// Loads the entries of consecutive pages into the controller for the host. The entries belong
    /// to one map page. Returns the operation after which the entries are loaded.
    ///
    /// The load evicts no entry from memory.
    ///
    /// # Errors
    /// Returns an error if the map cannot be read.
    ///
    /// # Panics
    /// Panics if the store exports no entries ([`MapStoreDef::exports_entries`]).
    fn export_entries(
        &mut self,
        io: &mut MapContext<'_, '_>,
        pages: std::ops::Range<u32>,
    ) -> Result<OpId, FtlError> {
        let _ = (io, pages);
        unreachable!("this store exports no map")
    }

    /// Returns the current entry at no cost, for the simulator's own use.
    fn peek(&self, lpn: Lpn) -> Ppn;

    /// Prefetches entries into the simulator's CPU cache. The entries are about to be looked up
    /// together. No state of the drive changes.
    fn prefetch(&self, lpns: &[Lpn]) {
        let _ = lpns;
    }

    /// Returns `true` if none of the first `pages` entries is mapped. The function is called
    /// directly after [`MapStore::load`].
    fn found_nothing(&self, pages: u32) -> bool {
        self.whole_table().is_some_and(PpnTable::is_blank)
            || (0..pages).all(|lpn| self.peek(Lpn(lpn)) == Ppn::NONE)
    }

    /// Returns the table of entries if it is the whole map, otherwise `None`.
    ///
    /// A mount that finds no part of the map fills this table directly instead of calling
    /// [`MapStore::restore`].
    fn table(&mut self) -> Option<&mut PpnTable> {
        None
    }

    /// Returns the table of entries if the map is written as a whole afterwards
    /// ([`MapStore::write_whole`]), so that changes of the table need not be noted.
    fn table_to_write(&mut self) -> Option<&mut PpnTable> {
        None
    }

    /// Returns the table of all entries to be looked at, if there is one.
    fn whole_table(&self) -> Option<&PpnTable> {
        None
    }

    /// Changes an entry for the host. Returns its old value and the operation that the change waits
    /// for.
    ///
    /// # Errors
    /// Returns an error if the map cannot be written.
    fn set(&mut self, io: &mut MapContext<'_, '_>, update: Update)
    -> Result<(Ppn, OpId), FtlError>;

    /// Changes an entry because collection moved the page, and returns its old value. The work on
    /// flash may be delayed until [`MapStore::before_erase`].
    ///
    /// # Errors
    /// Returns the errors of [`MapStore::set`].
    fn moved(&mut self, io: &mut MapContext<'_, '_>, update: Update) -> Result<Ppn, FtlError> {
        self.set(io, update).map(|(old, _)| old)
    }

    /// Makes the map as durable as a FLUSH needs it. Returns the operation that the FLUSH waits
    /// for.
    ///
    /// # Errors
    /// Returns an error if there is no room, or if the power fails.
    fn flush(&mut self, io: &mut MapContext<'_, '_>) -> Result<OpId, FtlError> {
        let _ = io;
        Ok(OpId::NONE)
    }

    /// Prepares the erase of a block without valid data. If a mount needs this block to find a part
    /// of the map, that part is written first. Returns the operation that the erase waits for.
    ///
    /// # Errors
    /// Returns the errors of [`MapStore::flush`].
    fn before_erase(
        &mut self,
        io: &mut MapContext<'_, '_>,
        block: BlockId,
    ) -> Result<OpId, FtlError> {
        let _ = (io, block);
        Ok(OpId::NONE)
    }

    /// Returns the stream whose frontier a page is written to, or `None` if all streams are equally
    /// good.
    ///
    /// The host and collection each have `frontiers` streams, and each stream has a frontier in
    /// every lane. A store may choose the stream so that pages with entries in one map page stay
    /// together, unless `ftl.classifier` chooses.
    fn frontier(&self, lpn: Lpn, frontiers: u32) -> Option<StreamId> {
        let _ = (lpn, frontiers);
        None
    }

    /// Returns `true` if collection moves the pages of a block in ascending order of their logical
    /// numbers.
    fn sorts_copies(&self) -> bool {
        false
    }

    /// Notes that a block was programmed to its end. Its valid pages stay there until the host
    /// writes them or collection moves them. The function is not called for blocks that were full
    /// before a mount.
    ///
    /// # Errors
    /// Returns an error if the pages of the block cannot be read.
    fn closed(&mut self, io: &mut MapContext<'_, '_>, block: BlockId) -> Result<(), FtlError> {
        let _ = (io, block);
        Ok(())
    }

    /// Does one small piece of background work.
    ///
    /// # Errors
    /// Returns the errors of [`MapStore::flush`].
    fn idle(&mut self, io: &mut MapContext<'_, '_>) -> Result<Idle, FtlError> {
        let _ = io;
        Ok(Idle::Nothing)
    }

    /// Begins a mount: rebuilds the map as far as possible from `blocks` (the blocks of map pages)
    /// and from NVM.
    ///
    /// # Errors
    /// Returns an error if the power fails.
    fn load(
        &mut self,
        io: &mut MapContext<'_, '_>,
        blocks: &[BlockId],
        mount: &mut MountReport,
    ) -> Result<Replay, FtlError>;

    /// Prepares the erase of unreadable blocks during a mount. The erase destroys the evidence that
    /// a part of the map may be lost.
    ///
    /// # Errors
    /// Returns an error if the power fails.
    fn before_discard(&mut self, io: &mut MapContext<'_, '_>) -> Result<(), FtlError> {
        let _ = io;
        Ok(())
    }

    /// Sets the entry of a page during a mount. A spare area names the page, and this newest
    /// version was programmed with number `sequence`. `ppn` is [`Ppn::NONE`] if the page of the old
    /// entry is lost.
    fn restore(&mut self, lpn: Lpn, ppn: Ppn, sequence: u64);

    /// Ends a mount: the map is complete.
    ///
    /// # Errors
    /// Returns an error if the power fails.
    fn mounted(
        &mut self,
        io: &mut MapContext<'_, '_>,
        mount: &mut MountReport,
    ) -> Result<(), FtlError> {
        let _ = (io, mount);
        Ok(())
    }

    /// Returns whether the map is written to flash or NVM. The preparation of such a drive ends
    /// with [`MapStore::write_whole`].
    fn is_written(&self) -> bool {
        false
    }

    /// Writes every map page to flash, once and in order, so that flash lacks no change. A mount
    /// has found the entries, and the drive is mounted again afterwards.
    ///
    /// # Errors
    /// Returns the errors of [`MapStore::flush`].
    fn write_whole(&mut self, io: &mut MapContext<'_, '_>) -> Result<(), FtlError> {
        let _ = io;
        Ok(())
    }

    /// Returns `true` if a mount reads newer entries from the spare areas of data. Then data on
    /// flash is not lost if its map page was not written.
    fn rolls_forward(&self) -> bool {
        true
    }

    /// Returns `true` if trims are lost at a mount.
    fn forgets_trims(&self) -> bool {
        false
    }

    /// Returns the map page that contains the entry of a page, as an index of [`Replay::upto`].
    fn page_of(&self, lpn: Lpn) -> MapPage;

    /// Checks the rules of the store's own tables. Returns the number of valid slots that map pages
    /// occupy.
    ///
    /// # Errors
    /// Returns the first rule that does not hold.
    fn check(&self, medium: &Medium, pool: &Pool) -> Result<u64, Violation> {
        let _ = (medium, pool);
        Ok(0)
    }

    /// Returns the number of accesses so far, by kind.
    fn counters(&self) -> MapCounters;

    /// Returns the numbers of map pages that were read and written so far.
    fn pages(&self) -> PageCounters {
        PageCounters::default()
    }

    /// Returns additional counters by name, for the run record.
    fn details(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Sets the counters to zero.
    fn reset_counters(&mut self);

    /// Returns the store's tables.
    fn memory(&self) -> Vec<MemoryUse>;

    /// Returns the approximations of the store, as notes.
    fn approximations(&self) -> Vec<Note> {
        Vec::new()
    }
}

/// The configuration that a store is built from.
#[derive(Clone, Copy)]
pub struct StoreConfig<'a> {
    /// Parameters of the drive.
    pub params: &'a Params,
    /// Policies of the map's cache.
    pub caching: Entries<CachePolicyDef>,
    /// Additional kinds of parts that stores choose from.
    pub kinds: Kinds,
}

/// A function that checks a layout for a store, and returns the blocks that are reserved for map
/// pages.
pub type Fits = dyn Fn(&StoreConfig<'_>, &Layout) -> Result<MapQuota, ConfigError> + Send + Sync;

/// A function that builds an empty store.
pub type Builder = dyn Fn(&StoreConfig<'_>, &Layout) -> Box<dyn MapStore> + Send + Sync;

/// One map store of the registry.
pub struct MapStoreDef {
    /// Name in `map.store`.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// The paper that describes the store.
    pub paper: &'static str,
    /// Parameters of the store itself.
    pub params: &'static [ParamDef],
    /// Checks the layout and returns the blocks that are reserved for map pages.
    pub fits: &'static Fits,
    /// `true` if the store exports entries to a host that caches them
    /// ([`MapStore::export_entries`]). A lookup of such a store may have to read flash, and the
    /// store reports its changes ([`FtlContext::remap`]).
    pub exports_entries: bool,
    /// Builds an empty store.
    pub build: &'static Builder,
    /// Settings that together reach all code paths of the store on a drive of a few hundred pages.
    /// The power-failure tests run with each of them.
    pub small: &'static [&'static [&'static str]],
    /// The mechanisms of the store's paper, each with a counter of its uses.
    pub mechanisms: &'static [Mechanism],
}

flashatlas_types::entry!(MapStoreDef, "map store", "map.store");
