//! Every file of a registry's folder is one of its entries.

use flashatlas_sim::metrics::METRICS;
use flashatlas_testing::registries::assert_registered;

#[test]
fn every_file_is_registered() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/metrics");
    assert_registered(folder, &[], METRICS.iter().map(|metric| metric.name));
}
