//! The drive and its layers, tried as a host sees them. `crates/ftl/tests` tries the schemes and
//! map stores on whole drives.

mod command_time;
mod completions;
mod config;
mod images;
mod map_reads;
mod write_cache;
