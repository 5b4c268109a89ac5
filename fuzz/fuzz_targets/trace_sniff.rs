//! Recognition of compression and format, and then the reader that was recognised.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flashatlas_fuzz::read(None, data));
