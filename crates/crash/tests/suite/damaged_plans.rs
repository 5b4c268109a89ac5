//! Damaged plans and identities: each text is refused with a one-line error, or carried out.

use flashatlas_crash::{CrashError, CrashSpec, Id, rerun, run};
use flashatlas_fixtures::damage::{copies, corpus};
use flashatlas_fixtures::proofs;
use flashatlas_host::STANDARD;
use flashatlas_types::{Rng, Seed};

const COPIES: usize = 4_000;
const PIECES: &[&str] = &[
    ":",
    ".",
    "@",
    "*",
    "-",
    "9",
    "18446744073709551615",
    "page",
    "mini",
    "lanes",
    ".2",
    "random",
    "g",
    "fp",
    "fx",
    "um",
    "x0",
    "l1",
    "a",
    "\u{e9}",
    "{",
    "}",
    "\"",
    ",",
    "null",
    "-1",
    "\"depth\":5,",
    "\"steps\":0,",
    "\"seeds\":18446744073709551615,",
];

/// Returns `true` if a damaged text was accepted.
fn survive(text: &str) -> bool {
    let one_line = |error: CrashError| {
        let error = error.to_string();
        assert!(!error.is_empty() && !error.contains('\n'), "{text}: {error}");
    };
    let mut accepted = false;
    match text.parse::<Id>() {
        Ok(id) => {
            assert_eq!(id.to_string().parse::<Id>().as_ref(), Ok(&id), "{text}");
            // only short workloads are run, because longer ones would test nothing more
            if id.steps <= 40 && id.cuts.len() <= 2 {
                match rerun(&STANDARD, text, &[]) {
                    Ok(found) => {
                        accepted = true;
                        assert!(found.is_none(), "{found:?}");
                    }
                    Err(error) => one_line(error),
                }
            }
        }
        Err(error) => one_line(error),
    }
    if let Ok(plan) = serde_json::from_str::<CrashSpec>(text) {
        let plan = CrashSpec {
            steps: plan.steps.min(4),
            depth: plan.depth.min(1),
            threads: 1,
            minimise: false,
            ..plan
        };
        // the run is stopped at the first report of progress
        match run(&STANDARD, &plan, &mut |_, _| false) {
            Ok(report) => {
                accepted = true;
                assert!(report.stopped && report.found.is_empty(), "{:?}", report.found);
            }
            Err(error) => one_line(error),
        }
    }
    accepted
}

#[test]
fn damaged_plans_are_refused_or_gone_through() {
    let mut rng = Rng::stream(Seed(7), "damaged plans");
    let (mut accepted, mut refused) = (0, 0);
    for text in copies(&corpus("crash_plan", 4), proofs::cases(COPIES), PIECES, &mut rng) {
        *if survive(&text) { &mut accepted } else { &mut refused } += 1;
    }
    let least = (proofs::cases(COPIES * 3 / 100), proofs::cases(COPIES * 3 / 10));
    assert!(accepted > least.0 && refused > least.1, "{accepted} {refused}");
}
