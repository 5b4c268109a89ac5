//! The oraclegeneral reader, with any input.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flashatlas_fuzz::read(Some("oraclegeneral"), data));
