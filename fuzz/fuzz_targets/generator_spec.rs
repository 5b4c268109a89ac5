//! Specifications of generators: an input is eight bytes of capacity in sectors, then the text.
#![no_main]

use flashatlas_types::Seed;
use flashatlas_workload::generate;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((capacity, spec)) = data.split_first_chunk::<8>() else { return };
    let capacity = u64::from_le_bytes(*capacity);
    let Ok(spec) = std::str::from_utf8(spec) else { return };
    let Ok(mut source) = generate(spec, capacity, Seed(1)) else { return };
    let expected = source.expected().expect("a generator knows how many requests it makes");
    for _ in 0..expected.min(1000) {
        let record =
            source.next().expect("a generator reads nothing").expect("as many as expected");
        assert!(record.request.end().is_some_and(|end| end <= capacity), "{spec}: {record:?}");
    }
    if expected <= 1000 {
        assert_eq!(source.next(), Ok(None));
    }
});
