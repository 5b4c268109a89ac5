//! Tests that every file in a registry's folder is registered.

use flashatlas_lookup::hashes::HASHES;
use flashatlas_testing::registries::assert_registered;

#[test]
fn every_file_is_registered() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/hashes");
    assert_registered(folder, &[], HASHES.iter().map(|hash| hash.name));
}
