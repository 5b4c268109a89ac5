//! Check that every file in a registry's folder is an entry of the registry.

use flashatlas_fixtures::registries::assert_registered;
use flashatlas_sim::metrics::METRICS;

#[test]
fn every_file_is_registered() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/metrics");
    assert_registered(folder, &[], METRICS.iter().map(|metric| metric.name));
}
