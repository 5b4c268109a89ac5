//! Tests that compare the example, page mapping in C, with the built-in page mapping.

use crate::build;
use flashatlas_crash::{CrashSpec, run as crash};
use serde_json::json;

fn spec(set: &[&str]) -> serde_json::Value {
    json!({ "drive": "tiny", "precondition": "fill", "set": set,
        "workload": "uniform:requests=20000,size=2KiB" })
}

#[test]
fn page_mapping_in_c_costs_what_our_own_does() {
    let library = build::loaded(&build::example("page.c"));
    let registry = build::registry(&library);
    let record = |scheme: &str| {
        let set =
            [&*format!("ftl.scheme={scheme}"), "drive.blocks=64", "drive.over_provisioning=0.3"];
        build::played(&registry, spec(&set)).unwrap()
    };
    let (own, c) = (record("page"), record("page-c"));
    let waf = |r: &serde_json::Value| r["waf"].as_f64().unwrap();
    // both policies are greedy with two frontiers, but they differ in the blocks that they reserve
    // and in how they break ties
    assert!((waf(&c) / waf(&own) - 1.0).abs() < 0.1, "{} {}", waf(&c), waf(&own));
    assert_eq!(c["oracle"]["violations"], 0);
    assert!(c["scheme"]["copies"].as_u64().unwrap() > 1000, "{}", c["scheme"]);
    // both declare the map of 2 KiB pages
    let map = |r: &serde_json::Value| r["memory_bytes"]["tables"].to_string();
    assert!(map(&c).contains("map (L2P)"), "{}", map(&c));
}

#[test]
fn page_mapping_in_c_survives_every_sampled_cut() {
    let library = build::loaded(&build::example("page.c"));
    let registry = build::registry(&library);
    for depth in [1, 2] {
        let plan = CrashSpec {
            schemes: vec!["page-c".into()],
            depth,
            steps: if depth == 1 { 120 } else { 50 },
            one_in: 4,
            ..CrashSpec::default()
        };
        let report = crash(&registry, &plan, &mut |_, _| true).unwrap();
        assert!(report.found.is_empty(), "{:#?}", &report.found[..report.found.len().min(12)]);
        let cuts: u64 = report.rows.iter().map(|r| r.cuts).sum();
        assert!(cuts > 100, "{cuts}");
    }
}
