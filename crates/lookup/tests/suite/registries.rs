//! Every file of a registry's folder is one of its entries.

use flashatlas_fixtures::registries::assert_registered;
use flashatlas_lookup::hashes::HASHES;

#[test]
fn every_file_is_registered() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/hashes");
    assert_registered(folder, &[], HASHES.iter().map(|hash| hash.name));
}
