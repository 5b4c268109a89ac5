//! Schemes, map stores and policies: compared with independent references, worked out by hand, and
//! on whole drives compared with a plain array, with the power cut at every operation.

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
mod store_references;
mod wear;
mod whole_drives;
mod worn_out;
