//! The drive and its layers, tried as a host sees them.

mod collection;
mod command_time;
mod completions;
mod config;
mod filled;
mod images;
mod learned;
mod log_blocks_reference;
mod map_reads;
mod map_stores;
mod merge_scripts;
mod model;
mod naive;
mod nvm_hybrid;
mod plan_graph;
mod power_cuts;
mod wear;
mod whole_drives;
mod worn_out;
mod write_cache;
