//! Tests that every file in a registry's folder is registered.

use flashatlas_host::LAYERS;
use flashatlas_testing::registries::assert_registered;

#[test]
fn every_file_is_registered() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    assert_registered(
        folder,
        &["completion", "notes", "wire"],
        LAYERS.iter().map(|layer| layer.name),
    );
}
