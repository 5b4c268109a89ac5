//! Plans and identities of power failures: any text is either refused or carried out. A plan runs
//! on one thread.
#![no_main]

use flashatlas_crash::{CrashSpec, Id};
use flashatlas_host::STANDARD;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(id) = text.parse::<Id>() {
        assert_eq!(id.to_string().parse::<Id>().as_ref(), Ok(&id), "{text}");
        if id.steps <= 40 && id.cuts.len() <= 2 {
            drop(flashatlas_crash::rerun(&STANDARD, text, &[]));
        }
    }
    if let Ok(plan) = serde_json::from_str::<CrashSpec>(text) {
        // stop at the first report of progress: then names, bounds and the first workloads are
        // checked
        let plan = CrashSpec {
            steps: plan.steps.min(10),
            depth: plan.depth.min(1),
            threads: 1,
            minimise: false,
            ..plan
        };
        drop(flashatlas_crash::run(&STANDARD, &plan, &mut |_, _| false));
    }
});
