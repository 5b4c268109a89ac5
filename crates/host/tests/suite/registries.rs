//! Tests that every file in a registry's folder is registered.

use flashatlas_fixtures::registries::assert_registered;
use flashatlas_host::LAYERS;

#[test]
fn every_file_is_registered() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    assert_registered(
        folder,
        &["completion", "notes", "wire"],
        LAYERS.iter().map(|layer| layer.name),
    );
}
