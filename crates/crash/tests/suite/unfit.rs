//! Settings that do not fit a stack are refused before the first workload runs.

use flashatlas_crash::{CrashError, CrashSpec, run};
use flashatlas_host::STANDARD;

/// Returns the refusal of a plan, which comes before any workload is done.
fn refused(plan: &CrashSpec) -> CrashError {
    let mut most = 0;
    let result = run(&STANDARD, plan, &mut |done, _| {
        most = most.max(done);
        true
    });
    assert_eq!(most, 0, "workloads ran before the refusal");
    result.map(|report| report.rows.len()).expect_err("a stack does not take the settings")
}

fn plan(schemes: &[&str], set: &[&str]) -> CrashSpec {
    let texts = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
    CrashSpec {
        schemes: texts(schemes),
        stores: texts(&["dram", "-"]),
        layers: texts(&["-"]),
        geometries: texts(&["mini"]),
        workloads: texts(&["sequential", "random"]),
        set: texts(set),
        steps: 20,
        ..CrashSpec::default()
    }
}

#[test]
fn a_setting_that_one_stack_does_not_take_is_refused_before_the_others_run() {
    // streams need page mapping with two frontiers
    let error = refused(&plan(&["page.1", "bast.1"], &["ftl.streams=2"]));
    let CrashError::Unfit { stacks, others, .. } = &error else { panic!("{error}") };
    assert_eq!(stacks, &["bast:-"]);
    assert!(others.contains(&"page:dram".into()), "{others:?}");
    let text = error.to_string();
    for part in ["ftl.streams=2 does not fit bast:- on `mini`", "--scheme", "page:dram"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // the reason names the key, and says what is allowed
    let key = text.split("does not fit").nth(1).unwrap();
    assert!(key.contains("ftl.streams"), "{text}");
}

#[test]
fn a_setting_that_no_stack_takes_says_so() {
    for set in ["ftl.victim=gredy", "no.such_key=1", "nand.endurance=x"] {
        let text = refused(&plan(&["page"], &[set])).to_string();
        assert!(text.ends_with("; no stack takes it"), "{text}");
        assert!(text.contains(set.split('=').next().unwrap()), "{text}");
    }
}

#[test]
fn settings_that_fit_run() {
    let found = run(&STANDARD, &plan(&["page.1"], &["ftl.streams=2"]), &mut |_, _| true);
    assert!(found.unwrap().rows.iter().all(|row| row.cuts > 0));
}
