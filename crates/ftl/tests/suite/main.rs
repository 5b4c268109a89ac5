//! Tests of schemes, map stores and policies. They are compared with independent references and
//! with results calculated by hand. Whole drives are compared with a plain array, and the power is
//! cut at every operation.

mod base;
mod clean_maps;
mod collection;
mod filled;
mod learned;
mod log_blocks_reference;
mod map_stores;
mod merge_scripts;
mod model;
mod naive;
mod nvm_hybrid;
mod plan_graph;
mod power_cuts;
mod registries;
mod slc_reference;
mod store_references;
mod wear;
mod whole_drives;
mod worn_out;
