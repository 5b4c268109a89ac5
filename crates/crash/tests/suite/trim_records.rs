//! Cuts between the frames of a trim record, on a drive whose trim bitmap is longer than a frame.

use flashatlas_crash::cut::Cut;
use flashatlas_crash::model::Step;
use flashatlas_crash::{Depth, Enumerator, Failure, Faults, Recording, Tally};
use flashatlas_host::STANDARD;

/// Tries all cuts of a workload of trims on a drive with pages of one sector, and returns the
/// tally.
///
/// 200 single pages are trimmed. First 100 pages in the second half of the drive are trimmed and
/// flushed, and then 100 pages in the first half.
pub fn enumerate(failures: &mut Vec<(String, Failure)>) -> Tally {
    let settings = [
        "ftl.scheme=block",
        "drive.channels=1",
        "drive.ways=1",
        "drive.page_bytes=512",
        "map.unit=512",
        "drive.pages=16",
        "drive.blocks=300",
        "drive.logical_pages=4600",
        "cache.mode=write-through",
    ];
    let config =
        STANDARD.load("tiny", None, &settings.map(str::to_owned)).unwrap_or_else(|e| panic!("{e}"));
    let trims = |from: u32| (0..100).map(move |i| Step::Trim { lba: from + i * 20, sectors: 1 });
    let mut steps: Vec<Step> = trims(2500).chain([Step::Flush]).chain(trims(3)).collect();
    steps.extend([Step::Flush, Step::Write { lba: 3, sectors: 1, fua: false }, Step::Flush]);
    let recording = Recording::make(&config, &steps, true, None).unwrap_or_else(|e| panic!("{e}"));
    let depth = Depth { cuts: 2, faults: Faults::ALL };
    let mut note = |cuts: &[Cut], failure| failures.push((format!("{cuts:?}"), failure));
    Enumerator::new(&config, depth, None, &mut note).run(&recording)
}

#[test]
fn a_record_counts_when_all_of_it_is_there() {
    let mut failures = Vec::new();
    let tally = enumerate(&mut failures);
    assert!(failures.is_empty(), "{failures:?}");
    assert!(
        tally.torn >= 12,
        "two records of two frames each, and three ways to tear a frame: {tally:?}"
    );
}
