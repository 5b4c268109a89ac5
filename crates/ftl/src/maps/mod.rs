//! Map stores: where the logical-to-physical map lives.

mod dram;

use crate::{Cx, MapCounters, MemoryUse};
use flashatlas_types::{ConfigError, FtlError, Layout, Lpn, OpId, ParamDef, ParamKind, Params, Ppn};

/// The map of a page-mapped scheme.
pub trait MapStore: Send {
    /// Look up a page for the host: costs accesses, and returns the operation that the answer waits for.
    ///
    /// # Errors
    /// When the map cannot be read.
    fn get(&mut self, cx: &mut Cx<'_>, lpn: Lpn) -> Result<(Ppn, OpId), FtlError>;

    /// The entry as the simulator knows it, at no cost.
    fn peek(&self, lpn: Lpn) -> Ppn;

    /// Change an entry; returns what it was.
    ///
    /// # Errors
    /// When the map cannot be written.
    fn set(&mut self, cx: &mut Cx<'_>, lpn: Lpn, ppn: Ppn) -> Result<Ppn, FtlError>;

    /// Accesses so far.
    fn counters(&self) -> MapCounters;

    /// Set the counters to zero.
    fn reset_counters(&mut self);

    /// The store's tables.
    fn memory(&self) -> Vec<MemoryUse>;
}

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
    /// Build it, empty.
    pub build: fn(&Params, &Layout) -> Box<dyn MapStore>,
}

/// All map stores.
pub const MAPS: &[MapStoreDef] = &[dram::DEF];

/// Parameters that select a map store.
pub const PARAMS: &[ParamDef] = &[ParamDef {
    key: "map.store",
    kind: ParamKind::Name(|| MAPS.iter().map(|m| m.name).collect()),
    default: Some("dram"),
    doc: "where the map of a page-mapped scheme lives",
}];

/// The store called `name`.
///
/// # Errors
/// Unknown names, with those that exist.
pub fn map_by_name(name: &str) -> Result<&'static MapStoreDef, ConfigError> {
    flashatlas_types::by_name(MAPS, |m| m.name, "map.store", "map store", name)
}
