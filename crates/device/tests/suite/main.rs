//! Tests of the drive and its layers through the host's interface. `crates/ftl/tests` tests the
//! schemes and map stores on whole drives.

mod command_time;
mod completions;
mod config;
mod copybacks;
mod idle;
mod images;
mod map_pages_that_rest;
mod map_reads;
mod modes_and_errors;
mod parity;
mod power;
mod program_steps;
mod refresh;
mod retries;
mod shared_dram;
mod smart;
mod throttle;
mod worn_out;
mod write_cache;
