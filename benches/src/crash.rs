//! Power failures on one core. After each, the drive is mounted, compared, checked, mounted again,
//! written, mounted and compared.

use crate::now;
use flashatlas_crash::{CrashSpec, run};
use flashatlas_host::STANDARD;

/// Returns a plan of power failures of page mapping on the smallest drive, on one core.
pub fn plan(workload: &str) -> CrashSpec {
    CrashSpec {
        schemes: vec!["page.1".into()],
        stores: vec!["dram.1".into()],
        geometries: vec!["mini".into()],
        workloads: vec![workload.into()],
        threads: 1,
        ..CrashSpec::default()
    }
}

pub fn print() {
    for workload in ["random", "hot-cold"] {
        let begin = now();
        let plan = CrashSpec { seeds: 60, ..plan(workload) };
        let report = run(&STANDARD, &plan, &mut |_, _| true).expect("names that exist");
        let seconds = begin.elapsed().as_secs_f64();
        let (cuts, mounts) = (report.rows[0].cuts, report.rows[0].tally.mounts);
        assert_eq!(report.violations(), 0);
        println!(
            "power failures, page mapping, mini, {workload:<9} {:>9.0} cuts a second, {:.0} mounts \
             (goal 100,000 cuts)",
            cuts as f64 / seconds,
            mounts as f64 / seconds
        );
    }
}
