//! Damaged specifications and drive files.
//!
//! A damaged text is refused with a reason, or it has the same meaning after it was written and
//! read again.

use flashatlas_fixtures::damage::{copies, corpus};
use flashatlas_host::STANDARD;
use flashatlas_sim::RunSpec;
use flashatlas_types::{Rng, Seed};

const COPIES: usize = 10_000;

#[test]
fn damaged_specifications_are_refused_or_mean_something() {
    const PIECES: &[&str] = &[
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "null",
        "true",
        "-1",
        "1e309",
        "5555555555555555555555.5",
        "18446744073709551615",
        "\"seed\":1,",
        "\"mode\":\"open\",",
        "\"warmup\":0,",
        "\\u0000",
        "\u{e9}",
        "fill",
        "select:",
        "ms",
    ];
    let mut rng = Rng::stream(Seed(8), "damaged specifications");
    let (mut read, mut refused) = (0, 0);
    for text in copies(&corpus("run_spec", 3), COPIES, PIECES, &mut rng) {
        match serde_json::from_str::<RunSpec>(&text) {
            Ok(spec) => {
                read += 1;
                if let Err(error) = spec.reading.options() {
                    assert!(!error.to_string().is_empty());
                }
                let written = serde_json::to_string(&spec).unwrap();
                let again: RunSpec = serde_json::from_str(&written).unwrap();
                assert_eq!(serde_json::to_string(&again).unwrap(), written, "{text}");
            }
            Err(error) => {
                refused += 1;
                assert!(error.line() > 0, "{error}");
            }
        }
    }
    assert!(read > 500 && refused > 3000, "{read} {refused}");
}

#[test]
fn damaged_drive_files_are_refused_with_a_place_or_are_drives() {
    const PIECES: &[&str] = &[
        "=",
        ".",
        "[",
        "]",
        "\n",
        "\"",
        "0",
        "9",
        "-",
        "1e9",
        "4294967295",
        "18446744073709551615",
        "KiB",
        "TiB",
        "us",
        "true",
        "\"page\"",
        "[ftl]\n",
        "[drive]\n",
        "pages = 1\n",
        "blocks = 4000000000\n",
        "scheme = \"mast\"\n",
        "\u{e9}",
        "{",
    ];
    let mut rng = Rng::stream(Seed(9), "damaged drive files");
    let (mut drives, mut refused) = (0, 0);
    let based = "[drive]\nbase = \"tiny\"\nblocks = 40\npages = 16\n\n[ftl]\nvictim = \"fifo\"\n\
                 idle_valid = 0.25\n\n[timing]\nt_program = \"300us\"\n";
    let originals = corpus("config_toml", 3).into_iter().flat_map(|text| [based.to_owned(), text]);
    let originals: Vec<String> = originals.collect();
    for text in copies(&originals, COPIES, PIECES, &mut rng) {
        match STANDARD.load("own.toml", Some(&text), &[]) {
            Ok(config) => {
                drives += 1;
                let layout = config.layout().unwrap();
                assert!(layout.logical_units <= layout.slots());
                assert_eq!(
                    config.with(&[]).unwrap().pairs().collect::<Vec<_>>(),
                    config.pairs().collect::<Vec<_>>()
                );
            }
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    assert!(drives > 300 && refused > 3000, "{drives} {refused}");
}
