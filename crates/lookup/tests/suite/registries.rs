//! Tests that every file in a registry's folder is registered.

use flashatlas_fixtures::registries::assert_registered;
use flashatlas_lookup::hashes::HASHES;

#[test]
fn every_file_is_registered() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/hashes");
    assert_registered(folder, &[], HASHES.iter().map(|hash| hash.name));
}
