//! Specifications of runs: any text is either refused, or has the same meaning after it is written
//! and read again.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(spec) = serde_json::from_str::<flashatlas_sim::RunSpec>(text) else { return };
    drop(spec.reading.options());
    let written = serde_json::to_string(&spec).expect("a specification is plain data");
    let again: flashatlas_sim::RunSpec =
        serde_json::from_str(&written).expect("the specification was just written");
    assert_eq!(serde_json::to_string(&again).expect("as before"), written);
});
