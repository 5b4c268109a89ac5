//! The clock of images, and the effects of a rest on the bits, which the next mount finds.

use crate::begin;
use flashatlas_serve::{ServeSpec, age, check};
use std::path::Path;

const YEAR: u32 = 31_536_000;

/// Returns the plan of a drive with 8192 x 1e-5 t wrong bits in a codeword after t days at rest:
/// 0.08 after a day, 30 after a year and 60 after two years. The code corrects 40 bits, and a retry
/// changes nothing.
fn plan(image: &Path, more: &[&str]) -> ServeSpec {
    let set = [
        "errors.model=tlc-72l",
        "errors.e=0",
        "errors.a=0",
        "errors.b=1e-5",
        "errors.m=0",
        "errors.n=1",
        "errors.g=0",
        "errors.block_spread=0",
        "ecc.code=bch",
        "ecc.retry_gain=1",
    ];
    let set: Vec<&str> = set.iter().chain(more).copied().collect();
    let plan = serde_json::json!({ "drive": "tiny", "set": set, "image": image });
    serde_json::from_value(plan).expect("a plan")
}

/// Returns the bytes of a unit.
fn bytes(unit: u64) -> Vec<u8> {
    vec![unit as u8 + 1; 2048]
}

fn written(plan: &ServeSpec, units: std::ops::Range<u64>) {
    let server = begin(plan);
    for unit in units {
        server.write(&bytes(unit), 2048 * unit, false).unwrap();
    }
    assert_eq!(server.end().complaint, None);
}

/// Returns the number of units that hold the written bytes. Reads of the other units must fail.
fn held(plan: &ServeSpec, units: u64) -> u64 {
    let server = begin(plan);
    let mut read = vec![0; 2048];
    let mut right = 0;
    for unit in 0..units {
        if server.read(&mut read, 2048 * unit).is_ok() {
            assert!(read == bytes(unit), "unit {unit} holds other bytes than were written");
            right += 1;
        }
    }
    server.end();
    right
}

#[test]
fn an_image_that_rests_for_two_years_loses_what_a_year_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("drive.img");
    let plan = plan(&image, &[]);
    written(&plan, 0..120);
    assert_eq!(held(&plan, 120), 120);
    assert_eq!(age(&plan, YEAR / 2).unwrap(), YEAR / 2);
    assert_eq!(held(&plan, 120), 120, "half a year: 15 wrong bits");
    // these units are written half a year later than the other units, in blocks of their own
    written(&plan, 120..160);
    assert_eq!(age(&plan, 3 * (YEAR / 2)).unwrap(), 2 * YEAR);
    let said = check(&plan).unwrap();
    assert!(said["units"]["written"].as_u64().unwrap() < 40, "{said}");
    // two years: 60 wrong bits of the older units; a year and a half: 45 wrong bits of the younger
    // units
    let left = held(&plan, 160);
    assert!((1..40).contains(&left), "{left} units are left");
    assert_eq!(held(&plan, 160), left, "lost units stay lost, and no other unit is lost");
}

#[test]
fn a_clock_goes_on_without_errors_and_belongs_to_its_drive() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("drive.img");
    let errorless: ServeSpec =
        serde_json::from_value(serde_json::json!({ "drive": "tiny", "image": image })).unwrap();
    written(&errorless, 0..20);
    assert_eq!(age(&errorless, YEAR).unwrap(), YEAR);
    written(&errorless, 20..40);
    // the image has a clock: with errors, all units are four years old. The units that were written
    // without errors after a year count as four years old, too, because their blocks have no time
    assert_eq!(age(&errorless, 3 * YEAR).unwrap(), 4 * YEAR);
    let unit = |set: &[&str]| held(&plan(&image, set), 40);
    assert_eq!(unit(&["ecc.correctable=2000"]), 40);
    assert_eq!(unit(&[]), 0, "120 wrong bits");
    let missing = plan(&folder.path().join("none.img"), &[]);
    assert!(age(&missing, 1).is_err());
}
