//! Every part that comes with the project keeps what parts promise, by the call that anybody makes.

use crate::standard;
use flashatlas_conformance::{Effort, Outcome, all, check};
use flashatlas_testing::proofs::one_in;

#[test]
fn none_is_left_out_and_each_keeps_its_promises() {
    let parts = standard();
    let effort = Effort { one_in: 150 * one_in() as u32, requests: 500, seed: 1 };
    let mut tried = Vec::new();
    for part in all(&parts) {
        let (kind, name) = part.named();
        let report = check(&parts, name, &effort, &mut |_| true).unwrap();
        assert!(report.broken().next().is_none(), "{report}");
        let kept = |p: &&flashatlas_conformance::Promise| matches!(p.outcome, Outcome::Kept { .. });
        tried.push((kind, name, report.promises.iter().filter(kept).count()));
    }
    let of = |kind: &str| tried.iter().filter(|(k, ..)| *k == kind).count();
    assert_eq!(of("scheme"), parts.drives.ftl.schemes.names().len());
    assert_eq!(of("map store"), parts.drives.ftl.stores.names().len());
    assert_eq!(of("victim policy"), parts.drives.ftl.victims.names().len());
    assert_eq!(of("classifier"), parts.drives.ftl.classifiers.names().len());
    assert_eq!(of("layer"), parts.drives.layers.names().len());
    assert_eq!(of("trace format"), parts.workloads.formats.names().len());
    assert_eq!(of("generator"), parts.workloads.generators.names().len());
    let of_drives = ["scheme", "map store", "victim policy", "classifier", "layer"];
    let few: Vec<_> =
        tried.iter().filter(|(kind, _, kept)| of_drives.contains(kind) && *kept < 8).collect();
    assert!(few.is_empty(), "{few:?}");
}
