//! Test that every file in the folder of a registry is one of its entries.

use flashatlas_fixtures::registries::assert_registered;
use flashatlas_ftl::caching::CACHE_POLICIES;
use flashatlas_ftl::classifiers::CLASSIFIERS;
use flashatlas_ftl::maps::MAPS;
use flashatlas_ftl::schemes::SCHEMES;
use flashatlas_ftl::victims::VICTIMS;
use std::path::Path;

#[test]
fn every_file_is_registered() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    assert_registered(src.join("schemes"), &["registry"], SCHEMES.iter().map(|s| s.name));
    assert_registered(src.join("victims"), &["tournament"], VICTIMS.iter().map(|v| v.name));
    assert_registered(src.join("maps"), &["pages"], MAPS.iter().map(|m| m.name));
    assert_registered(src.join("classifiers"), &[], CLASSIFIERS.iter().map(|c| c.name));
    assert_registered(src.join("caching"), &[], CACHE_POLICIES.iter().map(|c| c.name));
}
