//! The name of a format and its parameters, whatever they say, for reading and for writing.
#![no_main]

libfuzzer_sys::fuzz_target!(|spec: &str| flashatlas_fuzz::spec(spec));
