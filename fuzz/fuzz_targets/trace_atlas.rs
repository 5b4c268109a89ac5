//! The atlas reader and its index, whatever it is given.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    flashatlas_fuzz::read(Some("atlas"), data);
    flashatlas_fuzz::seek(data);
});
