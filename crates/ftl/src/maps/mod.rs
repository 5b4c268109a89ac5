//! Map stores: where the logical-to-physical map lives, what a lookup costs, and what survives a
//! power cut. One file each; what they share is in `map_pages`, what is asked of them in
//! [`crate::map_store`].

mod cdftl;
mod demand;
mod dftl;
mod dram;
mod leaftl;
mod lpmt;
mod nvm_hybrid;
mod sftl;
mod tpftl;

use crate::map_store::MapStoreDef;
use flashatlas_types::{ConfigError, ParamDef, ParamKind};

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
    lpmt::DEF,
];

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
