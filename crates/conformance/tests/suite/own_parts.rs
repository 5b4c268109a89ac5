//! Checks with [`check`] that every part of the project keeps its promises.

use crate::standard;
use flashatlas_conformance::{Effort, Outcome, all, check};
use flashatlas_fixtures::proofs::one_in;

/// Tries the parts; `make test` tries one part in six.
///
/// `make crash` also tries the power failures of parts.
#[test]
fn each_keeps_its_promises() {
    let parts = standard();
    let effort = Effort { one_in: 150 * one_in() as u32, requests: 500, seed: 1 };
    let step = if one_in() > 1 { 6 } else { 1 };
    let of_drives = [
        "scheme",
        "map store",
        "victim policy",
        "classifier",
        "map cache policy",
        "hash function",
        "layer",
    ];
    let (mut tried, mut few) = (0, Vec::new());
    for part in all(&parts).into_iter().step_by(step) {
        let (kind, name) = part.named();
        let report = check(&parts, name, &effort, &mut |_| true).unwrap();
        assert!(report.broken().next().is_none(), "{report}");
        let kept = |p: &&flashatlas_conformance::Promise| matches!(p.outcome, Outcome::Kept { .. });
        tried += 1;
        if of_drives.contains(&kind) && report.promises.iter().filter(kept).count() < 8 {
            few.push(name);
        }
    }
    assert!(few.is_empty() && tried >= 8, "{tried} tried, few promises of {few:?}");
}

#[test]
fn none_is_left_out() {
    let parts = standard();
    let named: Vec<_> = all(&parts).into_iter().map(|part| part.named()).collect();
    let of = |kind: &str| named.iter().filter(|(k, _)| *k == kind).count();
    assert_eq!(of("scheme"), parts.drives.ftl.schemes.names().len());
    assert_eq!(of("map store"), parts.drives.ftl.stores.names().len());
    assert_eq!(of("victim policy"), parts.drives.ftl.victims.names().len());
    assert_eq!(of("classifier"), parts.drives.ftl.classifiers.names().len());
    assert_eq!(of("map cache policy"), parts.drives.ftl.caching.names().len());
    assert_eq!(of("hash function"), parts.drives.hashes().names().len());
    assert_eq!(of("layer"), parts.drives.layers.names().len());
    assert_eq!(of("trace format"), parts.workloads.formats.names().len());
    assert_eq!(of("generator"), parts.workloads.generators.names().len());
}
