//! Names of formats with parameters: any text is used for reading and for writing.
#![no_main]

libfuzzer_sys::fuzz_target!(|spec: &str| flashatlas_fuzz::spec(spec));
