//! The columns reader, whatever it is given.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flashatlas_fuzz::read(
    Some("columns:time=0:us,op=1,offset=2:bytes,size=3:sectors,device=4"),
    data
));
