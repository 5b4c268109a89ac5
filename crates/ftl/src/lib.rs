//! Flash translation layers: schemes that turn logical pages into physical ones, with their map
//! stores, victim policies and classifiers. Each of those is a registry: one file, one line.
//!
//! A scheme decides at once and keeps no time: it changes its tables, and asks
//! [`flashatlas_nand::Flash`] for operations that land in the plan of the request. A power cut,
//! when one is injected, is an error that travels up through `?`.
//!
//! ```
//! use flashatlas_ftl::Registry;
//!
//! let registry = Registry::STANDARD;
//! assert_eq!(registry.victim("greedy")?.name, "greedy");
//! let error = registry.victim("gredy").err().unwrap();
//! assert!(error.to_string().contains("did you mean `greedy`?"));
//! // what a scheme declares depends on the parts that are chosen
//! let with = |store: &'static str| {
//!     let text = move |key: &str| (key == "map.store").then(|| store.to_owned());
//!     (registry.scheme("page").unwrap().params)(&registry, &text).unwrap()
//! };
//! let has = |store, key| with(store).iter().any(|param| param.key == key);
//! assert!(has("dftl", "map.cache_bytes") && !has("dram", "map.cache_bytes"));
//! # Ok::<(), flashatlas_types::ConfigError>(())
//! ```

pub mod blocks;
pub mod caching;
pub mod classifiers;
mod copies;
mod free;
mod in_flight;
pub mod list;
mod logblock;
pub mod maps;
pub mod notes;
pub mod pool;
mod registry;
pub mod report;
pub mod schemes;
mod sealed;
pub mod steady;
mod superseded;
mod trims;
pub mod victims;

pub use blocks::Role;
pub use copies::Copies;
pub use notes::{FREE_CHANGES, NOTES};
pub use registry::Registry;
pub use report::{
    AreaUse, FtlReport, MapCounters, MemoryUse, MergeClass, MergeCounters, MountLimit, MountReport,
    PageCounters, Reason,
};
pub use schemes::{SchemeConfig, SchemeDef};
pub use superseded::Superseded;

use flashatlas_nand::{Flash, Medium, Unit};
use flashatlas_types::{
    BlockId, Cause, ConfigError, Entry, FtlError, Lpn, OpId, Param, ParamDef, Params, Ppn, Ps,
    Stamp, StampSum, Text, Violation,
};

/// The parameter `ftl.scheme`.
pub const SCHEME: Param<Text> =
    Param::part("ftl.scheme", SchemeDef::KIND, "the mapping scheme").or("page");

/// The parameter `map.unit`.
pub const UNIT: Param<u32> = Param::bytes(
    "map.unit",
    512,
    64 << 10,
    "the mapping unit: a fraction of a page, a page, or a superpage (then drive.frame_* say of \
     which dies)",
);

/// The parameter `map.entry_bytes`.
pub const ENTRY_BYTES: Param<u32> = Param::int(
    "map.entry_bytes",
    4,
    8,
    "4 or 8: bytes of a map entry, in memory and in map pages; page mapping whose map.store is not \
     lpmt",
)
.or("4");

/// Refuses `map.entry_bytes` where there is no map of such entries. The default is no wish.
///
/// # Errors
/// Another value than the default; `instead` says what to set.
pub(crate) fn refuse_entry_bytes(
    params: &Params,
    with: &str,
    instead: &str,
) -> Result<(), ConfigError> {
    let default = ENTRY_BYTES.def.default.map(|text| ENTRY_BYTES.def.parse(text)).transpose()?;
    if params.value(ENTRY_BYTES.key()) == default.as_ref() {
        return Ok(());
    }
    let why = format!(
        "not with {with}: its tables have no such entries; leave it out, set it to 4, or {instead}"
    );
    Err(ConfigError::new(ENTRY_BYTES.key(), why))
}

/// Parameters that every scheme understands.
pub const PARAMS: &[ParamDef] = &[SCHEME.def, UNIT.def, ENTRY_BYTES.def];

/// What a scheme works with during one call.
pub struct FtlContext<'a> {
    /// The medium and the plan.
    pub flash: Flash<'a>,
    /// Simulated time at which the request was submitted.
    pub now: Ps,
    /// The controller's work on the command: map accesses wait for it.
    pub command: OpId,
    /// The number of the command: no two have the same, whatever `command` is.
    pub number: u64,
    /// Every operation with a smaller number is complete.
    pub oldest_unfinished: OpId,
    /// Pages of the same request that follow the one that is looked up.
    pub ahead: u32,
    /// Where copies came from whose programs may not be complete.
    pub copies: &'a mut Copies,
    /// Programs that took host data to flash, in order.
    pub programmed: &'a mut Vec<Programmed>,
    /// Pages whose map entry changed, in order, where the drive hands entries out (see
    /// [`Ftl::export_entries`]).
    pub remapped: Option<&'a mut Vec<Lpn>>,
}

impl FtlContext<'_> {
    /// Whether there is such an operation and it may be unfinished: others need no waiting for.
    #[inline]
    pub(crate) fn may_be_unfinished(&self, op: OpId) -> bool {
        op != OpId::NONE && op >= self.oldest_unfinished
    }

    /// The map entry of a page is another from now on.
    #[inline]
    pub(crate) fn remap(&mut self, lpn: Lpn) {
        if let Some(pages) = &mut self.remapped {
            pages.push(lpn);
        }
    }
}

