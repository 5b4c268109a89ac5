//! Flash translation layers: schemes that translate logical pages into physical pages, with their
//! map stores, victim policies and classifiers. Each kind of part has a registry. Each part has its
//! own file and one line in its registry.
//!
//! A scheme makes its decisions immediately and has no clock. It changes its tables, and calls
//! [`flashatlas_nand::Flash`], which adds operations to the plan of the request. An injected power
//! cut is an error that `?` returns to the caller.
//!
//! ```
//! use flashatlas_ftl::Registry;
//!
//! let registry = Registry::STANDARD;
//! assert_eq!(registry.victim("greedy")?.name, "greedy");
//! let error = registry.victim("gredy").err().unwrap();
//! assert!(error.to_string().contains("did you mean `greedy`?"));
//! // the parameters of a scheme depend on the chosen parts
//! let with = |store: &'static str| {
//!     let text = move |key: &str| (key == "map.store").then(|| store.to_owned());
//!     (registry.scheme("page").unwrap().params)(&registry, &text).unwrap()
//! };
//! let has = |store, key| with(store).iter().any(|param| param.key == key);
//! assert!(has("dftl", "map.cache_bytes") && !has("dram", "map.cache_bytes"));
//! # Ok::<(), flashatlas_types::ConfigError>(())
//! ```

mod binomial;
mod bits;
pub mod blocks;
pub mod caching;
pub mod classifiers;
mod context;
mod copies;
mod free;
mod in_flight;
pub mod list;
mod logblock;
pub mod maps;
pub mod notes;
pub mod pool;
pub mod report;
pub mod schemes;
mod sealed;
pub mod steady;
mod superseded;
mod trims;
pub mod units;
pub mod victims;

pub use blocks::Role;
pub use context::{Command, FtlContext, Outcome, Programmed};
pub use copies::Copies;
pub use notes::{FREE_CHANGES, NOTES};
pub use report::{
    AreaUse, FtlReport, MapCounters, MemoryUse, MergeClass, MergeCounters, MountLimit, MountReport,
    PageCounters, Reason,
};
pub use schemes::{FLUSH, PROGRAM_STEPS, REFRESH, Registry, SchemeConfig, SchemeDef};
pub use schemes::{THROTTLE_FROM, THROTTLE_RATE, WORN_OUT};
pub use superseded::Superseded;

use flashatlas_nand::{Medium, Unit};
use flashatlas_types::{
    BlockId, Cause, ConfigError, Entry, FtlError, Lpn, OpId, Param, ParamDef, Params, Ppn, Ps,
    StampSum, Text, Violation,
};

/// The parameter `ftl.scheme`.
pub const SCHEME: Param<Text> =
    Param::part("ftl.scheme", SchemeDef::KIND, "the mapping scheme").or("page");

/// The parameter `map.unit`.
pub const UNIT: Param<u32> = Param::bytes(
    "map.unit",
    512,
    64 << 10,
    "the mapping unit: a fraction of a page, a page, or a superpage, whose dies the keys \
     drive.frame_* choose",
);

/// The parameter `map.entry_bytes`.
pub const ENTRY_BYTES: Param<u32> = Param::int(
    "map.entry_bytes",
    4,
    8,
    "bytes of a map entry, 4 or 8, in memory and in map pages; only for page mapping, and not for \
     map.store = lpmt",
)
.or("4");

/// Refuses `map.entry_bytes` if the tables of a scheme or store have no such entries. The default
/// value is always accepted.
///
/// # Errors
/// Returns an error if the value is not the default. `instead` names the setting to change.
pub fn refuse_entry_bytes(params: &Params, with: &str, instead: &str) -> Result<(), ConfigError> {
    let default = ENTRY_BYTES.def.default.map(|text| ENTRY_BYTES.def.parse(text)).transpose()?;
    if params.value(ENTRY_BYTES.key()) == default.as_ref() {
        return Ok(());
    }
    let why = format!(
        "this key has no use with {with}, whose tables have no such entries: leave the key out, \
         set it to 4, or {instead}"
    );
    Err(ConfigError::new(ENTRY_BYTES.key(), why))
}

/// Parameters that every scheme has.
pub const PARAMS: &[ParamDef] = &[SCHEME.def, UNIT.def, ENTRY_BYTES.def];

/// The answer of [`Ftl::idle`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idle {
    /// There is no useful work.
    Nothing,
    /// One piece of work was done.
    Worked,
    /// There is nothing to do before this time.
    Wait(Ps),
}

/// The place of the newest version of a logical page.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// No place: the page was never written, or it was trimmed. The page reads as zeros.
    Nowhere,
    /// On flash, in this slot.
    Flash(Ppn),
    /// In the page buffer of the scheme, until the frame is full.
    Buffer(Unit),
}

/// The answer of [`Ftl::locate`].
#[derive(Clone, Debug)]
pub struct Located {
    /// The place of the page.
    pub place: Place,
    /// The map access that a read must wait for.
    pub ready: OpId,
}

/// A flash translation layer.
pub trait Ftl: Send {
    /// Finds the newest version of a page. The search costs map accesses and no data read. `ahead`
    /// is the number of pages of the same request that follow this page.
    ///
    /// # Errors
    /// Returns an error if the map itself cannot be read.
    fn locate(
        &mut self,
        cx: &mut FtlContext<'_>,
        lpn: Lpn,
        ahead: u32,
    ) -> Result<Located, FtlError>;

    /// Returns the place of the newest version of a page at no cost, for the simulator's own use.
    /// No operation is added to the plan.
    fn peek(&self, lpn: Lpn) -> Place;

