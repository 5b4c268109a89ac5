//! The JSON lines reader, whatever it is given.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flashatlas_fuzz::read(
    Some("jsonl:time=t:us,op=io.op,offset=io.at:bytes,size=n:sectors,device=d"),
    data
));