/// A program that took host data to flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Programmed {
    /// The operation; [`OpId::NONE`] where a unit was replaced in the page buffer before it went
    /// out.
    pub op: OpId,
    /// Mapping units of host data in it.
    pub units: u32,
}

/// Answer to [`Ftl::idle`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idle {
    /// There is nothing worth doing.
    Nothing,
    /// One piece of work was done.
    Worked,
    /// There will be something to do, from then on.
    Wait(Ps),
}

/// Where the newest version of a logical page is.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// Nobody wrote it, or it was trimmed: it reads as zeros.
    Nowhere,
    /// On flash.
    Flash(Ppn),
    /// In the page buffer of the scheme, waiting for the rest of its frame.
    Buffer(Unit),
}

/// Answer to [`Ftl::locate`].
#[derive(Clone, Debug)]
pub struct Located {
    /// Where the page is.
    pub place: Place,
    /// The map access that a read must wait for.
    pub ready: OpId,
}

/// A flash translation layer.
pub trait Ftl: Send {
    /// Find the newest version of a page. Costs map accesses, no data read.
    ///
    /// # Errors
    /// When the map itself cannot be read.
    fn locate(&mut self, cx: &mut FtlContext<'_>, lpn: Lpn) -> Result<Located, FtlError>;

    /// Where the newest version of a page is, at no cost: how the simulator looks behind the
    /// drive's back.
    fn peek(&self, lpn: Lpn) -> Place;

    /// These pages are about to be asked for: load their entries from memory, all at once. Nothing
    /// else comes of it.
    fn prefetch(&self, lpns: &[Lpn]) {
        let _ = lpns;
    }

    /// This page is about to be written, and its entry was expected before: load what is known of
    /// where it is. Nothing else comes of it.
    fn prefetch_write(&self, lpn: Lpn) {
        let _ = lpn;
    }

    /// Bring the map entries of consecutive pages, which [`Ftl::peek`] shows, to the controller, to
    /// hand them to the host. Returns the operation after which they are there. From then on every
    /// change of an entry is told in [`FtlContext::remapped`].
    ///
    /// # Errors
    /// When the map cannot be read.
    ///
    /// # Panics
    /// Where the map store hands nothing out ([`maps::MapStoreDef::exports_entries`]).
    fn export_entries(
        &mut self,
        cx: &mut FtlContext<'_>,
        pages: std::ops::Range<u32>,
    ) -> Result<OpId, FtlError> {
        let _ = (cx, pages);
        unreachable!("this scheme hands no map out")
    }

    /// Write consecutive logical pages of one request. Units may stay in the page buffer until a
    /// frame is full; programs that take them out are appended to [`FtlContext::programmed`].
    /// Programs wait for `after`.
    ///
    /// # Errors
    /// [`FtlError::NoSpace`] when collection cannot free a block.
    fn write(
        &mut self,
        cx: &mut FtlContext<'_>,
        run: &[Unit],
        cause: Cause,
        after: &[OpId],
    ) -> Result<(), FtlError>;

    /// Program every page of a blank drive in ascending order, where it is known without tables
    /// what that leaves. None are kept: the scheme must be mounted afterwards. `stamp` gives what
    /// each page holds; `go_on` hears now and then how many were programmed, and stops it by
    /// answering `false`. Returns whether all were; `None` where nothing was done, and
    /// [`Ftl::write`] is to be called.
    fn fill_blank(
        &mut self,
        medium: &mut Medium,
        stamp: &(dyn Fn(Lpn) -> Stamp + Sync),
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Option<bool> {
        let _ = (medium, stamp, go_on);
        None
    }

    /// Forget a page.
    ///
    /// # Errors
    /// When the map cannot be updated.
    fn trim(&mut self, cx: &mut FtlContext<'_>, lpn: Lpn) -> Result<(), FtlError>;

    /// Bring everything that is buffered to flash, padding frames where needed. Each program keeps
    /// the cause with which its units were written.
    ///
    /// # Errors
    /// As [`Ftl::write`].
    fn flush(&mut self, cx: &mut FtlContext<'_>) -> Result<(), FtlError>;

    /// Make the map as durable as a FLUSH (or, with `fua`, a FUA write) needs it, once
    /// [`Ftl::flush`] has brought the data to flash. Returns the operation that the command waits
    /// for beside that data.
    ///
    /// # Errors
    /// As [`Ftl::write`].
    fn persist(&mut self, cx: &mut FtlContext<'_>, fua: bool) -> Result<OpId, FtlError> {
        let _ = (cx, fua);
        Ok(OpId::NONE)
    }

    /// Do one small piece of background work, if there is any worth doing.
    ///
    /// # Errors
    /// As [`Ftl::write`].
    fn idle(&mut self, cx: &mut FtlContext<'_>) -> Result<Idle, FtlError>;

    /// Show every block: what it is used for, and how many of its slots are valid.
    fn for_each_block(&self, visit: &mut dyn FnMut(BlockId, Role, u32));

    /// The stamps of all pages, on flash and in buffers. None where it takes as long as asking for
    /// each page.
    fn sum_of_stamps(&self, _: &Medium) -> Option<StampSum> {
        None
    }

    /// The O(n) rules of the scheme's tables against the medium.
    ///
    /// # Errors
    /// The first rule that does not hold.
    fn check(&self, medium: &Medium) -> Result<(), Violation>;

    /// Counters and table sizes.
    fn report(&self) -> FtlReport;

    /// Set the counters of [`Ftl::report`] to zero; table sizes stay.
    fn reset_counters(&mut self);
}