    /// Prefetches the map entries of pages into the simulator's CPU cache. The pages are about to
    /// be looked up together. No state of the drive changes.
    fn prefetch(&self, lpns: &[Lpn]) {
        let _ = lpns;
    }

    /// Prefetches the state that a write of a page changes into the simulator's CPU cache. The
    /// entry of the page was prefetched before. No state of the drive changes.
    fn prefetch_write(&self, lpn: Lpn) {
        let _ = lpn;
    }

    /// Loads the map entries of consecutive pages into the controller, which exports them to the
    /// host. Returns the operation after which the entries are loaded.
    ///
    /// [`Ftl::peek`] returns the entries. From now on, every change of an entry is reported through
    /// [`FtlContext::remap`].
    ///
    /// # Errors
    /// Returns an error if the map cannot be read.
    ///
    /// # Panics
    /// Panics if the map store exports no entries ([`maps::MapStoreDef::exports_entries`]).
    fn export_entries(
        &mut self,
        cx: &mut FtlContext<'_>,
        pages: std::ops::Range<u32>,
    ) -> Result<OpId, FtlError> {
        let _ = (cx, pages);
        unreachable!("this scheme exports no map")
    }

    /// Writes consecutive logical pages of one request.
    ///
    /// Units may stay in the page buffer until a frame is full. Programs that write buffered units
    /// are reported through [`FtlContext::took_host_data`]. Programs wait for `after`.
    ///
    /// # Errors
    /// Returns [`FtlError::NoSpace`] if collection cannot free a block.
    fn write(
        &mut self,
        cx: &mut FtlContext<'_>,
        run: &[Unit],
        cause: Cause,
        after: &[OpId],
    ) -> Result<(), FtlError>;

    /// Returns the blocks of each lane that a fill of a blank drive in ascending order uses, in the
    /// order of their programs, if they can be computed without tables. Each lane in turn gets a
    /// frame. Returns `None` if the caller must call [`Ftl::write`] for every page instead.
    ///
    /// The call changes tables, although it programs nothing. The scheme must be mounted
    /// afterwards, because its tables and the medium then disagree.
    fn order_of_fill(&mut self, medium: &Medium) -> Option<Vec<Vec<BlockId>>> {
        let _ = medium;
        None
    }

    /// Discards the content of a page.
    ///
    /// # Errors
    /// Returns an error if the map cannot be updated.
    fn trim(&mut self, cx: &mut FtlContext<'_>, lpn: Lpn) -> Result<(), FtlError>;

    /// Programs all buffered data and pads frames if needed. Each program keeps the cause with
    /// which its units were written.
    ///
    /// # Errors
    /// Returns the errors of [`Ftl::write`].
    fn flush(&mut self, cx: &mut FtlContext<'_>) -> Result<(), FtlError>;

    /// Finishes programs that have begun, on a drive that is prepared in no time. A FLUSH may leave
    /// them to capacitors.
    ///
    /// # Errors
    /// Returns the errors of [`Ftl::write`].
    fn finish(&mut self, _: &mut FtlContext<'_>) -> Result<(), FtlError> {
        Ok(())
    }

    /// Makes the map as durable as a FLUSH needs it, or with `fua` as a FUA write needs it. Returns
    /// the operation that the command waits for in addition to the data.
    ///
    /// The function is called after [`Ftl::flush`] has programmed the data.
    ///
    /// # Errors
    /// Returns the errors of [`Ftl::write`].
    fn persist(&mut self, cx: &mut FtlContext<'_>, fua: bool) -> Result<OpId, FtlError> {
        let _ = (cx, fua);
        Ok(OpId::NONE)
    }

    /// Does one small piece of background work, if there is useful work.
    ///
    /// # Errors
    /// Returns the errors of [`Ftl::write`].
    fn idle(&mut self, cx: &mut FtlContext<'_>) -> Result<Idle, FtlError>;

    /// Returns the number of free blocks above the blocks that collection needs. Throttling goes by
    /// it. The erases of some of these blocks may be unfinished.
    ///
    /// # Panics
    /// Panics if the scheme has no throttling ([`THROTTLE_FROM`]).
    fn free_above_reserve(&self) -> u64 {
        unreachable!("this scheme has no throttling")
    }

    /// Returns the units of host data that wait in page buffers for their frame to fill.
    fn buffered(&self) -> Vec<Unit> {
        Vec::new()
    }

    /// Does work that is due although the drive is not idle, such as refresh. Returns `true` if any
    /// work was done. The controller calls this function after each command of a drive with errors.
    ///
    /// # Errors
    /// Returns the errors of [`Ftl::write`].
    fn keep_up(&mut self, _: &mut FtlContext<'_>) -> Result<bool, FtlError> {
        Ok(false)
    }

    /// Calls `visit` with every block, its role and its number of valid slots.
    fn for_each_block(&self, visit: &mut dyn FnMut(BlockId, Role, u32));

    /// Returns the sum of the stamps of all pages, on flash and in buffers. Returns `None` if
    /// computing the sum would take as long as looking up each page.
    fn sum_of_stamps(&self, _: &Medium) -> Option<StampSum> {
        None
    }

    /// Checks the scheme's tables against the medium, in a time that grows with the drive.
    ///
    /// # Errors
    /// Returns the first rule that does not hold.
    fn check(&self, medium: &Medium) -> Result<(), Violation>;

    /// Returns the counters and the table sizes.
    fn report(&self) -> FtlReport;

    /// Sets the counters of [`Ftl::report`] to zero. Table sizes do not change.
    fn reset_counters(&mut self);
}
