//! The JSON lines reader, with any input.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flashatlas_fuzz::read(
    Some("jsonl:time=t:us,op=io.op,offset=io.at:bytes,size=n:sectors,device=d"),
    data
));
