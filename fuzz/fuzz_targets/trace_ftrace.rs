//! The ftrace reader, whatever it is given.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flashatlas_fuzz::read(Some("ftrace"), data));
