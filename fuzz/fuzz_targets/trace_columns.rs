//! The columns reader, with any input.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flashatlas_fuzz::read(
    Some("columns:time=0:us,op=1,offset=2:bytes,size=3:sectors,device=4"),
    data
));
