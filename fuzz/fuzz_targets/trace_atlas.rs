//! The atlas reader and its index, with any input.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    flashatlas_fuzz::read(Some("atlas"), data);
    flashatlas_fuzz::seek(data);
});
